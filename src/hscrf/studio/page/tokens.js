// How plain texts are cut into tokens: seen before it is changed, said what it does to labels, and undone as one step.

import { Refused, ask, tell } from "./api.js";
import { byId, make } from "./dom.js";

/** Fields of the settings. @param {import("./studio.js").Studio} studio @returns {Node[]} nothing where there are no texts */
export function tokenFields(studio) {
  const tokens = studio.state.project?.tokens;
  if (!tokens) return [];
  const { now, former, ways } = tokens;
  const select = make(
    "select",
    { id: "tokens" },
    ...Object.entries(ways).map(([way, words]) => make("option", { value: way }, words)),
  );
  select.value = now;
  const said = make("div", { role: "status", id: "tokens-said" });
  const sample = make("p", { className: "sample", id: "tokens-sample", dir: "auto", tabindex: "0", "aria-label": "The open text, cut like this" });
  const apply = make("button", { type: "button", id: "cut", disabled: true }, "Cut all texts like this");
  const undo = make("button", { type: "button", id: "uncut" }, `Undo: back to ${ways[former || now]}`);
  undo.hidden = !former || former === now;

  /** @param {() => Promise<void>} work */
  async function attempt(work) {
    try {
      await work();
    } catch (error) {
      apply.disabled = true;
      said.replaceChildren(make("p", {}, error instanceof Refused ? error.message : "the server does not answer"));
    }
  }

  const look = () =>
    attempt(async () => {
      const way = select.value;
      const asked = new URLSearchParams({ tokens: way, sequence: String(studio.state.view?.id || "") });
      const found = await ask(`/api/tokens?${asked}`);
      if (way !== select.value) return;
      const words = way === now ? found.words.slice(0, 1) : found.words;
      said.replaceChildren(...words.map((/** @type {string} */ each) => make("p", {}, each)));
      sample.replaceChildren(...found.sample.flatMap((/** @type {string} */ each) => [make("span", {}, each), " "]));
      apply.disabled = way === now || !found.possible;
    });

  const cut = (/** @type {string} */ way) =>
    attempt(async () => {
      await studio.outbox?.settled(3000);
      await tell("/api/tokens", { tokens: way });
      byId("dialog").close();
      studio.say(`texts are cut into ${ways[way]}; Settings undoes it`);
    });

  select.addEventListener("change", look);
  apply.addEventListener("click", () => cut(select.value));
  undo.addEventListener("click", () => cut(former || now));
  look();
  return [
    make("label", { for: "tokens" }, "Tokens of the texts"),
    select,
    make("div", { className: "wide" }, said, sample, make("p", { className: "edit-tools" }, apply, undo)),
  ];
}
