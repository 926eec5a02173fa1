// Two people labelled the same steps differently: a person decides, by a key or a button for each of them.

import { keyFor } from "./bindings.js";
import { byId, make } from "./dom.js";
import { stepsOf } from "./segments.js";

/** What one person said. @param {{border: boolean}} one @param {string | boolean} said */
const words = (one, said) => (one.border ? (said ? "a border" : "no border") : String(said));

export class Settle {
  /** @param {import("./state.js").State} state @param {(kind: string, body: any) => void} send
   * @param {(words: string) => void} say */
  constructor(state, send, say) {
    this.state = state;
    this.send = send;
    this.say = say;
    this.element = byId("settle");
    this.seen = "";
    this.opened = 0; // the sequence on the screen
    state.on("shown selection", () => this.show());
  }

  /** The difference at the cursor, or else the first. */
  now() {
    const { shown, selection } = this.state;
    const all = shown?.unsettled || [];
    return (
      all.find(
        (each) => each.level === selection.level && each.start <= selection.step && selection.step < each.stop,
      ) ||
      all[0] ||
      null
    );
  }

  show() {
    const one = this.now();
    const id = this.state.shown?.id ?? 0;
    if (id !== this.opened) {
      this.opened = id;
      if (one) this.state.select({ level: one.level, step: one.start });
    }
    const left = this.state.shown?.unsettled.length || 0;
    const seen = JSON.stringify([one, left]);
    if (seen === this.seen) return; // a button that is pressed stays
    this.seen = seen;
    this.element.hidden = !one;
    if (!one) return this.element.replaceChildren();
    const buttons = Object.entries(one.said).map(([name, said], k) =>
      make(
        "button",
        { type: "button", onclick: () => this.take(k) },
        make("kbd", {}, keyFor(k ? "secondPerson" : "firstPerson")),
        ` ${words(one, said)} (${name})`,
      ),
    );
    const where = one.border ? `border before step ${one.start}` : stepsOf(one.start, one.stop);
    this.element.replaceChildren(
      make("b", {}, `${one.level}, ${where}: `),
      ...buttons,
      make("span", { className: "quiet" }, `${left} to settle`),
    );
  }

  /** What one of the two said is right. @param {number} which 0 or 1 */
  take(which) {
    const one = this.now();
    if (!one) return this.say("nothing is left to settle here");
    const { level, start, stop } = one;
    const said = Object.values(one.said)[which];
    if (one.border) this.send("boundary", { level, at: start, on: said });
    else this.send("label", { level, start, stop, label: said });
    const next = this.state.shown?.unsettled.find((each) => each !== one);
    if (next) this.state.select({ level: next.level, step: next.start });
  }
}
