// Draw the segments of one level along one line.

import { colour, hatching, hatchingOf, hueOf } from "./colours.js";
import { sides } from "./layout.js";
import { digitsOf, fixedInside, indexAt, nameOf } from "./segments.js";

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").Line} Line */
/** @typedef {CanvasRenderingContext2D} Pen */

const SLIM = 12; // pixels; below, outlines are thin and pale, and borders have no wedge
const NARROW = 3; // pixels; below, segments are drawn together and lose their outlines
/** @type {Map<string, number>} */ const widths = new Map();

/** @param {Pen} pen @param {string} text */
function widthOf(pen, text) {
  const key = `${pen.font} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    width = pen.measureText(text).width;
    if (widths.size > 5000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** As much of a text as fits. @param {Pen} pen @param {string} text @param {number} room */
export function fitted(pen, text, room) {
  const width = widthOf(pen, text);
  if (width <= room) return text;
  const letters = [...text];
  const count = Math.floor((letters.length * (room - widthOf(pen, "…"))) / width);
  return count < 1 ? "" : `${letters.slice(0, count).join("")}…`;
}

/** @param {Pen} pen @param {number} x @param {number} y middle of the glyph */
function drawLock(pen, x, y) {
  pen.beginPath();
  pen.arc(x + 4, y - 1.5, 2.6, Math.PI, 0);
  pen.stroke();
  pen.fillRect(x, y - 1, 8, 6);
}

/** @param {Pen} pen @param {number} x @param {number} y */
function drawSheet(pen, x, y) {
  pen.strokeRect(x + 0.5, y - 4.5, 7, 9);
  pen.fillRect(x + 2, y - 2, 4, 1);
  pen.fillRect(x + 2, y + 1, 4, 1);
}

/** ✓ accepted, ? suggested, a lock for fixed, a paper sign for what came with the file.
 * @param {Pen} pen @param {import("./types.js").By} by @param {number} x @param {number} y */
function drawSign(pen, by, x, y) {
  pen.lineWidth = 1.4;
  pen.setLineDash([]);
  if (by === "fixed") drawLock(pen, x, y);
  else if (by === "file") drawSheet(pen, x, y);
  else pen.fillText(by === "accepted" ? "✓" : "?", x, y + 0.5);
}

/** @param {Pen} pen @param {import("./colours.js").Labelled} level @param {string | null} label
 * @param {number[]} box x, y, width, height */
function fill(pen, level, label, [x, y, width, height]) {
  pen.fillStyle = hueOf(level, label);
  pen.beginPath();
  pen.roundRect(x, y, width, height, width > 9 ? 3 : 0);
  pen.fill();
  const hatched = hatchingOf(level, label);
  if (!hatched) return;
  pen.fillStyle = hatching(pen, hatched);
  pen.fill();
}

/** @param {Pen} pen @param {import("./types.js").By} by @param {number[]} box */
function outline(pen, by, [x, y, width, height]) {
  pen.strokeStyle = colour("strong");
  pen.lineWidth = by === "model" || width < SLIM ? 1 : 2;
  pen.globalAlpha = width < SLIM ? 0.45 : 1; // many narrow segments side by side: their hues must stay visible
  pen.setLineDash(by === "model" ? [4, 3] : []);
  pen.beginPath();
  const inset = pen.lineWidth / 2;
  pen.roundRect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, width > 9 ? 3 : 0);
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

/** The first letters of a name, without a sign that more would follow. @param {Pen} pen @param {string} text @param {number} room */
function letters(pen, text, room) {
  const all = [...text];
  const count = Math.min(all.length, Math.floor((all.length * room) / widthOf(pen, text)));
  return all.slice(0, count).join("");
}

/** The sign and the name. Where there is no room for both the name goes first: the outline says the same as the sign.
 * @param {Pen} pen @param {{labels: string[]}} level @param {string | null} label @param {import("./types.js").By} by
 * @param {number[]} box */
function inscribe(pen, level, label, by, [x, y, width, height]) {
  if (width < 14) return;
  pen.fillStyle = pen.strokeStyle = colour("label-ink");
  pen.textBaseline = "middle";
  const middle = y + height / 2;
  const sign = label === null ? 6 : by === "model" ? 15 : 19;
  const name = label === null && width > 340 ? `${nameOf(label)}: drag over steps, then press ${digitsOf(level.labels)}` : nameOf(label);
  const words = fitted(pen, name, width - sign - 5);
  if (words.length < 3 && words !== label) {
    pen.fillText(letters(pen, nameOf(label), width - 6), x + 3, middle + 0.5);
    return;
  }
  if (label !== null) drawSign(pen, by, x + 5, middle);
  pen.fillText(words, x + sign, middle + 0.5);
}

/** Columns of one pixel for what is too narrow to be drawn: each has the hue that covers most of it.
 * @param {Pen} pen @param {Map<number, {label: string | null, cover: number}>} columns
 * @param {import("./colours.js").Labelled} level @param {number} top @param {number} height */
function drawColumns(pen, columns, level, top, height) {
  for (const [column, { label }] of columns) {
    pen.fillStyle = hueOf(level, label);
    pen.fillRect(column, top, 1, height);
  }
}

/** @param {Map<number, {label: string | null, cover: number}>} columns @param {number} left @param {number} right
 * @param {string | null} label */
function gather(columns, left, right, label) {
  for (let column = Math.floor(left); column < right; column++) {
    const cover = Math.min(right, column + 1) - Math.max(left, column);
    const known = columns.get(column);
    if (!known || known.cover < cover) columns.set(column, { label, cover });
  }
}

/** @param {Pen} pen @param {View} view @param {{name: string, labels: string[]}} level @param {Line} line @param {number} top
 * @param {number} height @param {number} first left edge @param {number} last right edge */
export function drawBars(pen, view, level, line, top, height, first, last) {
  const segments = view.segments[level.name] || [];
  const by = view.by[level.name] || [];
  /** @type {Map<number, {label: string | null, cover: number}>} */ const columns = new Map();
  for (let i = indexAt(segments, line.start); i < segments.length && segments[i][0] < line.stop; i++) {
    const [start, stop, label] = segments[i];
    const [from, to] = sides(line, start, stop);
    const [left, right] = [Math.max(first, from), Math.min(last, to)];
    if (right - left < NARROW) {
      if (right > left) gather(columns, left, right, label);
      continue;
    }
    const box = [left + 0.5, top, right - left - 1, height];
    fill(pen, level, label, box);
    outline(pen, by[i], box);
    inscribe(pen, level, label, by[i], box);
    if (by[i] === "model") drawFixedSteps(pen, fixedInside(view, level.name, segments[i]), line, box);
  }
  drawColumns(pen, columns, level, top, height);
  drawFixedBorders(pen, view, level.name, line, top, height);
}

/** A stroke with a lock over the steps that are fixed in a longer segment of the model.
 * @param {Pen} pen @param {[number, number][]} ranges @param {Line} line @param {number[]} box */
function drawFixedSteps(pen, ranges, line, [x, y, width, height]) {
  pen.fillStyle = pen.strokeStyle = colour("label-ink");
  for (const [start, stop] of ranges) {
    const [from, to] = sides(line, start, stop);
    const [left, right] = [Math.max(x, from), Math.min(x + width, to)];
    if (right > left) pen.fillRect(left, y + height - 3, right - left, 3);
    if (right - left > 40) drawLock(pen, right - 14, y + height / 2);
  }
}

/** Borders that a person set: a wedge where one is, a stroke below where none may be.
 * @param {Pen} pen @param {View} view @param {string} level @param {Line} line @param {number} top @param {number} height */
function drawFixedBorders(pen, view, level, line, top, height) {
  const fixed = view.fixed_borders[level];
  if (!fixed) return;
  pen.fillStyle = colour("ink");
  let before = -Infinity;
  for (const at of fixed.on) {
    if (at < line.start || at > line.stop) continue;
    const x = line.x(at);
    const crowded = Math.abs(x - before) < SLIM;
    before = x;
    if (crowded) continue;
    pen.fillRect(x - 1, top - 2, 2, height + 4);
    pen.beginPath();
    pen.moveTo(x - 4, top - 3);
    pen.lineTo(x + 4, top - 3);
    pen.lineTo(x, top + 3);
    pen.fill();
  }
  for (const [start, stop] of fixed.off) {
    const [left, right] = sides(line, start, stop - 1);
    if (stop - 1 >= line.start && start <= line.stop) pen.fillRect(left - 4, top + height - 2, right - left + 8, 2);
  }
}
