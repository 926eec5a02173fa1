// Other sequences around the open text: those before and after it in the queue, with their tracks. A click opens one.

import { ask, readView } from "./api.js";
import { drawBars, fitted } from "./bars.js";
import { FAMILY, SMALL, sharpen } from "./canvas.js";
import { colour } from "./colours.js";
import { make, onPress, soon } from "./dom.js";
import { EDGE, GUTTER, layText, measure } from "./layout.js";
import { showsAround, textSize } from "./settings.js";
import { runsLeft, wordsOf } from "./words.js";

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").Observations} Observations */
/** @typedef {import("./types.js").Item} Item */
/** @typedef {{view: View, seen: Observations, of: string}} Known */

const ABOVE = 2; // sequences before the open one
const BELOW = 12; // most after it: as many as fill the page
const LONGEST = 250; // steps that are shown of one
const MOST = 2000; // steps of one that is shown at all
const KEPT = 60; // sequences that are remembered
const STATES = { open: "not begun", begun: "begun", done: "accepted ✓" };

export class Neighbours {
  /** @param {import("./studio.js").Studio} studio @param {() => Item[]} listed the sequences of the queue, in its order */
  constructor(studio, listed) {
    this.studio = studio;
    this.state = studio.state;
    this.tracks = studio.tracks;
    this.listed = listed;
    this.before = make("div", { className: "neighbours" });
    this.after = make("div", { className: "neighbours" });
    this.tracks.element.prepend(this.before);
    this.tracks.paper.after(this.after);
    /** @type {Map<number, Known>} */ this.known = new Map();
    /** @type {{id: number, above: number[], below: number[]}} */ this.placed = { id: 0, above: [], below: [] };
    this.turn = 0;
    this.openId = 0;
    /** Where on the screen the next sequence is to be. @type {number | null} */ this.anchor = null;
    const later = soon(() => this.update());
    this.state.on("queue theme training", later);
    this.state.on("view", () => this.remember() && Promise.resolve().then(() => this.update())); // after it is laid out
    new ResizeObserver(later).observe(this.tracks.element);
    onPress(this.tracks.element, (part) => this.panelAt(part)?.dataset.id, (id) => this.openPanel(id));
  }

  /** What is open is a neighbour later on; whether it is another one. */
  remember() {
    const { view, observations } = this.state;
    if (!view || !observations || view.length !== observations.length) return false;
    this.keep(view.id, { view, seen: observations, of: "" });
    return view.id !== this.openId;
  }

  /** @param {number} id @param {Known} known */
  keep(id, known) {
    this.known.delete(id);
    this.known.set(id, known);
    if (this.known.size > KEPT) this.known.delete(/** @type {number} */ (this.known.keys().next().value));
  }

  /** What a sequence is known by: its version, its tokens, and the model that answers. @param {Item} item */
  mark(item) {
    return `${item.version} ${item.digest} ${this.state.project?.model?.number}`;
  }

  /** @param {Item} item @returns {Promise<Known>} */
  async get(item) {
    const known = this.known.get(item.id);
    const of = this.mark(item);
    if (known && known.view.version === item.version && known.seen.length === item.length && (!known.of || known.of === of))
      return known;
    const [raw, seen] = await Promise.all([ask(`/api/sequences/${item.id}`), this.studio.observations(item.id)]);
    const found = { view: readView(raw), seen, of };
    this.keep(item.id, found);
    return found;
  }

  /** Those before and after a sequence when it was opened: a fix that changes the order of the queue moves nothing.
   * @param {number} id @returns {Item[][]} */
  around(id) {
    if (this.placed.id !== id) {
      const ids = this.listed().map((item) => item.id);
      const at = ids.indexOf(id);
      this.placed = { id, above: at < 0 ? [] : ids.slice(Math.max(0, at - ABOVE), at), below: at < 0 ? [] : ids.slice(at + 1, at + 1 + BELOW) };
    }
    const items = new Map(this.state.queue?.items.map((item) => [item.id, item]));
    return [this.placed.above, this.placed.below].map((ids) =>
      ids.flatMap((each) => /** @type {Item[]} */ ([items.get(each)].filter((item) => item && item.length <= MOST))),
    );
  }

  /** Show those around the open one, as many as there is room for. */
  async update() {
    const turn = ++this.turn;
    const { view, observations } = this.state;
    const { layout, height } = this.tracks;
    if (!view || !observations) return;
    const ready = this.state.project?.warming.done; // what is open comes first
    const room = ready && observations.kind === "text" && showsAround() && layout.height < 1.5 * height;
    const [first, last] = this.around(view.id);
    const [above, below] = [[], []].map(() => /** @type {HTMLElement[]} */ ([]));
    if (room) {
      const more = async (/** @type {Item[]} */ some, /** @type {HTMLElement[]} */ panels) => {
        let filled = 0;
        for (const item of some) {
          if (filled > height) break;
          const known = await this.get(item);
          if (turn !== this.turn) return;
          const panel = this.panel(item, known);
          filled += panel.tall;
          panels.push(panel.element);
        }
      };
      try {
        await more(first, above);
        if (turn === this.turn) await more(last, below);
      } catch {
        return; // the page says by itself that the server does not answer
      }
    }
    if (turn === this.turn) this.put(view.id, above, below);
  }

  /** Show them; what is open stays where it is on the screen. @param {number} id @param {HTMLElement[]} above @param {HTMLElement[]} below */
  put(id, above, below) {
    const { tracks } = this;
    const at = tracks.above - tracks.element.scrollTop;
    this.before.replaceChildren(...above);
    this.after.replaceChildren(...below);
    tracks.element.classList.toggle("many", above.length + below.length > 0);
    tracks.above = this.before.offsetHeight;
    const other = id !== this.openId;
    this.openId = id;
    const wanted = !other ? at : (this.anchor ?? Math.min(tracks.above, 0.4 * tracks.height));
    this.anchor = null;
    tracks.element.scrollTop = tracks.above - Math.min(wanted, Math.max(0, tracks.height - tracks.layout.height));
    if (other) tracks.follow();
    tracks.paint();
    this.state.say("window");
  }

  /** One sequence with its name and tracks. @param {Item} item @param {Known} known */
  panel(item, { view, seen }) {
    const { tracks, state } = this;
    const tokens = (seen.tokens || []).slice(0, LONGEST);
    const rtl = runsLeft(tokens);
    const size = textSize();
    const widths = measure(tokens, `${size}px ${FAMILY}`, tracks.width - GUTTER - EDGE, seen.gaps);
    const layout = layText(state.levels, widths, tracks.width, { size, gaps: seen.gaps, rtl, doubt: false });
    const canvas = make("canvas", { "aria-hidden": "true" });
    const words = make("span", { className: "words", "aria-hidden": "true" });
    words.style.fontSize = `${size}px`;
    words.style.lineHeight = `${layout.rows[0].height}px`;
    words.append(...layout.lines.map((line) => wordsOf(line, tokens, seen.gaps, rtl)));
    const left = view.length - tokens.length;
    const said = `${STATES[item.status]}${left > 0 ? ` · ${left.toLocaleString("en")} more steps` : ""}`;
    const strip = make("span", { className: "strip" }, canvas, words);
    strip.style.height = `${layout.height}px`;
    const title = make("span", { className: "title" }, make("b", {}, item.name), ` ${said}`);
    const element = make(
      "button",
      { type: "button", className: "neighbour", "data-id": item.id },
      make("span", { className: "hidden" }, "Open "),
      title,
      make("span", { className: "hidden" }, tokens.join(" ")),
      strip,
    );
    this.paint(canvas, view, layout);
    return { element, tall: layout.height + 24 };
  }

  /** @param {HTMLCanvasElement} canvas @param {View} view @param {import("./layout.js").Layout} layout */
  paint(canvas, view, layout) {
    const { tracks, state } = this;
    const pen = sharpen(canvas, tracks.width, layout.height);
    for (const line of layout.lines)
      for (const row of layout.rows) {
        if (row.kind !== "level") continue;
        const top = line.top + row.top;
        pen.font = SMALL;
        pen.textAlign = "right";
        pen.textBaseline = "middle";
        pen.fillStyle = colour("quiet");
        pen.fillText(fitted(pen, row.name, GUTTER - 22), GUTTER - 12, top + row.height / 2);
        pen.textAlign = "left";
        pen.font = `${Math.max(12, Math.round(0.8 * textSize()))}px ${FAMILY}`;
        drawBars(pen, view, state.level(row.name), line, top, row.height, GUTTER, tracks.width - EDGE);
      }
  }

  /** @param {Element} part @returns {HTMLElement | null} */
  panelAt(part) {
    return part.closest(".neighbour");
  }

  /** Open a sequence where its panel is on the screen. @param {string} id */
  openPanel(id) {
    const { element } = this.tracks;
    const panel = element.querySelector(`.neighbour[data-id="${id}"]`);
    if (panel) this.anchor = panel.getBoundingClientRect().top - element.getBoundingClientRect().top;
    element.focus({ preventScroll: true });
    this.studio.open(Number(id));
  }
}
