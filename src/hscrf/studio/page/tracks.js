// The tracks: two canvases, one for the tracks, one for what moves over them; and the words of a text as real text.

import { drawBars, fitted } from "./bars.js";
import { FAMILY, FONT, SMALL, sharpen } from "./canvas.js";
import { colour } from "./colours.js";
import { make, soon } from "./dom.js";
import { EDGE, GUTTER, layText, layTime, lineAt, measure, sides } from "./layout.js";
import { drawGlow, drawOverlay } from "./overlay.js";
import { chosen, worstDoubt } from "./segments.js";
import { channelOrder, channelScales } from "./channels.js";
import { Pyramid, drawAxis, drawDoubt, drawSignal } from "./signals.js";
import { Window } from "./window.js";
import { textSize } from "./settings.js";
import { layWords, runsLeft } from "./words.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {import("./layout.js").Row} Row */
const MARGIN = 400; // pixels drawn above and below what is seen, for scrolling
const FLASH = 1600; // milliseconds

export class TrackView {
  /** @param {import("./state.js").State} state @param {HTMLElement} element */
  constructor(state, element) {
    this.state = state;
    this.element = element;
    this.base = make("canvas", { "aria-hidden": "true" });
    this.over = make("canvas", { "aria-hidden": "true" });
    this.glow = make("canvas", { className: "glow", "aria-hidden": "true" });
    this.words = make("div", { className: "words" });
    this.paper = make("div", { className: "paper" }, this.base, this.over, this.glow, this.words);
    element.append(this.paper);
    this.window = new Window(1);
    /** @type {import("./layout.js").Layout} */ this.layout = { rows: [], lines: [], pitch: 1, height: 1, wraps: false, rtl: false };
    this.above = 0; // height of what is above the paper: other sequences
    this.width = 0; // of the tracks, as last laid out: asking the document again would lay it out again
    this.height = 0;
    this.top = 0; // of the canvases on the paper
    /** @type {Float32Array | null} */ this.widths = null;
    /** @type {Pyramid[]} */ this.signals = [];
    /** Scales that people set, by channel. @type {Record<string, [number, number]>} */ this.scales = {};
    this.frames = 0;
    this.flashing = false; // whether the next picture shows what the last fix changed
    this.levelDrawn = "";
    /** @type {number | null} */ this.hover = null;
    /** Sound of the sequence, once it is decoded. @type {import("./sound.js").Sound | null} */ this.sound = null;
    /** Where the recording is, in steps. @type {number | null} */ this.playhead = null;
    this.painted = () => {};
    this.doubts = { of: null, own: new Map(), worst: new Pyramid(new Uint8Array(1)) };
    this.paint = soon(() => this.paintNow());
    this.paintOver = soon(() => this.paintOverNow());
    new ResizeObserver(() => this.resize()).observe(element);
    element.addEventListener("scroll", () => this.scrolled());
  }

  /** A new sequence is on the tracks. */
  open() {
    const seen = this.state.observations;
    if (!seen) return;
    this.window = new Window(seen.length);
    this.signals = seen.channels.map((channel) => new Pyramid(channel.values));
    this.widths = null;
    this.element.scrollTop = 0;
    this.words.replaceChildren();
    this.resize();
  }

  resize() {
    if (!this.state.observations) return;
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    this.lay();
    this.words.replaceChildren();
    this.paint();
  }

  lay() {
    const { observations: seen, levels } = this.state;
    if (!seen) return;
    if (seen.kind === "text" && seen.tokens) {
      const look = { size: textSize(), gaps: seen.gaps, rtl: runsLeft(seen.tokens) };
      this.widths ||= measure(seen.tokens, `${look.size}px ${FAMILY}`, this.width - GUTTER - EDGE, seen.gaps);
      this.layout = layText(levels, this.widths, this.width, look);
      this.words.style.fontSize = `${look.size}px`;
      this.words.style.lineHeight = `${this.layout.rows[0].height}px`;
    } else {
      const order = channelOrder(this.state.project, seen);
      this.scales = channelScales(this.state.project);
      this.layout = layTime(levels, seen, this.window, this.width, this.height, this.sound && this.sound.top, order);
    }
    this.paper.style.height = `${this.paperHeight}px`;
  }

  scrolled() {
    const seen = this.scrollTop;
    if ((seen < this.top && this.top > 0) || seen + this.height > this.top + this.heightHere()) this.paint();
    this.state.say("window");
  }

  /** Pan or zoom, then draw. @param {(window: Window) => void} change */
  look(change) {
    if (this.layout.wraps) return;
    change(this.window);
    this.lay();
    this.state.say("window");
    this.paint();
  }

  /** What part of the sequence is on the screen. @returns {[number, number]} */
  seen() {
    if (!this.layout.wraps) return [this.window.start, this.window.stop];
    const { scrollTop } = this;
    const lines = this.layout.lines.filter(
      (line) => line.top + this.layout.pitch > scrollTop && line.top < scrollTop + this.height,
    );
    return lines.length ? [lines[0].start, lines[lines.length - 1].stop] : [0, 1];
  }

  /** Bring steps into sight. @param {number} start @param {number} stop */
  reveal(start, stop) {
    if (!this.layout.wraps) {
      if (this.window.show(start, stop)) this.look(() => {});
      return;
    }
    const { layout, scrollTop } = this;
    const first = lineAt(layout, start).top;
    const last = lineAt(layout, Math.max(start, stop - 1)).top + layout.pitch;
    if (first <= scrollTop && last >= scrollTop + this.height) return; // it fills the screen
    if (first < scrollTop) this.scrollTop = first - 8;
    else if (last > scrollTop + this.height) this.scrollTop = Math.min(first - 8, last - this.height);
  }

  /** How far the paper is scrolled. */
  get scrollTop() {
    return this.element.scrollTop - this.above;
  }

  set scrollTop(top) {
    this.element.scrollTop = top + this.above;
  }

  /** Lines that the canvases cover. */
  linesHere() {
    const bottom = this.top + this.heightHere();
    return this.layout.lines.filter((line) => line.top + this.layout.pitch > this.top && line.top < bottom);
  }

  /** A text may have others below it, a series fills the tracks. */
  get paperHeight() {
    return this.layout.wraps ? this.layout.height : Math.max(this.layout.height, this.height);
  }

  heightHere() {
    return Math.min(this.paperHeight - this.top, this.height + 2 * MARGIN);
  }

  /** @returns {{own: Pyramid, worst: Pyramid}} */
  doubtPyramids() {
    const { shown, selection } = this.state;
    if (shown && this.doubts.of !== shown)
      this.doubts = { of: /** @type {any} */ (shown), own: new Map(), worst: new Pyramid(worstDoubt(shown)) };
    if (shown && !this.doubts.own.has(selection.level))
      this.doubts.own.set(selection.level, new Pyramid(shown.doubt[selection.level] || new Uint8Array(shown.length)));
    return { own: this.doubts.own.get(selection.level), worst: this.doubts.worst };
  }

  paintNow() {
    const { shown, observations } = this.state;
    if (!shown || !observations || shown.length !== observations.length || !this.layout.lines.length) return;
    this.top = this.layout.height > this.height ? Math.max(0, this.scrollTop - MARGIN) : 0;
    for (const canvas of [this.base, this.over, this.glow]) canvas.style.top = `${this.top}px`;
    const pen = sharpen(this.base, this.width, this.heightHere());
    pen.translate(0, -this.top);
    this.levelDrawn = this.state.selection.level;
    for (const line of this.linesHere()) this.paintLine(pen, line);
    if (this.layout.wraps) layWords(this.words, this.linesHere(), observations.tokens || [], observations.gaps, this.layout.rtl);
    this.frames++;
    this.paintOverNow();
    this.paintGlow();
    this.painted();
  }

  paintOverNow() {
    if (!this.state.shown || !this.layout.lines.length) return;
    const pen = sharpen(this.over, this.width, this.heightHere());
    pen.translate(0, -this.top);
    pen.font = SMALL;
    drawOverlay(pen, this.state, this.layout, this.linesHere(), {
      left: GUTTER,
      right: this.width - EDGE,
      hover: this.hover,
      playhead: this.playhead,
    });
  }

  /** What the last fix changed lights up once and fades, with the outlines of what was there. Drawn once; the browser fades it by itself. A pan or zoom ends it. */
  paintGlow() {
    for (const fading of this.glow.getAnimations()) fading.cancel();
    if (!this.flashing) return;
    this.flashing = false;
    const pen = sharpen(this.glow, this.width, this.heightHere());
    pen.translate(0, -this.top);
    for (const line of this.linesHere())
      drawGlow(pen, this.state, this.layout, line, {
        left: GUTTER,
        right: this.width - EDGE,
        hover: null,
        playhead: null,
      });
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.glow.animate({ opacity: calm ? [0.5, 0.5] : [0.8, 0] }, { duration: FLASH, easing: "steps(8)" });
  }

  /** @param {CanvasRenderingContext2D} pen @param {Line} line */
  paintLine(pen, line) {
    pen.font = FONT;
    for (const row of this.layout.rows) this.paintName(pen, line, row);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, line.top, this.width - GUTTER - EDGE + 1, this.layout.pitch);
    pen.clip();
    for (const row of this.layout.rows) this.paintRow(pen, line, row);
    pen.restore();
  }

  /** @param {CanvasRenderingContext2D} pen @param {Line} line @param {Row} row */
  paintName(pen, line, row) {
    if (!row.name) return;
    const now = row.kind === "level" && row.name === this.state.selection.level;
    const small = this.layout.wraps || row.kind === "channel"; // channels have long names, and all of them one size
    pen.font = `${now ? "600 " : ""}${small ? SMALL : FONT}`;
    pen.fillStyle = colour(now ? "ink" : "quiet");
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const middle = line.top + row.top + row.height / 2;
    if (pen.measureText(row.name).width > GUTTER - 22) pen.font = `${now ? "600 " : ""}${SMALL}`;
    pen.fillText(fitted(pen, row.name, GUTTER - 18), GUTTER - 12, middle);
    if (row.kind === "channel" && row.height > 44) this.paintScale(pen, line, row);
    pen.textAlign = "left";
    pen.font = FONT;
  }

  /** Largest and smallest value of a channel. @param {CanvasRenderingContext2D} pen @param {Line} line @param {Row} row */
  paintScale(pen, line, row) {
    const [low, high] = this.rangeOf(row.index, line);
    pen.font = SMALL;
    const short = (/** @type {number} */ value) => String(Number(value.toPrecision(3)));
    pen.fillText(short(high), GUTTER - 12, line.top + row.top + 6);
    pen.fillText(short(low), GUTTER - 12, line.top + row.top + row.height - 6);
  }

  /** The scale of a channel: what a person set, or its smallest and largest value on the screen. @param {number} index
   * @param {Line} line @returns {[number, number]} */
  rangeOf(index, line) {
    const set = this.scales[this.state.observations?.channels[index]?.name ?? ""];
    if (set) return set;
    /** @type {[number, number]} */ const found = [0, 1];
    this.signals[index]?.range(line.start, line.stop, found);
    return found[0] <= found[1] ? found : [0, 1];
  }

  /** @param {CanvasRenderingContext2D} pen @param {Line} line @param {Row} row */
  paintRow(pen, line, row) {
    const { shown, observations } = this.state;
    if (!shown || !observations) return;
    const [first, last] = sides(line, line.start, line.stop);
    const [left, right] = [Math.max(GUTTER, first), Math.min(this.width - EDGE, last)];
    const box = { left, right, top: line.top + row.top, height: row.height };
    if (row.kind === "level") {
      pen.font = this.layout.wraps ? `${Math.max(12, Math.round(0.8 * textSize()))}px ${FAMILY}` : FONT;
      drawBars(pen, shown, this.state.level(row.name), line, box.top, row.height, left, right);
    } else if (row.kind === "axis") {
      pen.font = SMALL;
      drawAxis(pen, line, box, this.state.project?.rate || 0, observations.times);
    } else if (row.kind === "doubt") this.paintDoubt(pen, line, box);
    else if (row.kind === "channel") this.paintSignal(pen, line, row, box);
    else if (row.kind === "wave") this.sound?.drawWave(pen, line, box);
    else if (row.kind === "spectrum") this.sound?.drawSpectrum(pen, line, box);
    else if (row.kind === "tokens" && !this.layout.wraps) this.paintTokens(pen, line, box);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Line} line @param {import("./signals.js").Box} box */
  paintDoubt(pen, line, box) {
    if (this.state.shown?.model === null) return;
    pen.fillStyle = colour("line");
    pen.fillRect(box.left, box.top + box.height, box.right - box.left, 1);
    const { own, worst } = this.doubtPyramids();
    drawDoubt(pen, own, worst, line, box);
  }

  /** @param {CanvasRenderingContext2D} pen @param {Line} line @param {Row} row @param {import("./signals.js").Box} box */
  paintSignal(pen, line, row, box) {
    const channel = this.state.observations?.channels[row.index];
    if (!channel) return;
    pen.fillStyle = colour("raised");
    pen.fillRect(box.left, box.top, box.right - box.left, box.height);
    const [min, max] = this.rangeOf(row.index, line);
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.right - box.left, box.height); // values beyond a scale that was set are cut off
    pen.clip();
    drawSignal(pen, { ...channel, min, max }, this.signals[row.index], line, box);
    pen.restore();
  }

  /** @param {CanvasRenderingContext2D} pen @param {Line} line @param {import("./signals.js").Box} box */
  paintTokens(pen, line, box) {
    const tokens = this.state.observations?.tokens || [];
    const room = line.x(1) - line.x(0) - 4;
    pen.font = SMALL;
    pen.fillStyle = colour("quiet");
    if (room < 40) {
      pen.fillText(
        fitted(pen, "zoom in (+) to read what was observed at each step", box.right - box.left),
        box.left + 2,
        box.top + 12,
      );
      return;
    }
    for (let step = line.start; step < line.stop; step++)
      pen.fillText(fitted(pen, tokens[step] || "", room), line.x(step) + 2, box.top + 12);
  }

  /** Another choice: the tracks are drawn anew only for another level. */
  chosen() {
    const { level } = this.state.selection;
    if (level === this.levelDrawn) this.paintOver();
    else this.paint();
  }

  /** Keep the chosen segment in sight. */
  follow() {
    const { shown, selection } = this.state;
    if (!shown) return;
    const { start, stop } = chosen(shown, selection);
    this.reveal(stop - start > this.window.span && !this.layout.wraps ? selection.step : start, stop);
  }
}
