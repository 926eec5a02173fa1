// Put the parts together.

import { hideChannel, moveChannel, openChannels, showAllChannels } from "./channels.js";
import { Choices } from "./choices.js";
import { colourLabels, readColours, useTheme } from "./colours.js";
import { Conflict } from "./conflict.js";
import { commandOf, keyFor, keysOf, onKeys, showKey } from "./bindings.js";
import { openBulk, undoBulk } from "./bulk.js";
import { openFiles, openKeys, openProgress, openSettings } from "./dialogs.js";
import { openHistory, openNote } from "./history.js";
import { openLabels, relabelled, showGuide, toggleGuide } from "./labels.js";
import { Media } from "./media.js";
import { openMenu } from "./menu.js";
import { byId, make, mark, write } from "./dom.js";
import { Actions } from "./actions.js";
import { bindHeader, showEmpty } from "./header.js";
import { bindKeys, keyTable, sheetRows } from "./keys.js";
import { placeAt } from "./layout.js";
import { Neighbours } from "./neighbours.js";
import { Outline } from "./outline.js";
import { Overview } from "./overview.js";
import { Pointer } from "./pointer.js";
import { QueueList } from "./queue.js";
import { chosen, sentence } from "./segments.js";
import { openRemap } from "./remap.js";
import { textFields } from "./settings.js";
import { Settle } from "./settle.js";
import { TrackView } from "./tracks.js";
import { State } from "./state.js";
import { Studio } from "./studio.js";
import { tokenFields } from "./tokens.js";
import { Tour } from "./tour.js";

const state = new State();
const tracks = new TrackView(state, byId("tracks"));
const studio = new Studio(state, tracks);
const say = (/** @type {string} */ words) => studio.say(words);
const send = (/** @type {string} */ kind, /** @type {any} */ body) => studio.send(kind, body);
const settled = async () => studio.outbox?.settled();
const actions = new Actions(state, send, say, settled);
actions.undoMany = async () => say(await undoBulk(studio));
const choices = new Choices(state, (label) => actions.then(() => actions.label(label)));
const conflict = new Conflict(state, (kind, body) => actions.then(() => send(kind, body)));

const settle = new Settle(state, (kind, body) => actions.then(() => send(kind, body)), say);

useTheme(localStorage.getItem("hscrf-studio-theme") || "auto");
bindHeader(state);
new Overview(state, tracks, byId("overview"));
new Pointer(state, tracks, actions, (words) => write(byId("readout"), words));
const outline = new Outline(state, actions);
const media = new Media(state, tracks, say);
const queue = new QueueList(state, (id) => {
  if (byId("tracks").getBoundingClientRect().top > innerHeight - 120) byId("title").scrollIntoView(); // a narrow page
  studio.open(id);
});
const neighbours = new Neighbours(studio, () => queue.items);

/** The sequence so many places further down the queue. @param {number} by */
function go(by) {
  const next = queue.neighbour(state.view ? state.view.id : 0, by);
  if (next) studio.open(next);
  else say(`there is no sequence ${by > 0 ? "after" : "before"} this one`);
}

/** @param {boolean} all */
function fit(all) {
  if (!state.shown) return;
  const { start, stop } = chosen(state.shown, state.selection);
  const room = 0.2 * (stop - start) + 1;
  tracks.look((window) => (all ? window.set(0, window.length) : window.set(start - room, stop - start + 2 * room)));
}

function escape() {
  if (tour.box) return tour.stop();
  actions.cancel();
  state.select({});
  byId("tracks").focus({ preventScroll: true });
}

const table = keyTable(actions, tracks, {
  cursor: () => state.selection.step + 0.5,
  pick: async (digit) => {
    const label = await choices.pick(digit);
    if (label !== undefined) actions.label(label);
    else say(`no label has the digit ${digit} here`);
  },
  type: () => byId("typed").focus(),
  conflict: () => conflict.focus(),
  fit,
  go,
  next: () => state.queue?.next && studio.open(state.queue.next),
  back: () => studio.previous && studio.open(studio.previous),
  outline: () => actions.then(() => outline.focus()),
  queue: () => byId("queue").focus(),
  train: () => studio.train(),
  settle: (which) => settle.take(which),
  play: () => media.toggle(),
  loop: () => media.loop(),
  speed: () => media.slower(),
  frame: (by) => media.step(by),
  channels,
  skip: () => skip(),
  note: () => openNote(state, actions),
  history: () => openHistory(state).catch((error) => studio.explain(error)),
  menu: () => openMore(),
  labels: () => openLabels(studio, isCommand),
  guide: () => toggleGuide(state),
  progress: () => openProgress().catch((error) => studio.explain(error)),
  keys: () => openHelp(),
  escape,
});
bindKeys(
  table,
  () => state.shown !== null,
  (key) => {
    const label = choices.keysOf(state.selection.level).get(key);
    if (label) actions.then(() => actions.label(label));
    return Boolean(label);
  },
);

/** Whether a key belongs to a command; digits give labels. @param {string} key */
function isCommand(key) {
  return !"123456789".includes(key) && commandOf(key) !== undefined;
}

/** Keys and signs, and where else there is help. */
function openHelp() {
  const again = make("button", { type: "button", id: "tour-again", onclick: () => tour.start() }, "Take the tour");
  openKeys(sheetRows(table), make("p", { className: "edit-tools" }, again, changeKeys()));
}

const changeKeys = () => make("button", { type: "button", id: "change-keys", onclick: () => openRemap(table, state) }, "Change keys…");

/** Words on buttons name the keys of today. */
function nameKeys() {
  for (const element of document.querySelectorAll("[data-key]")) {
    const id = element.getAttribute("data-key") || "";
    if (element.tagName === "KBD") element.textContent = keyFor(id);
    else if (element instanceof HTMLElement)
      element.title = `${element.title.replace(/ \([^()]*\)$| \([()]\)$/, "")} (${keysOf(id).slice(0, 2).map(showKey).join(" or ") || "no key"})`;
  }
  state.say("project view");
}
onKeys(nameKeys);
nameKeys();
const tour = new Tour(state, () => byId("tracks").focus({ preventScroll: true }));
studio.relabelled = (anew) => relabelled(studio, anew);
state.on("project", () => {
  if (state.project) colourLabels(state.project);
  tracks.paint();
  showGuide(state);
});

state.on("selection", () => {
  tracks.follow();
  tracks.chosen();
  showGuide(state);
  if (state.shown)
    write(byId("spoken"), sentence(state.shown, state.selection.level, chosen(state.shown, state.selection).index));
});
state.on("moving", () => tracks.paintOver());
state.on("view", () =>
  mark(byId("tracks"), "aria-label", `Tracks of ${state.view?.name}: arrows choose, ? shows all keys`),
);
state.on("theme", () => tracks.paint());
tracks.painted = () => {
  showEmpty(state, tracks.width);
  mark(document.documentElement, "data-painted", state.shown ? `${state.shown.id}:${state.shown.version}` : null);
};

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  state.say("theme");
});
byId("undo").addEventListener("click", () => actions.then(() => actions.undo()));
byId("redo").addEventListener("click", () => actions.then(() => actions.redo()));
byId("accept-all").addEventListener("click", () => actions.then(() => actions.acceptAll()));
/** Skip the sequence and go on to the next; or let it wait among the others again. */
async function skip() {
  const { view } = state;
  if (!view) return;
  const marks = { skip: !view.marks.skip };
  await actions.then(() => actions.mark(marks));
  await studio.outbox?.settled(3000);
  await studio.refreshQueue();
  const next = state.queue?.next;
  if (marks.skip && next && next !== view.id) await studio.open(next);
}

/** What the menu offers for the segment and the sequence. */
function entries() {
  const { view, shown } = state;
  const marks = view?.marks || {};
  const { segment, segments, index, by, unit } = actions.now();
  const held = Boolean(view?.held_by);
  const batch = state.project?.batch;
  const then = (/** @type {() => unknown} */ work) => () => actions.then(work);
  return [
    {
      words: "Split before the cursor",
      key: keyFor("split"),
      off: held || unit || segment[1] - segment[0] < 2,
      run: then(() => actions.split()),
    },
    {
      words: "Merge with the next segment",
      key: keyFor("merge"),
      off: held || index + 1 >= segments.length,
      run: then(() => actions.merge()),
    },
    { words: "Merge with the segment before", key: keyFor("mergeBefore"), off: held || index < 1, run: then(() => actions.merge(true)) },
    {
      words: "Accept the segment",
      key: keyFor("accept"),
      off: held || segment[2] === null || by === "accepted",
      run: then(() => actions.accept()),
    },
    {
      words: "Release what is fixed here",
      key: keyFor("release"),
      off: held || !shown?.fixes.length,
      run: then(() => actions.release()),
    },
    { words: "Zoom to the segment", key: keyFor("fit"), off: tracks.layout.wraps, run: () => fit(false) },
    { words: "Show all", key: keyFor("all"), off: tracks.layout.wraps, run: () => fit(true) },
    {
      words: "Channels: order, scale, which are shown…",
      key: keyFor("channels"),
      off: !state.observations?.channels.length || tracks.layout.wraps,
      run: () => channels(),
    },
    { words: marks.flag ? "Take the flag away" : "Flag the sequence", key: keyFor("flag"), run: then(() => actions.flag()) },
    { words: marks.skip ? "Do not skip the sequence" : "Skip the sequence", key: keyFor("skip"), run: () => skip() },
    { words: marks.note ? "Change the note…" : "Write a note…", key: keyFor("note"), run: () => openNote(state, actions) },
    { words: "Edit labels and guidelines…", key: keyFor("labels"), run: () => openLabels(studio, isCommand) },
    { words: "Show or hide the guidelines", key: keyFor("guide"), run: () => toggleGuide(state) },
    { words: "History of the sequence…", key: keyFor("history"), run: () => openHistory(state).catch((e) => studio.explain(e)) },
    { words: "Accept many sequences…", off: !shown || shown.model === null, run: () => openBulk(studio) },
    ...(batch
      ? [{ words: `Undo accepting ${batch.count} sequences`, run: then(async () => say(await undoBulk(studio))) }]
      : []),
  ];
}

/** The channel under the pointer. @param {MouseEvent} event */
function channelAt(event) {
  const { layout, element } = tracks;
  if (layout.wraps || !layout.lines.length) return null;
  const y = event.clientY - element.getBoundingClientRect().top + element.scrollTop;
  const { row } = placeAt(layout, y);
  return row?.kind === "channel" ? row.name : null;
}

/** @param {string} name of a channel */
function channelEntries(name) {
  const { project } = state;
  const names = tracks.layout.rows.filter((row) => row.kind === "channel").map((row) => row.name);
  const then = (/** @type {() => void} */ change) => () => {
    change();
    tracks.resize();
  };
  return [
    { words: `Hide ${name}`, off: names.length < 2, run: then(() => hideChannel(project, name)) },
    { words: "Move up", off: names[0] === name, run: then(() => moveChannel(project, names, name, -1)) },
    { words: "Move down", off: names.at(-1) === name, run: then(() => moveChannel(project, names, name, 1)) },
    { words: "Show all channels", run: then(() => showAllChannels(project)) },
    { words: "Order and scale of channels…", key: keyFor("channels"), run: () => channels() },
  ];
}

/** The dialog of channels; what is changed there is drawn at once. */
function channels() {
  const { project, observations } = state;
  if (observations?.channels.length && !tracks.layout.wraps) openChannels(project, observations, () => tracks.resize());
  else say("this sequence has no channels of numbers");
}

function openMore() {
  const box = byId("more").getBoundingClientRect();
  openMenu("What can be done here", entries(), box.left, box.bottom + 2);
}

byId("more").addEventListener("click", openMore);
byId("tracks").addEventListener("contextmenu", (/** @type {MouseEvent} */ event) => {
  event.preventDefault();
  const channel = channelAt(event);
  openMenu("What can be done here", channel ? channelEntries(channel) : entries(), event.clientX, event.clientY);
});
byId("files").addEventListener("click", () => openFiles(say));
byId("settings").addEventListener("click", () =>
  openSettings(state, say, ...tokenFields(studio), ...(state.project?.kind === "text" ? textFields(relook) : []), make("span", {}, "Keys"), changeKeys()),
);

/** Words have another size, or other sequences are shown around or not. */
function relook() {
  tracks.widths = null;
  tracks.resize();
  neighbours.update();
}
byId("keys").addEventListener("click", openHelp);
byId("train").addEventListener("click", () => studio.train());
for (const id of ["done", "spark"])
  byId(id).addEventListener("click", () => openProgress().catch((error) => studio.explain(error)));
addEventListener("online", () => studio.outbox?.flush());
addEventListener("hashchange", () => Number(location.hash.slice(1)) && studio.open(Number(location.hash.slice(1))));
addEventListener("beforeunload", (event) => {
  if (state.unsaved.count) event.preventDefault();
});

studio.start();
