// Accept many sequences at once: those in which the model is confident. A preview first; one undo for all.

import { keyFor } from "./bindings.js";
import { Refused, ask, tell } from "./api.js";
import { byId, make } from "./dom.js";
import { open } from "./dialogs.js";

/** @param {import("./studio.js").Studio} studio */
export function openBulk(studio) {
  const least = make("input", { id: "least", type: "number", min: "0.5", max: "1", step: "0.01", value: "0.95" });
  const list = make("div", { className: "bulk-list", role: "status" });
  const accept = make("button", { type: "button", className: "main", disabled: true }, "Accept them");
  /** @type {any[]} */ let found = [];
  let asked = 0;
  const show = async () => {
    const turn = ++asked;
    accept.disabled = true;
    list.replaceChildren(make("p", { className: "quiet" }, "looking through the sequences…"));
    try {
      const answer = await ask(`/api/bulk/preview?confidence=${Number(least.value)}`);
      if (turn !== asked) return; // another confidence was asked for meanwhile
      found = answer.sequences;
    } catch (error) {
      return list.replaceChildren(make("p", {}, /** @type {any} */ (error).message));
    }
    const words = found.length === 1 ? "1 sequence" : `${found.length} sequences`;
    const rows = found.map((each) =>
      make("span", {}, `${each.name}, ${each.length} steps, least sure ${each.confidence}`),
    );
    list.replaceChildren(make("b", {}, found.length ? words : await surest()), ...rows);
    accept.disabled = !found.length;
  };
  least.addEventListener("change", show);
  accept.addEventListener("click", async () => {
    const sequences = found.map((each) => each.id);
    try {
      const { batch, accepted } = await tell("/api/bulk/accept", { confidence: Number(least.value), sequences });
      took(studio, accepted.length ? { batch, count: accepted.length } : null);
      await studio.refreshQueue();
      const next = studio.state.queue?.next;
      if (next && accepted.includes(studio.state.view?.id)) studio.open(next);
      else studio.reload();
      done(studio, accepted.length);
    } catch (error) {
      list.replaceChildren(make("p", {}, error instanceof Refused ? error.message : "the server does not answer"));
    }
  });
  open(
    "Accept many sequences",
    make("p", {}, "Sequences that are not done and in which the model is this sure of every segment of every level:"),
    make("div", { className: "form" }, make("label", { for: "least" }, "Mean probability of the steps of each segment, at least"), least),
    list,
    make("p", {}, accept),
    make("p", { className: "quiet" }, "Flagged and skipped sequences stay as they are. One undo takes all of it back."),
  );
  show();
}

/** Where none is as sure as asked for: the surest. */
async function surest() {
  const { sequences } = await ask("/api/bulk/preview?confidence=0.5");
  const [first] = sequences;
  return first ? `No sequence is as sure as that; the surest is ${first.name} with ${first.confidence}.` : "Among the sequences that are not done, none is as sure as 0.5.";
}

/** Remember what was accepted together last. @param {import("./studio.js").Studio} studio
 * @param {{batch: string, count: number} | null} batch */
function took(studio, batch) {
  const { state } = studio;
  if (!state.project) return;
  state.project.batch = batch;
  state.fresh = batch !== null;
  state.say("project");
}

/** Take back what was accepted together last. @param {import("./studio.js").Studio} studio @returns {Promise<string>} what came of it */
export async function undoBulk(studio) {
  const batch = studio.state.project?.batch;
  if (!batch) return "nothing was accepted together";
  try {
    const { undone, kept } = await tell("/api/bulk/undo", { batch: batch.batch });
    took(studio, null);
    await studio.refreshQueue();
    studio.reload();
    const rest = kept.length ? `; ${kept.length} were changed since and stay` : "";
    return `${undone.length} taken back${rest}`;
  } catch (error) {
    return error instanceof Refused ? error.message : "the server does not answer";
  }
}

/** @param {import("./studio.js").Studio} studio @param {number} count */
function done(studio, count) {
  const words = `${count === 1 ? "1 sequence is" : `${count} sequences are`} accepted. Undo (${keyFor("undo")}) takes all of it back, also later: it is in the menu.`;
  const result = make("p", { role: "status" }, words);
  const undo = make("button", { type: "button" }, "Undo all of it");
  undo.addEventListener("click", async () => {
    undo.disabled = true;
    result.textContent = `${await undoBulk(studio)}.`;
  });
  open("Accept many sequences", result, make("p", {}, undo));
  byId("dialog").focus();
}
