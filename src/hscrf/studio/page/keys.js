// The keyboard. One table: what the key sheet shows is what the keys do.

/** @typedef {{keys: string[], shown: string, words: string, once?: boolean, run: (event: KeyboardEvent) => void}} Key
 *    `once`: a key that is held down counts once */

/** @param {import("./hands.js").Hands} hands @param {import("./stage.js").Stage} stage @param {Record<string, (...rest: any[]) => any>} page
 * @returns {Key[]} */
export function keyTable(hands, stage, page) {
  const zoom = (/** @type {number} */ factor) => stage.look((window) => window.zoom(factor, page.cursor()));
  return [
    {
      keys: ["ArrowLeft", "ArrowRight"],
      shown: "← →",
      words: "segment before, after",
      run: (e) => hands.then(() => hands.step(e.key === "ArrowLeft" ? -1 : 1)),
    },
    {
      keys: ["ArrowUp", "ArrowDown"],
      shown: "↑ ↓",
      words: "level above, below",
      run: (e) => hands.then(() => hands.climb(e.key === "ArrowUp" ? -1 : 1)),
    },
    {
      keys: ["Home", "End"],
      shown: "Home End",
      words: "first, last segment",
      run: (e) => hands.then(() => hands.step(e.key === "Home" ? -1e9 : 1e9)),
    },
    {
      keys: ["n"],
      shown: "n",
      words: "most doubtful segment; again: the next one",
      run: () => hands.then(() => hands.nextDoubt()),
    },
    {
      keys: [..."123456789"],
      shown: "1 … 9",
      words: "give the segment this label",
      run: (e) => hands.then(() => page.pick(Number(e.key))),
    },
    {
      keys: ["Enter", "l", "/"],
      shown: "Enter l",
      words: "type the beginning of a label, Enter takes it",
      run: () => page.type(),
    },
    {
      keys: ["[", "]", "Ctrl+ArrowLeft", "Ctrl+ArrowRight"],
      shown: "[ ] Ctrl+← →",
      words: "move the segment's first border by a step",
      run: (e) => hands.nudge(e.key === "[" || e.key === "ArrowLeft" ? -1 : 1),
    },
    {
      keys: ["{", "}"],
      shown: "{ }",
      words: "move its last border by a step",
      run: (e) => hands.nudge(e.key === "{" ? -1 : 1, true),
    },
    {
      keys: [",", "."],
      shown: ", .",
      words: "cursor one step left, right",
      run: (e) => hands.then(() => hands.creep(e.key === "," ? -1 : 1, false)),
    },
    {
      keys: ["Shift+ArrowLeft", "Shift+ArrowRight"],
      shown: "Shift+← Shift+→",
      words: "choose steps; a label makes them one segment",
      run: (e) => hands.then(() => hands.creep(e.key === "ArrowLeft" ? -1 : 1, true)),
    },
    {
      keys: ["s"],
      shown: "s",
      words: "split before the cursor (in the middle, if the cursor is on the first step)",
      once: true,
      run: () => hands.then(() => hands.split()),
    },
    {
      keys: ["m"],
      shown: "m",
      words: "merge with the next segment",
      once: true,
      run: () => hands.then(() => hands.merge()),
    },
    {
      keys: ["M"],
      shown: "M",
      words: "merge with the segment before",
      once: true,
      run: () => hands.then(() => hands.merge(true)),
    },
    {
      keys: ["a"],
      shown: "a",
      words: "accept the segment, go on to the next",
      run: () => hands.then(() => hands.accept()),
    },
    {
      keys: ["A"],
      shown: "A",
      words: "accept the sequence, go on to the next",
      once: true,
      run: () => hands.then(() => hands.acceptAll()),
    },
    {
      keys: ["u"],
      shown: "u",
      words: "release: forget what is fixed here",
      run: () => hands.then(() => hands.release()),
    },
    { keys: ["z", "Ctrl+z"], shown: "z Ctrl-Z", words: "undo", run: () => hands.then(() => hands.undo()) },
    {
      keys: ["y", "Ctrl+y", "Ctrl+Shift+z", "Ctrl+Z"],
      shown: "y Ctrl-Y",
      words: "redo",
      run: () => hands.then(() => hands.redo()),
    },
    {
      keys: ["x"],
      shown: "x",
      words: "flag the sequence, or take the flag away",
      once: true,
      run: () => hands.then(() => hands.flag()),
    },
    {
      keys: ["k"],
      shown: "k",
      words: "skip the sequence: it waits at the end of the queue",
      once: true,
      run: () => page.skip(),
    },
    { keys: ["e"], shown: "e", words: "write a note", run: () => page.note() },
    { keys: ["h"], shown: "h", words: "history of the sequence", run: () => page.history() },
    { keys: ["d"], shown: "d", words: "labels: names, colours, keys, guidelines", run: () => page.labels() },
    { keys: ["r"], shown: "r", words: "guidelines next to the work, or not", run: () => page.guide() },
    { keys: ["i"], shown: "i", words: "menu: everything that can be done here", run: () => page.menu() },
    { keys: [" "], shown: "Space", words: "play what is chosen, or pause", once: true, run: () => page.play() },
    { keys: ["L"], shown: "L", words: "loop the recording, or not", once: true, run: () => page.loop() },
    { keys: ["S"], shown: "S", words: "speed of the recording", run: () => page.speed() },
    {
      keys: ["<", ">"],
      shown: "< >",
      words: "what the first, the second person said is right",
      run: (e) => hands.then(() => page.settle(e.key === "<" ? 0 : 1)),
    },
    { keys: ["c"], shown: "c", words: "to the buttons of a contradiction", run: () => page.conflict() },
    { keys: ["+", "=", "-"], shown: "+ -", words: "zoom in, out", run: (e) => zoom(e.key === "-" ? 1 / 1.6 : 1.6) },
    { keys: ["0", "f"], shown: "0 f", words: "show all; show the segment", run: (e) => page.fit(e.key === "0") },
    {
      keys: ["PageDown", "PageUp"],
      shown: "PgDn PgUp",
      words: "sequence after, before, in the queue",
      run: (e) => page.go(e.key === "PageDown" ? 1 : -1),
    },
    { keys: ["g"], shown: "g", words: "the sequence to work on next", run: () => page.next() },
    { keys: ["b"], shown: "b", words: "back to the sequence that was open before", run: () => page.back() },
    { keys: ["o"], shown: "o", words: "segments as a list", run: () => page.outline() },
    { keys: ["q"], shown: "q", words: "to the queue", run: () => page.queue() },
    { keys: ["t"], shown: "t", words: "train now, or stop training", once: true, run: () => page.train() },
    { keys: ["p"], shown: "p", words: "progress curves", run: () => page.progress() },
    { keys: ["?"], shown: "?", words: "this sheet", run: () => page.keys() },
    { keys: ["Escape"], shown: "Esc", words: "let go: border, chosen steps, list", run: () => page.escape() },
  ];
}

/** AltGr makes [ ] { } on many keyboards, and some systems report it as Ctrl and Alt. @param {KeyboardEvent} event */
const isGraph = (event) => event.getModifierState("AltGraph");

/** @param {KeyboardEvent} event */
function nameOf(event) {
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
  const known = new Map(table.flatMap((key) => key.keys.map((name) => [name, key])));
  document.addEventListener("keydown", (event) => {
    const key = known.get(nameOf(event));
    if (isTaken(event)) return;
    if (!key) {
      if (event.key.length === 1 && ready() && label(nameOf(event))) event.preventDefault();
      return;
    }
    event.preventDefault();
    if (event.repeat && key.once) return;
    if (ready() || key.shown === "?") key.run(event);
  });
}
