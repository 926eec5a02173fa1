// The whole sequence in one strip: top level, worst doubt, and a frame around what is on the screen.

import { colour, hueOf } from "./colours.js";
import { make, mark, soon } from "./dom.js";
import { EDGE, GUTTER } from "./layout.js";
import { sharpen } from "./canvas.js";

const BAND = 10; // pixels of the top level's colours

export class Overview {
  /** @param {import("./state.js").State} state @param {import("./tracks.js").TrackView} tracks @param {HTMLElement} element */
  constructor(state, tracks, element) {
    this.state = state;
    this.tracks = tracks;
    this.element = element;
    this.base = make("canvas", { "aria-hidden": "true" });
    this.over = make("canvas", { "aria-hidden": "true" });
    element.append(this.base, this.over);
    /** @type {{kind: string, step: number, start: number, stop: number} | null} */ this.press = null;
    this.width = 0;
    this.height = 0;
    const paint = soon(() => this.paint());
    state.on("view shown theme", paint);
    state.on(
      "window",
      soon(() => this.frame()),
    );
    new ResizeObserver(() => {
      this.width = element.clientWidth;
      this.height = element.clientHeight;
      paint();
    }).observe(element);
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.moved(event));
    element.addEventListener("pointerup", () => (this.press = null));
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {number} step */
  x(step) {
    const length = this.state.shown ? this.state.shown.length : 1;
    const share = this.tracks.layout.rtl ? 1 - step / length : step / length;
    return GUTTER + share * (this.width - GUTTER - EDGE);
  }

  /** Left and right side of some steps. @param {number} start @param {number} stop @returns {[number, number]} */
  sides(start, stop) {
    const [a, b] = [this.x(start), this.x(stop)];
    return a <= b ? [a, b] : [b, a];
  }

  /** @param {PointerEvent} event */
  step(event) {
    const length = this.state.shown ? this.state.shown.length : 1;
    const x = event.clientX - this.element.getBoundingClientRect().left;
    const share = (x - GUTTER) / (this.width - GUTTER - EDGE);
    return (this.tracks.layout.rtl ? 1 - share : share) * length;
  }

  paint() {
    const { shown, levels } = this.state;
    if (!shown) return;
    const pen = sharpen(this.base, this.width, this.height);
    const { height } = this;
    pen.font = "13px system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = colour("quiet");
    pen.fillText("overview", GUTTER - 12, height / 2);
    const level = this.state.level(levels[0]);
    for (const [start, stop, label] of shown.segments[levels[0]]) {
      pen.fillStyle = hueOf(level, label);
      const [left, right] = this.sides(start, stop);
      pen.fillRect(left, 2, Math.max(0.5, right - left - 0.5), BAND);
    }
    if (shown.model !== null) this.paintDoubt(pen, height);
    pen.fillStyle = colour("line");
    pen.fillRect(GUTTER, height - 1, this.width - GUTTER - EDGE, 1);
    this.frame();
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} height */
  paintDoubt(pen, height) {
    const { worst } = this.tracks.doubtPyramids();
    /** @type {[number, number]} */ const found = [0, 0];
    const length = this.state.shown ? this.state.shown.length : 1;
    const wide = this.width - GUTTER - EDGE;
    const room = height - BAND - 5;
    pen.fillStyle = colour("doubt-ink");
    for (let i = 0; i < wide; i++) {
      const start = Math.floor(((this.tracks.layout.rtl ? wide - 1 - i : i) / wide) * length);
      worst.range(start, Math.max(start + 1, Math.floor(start + length / wide)), found);
      if (found[1] > 0) pen.fillRect(GUTTER + i, height - 1 - (found[1] / 255) * room, 1, (found[1] / 255) * room);
    }
  }

  /** Draw the frame around what is seen. */
  frame() {
    const { shown } = this.state;
    if (!shown) return;
    const pen = sharpen(this.over, this.width, this.height);
    const [start, stop] = this.tracks.seen();
    const { height } = this;
    const [left, right] = this.sides(start, stop);
    if (stop - start < shown.length) {
      pen.fillStyle = colour("ground");
      pen.globalAlpha = 0.55;
      pen.fillRect(GUTTER, 0, left - GUTTER, height);
      pen.fillRect(right, 0, this.width - EDGE - right, height);
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = colour("ink");
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.roundRect(left + 0.75, 0.75, Math.max(4, right - left - 1.5), height - 1.5, 3);
    pen.stroke();
    mark(this.element, "aria-valuemax", String(shown.length));
    mark(this.element, "aria-valuenow", String(Math.round(start)));
    mark(this.element, "aria-valuetext", `steps ${Math.round(start)} to ${Math.round(stop) - 1} of ${shown.length}`);
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (!this.state.shown || event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    const [start, stop] = this.tracks.seen();
    const step = this.step(event);
    const x = event.clientX - this.element.getBoundingClientRect().left;
    const whole = stop - start >= this.state.shown.length;
    const kind = whole
      ? "draw"
      : Math.abs(x - this.x(start)) < 6
        ? "start"
        : Math.abs(x - this.x(stop)) < 6
          ? "stop"
          : "move";
    this.press = { kind, step, start, stop };
    if (kind === "move" && (step < start || step > stop)) {
      this.press = { kind, step, start: step - (stop - start) / 2, stop: step + (stop - start) / 2 };
      this.go(this.press.start, stop - start);
    }
  }

  /** @param {PointerEvent} event */
  moved(event) {
    if (!this.press) return;
    const { kind, step, start, stop } = this.press;
    const here = this.step(event);
    if (kind === "move") this.go(start + here - step, stop - start);
    else if (kind === "start") this.go(Math.min(here, stop - 4), stop - Math.min(here, stop - 4));
    else if (kind === "stop") this.go(start, here - start);
    else if (Math.abs(here - step) > 0.01 * stop) this.go(Math.min(here, step), Math.abs(here - step));
  }

  /** @param {number} start @param {number} span */
  go(start, span) {
    if (!this.tracks.layout.wraps) return this.tracks.look((window) => window.set(start, span));
    const line = this.tracks.layout.lines.find((each) => each.stop > start);
    if (line) this.tracks.scrollTop = line.top - 8;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const [start, stop] = this.tracks.seen();
    const far = { ArrowLeft: -0.1, ArrowRight: 0.1, PageUp: -0.9, PageDown: 0.9 }[event.key];
    if (far === undefined) return;
    const way = this.tracks.layout.rtl && event.key.startsWith("Arrow") ? -1 : 1;
    event.preventDefault();
    event.stopPropagation();
    this.go(start + way * far * (stop - start), stop - start);
  }
}
