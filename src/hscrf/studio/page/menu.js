// A menu of what can be done here: by a button, or by the other mouse button. Each entry shows the key that does the same.

import { make } from "./dom.js";

/** @typedef {{words: string, key?: string, off?: boolean, run: () => void}} Entry */

/** @type {HTMLElement | null} */ let shown = null;
/** @type {Element | null} */ let before = null;

function closeMenu() {
  if (!shown) return;
  shown.remove();
  shown = null;
  if (before instanceof HTMLElement) before.focus({ preventScroll: true });
}

/** @param {Entry} entry */
function item(entry) {
  const button = make(
    "button",
    { type: "button", role: "menuitem", tabIndex: -1, "aria-disabled": entry.off ? "true" : null },
    make("span", {}, entry.words),
    entry.key ? make("kbd", {}, entry.key) : null,
  );
  button.addEventListener("click", () => {
    if (entry.off) return;
    closeMenu();
    entry.run();
  });
  return button;
}

/** @param {KeyboardEvent} event */
function walk(event) {
  event.stopPropagation();
  const items = /** @type {HTMLElement[]} */ ([...(shown?.querySelectorAll("[role=menuitem]") || [])]);
  const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else if (to === undefined) return;
  else items[(to + items.length) % items.length]?.focus();
  event.preventDefault();
}

/** Open a menu at a point of the window; it stays inside. @param {string} name @param {Entry[]} entries @param {number} x @param {number} y */
export function openMenu(name, entries, x, y) {
  closeMenu();
  before = document.activeElement;
  /** @type {HTMLElement} */ const menu = make(
    "div",
    { className: "menu", role: "menu", "aria-label": name },
    ...entries.map(item),
  );
  shown = menu;
  (document.querySelector("main") || document.body).append(menu);
  const box = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(4, Math.min(x, innerWidth - box.width - 4))}px`;
  menu.style.top = `${Math.max(4, Math.min(y, innerHeight - box.height - 4))}px`;
  menu.addEventListener("keydown", walk);
  /** @type {HTMLElement | null} */ (menu.querySelector("[role=menuitem]"))?.focus();
}

addEventListener("pointerdown", (event) => {
  if (shown && event.target instanceof Node && !shown.contains(event.target)) closeMenu();
});
addEventListener("blur", closeMenu);
