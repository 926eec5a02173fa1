// The keyboard. One table: what the list of keys shows is what the keys do. A person may give commands other keys.

import { bindTable, keysOf, showKey } from "./bindings.js";

/** @typedef {{id: string, keys: string[], words: string, row?: string, once?: boolean, fixed?: boolean,
 *    run: (event: KeyboardEvent) => void}} Key
 *    `row`: commands that share a line of the list; `once`: a key that is held down counts once; `fixed`: the keys stay */

/** @param {import("./actions.js").Actions} actions @param {import("./tracks.js").TrackView} tracks @param {Record<string, (...rest: any[]) => any>} page
 * @returns {Key[]} */
export function keyTable(actions, tracks, page) {
  const zoom = (/** @type {number} */ factor) => tracks.look((window) => window.zoom(factor, page.cursor()));
  const turn = (/** @type {() => unknown} */ work) => () => actions.then(work);
  /** Steps to the right of the screen: back, in a text from right to left. @param {number} by */
  const along = (by) => (tracks.layout.rtl ? -by : by);
  /** @param {string} id @param {string} keys separated by blanks @param {string} words @param {(event: KeyboardEvent) => void} run
   * @param {Partial<Key>} [more] @returns {Key} */
  const key = (id, keys, words, run, more = {}) => ({ id, keys: keys.split(" "), words, run, ...more });
  const once = { once: true };
  const sides = { row: "segment to the left, to the right" };
  const levels = { row: "level above, below" };
  const ends = { row: "first, last segment" };
  const starts = { row: "move the segment's first border by a step" };
  const stops = { row: "move its last border by a step" };
  const cursor = { row: "cursor one step left, right" };
  const range = { row: "choose steps; a label makes them one segment" };
  const persons = { row: "what the first, the second person said is right" };
  const frames = { row: "one frame of the film back, on" };
  const zooms = { row: "zoom in, out" };
  const shows = { row: "show all; show the segment" };
  const queue = { row: "sequence after, before, in the queue" };
  return [
    key("left", "ArrowLeft", "segment to the left", turn(() => actions.step(along(-1))), sides),
    key("right", "ArrowRight", "segment to the right", turn(() => actions.step(along(1))), sides),
    key("up", "ArrowUp", "level above", turn(() => actions.climb(-1)), levels),
    key("down", "ArrowDown", "level below", turn(() => actions.climb(1)), levels),
    key("first", "Home", "first segment", turn(() => actions.step(-1e9)), ends),
    key("last", "End", "last segment", turn(() => actions.step(1e9)), ends),
    key("doubt", "n", "most doubtful segment; again: the next one", turn(() => actions.nextDoubt())),
    key("label", "1 2 3 4 5 6 7 8 9", "give the segment this label", (e) => actions.then(() => page.pick(Number(e.key))), {
      fixed: true,
    }),
    key("type", "Enter l /", "type the beginning of a label, Enter takes it", () => page.type()),
    key("startLeft", "[ Ctrl+ArrowLeft", "first border to the left", () => actions.nudge(along(-1)), starts),
    key("startRight", "] Ctrl+ArrowRight", "first border to the right", () => actions.nudge(along(1)), starts),
    key("stopLeft", "{", "last border to the left", () => actions.nudge(along(-1), true), stops),
    key("stopRight", "}", "last border to the right", () => actions.nudge(along(1), true), stops),
    key("cursorLeft", ",", "cursor one step left", turn(() => actions.creep(along(-1), false)), cursor),
    key("cursorRight", ".", "cursor one step right", turn(() => actions.creep(along(1), false)), cursor),
    key("chooseLeft", "Shift+ArrowLeft", "choose steps to the left", turn(() => actions.creep(along(-1), true)), range),
    key("chooseRight", "Shift+ArrowRight", "choose steps to the right", turn(() => actions.creep(along(1), true)), range),
    key(
      "split",
      "s",
      "split before the cursor (in the middle, if the cursor is on the first step)",
      turn(() => actions.split()),
      once,
    ),
    key("merge", "m", "merge with the next segment", turn(() => actions.merge()), once),
    key("mergeBefore", "M", "merge with the segment before", turn(() => actions.merge(true)), once),
    key("accept", "a", "accept the segment, go on to the next", turn(() => actions.accept())),
    key("acceptAll", "A", "accept the sequence, go on to the next", turn(() => actions.acceptAll()), once),
    key("release", "u", "release: forget what is fixed here", turn(() => actions.release())),
    key("undo", "z Ctrl+z", "undo", turn(() => actions.undo())),
    key("redo", "y Ctrl+y Ctrl+Shift+z Ctrl+Z", "redo", turn(() => actions.redo())),
    key("flag", "x", "flag the sequence, or take the flag away", turn(() => actions.flag()), once),
    key("skip", "k", "skip the sequence: it waits at the end of the queue", () => page.skip(), once),
    key("note", "e", "write a note", () => page.note()),
    key("history", "h", "history of the sequence", () => page.history()),
    key("labels", "d", "labels: names, colours, keys, guidelines", () => page.labels()),
    key("guide", "r", "guidelines next to the work, or not", () => page.guide()),
    key("menu", "i", "menu: everything that can be done here", () => page.menu()),
    { ...key("play", "Space", "play what is chosen, or pause", () => page.play(), once), keys: [" "] },
    key("loop", "L", "loop the recording, or not", () => page.loop(), once),
    key("speed", "S", "speed of the recording", () => page.speed()),
    key("frameBack", "(", "one frame of the film back", turn(() => page.frame(-1)), frames),
    key("frameOn", ")", "one frame of the film on", turn(() => page.frame(1)), frames),
    key("channels", "v", "channels: order, scale, which are shown", () => page.channels()),
    key("firstPerson", "<", "what the first person said is right", turn(() => page.settle(0)), persons),
    key("secondPerson", ">", "what the second person said is right", turn(() => page.settle(1)), persons),
    key("conflict", "c", "to the buttons of a contradiction", () => page.conflict()),
    key("closer", "+ =", "zoom in", () => zoom(1.6), zooms),
    key("farther", "-", "zoom out", () => zoom(1 / 1.6), zooms),
    key("all", "0", "show all", () => page.fit(true), shows),
    key("fit", "f", "show the segment", () => page.fit(false), shows),
    key("after", "PageDown", "sequence after this one in the queue", () => page.go(1), queue),
    key("before", "PageUp", "sequence before this one in the queue", () => page.go(-1), queue),
    key("next", "g", "the sequence to work on next", () => page.next()),
    key("back", "b", "back to the sequence that was open before", () => page.back()),
    key("outline", "o", "segments as a list", () => page.outline()),
    key("queue", "q", "to the queue", () => page.queue()),
    key("train", "t", "train now, or stop training", () => page.train(), once),
    key("progress", "p", "progress curves", () => page.progress()),
    key("keys", "?", "this list of keys", () => page.keys()),
    key("escape", "Escape", "let go: border, chosen steps, list", () => page.escape(), { fixed: true }),
  ];
}

/** Lines of the list: keys as people read them, and what they do. @param {Key[]} table */
export function sheetRows(table) {
  /** @type {Map<string, string[]>} */ const rows = new Map();
  for (const { id, words, row } of table) {
    const keys = id === "label" ? ["1 … 9"] : keysOf(id).slice(0, row ? 1 : 2).map(showKey);
    rows.set(row || words, [...(rows.get(row || words) || []), ...keys]);
  }
  return [...rows].map(([words, keys]) => ({ keys, words }));
}

/** AltGr makes [ ] { } on many keyboards, and some systems report it as Ctrl and Alt. @param {KeyboardEvent} event */
const isGraph = (event) => event.getModifierState("AltGraph");

/** @param {KeyboardEvent} event */
export function nameOf(event) {
  const control = (event.ctrlKey && !isGraph(event)) || event.metaKey;
  const held = (control ? "Ctrl+" : "") + (event.shiftKey && event.key.length > 1 ? "Shift+" : "");
  return held + event.key;
}

/** Whether the key belongs to a field or a button that has the focus. @param {KeyboardEvent} event */
function isTaken(event) {
  const target = event.target;
  if (event.altKey && !isGraph(event)) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest("dialog, input, select, textarea, [role=menu]")) return true;
  const onButton = target.closest("button, [role=option], a");
  return Boolean(onButton) && (event.key === "Enter" || event.key === " " || event.key === "Tab");
}

/** @param {Key[]} table @param {() => boolean} ready @param {(key: string) => boolean} label gives a label by its own key */
export function bindKeys(table, ready, label) {
  bindTable(table);
  document.addEventListener("keydown", (event) => {
    if (isTaken(event)) return;
    const name = nameOf(event);
    const key = table.find(({ id }) => keysOf(id).includes(name));
    if (!key) {
      if (event.key.length === 1 && ready() && label(name)) event.preventDefault();
      return;
    }
    event.preventDefault();
    if (event.repeat && key.once) return;
    if (ready() || key.id === "keys") key.run(event);
  });
}
