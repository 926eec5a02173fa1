// Two curves: corrections for each accepted sequence, and the quality of each model on the random tenth.

import { draw } from "./dom.js";

/** @typedef {{x: number, y: number, words: string, random: boolean}} Point */
/** @typedef {{width: number, height: number, top: number, name: string, unit: (value: number) => string, small?: boolean, trend: Point[]}} Frame */

const LEFT = 40;
const BOTTOM = 18;

/** Mean of the last few points at each point. @param {Point[]} points @param {number} [over] @returns {Point[]} */
function smooth(points, over = 5) {
  return points.map((point, i) => {
    const last = points.slice(Math.max(0, i - over + 1), i + 1);
    return { ...point, y: last.reduce((sum, each) => sum + each.y, 0) / last.length };
  });
}

/** @param {Point[]} points @param {Frame} frame @returns {SVGElement} */
export function chart(points, frame) {
  const { width, height, top, small } = frame;
  const [left, bottom] = small ? [2, 12] : [LEFT, BOTTOM];
  const first = points.length ? points[0].x : 0;
  const last = points.length ? points[points.length - 1].x : 1;
  const x = (/** @type {number} */ value) =>
    left + ((value - first) / Math.max(1, last - first)) * (width - left - 8) + 3;
  const y = (/** @type {number} */ value) => height - bottom - (value / (top || 1)) * (height - bottom - 14);
  const svg = draw("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    preserveAspectRatio: small && points.length ? "none" : "xMinYMid meet",
  });
  svg.append(draw("title", {}, frame.name));
  if (!points.length) svg.append(draw("text", { x: left, y: height / 2 }, "no sequence accepted yet"));
  svg.append(draw("path", { class: "axis", d: `M${left} ${height - bottom}H${width}` }));
  if (!small)
    for (const value of [0, top / 2, top])
      svg.append(draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, frame.unit(value)));
  for (const point of points) {
    const dot = draw("circle", {
      class: point.random ? "dot random" : "dot",
      cx: x(point.x),
      cy: y(point.y),
      r: small ? 1.6 : 3.2,
    });
    dot.append(draw("title", {}, point.words));
    svg.append(dot);
  }
  const path = frame.trend
    .map((point, i) => `${i ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`)
    .join("");
  if (path) svg.append(draw("path", { class: "mean", d: path }));
  return svg;
}

/** @param {any[]} corrections @param {boolean} small */
export function correctionChart(corrections, small) {
  const points = corrections.map((each, i) => ({
    x: i + 1,
    y: each.count,
    random: each.chosen === "random",
    words: `${each.name}: ${each.count} corrections in ${each.steps} steps, model ${each.model ?? "none"}`,
  }));
  const top = Math.max(2, ...points.map((point) => point.y));
  const name = `Corrections for each of ${points.length} accepted sequences`;
  const size = small ? { width: 240, height: 54 } : { width: 760, height: 200 };
  return chart(points, {
    ...size,
    top,
    name,
    small,
    trend: smooth(points),
    unit: (value) => String(Math.round(value * 10) / 10),
  });
}

/** How much of each accepted sequence the model had said before a person did. @param {any[]} rows in order of acceptance */
export function agreementChart(rows) {
  const points = rows.flatMap((each, i) =>
    each.agreed === null || each.agreed === undefined
      ? []
      : [
          {
            x: i + 1,
            y: each.agreed,
            random: each.chosen === "random",
            words: `${each.name}, ${each.at.slice(0, 16).replace("T", " ")}: model ${each.guess_of} and person agreed on ${Math.round(100 * each.agreed)} % of steps`,
          },
        ],
  );
  const name = `Agreement of model and person on ${points.length} accepted sequences`;
  const unit = (/** @type {number} */ value) => `${Math.round(100 * value)} %`;
  return chart(points, { width: 760, height: 200, top: 1, name, trend: smooth(points), unit });
}

/** @param {any[]} models */
export function qualityChart(models) {
  const points = models
    .filter((model) => model.quality !== null && model.quality !== undefined)
    .map((model) => ({
      x: model.number,
      y: model.quality,
      random: true,
      words: `model ${model.number}, trained on ${model.sequences} sequences: ${Math.round(100 * model.quality)} % of steps right at all levels`,
    }));
  const name = `Share of steps that each of ${points.length} models got right at first`;
  return chart(points, {
    width: 760,
    height: 200,
    top: 1,
    name,
    trend: points,
    unit: (value) => `${Math.round(100 * value)} %`,
  });
}
