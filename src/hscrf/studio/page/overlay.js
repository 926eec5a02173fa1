// What lies over the tracks: the chosen segment, the cursor, a border on its way, and what the last fix changed.

import { colour } from "./colours.js";
import { sides } from "./layout.js";
import { chosen } from "./segments.js";

/** @typedef {import("./types.js").Line} Line */
/** @typedef {{left: number, right: number, hover: number | null, playhead: number | null}} Frame */
/** @typedef {CanvasRenderingContext2D} Pen */

/** @param {Line} line @param {Frame} frame @param {number} start @param {number} stop @returns {[number, number] | null} */
function span(line, frame, start, stop) {
  if (stop <= line.start || start >= line.stop) return null;
  const [from, to] = sides(line, start, stop);
  const [left, right] = [Math.max(frame.left, from), Math.min(frame.right, to)];
  return right <= left ? null : [left, right];
}

/** @param {Pen} pen @param {import("./state.js").State} state @param {import("./layout.js").Layout} layout @param {Line} line
 * @param {Frame} frame */
export function drawGlow(pen, state, layout, line, frame) {
  pen.fillStyle = colour("flash");
  for (const row of layout.rows)
    if (row.kind === "level")
      for (const [start, stop] of state.shown?.changed[row.name] || []) {
        const found = span(line, frame, start, stop);
        if (found) pen.fillRect(found[0], line.top + row.top - 3, found[1] - found[0], 3);
        if (found) pen.fillRect(found[0], line.top + row.top + row.height, found[1] - found[0], 3);
        drawFormer(pen, state.former[row.name] || [], [start, stop], line, frame, line.top + row.top, row.height);
      }
}

/** Outlines of the segments that were there before a change. @param {Pen} pen @param {import("./types.js").Segment[]} segments
 * @param {[number, number]} range @param {Line} line @param {Frame} frame @param {number} top @param {number} height */
function drawFormer(pen, segments, [first, last], line, frame, top, height) {
  pen.strokeStyle = colour("flash");
  pen.lineWidth = 2;
  for (const [start, stop] of segments) {
    const found = start < last && stop > first ? span(line, frame, start, stop) : null;
    if (found) pen.strokeRect(found[0] + 1, top + 1, Math.max(1, found[1] - found[0] - 2), height - 2);
  }
}

/** Labels that contradict each other: a frame and a sign where each of them is. @param {Pen} pen
 * @param {import("./state.js").State} state @param {import("./layout.js").Layout} layout @param {Line} line @param {Frame} frame */
function drawCulprits(pen, state, layout, line, frame) {
  for (const item of state.shown?.conflict?.items || []) {
    const row = layout.rows.find((each) => each.kind === "level" && each.name === item.level);
    const found = span(line, frame, item.start, item.stop);
    if (!row || !found) continue;
    const top = line.top + row.top;
    pen.strokeStyle = colour("danger");
    pen.lineWidth = 3;
    pen.setLineDash([7, 3]);
    pen.strokeRect(found[0] + 1.5, top + 1.5, Math.max(2, found[1] - found[0] - 3), row.height - 3);
    pen.setLineDash([]);
    pen.fillStyle = colour("danger");
    pen.fillRect(found[0], top - 8, 15, 15);
    pen.fillStyle = colour("ground");
    pen.textBaseline = "middle";
    pen.fillText("!", found[0] + 6, top);
  }
}

/** @param {Pen} pen @param {number} x @param {number} y @param {number} width @param {number} height */
function ring(pen, x, y, width, height) {
  pen.beginPath();
  pen.roundRect(x, y, width, height, 4);
  pen.strokeStyle = colour("ground");
  pen.lineWidth = 5;
  pen.stroke();
  pen.strokeStyle = colour("focus");
  pen.lineWidth = 2.5;
  pen.stroke();
}

/** @param {Pen} pen @param {import("./state.js").State} state @param {import("./layout.js").Layout} layout @param {Line} line
 * @param {Frame} frame */
function drawChoice(pen, state, layout, line, frame) {
  if (!state.shown) return;
  const { start, stop, free } = chosen(state.shown, state.selection);
  const found = span(line, frame, start, stop);
  const row = layout.rows.find((each) => each.kind === "level" && each.name === state.selection.level);
  if (!found || !row) return;
  const [left, right] = found;
  if (!layout.wraps) {
    pen.fillStyle = colour("focus");
    pen.globalAlpha = 0.09;
    for (const each of layout.rows)
      if (each.kind !== "level" && each.kind !== "axis")
        pen.fillRect(left, line.top + each.top, right - left, each.height);
    pen.globalAlpha = 1;
  }
  if (free) {
    pen.fillStyle = colour("focus");
    pen.globalAlpha = 0.25;
    pen.fillRect(left, line.top + row.top, right - left, row.height);
    pen.globalAlpha = 1;
  }
  ring(pen, left, line.top + row.top - 1.5, Math.max(4, right - left), row.height + 3);
}

/** The step that `s` splits at. @param {Pen} pen @param {import("./state.js").State} state
 * @param {import("./layout.js").Layout} layout @param {Line} line @param {Frame} frame */
function drawCursor(pen, state, layout, line, frame) {
  const { step, level } = state.selection;
  if (step < line.start || step >= line.stop) return;
  const row = layout.rows.find((each) => each.kind === "level" && each.name === level);
  const [left, right] = sides(line, step, step + 1);
  if (!row || right < frame.left || left > frame.right) return;
  pen.fillStyle = colour("focus");
  pen.fillRect(Math.max(frame.left, left), line.top + row.top + row.height + 2, Math.max(2, right - left), 3);
}

/** @param {Pen} pen @param {import("./types.js").Moving} moving @param {import("./layout.js").Layout} layout @param {Line} line */
function drawMoving(pen, moving, layout, line) {
  const row = layout.rows.find((each) => each.kind === "level" && each.name === moving.level);
  if (!row || moving.at < line.start || moving.at > line.stop) return;
  if (layout.wraps && moving.at === line.start && line.start > 0) return;
  const x = line.x(moving.at);
  const old = line.x(Math.max(line.start, Math.min(line.stop, moving.from)));
  const top = line.top + row.top;
  pen.fillStyle = colour("focus");
  pen.globalAlpha = 0.3;
  pen.fillRect(Math.min(x, old), top, Math.abs(x - old), row.height);
  pen.globalAlpha = 1;
  pen.fillRect(x - 1.5, top - 5, 3, row.height + 10);
  const text = `${moving.at} (${moving.at - moving.from >= 0 ? "+" : ""}${moving.at - moving.from})`;
  const width = pen.measureText(text).width + 8;
  pen.fillStyle = colour("ink");
  pen.fillRect(x + 4, top - 8, width, 16);
  pen.fillStyle = colour("ground");
  pen.textBaseline = "middle";
  pen.fillText(text, x + 8, top + 0.5);
}

/** @param {Pen} pen @param {import("./state.js").State} state @param {import("./layout.js").Layout} layout @param {Line[]} lines
 * @param {Frame} frame */
export function drawOverlay(pen, state, layout, lines, frame) {
  for (const line of lines) {
    drawChoice(pen, state, layout, line, frame);
    drawCursor(pen, state, layout, line, frame);
    drawCulprits(pen, state, layout, line, frame);
    if (state.moving) drawMoving(pen, state.moving, layout, line);
    if (frame.playhead !== null && !layout.wraps && frame.playhead >= line.start && frame.playhead <= line.stop) {
      pen.fillStyle = colour("danger");
      pen.fillRect(line.x(frame.playhead) - 1, line.top, 2, layout.height);
    }
    if (frame.hover !== null && !layout.wraps && frame.hover >= line.start && frame.hover < line.stop) {
      pen.fillStyle = colour("quiet");
      pen.globalAlpha = 0.5;
      pen.fillRect(line.x(frame.hover + 0.5), line.top, 1, layout.height);
      pen.globalAlpha = 1;
    }
  }
}
