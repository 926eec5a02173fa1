// Where things are: rows from top to bottom, steps from left to right, or from right to left in such a text. Time is one
// line, text wraps into many.

/** @typedef {import("./types.js").Line} Line */
/** @typedef {{kind: "axis" | "level" | "doubt" | "channel" | "tokens" | "wave" | "spectrum", name: string, top: number, height: number, index: number}} Row */
/** @typedef {{rows: Row[], lines: Line[], pitch: number, height: number, wraps: boolean, rtl: boolean}} Layout
 *    `pitch`: from one line to the next; `height`: of everything; `rtl`: whether steps go from right to left */

export const GUTTER = 104; // pixels at the left, for the names of the rows
export const EDGE = 12; // pixels free at the right
const GAP = 6;

/** @param {Row["kind"]} kind @param {string} name @param {number} height @param {number} [index] */
const row = (kind, name, height, index = 0) => ({ kind, name, height, index, top: 0 });

/** Give each row its place. @param {Row[]} rows @param {number} gap @returns {number} the height of all */
function stack(rows, gap) {
  let top = 0;
  for (const each of rows) {
    each.top = top;
    top += each.height + gap;
  }
  return top;
}

/** Tracks of a time sequence: axis, levels, doubt, tokens, channels; the channels share what height is left.
 * @param {string[]} levels @param {import("./types.js").Observations} seen @param {import("./window.js").Window} window
 * @param {number} width @param {number} height @param {number | null} sounds the highest frequency of the sound in kHz
 * @param {number[]} order of the channels that are shown
 * @returns {Layout} */
export function layTime(levels, seen, window, width, height, sounds, order) {
  const channels = order.length;
  const tall = height > 620 ? 44 : 36;
  const rows = [
    row("axis", "", 18),
    ...levels.map((name, i) => row("level", name, tall, i)),
    row("doubt", "doubt", 34),
  ];
  if (seen.tokens) rows.push(row("tokens", "observed", 24));
  if (sounds !== null) rows.push(row("wave", "waveform", 54), row("spectrum", `0-${sounds} kHz`, height > 620 ? 96 : 64));
  const left = height - stack(rows, GAP) - GAP;
  const each = channels ? Math.max(34, Math.min(320, left / channels - GAP)) : 0;
  for (const i of order) rows.push(row("channel", seen.channels[i].name, each, i));
  const total = stack(rows, GAP);
  const scale = (width - GUTTER - EDGE) / window.span;
  /** @type {Line} */ const line = {
    start: Math.floor(window.start),
    stop: Math.min(seen.length, Math.ceil(window.stop)),
    top: 0,
    x: (step) => GUTTER + (step - window.start) * scale,
    step: (x) => window.start + (x - GUTTER) / scale,
  };
  return { rows, lines: [line], pitch: total, height: total, wraps: false, rtl: false };
}

/** Widths of tokens as they will be drawn; those that nothing separates in the text are closer to each other.
 * @param {string[]} tokens @param {string} font @param {number} most @param {number[] | null} [gaps] @returns {Float32Array} */
export function measure(tokens, font, most, gaps = null) {
  const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
  pen.font = font;
  /** @type {Map<string, number>} */ const known = new Map();
  return Float32Array.from(tokens, (token, i) => {
    let width = known.get(token);
    if (width === undefined) {
      width = Math.ceil(pen.measureText(token).width);
      known.set(token, width);
    }
    const close = gaps !== null && (gaps[i] === 0 || gaps[i + 1] === 0);
    return Math.min(most, Math.max(close ? 14 : 18, width + (close ? 7 : 10)));
  });
}

/** Which token each wrapped line starts with. @param {Float32Array} widths @param {number} room
 * @param {number[] | null} [gaps] 2: a line of the text ends before it @returns {number[]} */
function wrap(widths, room, gaps = null) {
  const starts = [0];
  let used = 0;
  widths.forEach((width, i) => {
    if ((used + width > room || gaps?.[i] === 2) && i > starts[starts.length - 1]) {
      starts.push(i);
      used = 0;
    }
    used += width;
  });
  return starts;
}

/** Lines of a text: tokens, a bar for each level, a strip of doubt.
 * @param {string[]} levels @param {Float32Array} widths @param {number} width
 * @param {{size?: number, gaps?: number[] | null, rtl?: boolean, doubt?: boolean}} [look] @returns {Layout} */
export function layText(levels, widths, width, { size = 15, gaps = null, rtl = false, doubt = true } = {}) {
  const bars = levels.map((name, i) => row("level", name, Math.max(22, Math.round(1.45 * size)), i));
  const rows = [row("tokens", "", Math.round(1.75 * size)), ...bars, ...(doubt ? [row("doubt", "doubt", 12)] : [])];
  const pitch = stack(rows, 3) + Math.round(1.4 * size);
  const starts = wrap(widths, width - GUTTER - EDGE, gaps);
  const lines = starts.map((start, i) =>
    lineOf(widths, start, starts[i + 1] ?? widths.length, i * pitch + 8, rtl ? width - EDGE : null),
  );
  return { rows, lines, pitch, height: lines.length * pitch + 16, wraps: true, rtl };
}

/** @param {Float32Array} widths @param {number} start @param {number} stop @param {number} top
 * @param {number | null} right where a line from right to left begins @returns {Line} */
function lineOf(widths, start, stop, top, right) {
  const edges = new Float32Array(stop - start + 1);
  edges[0] = right ?? GUTTER;
  const way = right === null ? 1 : -1;
  for (let i = 0; i < stop - start; i++) edges[i + 1] = edges[i] + way * widths[start + i];
  const clamp = (/** @type {number} */ border) => Math.max(0, Math.min(stop - start, border - start));
  return {
    start,
    stop,
    top,
    x: (border) => edges[Math.round(clamp(border))],
    step: (x) => {
      let i = 0;
      while (i < stop - start - 1 && way * edges[i + 1] <= way * x) i++;
      return start + i + Math.max(0, Math.min(1, (x - edges[i]) / (edges[i + 1] - edges[i])));
    },
  };
}

/** Left and right side of some steps on a line. @param {Line} line @param {number} start @param {number} stop
 * @returns {[number, number]} */
export function sides(line, start, stop) {
  const [a, b] = [line.x(Math.max(start, line.start)), line.x(Math.min(stop, line.stop))];
  return a <= b ? [a, b] : [b, a];
}

/** Line and row at a point; the nearest where there is none. @param {Layout} layout @param {number} y */
export function placeAt(layout, y) {
  const found = layout.lines.findIndex((line) => y < line.top + layout.pitch);
  const line = layout.lines[found < 0 ? layout.lines.length - 1 : found];
  const inside = y - line.top;
  const at = layout.rows.find((each) => inside >= each.top - 2 && inside < each.top + each.height + 2) || null;
  return { line, row: at };
}

/** The line that holds a step. @param {Layout} layout @param {number} step @returns {Line} */
export const lineAt = (layout, step) =>
  layout.lines.find((line) => step < line.stop) || layout.lines[layout.lines.length - 1];
