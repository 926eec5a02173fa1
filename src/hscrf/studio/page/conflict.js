// A contradiction: what cannot be true together, and a button to release each of it.

import { keyFor } from "./bindings.js";
import { byId, make } from "./dom.js";

export class Conflict {
  /** @param {import("./state.js").State} state @param {(kind: string, body: any) => void} send */
  constructor(state, send) {
    this.state = state;
    this.send = send;
    this.element = byId("conflict");
    this.seen = "";
    state.on("shown", () => this.show());
  }

  show() {
    const conflict = this.state.shown ? this.state.shown.conflict : null;
    const seen = JSON.stringify(conflict);
    if (seen === this.seen) return; // a button that is pressed stays
    this.seen = seen;
    this.element.hidden = !conflict;
    if (!conflict) return this.element.replaceChildren();
    const undo = make("button", { type: "button", onclick: () => this.send("undo", {}) }, `Undo the last change (${keyFor("undo")})`);
    const items = conflict.items.filter((item) => !item.new).map((item) => make("li", {}, this.button(item)));
    this.element.replaceChildren(
      make("h3", {}, `These cannot be true together. Nothing is lost; release one (${keyFor("conflict")})`),
      make("p", {}, conflict.items.map((item) => item.what).join(", and ") || conflict.message, conflict.rule && `: ${conflict.rule}`),
      make("ul", {}, ...items, make("li", {}, undo)),
    );
  }

  /** @param {import("./types.js").ConflictItem} item */
  button(item) {
    const look = () => this.state.select({ level: item.level, step: item.start, range: [item.start, item.stop] });
    const release = () => this.send("release", item.release);
    return make(
      "button",
      { type: "button", onclick: release, onfocus: look, onpointerenter: look, "data-fix": item.fix },
      `Release: ${item.what}`,
    );
  }

  focus() {
    this.element.querySelector("button")?.focus();
  }
}
