// The list of sequences in working order. Only the rows near the screen exist, so a thousand cost no more than thirty.

import { ask } from "./api.js";
import { byId, make, onPress, soon, write } from "./dom.js";

const HEIGHT = 28; // pixels of a row, as in the style sheet
const SPARE = 10; // rows beyond both edges
const SIGNS = { open: "", begun: "…", done: "✓" };
/** @type {Record<string, (item: Item) => boolean>} */ const FILTERS = {
  all: () => true,
  todo: (item) => item.status !== "done",
  open: (item) => item.status === "open",
  begun: (item) => item.status === "begun",
  done: (item) => item.status === "done",
  flagged: (item) => Boolean(item.marks.flag),
  skipped: (item) => Boolean(item.marks.skip),
  noted: (item) => Boolean(item.marks.note),
  differing: (item) => item.unsettled > 0,
  doubtful: (item) => item.doubt !== null && item.doubt >= Number(byId("doubt").value),
  sure: (item) => item.doubt !== null && item.doubt <= Number(byId("doubt").value),
};
const NAMES = {
  all: "all", todo: "not done", open: "not begun", begun: "begun", done: "done", flagged: "flagged", skipped: "skipped",
  noted: "with a note", differing: "with differences", doubtful: "doubt at least…", sure: "doubt at most…",
}; // prettier-ignore
const BY_DOUBT = ["doubtful", "sure"];
/** @type {Record<string, (a: Item, b: Item) => number>} */ const ORDERS = {
  name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }),
  doubt: (a, b) => (b.doubt ?? -1) - (a.doubt ?? -1),
  length: (a, b) => b.length - a.length,
  recent: (a, b) => b.at.localeCompare(a.at),
};
const STATES = { open: "not begun", begun: "begun", done: "done" };

/** @typedef {import("./types.js").Item} Item */

/** @param {Item} item */
function explain(item) {
  const doubt =
    item.doubt === null
      ? "doubt not computed yet"
      : `doubt ${item.doubt.toFixed(3)}: entropy of the whole labelling in nats a step`;
  const marks = [item.marks.flag && "flagged", item.marks.skip && "skipped", item.marks.note].filter(Boolean);
  const differ = item.unsettled ? `\n${item.unsettled} differences of two people to settle` : "";
  const random = item.chosen === "random" ? "\ndrawn at random (rnd): quality is estimated on these without bias" : "";
  return `${item.name}, ${item.length} steps, ${STATES[item.status]}, ${item.corrections} corrections\n${doubt}${random}${differ}${marks.length ? `\n${marks.join(", ")}` : ""}`;
}

/** @param {Item} item */
function numbers(item) {
  if (item.unsettled) return `≠ ${item.unsettled}`;
  const doubt = item.doubt === null ? "–" : item.doubt.toFixed(2);
  return item.chosen === "random" ? `rnd ${doubt}` : doubt;
}

/** A name that gives way in its middle: names of sequences differ at their ends. @param {string} name */
function shortened(name) {
  const letters = [...name];
  const cut = Math.max(0, letters.length - 6);
  const [head, tail] = [letters.slice(0, cut).join(""), letters.slice(cut).join("")];
  return make(
    "span",
    { className: "name", "aria-hidden": "true" },
    make("span", { className: "head" }, head),
    make("span", {}, tail),
  );
}

/** The sequence of a row. @param {Element} part */
function rowOf(part) {
  const row = part.closest(".entry");
  return row instanceof HTMLElement ? Number(row.dataset.id) : null;
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
    /** Sequences that have the label that is asked for. @type {Set<number> | null} */ this.having = null;
    /** @type {Item[]} */ this.listed = [];
    /** @type {any} */ this.listedFor = null;
    this.paint = soon(() => this.show());
    state.on("queue", this.paint);
    state.on("view", () => state.view?.id !== this.seenId && this.paint()); // a fix alone changes no row at once
    for (const id of ["search", "filter", "order", "doubt"]) byId(id).addEventListener("input", () => this.relist());
    state.on("project", () => this.offerFilters());
    this.element.addEventListener("scroll", this.paint);
    onPress(this.element, rowOf, this.open);
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(this.paint).observe(this.element);
  }

  /** The sequences that are listed, in the order that is asked for. */
  get items() {
    const all = this.state.queue ? this.state.queue.items : [];
    const [search, filter, order, doubt] = ["search", "filter", "order", "doubt"].map((id) => byId(id).value);
    const asked = [all, this.state.queue, search, filter, order, doubt, this.having];
    if (this.listedFor && asked.every((each, i) => each === this.listedFor[i])) return this.listed;
    const text = search.trim().toLowerCase();
    const keep = FILTERS[filter] || ((/** @type {Item} */ item) => this.having?.has(item.id) ?? true);
    const found = all.filter((item) => keep(item) && item.name.toLowerCase().includes(text));
    this.listed = ORDERS[order] ? found.sort(ORDERS[order]) : found;
    this.listedFor = asked;
    return this.listed;
  }

  /** The sequence some places further down. @param {number} from @param {number} by @returns {number | undefined} */
  neighbour(from, by) {
    return this.items[this.items.findIndex((item) => item.id === from) + by]?.id;
  }

  /** The doubt that half of the sequences exceed. */
  middle() {
    const all = (this.state.queue?.items || [])
      .flatMap(({ doubt }) => (doubt === null ? [] : [doubt]))
      .sort((a, b) => a - b);
    return all[all.length >> 1] ?? 0;
  }

  /** What can be asked for: states of sequences, and labels that stand in them. */
  offerFilters() {
    const { project } = this.state;
    const select = byId("filter");
    if (!project || select.dataset.of === JSON.stringify(project.levels)) return;
    select.dataset.of = JSON.stringify(project.levels);
    const plain = Object.entries(NAMES).map(([value, words]) => make("option", { value }, words));
    const labels = project.levels.map(({ name, labels }) =>
      make(
        "optgroup",
        { label: `with a label of ${name}` },
        ...labels.map((label) => make("option", { value: JSON.stringify([name, label]) }, label)),
      ),
    );
    const chosen = select.value;
    select.replaceChildren(...plain, ...labels);
    select.value = chosen || "all";
  }

  /** What is listed was changed by hand. */
  async relist() {
    const { value } = byId("filter");
    this.having = null;
    const level = byId("doubt");
    if (BY_DOUBT.includes(value) && level.hidden) level.value = this.middle().toFixed(2);
    level.hidden = !BY_DOUBT.includes(value);
    if (!(value in FILTERS)) {
      const [level, label] = JSON.parse(value);
      try {
        this.having = new Set((await ask(`/api/queue/having?${new URLSearchParams({ level, label })}`)).ids);
      } catch {
        this.having = new Set();
      }
    }
    this.element.scrollTop = 0;
    this.active = 0;
    this.paint();
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
    this.rows.classList.toggle(
      "bare",
      items.every((item) => item.doubt === null),
    );
    this.rows.replaceChildren(...items.slice(first, last).map((item, i) => this.entry(item, first + i, most)));
    this.element.setAttribute("aria-activedescendant", items.length ? `entry-${items[this.active]?.id}` : "");
    const differ = items.some((item) => item.unsettled) ? "differences first" : "";
    const order =
      differ || (items.some((item) => item.doubt !== null) ? "most uncertain first" : "in the given order");
    write(byId("queue-order"), byId("order").value === "work" ? order : `${items.length} listed`);
    byId("queue-order").title = differ
      ? "Sequences that two people have labelled differently; < and > settle a difference"
      : order.startsWith("most")
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
        title: explain(item),
      },
      make("span", { className: "hidden" }, explain(item).replaceAll("\n", ", ")),
      make(
        "span",
        { className: "sign", "aria-hidden": "true" },
        item.marks.flag ? "⚑" : item.marks.skip ? "»" : SIGNS[item.status],
      ),
      shortened(item.name),
      item.doubt === null || item.status === "done" ? null : make("span", { className: "bar" }, fill),
      make("span", { className: "number", "aria-hidden": "true" }, item.status === "done" ? "done" : numbers(item)),
    );
    row.style.top = `${index * HEIGHT}px`;
    return row;
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
