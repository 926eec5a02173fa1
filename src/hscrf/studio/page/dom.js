// Small helpers for the document. Text always enters as text.

/**
 * An element with properties, listeners (`onclick`), attributes and children.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | null | undefined)} children
 * @returns {any}
 */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "className" || name === "value" || name === "tabIndex") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** @param {string} tag @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** @param {string} id @returns {any} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
}

/** Write only what differs, so that nothing is laid out anew without need. @param {Element} element @param {string} text */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {string} name @param {string | null} value */
export function mark(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

const STILL = 6; // pixels that a pointer may move between press and release

/**
 * Acts on the part of an element that was pressed. No click comes where a repaint between press and release has replaced
 * the part; so the part is known by a key. A click without a pointer comes from the keyboard or a screen reader.
 * @template {string | number} Key
 * @param {HTMLElement} element @param {(part: Element) => Key | null | undefined} keyOf @param {(key: Key) => void} act
 */
export function onPress(element, keyOf, act) {
  const keyAt = (/** @type {Event} */ { target }) => (target instanceof Element ? (keyOf(target) ?? null) : null);
  /** @type {{key: Key | null, x: number, y: number} | null} */ let pressed = null;
  element.addEventListener("pointerdown", (event) => {
    pressed = event.button ? null : { key: keyAt(event), x: event.clientX, y: event.clientY };
  });
  element.addEventListener("pointerup", (event) => {
    const { key, x, y } = pressed ?? { key: null, x: 0, y: 0 };
    pressed = null;
    const still = Math.hypot(event.clientX - x, event.clientY - y) <= STILL;
    if (key !== null && (still || key === keyAt(event))) act(key);
  });
  element.addEventListener("click", (event) => {
    const key = event.detail ? null : keyAt(event);
    if (key !== null) act(key);
  });
}

/** Call once in the next frame, however often it is asked for; `now` calls at once instead. @param {() => void} work */
export function soon(work) {
  let asked = 0;
  const later = () => {
    asked ||= requestAnimationFrame(() => {
      asked = 0;
      work();
    });
  };
  later.now = () => {
    cancelAnimationFrame(asked);
    asked = 0;
    work();
  };
  return later;
}
