// The line above the tracks and the lines below the queue: what is open, whether it is saved, what the model does.

import { keyFor } from "./bindings.js";
import { ask } from "./api.js";
import { correctionChart } from "./charts.js";
import { byId, make, mark, write } from "./dom.js";

const ROOM = 470; // pixels of tracks in which a bar says what to do

/** @param {string | null} time ISO @returns {string} hours and minutes here */
export function clock(time) {
  const date = time ? new Date(time) : null;
  return date && !Number.isNaN(date.getTime())
    ? date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })
    : "";
}

/** @param {import("./state.js").State} state */
function savedWords(state) {
  const { count, late } = state.unsaved;
  const changes = count === 1 ? "1 change" : `${count} changes`;
  if (count && late) return `▲ NOT saved: ${changes} kept in this browser`;
  if (state.connection === "offline") return "▲ offline: the server does not answer";
  if (state.connection === "login") return "▲ not logged in";
  if (state.connection === "stopping") return "▲ the server stops";
  return state.view?.saved_at ? `● all saved ${clock(state.view.saved_at)}` : "● all saved";
}

/** @param {import("./state.js").State} state */
function showSaved(state) {
  const words = savedWords(state);
  const element = byId("saved");
  write(element, words);
  element.classList.toggle("late", words.startsWith("▲"));
  element.title =
    state.connection === "login"
      ? "Open the address that hscrf studio printed. Changes made here stay in this browser until then."
      : (state.unsaved.reason ? `${state.unsaved.reason}. ` : "") +
        "Saved means: on the disk of this machine. Until then a change is kept in the browser and sent again.";
}

/** @param {import("./state.js").State} state */
function showView(state) {
  const { view, shown, project } = state;
  if (!view || !shown || !project) return;
  write(byId("title"), view.name);
  document.title = `${view.name} · hscrf studio`;
  const model = view.model === null ? "no model yet" : `model ${view.model}`;
  const words = { open: "not begun", begun: "begun", done: "done ✓" }[shown.status];
  const entropy = view.entropy === null || view.entropy === undefined ? "" : ` · doubt ${view.entropy.toFixed(2)}/step`;
  const held = view.held_by ? `read only: ${view.held_by} is working on it · ` : "";
  mark(byId("about"), "data-held", view.held_by || null);
  write(byId("about"), `${held}${view.length.toLocaleString("en")} steps · ${model} · ${words}${entropy}`);
  byId("about").classList.toggle("computing", view.exact === false);
  byId("about").title =
    (project.model
      ? `${project.model.words}. `
      : "No model yet: label by hand; one is trained from what you accept. ") +
    "Doubt: entropy of the whole labelling, in nats a step; 0 is certain.";
  const lacking = Object.entries(shown.segments).find(([, segments]) => segments.some(([, , label]) => label === null));
  const accept = byId("accept-all");
  const done = shown.status === "done";
  accept.disabled = Boolean(lacking || shown.conflict || view.held_by || done);
  accept.title = view.held_by
    ? `${view.held_by} is working on it`
    : done
      ? "The whole sequence is accepted already: any change opens it again"
      : shown.conflict
        ? "Release one of the contradicting labels first"
        : lacking
          ? `Level ${lacking[0]} still has steps without a label`
          : `All that is shown is right: accept the sequence and go on (${keyFor("acceptAll")})`;
  const many = state.fresh ? project.batch?.count || 0 : 0;
  byId("undo").disabled = !many && (Boolean(view.held_by) || (!shown.can_undo && !state.unsaved.count));
  byId("undo").title = many ? `Take back the acceptance of ${many} sequences (${keyFor("undo")})` : `Undo (${keyFor("undo")})`;
  byId("redo").disabled = Boolean(view.held_by) || !shown.can_redo;
}

/** Where nothing is labelled and the tracks have no room to say so: what to do. @param {import("./state.js").State} state
 * @param {number} width of the tracks */
export function showEmpty({ view, shown, project }, width) {
  const said = Object.values(shown?.segments || {}).some((segments) => segments.some(([, , label]) => label !== null));
  const room = project?.kind !== "text" && width > ROOM;
  const hidden = said || room || Boolean(view?.held_by);
  if (byId("empty").hidden !== hidden) byId("empty").hidden = hidden;
}

/** @param {import("./state.js").State} state */
function showTraining(state) {
  const { project, waiting } = state;
  if (!project) return;
  const { training, warming, model } = project;
  const idle = waiting ? `${waiting.words}: takes over with the next sequence` : model ? model.words : "no model yet";
  const words = training.running ? training.words : !warming.done ? warming.words : idle;
  write(byId("training"), words);
  byId("training").title = training.running
    ? "A new model is trained in a process of its own; go on working."
    : `A model is trained after every ${project.train_after} newly accepted sequences, and when you ask for it.`;
  byId("training").classList.toggle("busy", training.running || !warming.done);
  write(byId("train"), training.running ? "Stop training" : "Train now");
}

/** The curve of corrections below the queue. */
export async function drawSpark() {
  const { corrections } = await ask("/api/progress");
  byId("spark").replaceChildren(correctionChart(corrections.slice(-60), true));
}

/** @param {import("./state.js").State} state */
function showCounts(state) {
  const { queue, project } = state;
  if (!queue || !project) return;
  write(byId("done"), `${queue.done} of ${queue.total} done`);
  byId("done").title = `Sequences that were accepted whole. Click for the progress curves (${keyFor("progress")})`;
  byId("meter").style.width = `${(100 * queue.done) / Math.max(1, queue.total)}%`;
}

/** @param {import("./state.js").State} state */
function showProject(state) {
  const { project } = state;
  if (!project) return;
  write(byId("project"), project.name);
  mark(byId("tracks"), "class", project.kind === "text" ? "tracks text" : "tracks");
  byId("notices").replaceChildren(
    ...[...project.notices, ...state.notices].map(({ message }) => make("li", {}, message)),
  );
}

/** @param {import("./state.js").State} state */
export function bindHeader(state) {
  state.on("saved connection view", () => showSaved(state));
  state.on("view shown saved project", () => showView(state));
  state.on("project training", () => showTraining(state));
  state.on("project queue", () => showCounts(state));
  state.on("project", () => showProject(state));
}
