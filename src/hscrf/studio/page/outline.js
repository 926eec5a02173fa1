// The same segments as a list for screen readers and for those who prefer one; borders are separators with values.
// It is out of sight until the focus is in it. Near the cursor only: a level may have thousands of segments.

import { byId, make, mark, onPress } from "./dom.js";
import { indexAt, nameOf, sentence } from "./segments.js";

const NEAR = 20; // segments before and after the cursor
const PAUSE = 80; // milliseconds

/** @typedef {import("./types.js").View} View */

export class Outline {
  /** @param {import("./state.js").State} state @param {import("./actions.js").Actions} actions */
  constructor(state, actions) {
    this.state = state;
    this.actions = actions;
    this.element = byId("outline");
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.timer = undefined;
    state.on("shown selection moving", () => this.later());
    onPress(this.element, (part) => part.closest("button")?.id, (id) => this.choose(id));
    this.element.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** Some time after the picture: drawing comes first. */
  later() {
    clearTimeout(this.timer);
    mark(this.element, "aria-busy", "true");
    this.timer = setTimeout(() => this.show(), PAUSE);
  }

  show() {
    const { shown, levels } = this.state;
    if (!shown) return;
    const held = this.element.contains(document.activeElement) ? document.activeElement?.id : "";
    const parts = levels.flatMap((level) => [make("h3", {}, `Level ${level}`), this.list(shown, level)]);
    clearTimeout(this.timer);
    this.element.replaceChildren(...parts);
    mark(this.element, "aria-busy", null);
    const border = held?.startsWith("border-") ? document.getElementById(held) : null;
    if (border) border.focus();
    else if (held) this.current()?.focus();
  }

  /** @returns {HTMLElement | null} */
  current() {
    return this.element.querySelector("[aria-current=true]");
  }

  focus() {
    this.show();
    this.current()?.focus();
  }

  /** @param {View} shown @param {string} level */
  list(shown, level) {
    const { selection } = this.state;
    const segments = shown.segments[level];
    const now = indexAt(segments, selection.step);
    const list = make("ol", { "aria-label": `Segments of ${level}` });
    for (let i = Math.max(0, now - NEAR); i < Math.min(segments.length, now + NEAR + 1); i++) {
      const current = i === now && level === selection.level;
      const item = make("li", { "aria-setsize": segments.length, "aria-posinset": i + 1 });
      if (i > 0) item.append(this.separator(shown, level, i, current || (i === now + 1 && level === selection.level)));
      const button = make(
        "button",
        { type: "button", id: `segment-${level}-${i}`, "data-level": level, "data-step": segments[i][0] },
        sentence(shown, level, i),
      );
      button.tabIndex = current ? 0 : -1;
      if (current) button.setAttribute("aria-current", "true");
      item.append(button);
      list.append(item);
    }
    return list;
  }

  /** @param {View} shown @param {string} level @param {number} index @param {boolean} near */
  separator(shown, level, index, near) {
    const segments = shown.segments[level];
    const from = segments[index][0];
    const { moving } = this.state;
    const at = moving && moving.level === level && moving.from === from ? moving.at : from;
    return make("div", {
      role: "separator",
      id: `border-${level}-${index}`,
      tabIndex: near ? 0 : -1,
      "aria-orientation": "vertical",
      "aria-valuemin": segments[index - 1][0] + 1,
      "aria-valuemax": segments[index][1] - 1,
      "aria-valuenow": at,
      "aria-valuetext": `before step ${at}`,
      "aria-label": `Border of ${level} between ${nameOf(segments[index - 1][2])} and ${nameOf(segments[index][2])}; arrows move it`,
      "data-level": level,
      "data-from": from,
    });
  }

  /** @param {string} id of a segment in the list */
  choose(id) {
    const button = document.getElementById(id);
    if (button) this.state.select({ level: button.dataset.level, step: Number(button.dataset.step) });
  }

  /** Arrows on a border move it; everywhere else they do what they do on the tracks. @param {KeyboardEvent} event */
  key(event) {
    const target = event.target;
    if (event.key === "Escape") byId("tracks").focus({ preventScroll: true });
    if (!(target instanceof HTMLElement) || target.getAttribute("role") !== "separator") return;
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const from = Number(target.dataset.from);
    if (!this.state.moving) this.state.select({ level: target.dataset.level, step: from });
    this.actions.nudge(by);
  }
}
