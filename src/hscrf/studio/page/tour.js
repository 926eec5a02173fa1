// A short tour: what to do in the first minute. It is shown next to the work, goes on when its step is done, and can be closed.

import { keyFor } from "./bindings.js";
import { byId, make } from "./dom.js";

const SEEN = "hscrf-studio-tour";

/** @typedef {{at: string, title: string, words: string, done?: string}} Step
 *    `at`: the element that it is about; `done`: the news of the state that ends it */

/** @param {import("./state.js").State} state @returns {Step[]} */
function steps(state) {
  const text = state.observations?.kind === "text";
  const what = text ? "words" : "steps";
  return [
    {
      at: "tracks",
      title: "One sequence, a track for each level",
      words: `Below the ${text ? "words" : "axis"} each level has a track of segments. A dashed outline with ? is a suggestion of the model; a lock or ✓ is yours. ${text ? "The sequences before and after are around it: a click opens one." : "The other mouse button has a menu."}`,
    },
    {
      at: "tracks",
      title: `Drag over some ${what}`,
      words: `Press the mouse on a track, drag to the last of the ${what} and let go. Or, on the keyboard: ${keyFor("chooseRight")} and ${keyFor("chooseLeft")} choose ${what}, ${keyFor("up")} and ${keyFor("down")} another level. Try it now.`,
      done: "range",
    },
    {
      at: "choices",
      title: "Press 1",
      words: "The digits give the labels in this list to what is chosen; a click does the same. The rest is decoded again around your label. Try it now.",
      done: "fixed",
    },
    {
      at: "undo",
      title: "Nothing can be lost",
      words: `${keyFor("undo")} takes back the last change, also after a restart. Everything is saved at once; the line at the top says so.`,
    },
    {
      at: "accept-all",
      title: "Accept what is right",
      words: `${keyFor("accept")} accepts a segment, ${keyFor("acceptAll")} the whole sequence, and the next one opens. After some accepted sequences a model is trained, and you correct instead of labelling.`,
    },
    {
      at: "queue",
      title: "What comes next",
      words: "The queue begins with the sequences in which the model is most in doubt. Files exports your labels at any time.",
    },
    {
      at: "keys",
      title: "Help",
      words: `${keyFor("keys")} shows all keys and begins this tour again. Settings changes keys, colours and the size of words.`,
    },
  ];
}

export class Tour {
  /** @param {import("./state.js").State} state @param {() => void} left gives the focus back */
  constructor(state, left) {
    this.state = state;
    this.left = left;
    this.at = -1;
    /** @type {Step[]} */ this.steps = [];
    /** @type {HTMLElement | null} */ this.box = null;
    this.version = 0;
    state.on("selection", () => this.state.selection.range && this.finish("range"));
    state.on("view", () => this.state.view && this.state.view.version > this.version && this.finish("fixed"));
    addEventListener("resize", () => this.place());
    byId("tour-start").addEventListener("click", () => this.start());
    byId("tour-never").addEventListener("click", () => this.stop());
    this.invite();
  }

  /** A browser that has not seen the tour is asked once. */
  invite() {
    byId("tour-invite").hidden = localStorage.getItem(SEEN) !== null;
  }

  start() {
    byId("dialog").close();
    localStorage.setItem(SEEN, "seen");
    this.invite();
    this.steps = steps(this.state);
    this.go(0);
  }

  /** @param {number} at */
  go(at) {
    this.at = at;
    this.version = this.state.view?.version ?? 0;
    if (at < 0 || at >= this.steps.length) return this.stop();
    const { title, words } = this.steps[at];
    const last = at === this.steps.length - 1;
    const next = make("button", { type: "button", className: "main", onclick: () => this.go(at + 1) }, last ? "Done" : "Next");
    const back = make("button", { type: "button", disabled: at === 0, onclick: () => this.go(at - 1) }, "Back");
    const leave = make("button", { type: "button", onclick: () => this.stop() }, "Leave the tour (Esc)");
    const box = make(
      "section",
      { className: "tour", id: "tour", role: "dialog", "aria-labelledby": "tour-title", "aria-describedby": "tour-words" },
      make("p", { className: "quiet" }, `${at + 1} of ${this.steps.length}`),
      make("h2", { id: "tour-title" }, title),
      make("p", { id: "tour-words" }, words),
      make("p", { className: "edit-tools" }, next, back, last ? null : leave),
    );
    box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.stop();
    });
    if (this.box) this.box.replaceWith(box);
    else /** @type {HTMLElement} */ (document.querySelector("main")).append(box);
    this.box = box;
    this.place();
    next.focus({ preventScroll: true });
  }

  /** Next to what it is about, on the screen as a whole, and never over it where there is room elsewhere. */
  place() {
    if (!this.box) return;
    for (const other of document.querySelectorAll(".toured")) other.classList.remove("toured");
    const target = byId(this.steps[this.at].at);
    target.classList.add("toured");
    target.scrollIntoView({ block: "nearest" }); // a narrow page scrolls
    const [its, own] = [target.getBoundingClientRect(), this.box.getBoundingClientRect()];
    const inside = its.height > 0.5 * innerHeight || its.width > 0.6 * innerWidth;
    let [x, y] = [its.left, its.bottom + 10];
    if (inside && its.height > own.height + 40) [x, y] = [its.right - own.width - 24, its.bottom - own.height - 16];
    else if (y + own.height > innerHeight - 8) y = its.top - own.height - 10;
    this.box.style.left = `${Math.max(8, Math.min(x, innerWidth - own.width - 8))}px`;
    this.box.style.top = `${Math.max(8, Math.min(y, innerHeight - own.height - 8))}px`;
  }

  /** What a step asks for was done: go on, and leave the focus where the work is. @param {string} what */
  finish(what) {
    if (!this.box || this.steps[this.at]?.done !== what) return;
    const before = document.activeElement;
    this.go(this.at + 1);
    if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    else byId("tracks").focus({ preventScroll: true });
  }

  stop() {
    localStorage.setItem(SEEN, "seen");
    this.invite();
    for (const other of document.querySelectorAll(".toured")) other.classList.remove("toured");
    const had = this.box !== null;
    this.box?.remove();
    this.box = null;
    this.at = -1;
    if (had) this.left();
  }
}
