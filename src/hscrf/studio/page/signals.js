// Draw numbers along time: the smallest and the largest value of each pixel, so that no peak is lost at any zoom.

import { colour } from "./colours.js";
import { apartOnAxis, timeWords } from "./time.js";

const FACTOR = 4;

/** Smallest and largest of ever larger blocks. */
export class Pyramid {
  /** @param {Float32Array | Uint8Array} values NaN: missing */
  constructor(values) {
    this.floors = [{ low: values, high: values, block: 1 }];
    while (this.floors[this.floors.length - 1].low.length > 64)
      this.floors.push(coarser(this.floors[this.floors.length - 1]));
  }

  /** Smallest and largest in [start, stop); Infinity, -Infinity where all is missing.
   * @param {number} start @param {number} stop @param {[number, number]} out */
  range(start, stop, out) {
    let floor = this.floors[0];
    for (const each of this.floors) if (each.block * 2 <= stop - start) floor = each;
    let low = Infinity;
    let high = -Infinity;
    const last = Math.min(floor.low.length, Math.ceil(stop / floor.block));
    for (let i = Math.floor(start / floor.block); i < last; i++) {
      if (floor.low[i] < low) low = floor.low[i];
      if (floor.high[i] > high) high = floor.high[i];
    }
    out[0] = low;
    out[1] = high;
  }
}

/** @param {{low: Float32Array | Uint8Array, high: Float32Array | Uint8Array, block: number}} fine */
function coarser(fine) {
  const count = Math.ceil(fine.low.length / FACTOR);
  const low = new Float32Array(count).fill(Infinity);
  const high = new Float32Array(count).fill(-Infinity);
  for (let i = 0; i < fine.low.length; i++) {
    const block = (i / FACTOR) | 0;
    if (fine.low[i] < low[block]) low[block] = fine.low[i];
    if (fine.high[i] > high[block]) high[block] = fine.high[i];
  }
  return { low, high, block: fine.block * FACTOR };
}

/** @typedef {{left: number, right: number, top: number, height: number}} Box */

/** One channel. @param {CanvasRenderingContext2D} pen @param {import("./types.js").Channel} channel @param {Pyramid} pyramid
 * @param {import("./types.js").Line} line @param {Box} box */
export function drawSignal(pen, channel, pyramid, line, box) {
  const spread = channel.max - channel.min || 1;
  const y = (/** @type {number} */ value) =>
    box.top + box.height - 2 - ((value - channel.min) / spread) * (box.height - 4);
  pen.strokeStyle = pen.fillStyle = colour("signal");
  pen.lineWidth = 1.2;
  pen.setLineDash([]);
  if (line.x(1) - line.x(0) < 2) return fillColumns(pen, pyramid, line, y, box);
  pen.beginPath();
  traceSteps(pen, channel.values, line, y, box);
  pen.stroke();
}

/** @param {CanvasRenderingContext2D} pen @param {Float32Array} values @param {import("./types.js").Line} line
 * @param {(value: number) => number} y @param {Box} box */
function traceSteps(pen, values, line, y, box) {
  const dots = line.x(1) - line.x(0) > 7;
  let open = false;
  for (let step = Math.max(0, line.start - 1); step < Math.min(values.length, line.stop + 1); step++) {
    const value = values[step];
    if (Number.isNaN(value)) {
      open = false;
      continue;
    }
    const x = line.x(step + 0.5);
    if (open) pen.lineTo(x, y(value));
    else pen.moveTo(x, y(value));
    if (dots && x > box.left && x < box.right) {
      pen.arc(x, y(value), 1.4, 0, 2 * Math.PI);
      pen.moveTo(x, y(value));
    }
    open = true;
  }
}

/** One rectangle for each pixel, from the largest to the smallest value, joined to its left neighbour. (A stroked path of as
 * many corners takes ten times as long.)
 * @param {CanvasRenderingContext2D} pen @param {Pyramid} pyramid @param {import("./types.js").Line} line
 * @param {(value: number) => number} y @param {Box} box */
function fillColumns(pen, pyramid, line, y, box) {
  /** @type {[number, number]} */ const found = [0, 0];
  let [above, below] = [Infinity, -Infinity];
  for (let x = Math.floor(box.left); x < box.right; x++) {
    const start = Math.max(0, Math.floor(line.step(x)));
    pyramid.range(start, Math.max(start + 1, Math.floor(line.step(x + 1))), found);
    if (found[0] === Infinity) {
      [above, below] = [Infinity, -Infinity];
      continue;
    }
    const top = Math.round(y(found[1]));
    const bottom = Math.max(top + 1, Math.round(y(found[0])) + 1);
    const from = below > -Infinity ? Math.min(top, below - 1) : top;
    pen.fillRect(x, from, 1, Math.max(bottom, above < Infinity ? above + 1 : bottom) - from);
    [above, below] = [top, bottom];
  }
}

/** Doubt as columns from the bottom: the level at hand filled, the worst of all levels as a line above.
 * @param {CanvasRenderingContext2D} pen @param {Pyramid} own @param {Pyramid} worst @param {import("./types.js").Line} line
 * @param {Box} box */
export function drawDoubt(pen, own, worst, line, box) {
  /** @type {[number, number]} */ const found = [0, 0];
  const bottom = box.top + box.height;
  const top = (/** @type {Pyramid} */ pyramid, /** @type {number} */ x) => {
    const start = Math.max(line.start, Math.floor(line.step(x + 0.01)));
    pyramid.range(start, Math.max(start + 1, Math.floor(line.step(x + 1))), found);
    return found[1] > 0 ? (found[1] / 255) * box.height : 0;
  };
  pen.fillStyle = colour("doubt");
  for (let x = Math.floor(box.left); x < box.right; x++) {
    const height = top(own, x);
    pen.fillRect(x, bottom - height, 1, height);
  }
  pen.fillStyle = colour("doubt-ink");
  let before = bottom;
  for (let x = Math.floor(box.left); x < box.right; x++) {
    const y = Math.round(bottom - Math.max(1, top(worst, x)));
    pen.fillRect(x, Math.min(y, before), 1, Math.max(1, Math.abs(before - y)));
    before = y;
  }
}

/** Marks with their times, or their steps, as far as they fit. @param {CanvasRenderingContext2D} pen
 * @param {import("./types.js").Line} line @param {Box} box @param {number} rate 0: not known
 * @param {number[] | null} [times] of all steps */
export function drawAxis(pen, line, box, rate, times) {
  const apart = apartOnAxis((line.stop - line.start) / Math.max(1, (box.right - box.left) / 90), rate);
  pen.textBaseline = "middle";
  for (let step = Math.ceil(line.start / apart) * apart; step < line.stop; step += apart) {
    const words = timeWords(step, rate, times) || step.toLocaleString("en");
    const x = line.x(step);
    pen.fillStyle = colour("line");
    pen.fillRect(x, box.top + 2, 1, box.height);
    pen.fillStyle = colour("quiet");
    if (x + 4 + pen.measureText(words).width <= box.right) pen.fillText(words, x + 4, box.top + 9);
  }
}
