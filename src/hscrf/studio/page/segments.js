// Questions about segments: which one is where, how sure it is, what to call it.

/** @typedef {import("./types.js").View} View */
/** @typedef {import("./types.js").Segment} Segment */

const UNLABELLED = "unlabelled";
const WORDS = { model: "suggested", fixed: "fixed by hand", file: "from the file", accepted: "accepted" };

/** @param {string | null} label */
export const nameOf = (label) => (label === null ? UNLABELLED : label);

/** Index of the segment that holds a step. @param {Segment[]} segments @param {number} step */
export function indexAt(segments, step) {
  let low = 0;
  let high = segments.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (segments[middle][0] <= step) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** @param {Uint8Array | undefined} doubt @param {number} start @param {number} stop mean of 0 .. 1 */
export function meanDoubt(doubt, start, stop) {
  if (!doubt || stop <= start) return 0;
  let sum = 0;
  for (let step = start; step < stop; step++) sum += doubt[step];
  return sum / (255 * (stop - start));
}

/** @param {Uint8Array} doubt @param {number} start @param {number} stop largest of 0 .. 1 */
function topDoubt(doubt, start, stop) {
  let top = 0;
  for (let step = start; step < stop; step++) if (doubt[step] > top) top = doubt[step];
  return top / 255;
}

/** The segment under the cursor, or the range chosen by hand.
 * @param {View} view @param {import("./types.js").Selection} selection */
export function chosen(view, selection) {
  const segments = view.segments[selection.level] || [];
  const index = indexAt(segments, selection.step);
  const segment = segments[index] || [0, view.length, null];
  const [start, stop] = selection.range || segment;
  const by = (view.by[selection.level] || [])[index] || "model";
  return { index, segment, by, start, stop, label: segment[2], free: selection.range !== null };
}

/** @param {number} share @returns {string} */
export const percent = (share) => {
  const value = 100 * share;
  return value > 0 && value < 1 ? "<1 %" : value < 100 && value > 99 ? ">99 %" : `${Math.round(value)} %`;
};

/** The digits that give labels of a level. @param {string[]} labels */
export const digitsOf = (labels) => (labels.length > 1 ? `1 to ${Math.min(9, labels.length)}` : "1");

/** Steps as people read them: both ends belong. @param {number} start @param {number} stop */
export const stepsOf = (start, stop) => (stop - start === 1 ? `step ${start}` : `steps ${start} to ${stop - 1}`);

/** One segment in words. @param {View} view @param {string} level @param {number} index */
export function sentence(view, level, index) {
  const [start, stop, label] = view.segments[level][index];
  const doubt = view.model === null ? "" : `, doubt ${percent(meanDoubt(view.doubt[level], start, stop))}`;
  return `${level}: ${nameOf(label)}, ${stepsOf(start, stop)}, ${whose(view, level, index)}${doubt}`;
}

/** Steps of a segment that a person has fixed a label on, while the segment as a whole is the model's.
 * @param {View} view @param {string} level @param {Segment} segment @returns {[number, number][]} */
export function fixedInside(view, level, [start, stop, label]) {
  /** @type {[number, number][]} */ const found = [];
  for (const fix of /** @type {any[]} */ (view.fixes))
    if (
      (fix.kind === "label" || fix.kind === "segment") &&
      fix.level === level &&
      fix.label === label &&
      fix.start < stop &&
      fix.stop > start
    )
      found.push([Math.max(start, fix.start), Math.min(stop, fix.stop)]);
  return found;
}

/** Whose a segment is, in words. @param {View} view @param {string} level @param {number} index */
export function whose(view, level, index) {
  const by = view.by[level][index];
  if (view.segments[level][index][2] === null) return "no label yet";
  if (by === "model" && view.model === null) return "follows from other labels";
  return by === "model" && fixedInside(view, level, view.segments[level][index]).length
    ? "suggested, partly fixed by hand"
    : WORDS[by];
}

/** Unconfirmed segments, the most doubtful first. @param {View} view @param {string[]} levels */
export function doubtful(view, levels) {
  const found = [];
  for (const level of levels)
    view.segments[level].forEach(([start, stop], index) => {
      if (view.by[level][index] === "model")
        found.push({ level, start, stop, doubt: topDoubt(view.doubt[level], start, stop) });
    });
  const order = (level) => levels.indexOf(level);
  return found.sort((a, b) => b.doubt - a.doubt || order(a.level) - order(b.level) || a.start - b.start);
}

/** How many segments with a label lie in the ranges that changed. @param {View} view */
export function countChanged(view) {
  let count = 0;
  for (const [level, ranges] of Object.entries(view.changed))
    for (const [start, stop] of ranges) {
      const segments = view.segments[level];
      if (!segments || stop <= start) continue;
      const found = segments.slice(indexAt(segments, start), indexAt(segments, stop - 1) + 1);
      count += found.filter(([, , label]) => label !== null).length;
    }
  return count;
}

/** Largest doubt of all levels at each step. @param {View} view @returns {Uint8Array} */
export function worstDoubt(view) {
  const out = new Uint8Array(view.length);
  for (const doubt of Object.values(view.doubt))
    for (let step = 0; step < out.length; step++) if (doubt[step] > out[step]) out[step] = doubt[step];
  return out;
}
