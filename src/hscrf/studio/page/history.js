// What happened to a sequence, and the note that people leave with it.

import { ask } from "./api.js";
import { byId, make } from "./dom.js";
import { clock } from "./header.js";
import { open } from "./dialogs.js";
import { stepsOf } from "./segments.js";

/** One event in words. @param {any} event */
function words({ kind, body }) {
  if (kind === "label" || kind === "segment")
    return `${body.level}: ${body.label} in ${stepsOf(body.start, body.stop)}${kind === "segment" ? ", exactly" : ""}`;
  if (kind === "boundary" && body.from !== undefined)
    return `${body.level}: border moved from ${body.from} to ${body.at}`;
  if (kind === "boundary") return `${body.level}: ${body.on ? "a border" : "no border"} before step ${body.at}`;
  if (kind === "accept" && body.whole) return body.batch ? "accepted, with others" : "accepted as a whole";
  if (kind === "accept") return `accepted ${Object.values(body.segments).flat().length} segments`;
  if (kind === "release")
    return body.fix ? `released change ${body.fix}` : `${body.level}: released ${stepsOf(body.start, body.stop)}`;
  if (kind === "import") return body.source ? `labels imported from ${body.source}` : "labels that came with the data";
  if (kind === "history") return words(body);
  if (kind === "differ") {
    const count = body.rows.length + (body.borders?.length || 0);
    return count === 1 ? "1 difference to settle" : `${count} differences to settle`;
  }
  if (kind !== "mark") return kind;
  const { flag, skip, note } = body;
  const said = [];
  if (flag !== undefined) said.push(flag ? "flagged" : "flag taken away");
  if (skip !== undefined) said.push(skip ? "skipped" : "no longer skipped");
  if (note !== undefined) said.push(note ? `note: ${note}` : "note removed");
  return said.join(", ");
}

/** @param {import("./state.js").State} state */
export async function openHistory(state) {
  const { view } = state;
  if (!view) return;
  const { events } = await ask(`/api/sequences/${view.id}/history`);
  const rows = events
    .reverse()
    .flatMap((/** @type {any} */ event) => [
      make("time", { datetime: event.at, title: event.at }, `${event.at.slice(0, 10)} ${clock(event.at)}`),
      make("span", { className: "quiet" }, event.annotator || "–"),
      make("span", { className: event.undone ? "undone" : "" }, words(event)),
    ]);
  const list = make(
    "div",
    { className: "history", tabIndex: 0, role: "region", "aria-label": "Events, the newest first" },
    ...rows,
  );
  open(`History of ${view.name}`, rows.length ? list : make("p", { className: "quiet" }, "Nothing has happened yet."));
}

/** @param {import("./state.js").State} state @param {import("./actions.js").Actions} actions */
export function openNote(state, actions) {
  const { view } = state;
  if (!view) return;
  const note = make("textarea", { id: "note", rows: 6, maxlength: 2000, "aria-label": "Note" });
  note.value = view.marks.note || "";
  const save = () => {
    byId("dialog").close();
    if (note.value.trim() !== (view.marks.note || "")) actions.then(() => actions.mark({ note: note.value }));
  };
  open(
    `Note on ${view.name}`,
    note,
    make("p", {}, make("button", { type: "button", className: "main", onclick: save }, "Save")),
  );
  note.focus();
}
