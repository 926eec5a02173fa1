// The list of sequences in working order. Only the rows near the screen exist, so a thousand cost no more than thirty.

import { byId, make, soon, write } from "./dom.js";

const HEIGHT = 28; // pixels of a row, as in the style sheet
const SPARE = 10; // rows beyond both edges
const SIGNS = { open: "", begun: "…", done: "✓" };
const STATES = { open: "not begun", begun: "begun", done: "done" };

/** @typedef {import("./types.js").Item} Item */

/** @param {Item} item */
function explain(item) {
  const doubt =
    item.doubt === null
      ? "doubt not computed yet"
      : `doubt ${item.doubt.toFixed(3)}: entropy of the whole labelling in nats a step`;
  const random = item.chosen === "random" ? "\ndrawn at random (rnd): quality is estimated on these without bias" : "";
  return `${item.name}, ${item.length} steps, ${STATES[item.status]}, ${item.corrections} corrections\n${doubt}${random}`;
}

/** @param {Item} item */
function numbers(item) {
  const doubt = item.doubt === null ? "–" : item.doubt.toFixed(2);
  return item.chosen === "random" ? `rnd ${doubt}` : doubt;
}

/** A name that gives way in its middle: names of sequences differ at their ends. @param {string} name */
function shortened(name) {
  const letters = [...name];
  const cut = Math.max(0, letters.length - 6);
  const [head, tail] = [letters.slice(0, cut).join(""), letters.slice(cut).join("")];
  return make("span", { className: "name" }, make("span", { className: "head" }, head), make("span", {}, tail));
}

export class QueueList {
  /** @param {import("./state.js").State} state @param {(id: number) => void} open */
  constructor(state, open) {
    this.state = state;
    this.open = open;
    this.element = byId("queue");
    this.rows = make("div", { className: "rows", role: "presentation" });
    this.element.append(this.rows);
    this.active = 0;
    this.seenId = 0;
    this.paint = soon(() => this.show());
    state.on("queue", this.paint);
    state.on("view", () => state.view?.id !== this.seenId && this.paint()); // a fix alone changes no row at once
    this.element.addEventListener("scroll", this.paint);
    this.element.addEventListener("click", (event) => this.click(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(this.paint).observe(this.element);
  }

  get items() {
    return this.state.queue ? this.state.queue.items : [];
  }

  show() {
    const items = this.items;
    this.rows.style.height = `${items.length * HEIGHT}px`;
    this.find();
    const first = Math.max(0, Math.floor(this.element.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(
      items.length,
      Math.ceil((this.element.scrollTop + this.element.clientHeight) / HEIGHT) + SPARE,
    );
    const most = items.reduce((top, item) => Math.max(top, item.doubt || 0), 1e-9);
    this.rows.replaceChildren(...items.slice(first, last).map((item, i) => this.entry(item, first + i, most)));
    this.element.setAttribute("aria-activedescendant", items.length ? `entry-${items[this.active]?.id}` : "");
    const order = items.some((item) => item.doubt !== null) ? "most uncertain first" : "in the order of the file";
    write(byId("queue-order"), order);
    byId("queue-order").title = order.startsWith("most")
      ? "Entropy a step, with some diversity; every tenth is drawn at random (rnd) to estimate quality without bias"
      : "There is no model yet that could be uncertain";
  }

  /** When another sequence is opened, its row comes into sight. */
  find() {
    const id = this.state.view ? this.state.view.id : 0;
    if (id === this.seenId) return;
    const index = this.items.findIndex((item) => item.id === id);
    if (index < 0) return;
    this.seenId = id;
    this.active = index;
    this.reveal(index);
  }

  /** @param {number} index */
  reveal(index) {
    const { scrollTop, clientHeight } = this.element;
    if (index * HEIGHT < scrollTop) this.element.scrollTop = index * HEIGHT;
    else if ((index + 1) * HEIGHT > scrollTop + clientHeight)
      this.element.scrollTop = (index + 1) * HEIGHT - clientHeight;
  }

  /** @param {Item} item @param {number} index @param {number} most */
  entry(item, index, most) {
    const fill = make("i");
    fill.style.width = `${(100 * (item.doubt || 0)) / most}%`;
    const row = make(
      "div",
      {
        className: index === this.active ? "entry active" : "entry",
        id: `entry-${item.id}`,
        role: "option",
        "data-id": item.id,
        "aria-selected": String(item.id === this.state.view?.id),
        "aria-setsize": this.items.length,
        "aria-posinset": index + 1,
        "aria-label": explain(item).replaceAll("\n", ", "),
        title: explain(item),
      },
      make("span", { className: "sign" }, SIGNS[item.status]),
      shortened(item.name),
      make("span", { className: "bar" }, fill),
      make("span", { className: "number" }, item.status === "done" ? "done" : numbers(item)),
    );
    row.style.top = `${index * HEIGHT}px`;
    return row;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const row = event.target instanceof Element ? event.target.closest(".entry") : null;
    if (row instanceof HTMLElement) this.open(Number(row.dataset.id));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const far = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.open(this.items[this.active].id);
    else if (far === undefined) return;
    else {
      this.active = Math.max(0, Math.min(this.items.length - 1, this.active + far));
      this.reveal(this.active);
      this.paint();
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
