// Put the parts together.

import { Choices } from "./choices.js";
import { readColours, useTheme } from "./colours.js";
import { Conflict } from "./conflict.js";
import { openFiles, openKeys, openProgress, openSettings } from "./dialogs.js";
import { byId, mark, write } from "./dom.js";
import { Hands } from "./hands.js";
import { bindHeader } from "./header.js";
import { bindKeys, keyTable } from "./keys.js";
import { Outline } from "./outline.js";
import { Overview } from "./overview.js";
import { Pointer } from "./pointer.js";
import { QueueList } from "./queue.js";
import { chosen, sentence } from "./segments.js";
import { Stage } from "./stage.js";
import { State } from "./state.js";
import { Studio } from "./studio.js";

const state = new State();
const stage = new Stage(state, byId("stage"));
const studio = new Studio(state, stage);
const say = (/** @type {string} */ words) => studio.say(words);
const send = (/** @type {string} */ kind, /** @type {any} */ body) => studio.send(kind, body);
const settled = async () => studio.outbox?.settled();
const hands = new Hands(state, send, say, settled);
const choices = new Choices(state, (label) => hands.then(() => hands.label(label)));
const conflict = new Conflict(state, (kind, body) => hands.then(() => send(kind, body)));

useTheme(localStorage.getItem("hscrf-studio-theme") || "auto");
bindHeader(state);
new Overview(state, stage, byId("overview"));
new Pointer(state, stage, hands, (words) => write(byId("readout"), words));
const outline = new Outline(state, hands);
new QueueList(state, (id) => studio.open(id));

/** The sequence so many places further down the queue. @param {number} by */
function go(by) {
  const order = state.queue ? state.queue.order : [];
  const next = order[order.indexOf(state.view ? state.view.id : 0) + by];
  if (next) studio.open(next);
  else say(`there is no sequence ${by > 0 ? "after" : "before"} this one`);
}

/** @param {boolean} all */
function fit(all) {
  if (!state.shown) return;
  const { start, stop } = chosen(state.shown, state.selection);
  const room = 0.2 * (stop - start) + 1;
  stage.look((window) => (all ? window.set(0, window.length) : window.set(start - room, stop - start + 2 * room)));
}

function escape() {
  hands.cancel();
  state.select({});
  byId("stage").focus({ preventScroll: true });
}

const table = keyTable(hands, stage, {
  cursor: () => state.selection.step + 0.5,
  pick: async (digit) => {
    const label = await choices.pick(digit);
    if (label !== undefined) hands.label(label);
  },
  type: () => byId("typed").focus(),
  conflict: () => conflict.focus(),
  fit,
  go,
  next: () => state.queue?.next && studio.open(state.queue.next),
  back: () => studio.previous && studio.open(studio.previous),
  outline: () => hands.then(() => outline.focus()),
  queue: () => byId("queue").focus(),
  train: () => studio.train(),
  progress: () => openProgress().catch((error) => studio.explain(error)),
  keys: () => openKeys(table),
  escape,
});
bindKeys(table, () => state.shown !== null);

state.on("selection", () => {
  stage.follow();
  stage.chosen();
  if (state.shown)
    write(byId("spoken"), sentence(state.shown, state.selection.level, chosen(state.shown, state.selection).index));
});
state.on("moving", () => stage.paintOver());
state.on("view", () =>
  mark(byId("stage"), "aria-label", `Tracks of ${state.view?.name}: arrows choose, ? shows all keys`),
);
state.on("theme", () => stage.paint());
stage.painted = () =>
  mark(document.documentElement, "data-painted", state.shown ? `${state.shown.id}:${state.shown.version}` : null);

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  state.say("theme");
});
byId("undo").addEventListener("click", () => hands.then(() => hands.undo()));
byId("redo").addEventListener("click", () => hands.then(() => hands.redo()));
byId("accept-all").addEventListener("click", () => hands.then(() => hands.acceptAll()));
byId("files").addEventListener("click", () => openFiles(say));
byId("settings").addEventListener("click", () => openSettings(state, say));
byId("keys").addEventListener("click", () => openKeys(table));
byId("train").addEventListener("click", () => studio.train());
for (const id of ["done", "spark"])
  byId(id).addEventListener("click", () => openProgress().catch((error) => studio.explain(error)));
addEventListener("online", () => studio.outbox?.flush());
addEventListener("hashchange", () => Number(location.hash.slice(1)) && studio.open(Number(location.hash.slice(1))));
addEventListener("beforeunload", (event) => {
  if (state.unsaved.count) event.preventDefault();
});

studio.start();
