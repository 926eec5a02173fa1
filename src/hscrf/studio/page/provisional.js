// What a fix says by itself, without the model: drawn while the server has not answered yet.

/** @typedef {import("./types.js").View} View */
/** @typedef {{segments: import("./types.js").Segment[], by: import("./types.js").By[]}} Track */

/** @param {Track} track @param {number} at */
function cut(track, at) {
  const index = track.segments.findIndex(([start, stop]) => start < at && at < stop);
  if (index < 0) return;
  const [start, stop, label] = track.segments[index];
  track.segments.splice(index, 1, [start, at, label], [at, stop, label]);
  track.by.splice(index, 1, track.by[index], track.by[index]);
}

/** Make one segment of everything between two borders. @param {Track} track @param {number} start @param {number} stop
 * @param {string | null} label @param {import("./types.js").By} by */
function cover(track, start, stop, label, by) {
  if (start >= stop) return;
  cut(track, start);
  cut(track, stop);
  const first = track.segments.findIndex((segment) => segment[0] === start);
  const count = track.segments.filter((segment) => segment[0] >= start && segment[1] <= stop).length;
  track.segments.splice(first, count, [start, stop, label]);
  track.by.splice(first, count, by);
}

/** @param {Track} track @param {number} from @param {number} at */
function shift(track, from, at) {
  const right = track.segments.findIndex((segment) => segment[0] === from);
  if (right < 1) return;
  const [start, , left] = track.segments[right - 1];
  const [, stop, label] = track.segments[right];
  if (at <= start || at >= stop) return;
  track.segments.splice(right - 1, 2, [start, at, left], [at, stop, label]);
}

/** @param {Track} track @param {number} at */
function join(track, at) {
  const right = track.segments.findIndex((segment) => segment[0] === at);
  if (right < 1) return;
  const [start, , label] = track.segments[right - 1];
  track.segments.splice(right - 1, 2, [start, track.segments[right][1], label]);
  track.by.splice(right - 1, 2, track.by[right - 1]);
}

/** @param {Track} track @param {any} body */
function moveBorder(track, body) {
  if (body.from !== undefined) shift(track, body.from, body.at);
  else if (body.on) cut(track, body.at);
  else join(track, body.at);
}

/** The view with a fix drawn in. The view that is given stays as it is.
 * @param {View} view @param {import("./types.js").Fix} fix @returns {View} */
export function provisional(view, fix) {
  const { kind, body } = fix;
  /** @type {Record<string, Track>} */ const tracks = {};
  for (const level of Object.keys(view.segments))
    tracks[level] = { segments: view.segments[level].slice(), by: view.by[level].slice() };
  if (kind === "label" || kind === "segment") cover(tracks[body.level], body.start, body.stop, body.label, "fixed");
  else if (kind === "boundary") moveBorder(tracks[body.level], body);
  else if (kind === "accept")
    for (const [level, segments] of Object.entries(body.segments))
      for (const [start, stop, label] of /** @type {import("./types.js").Segment[]} */ (segments))
        cover(tracks[level], start, stop, label, "accepted");
  const segments = Object.fromEntries(Object.entries(tracks).map(([level, track]) => [level, track.segments]));
  const by = Object.fromEntries(Object.entries(tracks).map(([level, track]) => [level, track.by]));
  if (kind === "mark") return { ...view, marks: { ...view.marks, ...body } };
  return { ...view, segments, by, changed: {}, status: body.whole ? "done" : "begun" };
}
