// The mouse and the finger on the tracks: choose, drag a border, choose a range, pan and zoom.

import { stepWords } from "./time.js";
import { soon } from "./dom.js";
import { EDGE, GUTTER, placeAt } from "./layout.js";
import { indexAt, nameOf, percent, whose } from "./segments.js";

/** @typedef {import("./types.js").Line} Line */

const GRIP = 5; // pixels on both sides of a border
const PULL = 8; // pixels at which a drag snaps to a border of any level
const WIDE = 8; // pixels of a step from which on a drag chooses all steps that it touches
const TOUCH = 0.2; // share of a step at its edges that does not count as touched
const MARGIN = 11; // pixels before the first step that count as its beginning
const SLACK = 4; // pixels a press may slip and still be a click

export class Pointer {
  /** @param {import("./state.js").State} state @param {import("./tracks.js").TrackView} tracks @param {import("./actions.js").Actions} actions
   * @param {(words: string) => void} read shows what is under the pointer */
  constructor(state, tracks, actions, read) {
    this.state = state;
    this.tracks = tracks;
    this.actions = actions;
    this.read = read;
    /** @type {any} */ this.press = null;
    /** Where the pointer is over the tracks. @type {PointerEvent | null} */ this.over = null;
    this.readAgain = soon(() => this.over && !this.press && tracks.layout.lines.length && this.hover(this.place(this.over)));
    state.on("shown", this.readAgain); // what is under the pointer is another label now
    const element = tracks.element;
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.moved(event));
    element.addEventListener("pointerup", () => this.up());
    element.addEventListener("pointercancel", () => this.lost());
    element.addEventListener("pointerleave", () => this.left());
    element.addEventListener("dblclick", (event) => this.closer(event));
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** @param {MouseEvent} event */
  place(event) {
    const box = this.tracks.paper.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const { line, row } = placeAt(this.tracks.layout, y);
    const exact = line.step(Math.max(GUTTER, x));
    const length = this.state.shown ? this.state.shown.length : 1;
    const step = Math.max(0, Math.min(length - 1, Math.floor(exact)));
    return { x, y, line, row, exact, step };
  }

  /** The border of a level under the pointer. @param {string} level @param {Line} line @param {number} x @returns {number | null} */
  borderAt(level, line, x) {
    const segments = this.state.shown?.segments[level] || [];
    const at = indexAt(segments, Math.floor(line.step(x)));
    /** @type {number | null} */ let best = null;
    for (const index of [at, at + 1]) {
      if (index < 1 || index >= segments.length) continue;
      const border = segments[index][0];
      if (border <= line.start && this.tracks.layout.wraps) continue;
      const room = Math.min(
        Math.abs(line.x(segments[index][1]) - line.x(border)),
        Math.abs(line.x(border) - line.x(segments[index - 1][0])),
      );
      const far = Math.abs(line.x(border) - x);
      if (far <= Math.min(GRIP, Math.max(1.5, room / 3)) && (best === null || far < Math.abs(line.x(best) - x)))
        best = border;
    }
    return best;
  }

  /** Whether a drag from a border chooses the unlabelled steps next to it, as for the next segment; from the labelled side
   * it may also go back, and moves the border. @param {number} border @param {number} x of the pointer */
  opens(border, x) {
    const { level, line, x: from, step } = this.press;
    const over = [border - 1, border].filter((each) => this.isOpen(level, each));
    if (!over.length) return false;
    if (this.tracks.layout.wraps) return this.isOpen(level, step); // words are wide enough to be hit
    const side = Math.sign(line.x(over[0] + 0.5) - line.x(border));
    return this.isOpen(level, step) || over.length > 1 || (x - from) * side > 0;
  }

  /** The border that a drag snaps to, which may be one of another level: segments must end where their parents end.
   * @param {Line} line @param {number} x @param {string} [except] a level whose borders do not count @returns {number | null} */
  snap(line, x, except = "") {
    const { shown } = this.state;
    if (!shown || this.tracks.layout.wraps) return null;
    const borders = [0, shown.length];
    const step = Math.max(0, Math.min(shown.length - 1, Math.floor(line.step(x))));
    for (const [level, segments] of Object.entries(shown.segments))
      if (level !== except && segments.length) borders.push(...segments[indexAt(segments, step)].slice(0, 2).map(Number));
    const far = (/** @type {number} */ border) => Math.abs(line.x(border) - x);
    const best = borders.reduce((near, border) => (far(border) < far(near) ? border : near));
    return far(best) <= PULL ? best : null;
  }

  /** The steps between the press and the pointer. @param {ReturnType<Pointer["place"]>} place @param {boolean} free not snapped
   * @returns {[number, number]} */
  rangeTo({ line, x, exact, step }, free) {
    const { press } = this;
    const [low, high] = exact < press.exact ? [{ x, exact }, press] : [press, { x, exact }];
    const slip = this.tracks.layout.wraps ? 0 : line.x(1) - line.x(0) >= WIDE ? TOUCH : 0.5;
    const near = (/** @type {number} */ at) => (free ? null : this.snap(line, at));
    const start = near(low.x) ?? Math.floor(low.exact + slip);
    const stop = near(high.x) ?? Math.ceil(high.exact - slip);
    const length = this.state.shown?.length ?? 1;
    return start < stop ? [Math.max(0, start), Math.min(length, stop)] : [step, step + 1];
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button !== 0 || !this.state.shown) return;
    if (event.target instanceof Element && event.target.closest(".outline, .neighbour")) return;
    const { x, line, row, step, exact } = this.place(event);
    if (x < GUTTER - MARGIN) {
      if (row?.kind === "level") this.state.select({ level: row.name });
      return;
    }
    this.tracks.element.setPointerCapture(event.pointerId);
    this.tracks.element.focus({ preventScroll: true });
    if (row?.kind === "level") {
      const border = this.borderAt(row.name, line, x);
      const kind = border === null ? "choose" : "either";
      this.press = { kind, level: row.name, border, step, x, exact, line };
    } else if (!this.tracks.layout.wraps) this.press = { kind: "pan", x, start: this.tracks.window.start, step };
    else if (row?.kind === "tokens") this.press = { kind: "choose", level: this.state.selection.level, step, x, exact };
  }

  /** @param {PointerEvent} event */
  moved(event) {
    if (!this.state.shown || !this.tracks.layout.lines.length) return;
    if (!this.press && event.target instanceof Element && event.target.closest(".neighbour")) return this.left();
    this.over = event;
    const place = this.place(event);
    if (!this.press) return this.hover(place);
    const press = this.press;
    if (press.kind === "either" && place.x !== press.x)
      press.kind = this.opens(press.border, place.x) !== event.shiftKey ? "choose" : "border";
    if (press.kind === "border") {
      const near = event.altKey ? null : this.snap(place.line, place.x, press.level);
      this.actions.carry(press.level, press.border, near ?? Math.round(place.exact));
    }
    if (press.kind === "pan") this.pan(place.x);
    if (
      press.kind === "choose" &&
      (press.range ||
        ((Math.abs(place.x - press.x) > SLACK || this.tracks.layout.wraps) && place.step !== press.step))
    ) {
      press.range = true;
      const [start, stop] = this.rangeTo(place, event.altKey);
      this.state.select({ level: press.level, step: Math.max(start, Math.min(stop - 1, place.step)), range: [start, stop] });
    }
  }

  /** @param {number} x */
  pan(x) {
    const press = this.press;
    this.tracks.look((window) => {
      const scale = window.span / (this.tracks.width - GUTTER - EDGE);
      window.set(press.start - (x - press.x) * scale, window.span);
    });
    if (Math.abs(x - press.x) > SLACK) press.panned = true;
  }

  up() {
    const press = this.press;
    this.press = null;
    if (!press) return;
    this.readAgain();
    if (press.kind === "border") {
      const still = this.state.moving?.at === press.border;
      this.actions.then(() => {});
      if (still) this.state.select({ level: press.level, step: press.border });
    } else if ((press.kind === "choose" && !press.range) || press.kind === "either") this.state.select({ level: press.level, step: press.step });
    else if (press.kind === "pan" && !press.panned) this.state.select({ step: press.step });
  }

  lost() {
    this.press = null;
    this.actions.cancel();
  }

  left() {
    this.over = null;
    this.tracks.hover = null;
    this.tracks.paintOver();
    this.read("");
  }

  /** @param {MouseEvent} event */
  closer(event) {
    const { row, step } = this.place(event);
    if (row?.kind !== "level" || !this.state.shown) return;
    const segments = this.state.shown.segments[row.name];
    const [start, stop] = segments[indexAt(segments, step)];
    this.tracks.look((window) => window.set(start - 0.2 * (stop - start) - 1, 1.4 * (stop - start) + 2));
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (this.tracks.layout.wraps || !this.state.shown) return;
    const { clientHeight, clientWidth } = this.tracks.element;
    const scrolls = this.tracks.layout.height > clientHeight + 1;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const about = this.place(event).exact;
      this.tracks.look((window) => window.zoom(Math.exp(-event.deltaY / 240), about));
      return;
    }
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (scrolls && !sideways) return;
    event.preventDefault();
    const far = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
    this.tracks.look((window) => window.pan((far * window.span) / clientWidth));
  }

  /** @param {ReturnType<Pointer["place"]>} place */
  hover({ x, line, row, step }) {
    const border = row?.kind === "level" && x > GUTTER ? this.borderAt(row.name, line, x) : null;
    const panning = row && row.kind !== "level" && !this.tracks.layout.wraps;
    const open = row?.kind === "level" && x > GUTTER - MARGIN && this.isOpen(row.name, step);
    this.tracks.element.style.cursor = open ? "crosshair" : border !== null ? "col-resize" : panning ? "grab" : "default";
    this.read(x < GUTTER - MARGIN ? explain(row) : this.describe(row, step, border));
    if (this.tracks.hover !== step) {
      this.tracks.hover = step;
      this.tracks.paintOver();
    }
  }

  /** Whether a step has no label, or, without a model, only one that follows from labels of other levels.
   * @param {string} level @param {number} step */
  isOpen(level, step) {
    const { shown } = this.state;
    const segments = shown?.segments[level] || [];
    const index = indexAt(segments, step);
    return segments[index]?.[2] === null || (shown?.model === null && shown.by[level][index] === "model");
  }

  /** @param {import("./layout.js").Row | null} row @param {number} step @param {number | null} border */
  describe(row, step, border) {
    const { shown, observations, levels } = this.state;
    if (!shown || !observations) return "";
    if (border !== null && row) {
      const open = this.isOpen(row.name, border) || this.isOpen(row.name, border - 1);
      return `border before step ${border}: ${open ? "Shift and a drag move it" : "drag it; with Shift, choose steps"}`;
    }
    const parts = [stepWords(step, this.state.project?.rate, this.state.observations?.times)];
    for (const level of row?.kind === "level" ? [row.name] : levels) {
      const index = indexAt(shown.segments[level], step);
      const sure = shown.model === null ? "" : `, ${percent(1 - shown.doubt[level][step] / 255)} sure`;
      const label = shown.segments[level][index][2];
      parts.push(`${level}: ${nameOf(label)}${label === null ? "" : ` (${whose(shown, level, index)}${sure})`}`);
    }
    if (observations.tokens && row?.kind !== "level") parts.push(observations.tokens[step]);
    if (row?.kind === "channel") {
      const channel = observations.channels[row.index];
      const value = channel.values[step];
      parts.splice(1, 0, `${channel.name} = ${Number.isNaN(value) ? "missing" : Number(value.toPrecision(4))}`);
    }
    return parts.join("   ");
  }
}

/** What a row shows. @param {import("./layout.js").Row | null} row */
function explain(row) {
  if (row?.kind === "doubt")
    return "doubt: 1 − probability of the label shown. Filled: the level at hand. Line: the worst of all levels";
  if (row?.kind === "level") return `level ${row.name}: click to work on it (↑ ↓)`;
  if (row?.kind === "channel")
    return `channel ${row.name}: the largest and smallest value on the screen at the left; the other mouse button hides or moves it`;
  if (row?.kind === "wave") return "the waveform of the recording";
  if (row?.kind === "spectrum")
    return "the spectrogram of the recording: how loud each frequency is, low ones at the bottom";
  return "";
}
