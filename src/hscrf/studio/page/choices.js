// The labels that the chosen segment could have, each with how likely the model finds it.
// Up to nine labels keep their digits; of more, the likeliest nine have digits, once the model has said which.

import { ask } from "./api.js";
import { hatchingOf, hueOf } from "./colours.js";
import { byId, make, onPress, soon } from "./dom.js";
import { chosen, meanDoubt, nameOf, percent, stepsOf, whose } from "./segments.js";
import { spanWords } from "./time.js";

const DIGITS = 9;
const PAUSE = 40; // milliseconds on a segment before the server is asked
const PATIENCE = 5000; // milliseconds that a digit waits for the order of the labels

/** @typedef {{label: string, p: number | null, share: number | null, possible: boolean}} Alternative */

export class Choices {
  /** @param {import("./state.js").State} state @param {(label: string) => void} take */
  constructor(state, take) {
    this.state = state;
    this.take = take;
    this.input = byId("typed");
    this.list = byId("labels");
    this.key = "";
    /** @type {Alternative[] | null} */ this.known = null;
    /** @type {AbortController | null} */ this.asking = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.timer = undefined;
    /** @type {Promise<void>} */ this.ready = Promise.resolve();
    this.arrived = () => {};
    this.paint = soon(() => {
      this.showCurrent();
      this.show();
    });
    state.on("selection shown theme", () => this.update());
    state.on("saved", () => state.unsaved.count && this.forget());
    this.input.addEventListener("input", () => this.show());
    this.input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.typed(event));
    this.input.addEventListener("blur", () => this.clear());
    onPress(this.list, (part) => part.closest("button")?.dataset.label, (label) => this.choose(label));
  }

  update() {
    const { shown, selection, unsaved } = this.state;
    if (!shown) return;
    const { start, stop } = chosen(shown, selection);
    const rated = shown.entropy !== null; // else the model is not ready to rate labels
    const key = [shown.id, shown.version, shown.model, rated, selection.level, start, stop, unsaved.count].join(" ");
    if (key !== this.key) {
      this.key = key;
      this.known = null;
      this.request(start, stop);
    }
    this.paint();
  }

  /** A fix is on its way: what was asked for is of yesterday. */
  forget() {
    clearTimeout(this.timer);
    this.asking?.abort();
    this.arrived();
  }

  /** @param {number} start @param {number} stop */
  request(start, stop) {
    this.forget();
    const { shown, selection, unsaved } = this.state;
    if (!shown || unsaved.count || shown.conflict) return;
    this.ready = new Promise((resolve) => (this.arrived = resolve));
    this.timer = setTimeout(() => this.fetch(shown.id, shown.version, selection.level, start, stop), PAUSE);
  }

  /** @param {number} id @param {number} version @param {string} level @param {number} start @param {number} stop */
  async fetch(id, version, level, start, stop) {
    const asking = (this.asking = new AbortController());
    const query = new URLSearchParams({ level, start: String(start), stop: String(stop), version: String(version) });
    try {
      const answer = await ask(`/api/sequences/${id}/alternatives?${query}`, asking.signal);
      if (asking !== this.asking || asking.signal.aborted) return;
      this.known = answer.items;
      this.show();
    } catch {
      if (asking !== this.asking) return;
    }
    this.arrived();
  }

  /** Labels in the order of their digits. @returns {{label: string, digit: string, found: Alternative | undefined}[]} */
  ordered() {
    const { name, labels } = this.state.level(this.state.selection.level);
    const keyed = this.keysOf(name);
    const found = new Map((this.known || []).map((item) => [item.label, item]));
    const names = labels.length > DIGITS && this.known ? this.known.map((item) => item.label) : labels;
    const digits = labels.length <= DIGITS || this.known;
    const free = [..."123456789"].filter((digit) => !keyed.has(digit));
    const own = new Map([...keyed].map(([key, label]) => [label, key]));
    return names.map((label) => ({
      label,
      digit: own.get(label) || (digits && free.shift()) || "",
      found: found.get(label),
    }));
  }

  /** Keys that people gave to labels of a level. @param {string} level @returns {Map<string, string>} */
  keysOf(level) {
    const looks = this.state.project?.looks[level] || {};
    return new Map(Object.entries(looks).flatMap(([label, { key }]) => (key ? [[key, label]] : [])));
  }

  /** What is typed narrows the list: beginnings first, then anything inside. */
  wanted() {
    const all = this.ordered();
    const text = this.input.value.trim().toLowerCase();
    if (!text) return all;
    const begins = all.filter(({ label }) => label.toLowerCase().startsWith(text));
    const holds = all.filter(
      ({ label }) => !begins.some((other) => other.label === label) && label.toLowerCase().includes(text),
    );
    return [...begins, ...holds];
  }

  show() {
    const { shown, selection } = this.state;
    if (!shown || !this.state.levels.includes(selection.level)) return;
    const level = this.state.level(selection.level);
    const now = chosen(shown, selection).label;
    this.list.replaceChildren(...this.wanted().map((choice) => this.button(choice, level, now)));
  }

  /** @param {{label: string, digit: string, found: Alternative | undefined}} choice
   * @param {import("./types.js").Level} level @param {string | null} now */
  button({ label, digit, found }, level, now) {
    const share = found && found.share !== null && found.share !== undefined ? found.share : null;
    const likely = share === null ? "" : percent(share);
    const swatch = make("span", { className: `swatch h${hatchingOf(level, label)}` });
    swatch.style.backgroundColor = hueOf(level, label);
    const words = this.state.project?.looks[level.name]?.[label]?.words;
    const bar = make("i");
    bar.style.width = `${100 * (share || 0)}%`;
    const impossible = Boolean(found && found.possible === false);
    const spoken = `${digit ? `${digit}: ` : ""}${label}${likely ? `, ${likely}` : ""}${impossible ? ", impossible here" : ""}${label === now ? ", as shown" : ""}`;
    return make(
      "button",
      {
        type: "button",
        className: `label${label === now ? " now" : ""}${impossible ? " impossible" : ""}`,
        "data-label": label,
        title: explain(label, found) + (words ? `\n${words}` : ""),
      },
      digit ? make("kbd", { "aria-hidden": "true" }, digit) : make("span"),
      swatch,
      make("span", { className: "name", "aria-hidden": "true" }, label),
      make("span", { className: "hidden" }, spoken),
      make("span", { className: "share", "aria-hidden": "true" }, impossible ? "–" : likely),
      bar,
    );
  }

  showCurrent() {
    const { shown, selection } = this.state;
    if (!shown) return;
    const { start, stop, label, free, index } = chosen(shown, selection);
    const sep = () => make("span", { className: "sep" }, "·");
    const doubt = shown.model === null ? "" : percent(meanDoubt(shown.doubt[selection.level], start, stop));
    const parts = [
      make("b", {}, selection.level),
      sep(),
      free ? "chosen by hand: a label makes exactly this one segment" : make("b", {}, nameOf(label)),
      sep(),
      make(
        "span",
        { title: "Both ends belong to the segment; steps count from 0" },
        `${stepsOf(start, stop)} (${stop - start})`,
      ),
      make("span", { className: "quiet" }, spanWords(start, stop, this.state.project?.rate, this.state.observations?.times)),
    ];
    if (!free && label !== null) parts.push(sep(), whose(shown, selection.level, index));
    if (doubt)
      parts.push(
        sep(),
        make("span", { title: "Mean over the steps of 1 − probability of the label shown" }, `doubt ${doubt}`),
      );
    parts.push(
      sep(),
      make("span", { className: "quiet" }, `segment ${index + 1} of ${shown.segments[selection.level].length}`),
    );
    byId("current").replaceChildren(...parts);
  }

  /** @param {string} label */
  choose(label) {
    this.clear();
    this.take(label);
    byId("tracks").focus({ preventScroll: true });
  }

  /** The label of a digit. Where digits follow the likelihoods, wait for them; without them no label has a digit.
   * @param {number} digit @returns {Promise<string | undefined>} */
  async pick(digit) {
    const keyed = this.keysOf(this.state.selection.level).get(String(digit));
    if (keyed) return keyed;
    const follows = this.state.level(this.state.selection.level).labels.length > DIGITS;
    const late = new Promise((resolve) => setTimeout(resolve, PATIENCE, "late"));
    let ready;
    while (follows && !this.known && ready !== this.ready) {
      ready = this.ready;
      if ((await Promise.race([ready, late])) === "late") break;
    }
    return this.ordered().find((choice) => choice.digit === String(digit))?.label;
  }

  /** @param {KeyboardEvent} event */
  typed(event) {
    event.stopPropagation();
    if (event.key === "Enter") {
      const [first] = this.wanted();
      if (first && this.input.value.trim()) this.choose(first.label);
    } else if (event.key === "Escape") {
      this.clear();
      byId("tracks").focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }

  clear() {
    if (!this.input.value) return;
    this.input.value = "";
    this.show();
  }
}

/** @param {string} label @param {Alternative | undefined} found */
function explain(label, found) {
  if (!found || found.p === null) return label;
  if (!found.possible) return `${label}: impossible here under what is fixed`;
  const p = found.p < 0.001 ? found.p.toExponential(1) : found.p.toFixed(3);
  return (
    `${label}\n${percent(found.share || 0)}: how likely this label is, given that exactly these steps are one segment\n` +
    `${p}: how likely it is that exactly these steps are one segment with this label`
  );
}
