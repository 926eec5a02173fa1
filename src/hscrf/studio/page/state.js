// What the page knows. One object: code that changes a part announces it, code that shows it listens.

/** @typedef {import("./types.js").View} View */

export class State {
  constructor() {
    /** @type {import("./types.js").Project | null} */ this.project = null;
    /** @type {import("./types.js").Queue | null} */ this.queue = null;
    /** The open sequence as the server knows it. @type {View | null} */ this.view = null;
    /** The same with unsent fixes drawn in: what is on the screen. @type {View | null} */ this.shown = null;
    /** Segments by level as they were before the last fix. @type {View["segments"]} */ this.former = {};
    /** @type {import("./types.js").Observations | null} */ this.observations = null;
    /** @type {import("./types.js").Selection} */ this.selection = { level: "", step: 0, range: null };
    /** A border that is being moved by hand. @type {import("./types.js").Moving | null} */ this.moving = null;
    /** @type {"connecting" | "online" | "offline" | "login" | "stopping"} */ this.connection = "connecting";
    /** Fixes on their way, and why they are not there yet. @type {{count: number, late: boolean, reason: string}} */
    this.unsaved = { count: 0, late: false, reason: "" };
    /** What the page itself has to say. @type {{kind: string, message: string}[]} */ this.notices = [];
    /** A model that waits for the next sequence. @type {{number: number, words: string} | null} */ this.waiting = null;
    /** Whether accepting many sequences was the last thing done here: one undo takes all of it back. */ this.fresh = false;
    /** @type {Map<string, Set<() => void>>} */ this.listeners = new Map();
  }

  /** @param {string} topics separated by blanks @param {() => void} listener */
  on(topics, listener) {
    for (const topic of topics.split(" ")) {
      if (!this.listeners.has(topic)) this.listeners.set(topic, new Set());
      this.listeners.get(topic)?.add(listener);
    }
  }

  /** @param {string} topics */
  say(topics) {
    /** @type {Set<() => void>} */ const called = new Set();
    for (const topic of topics.split(" ")) for (const listener of this.listeners.get(topic) || []) called.add(listener);
    for (const listener of called) listener();
  }

  /** @returns {string[]} names of the levels, top to bottom */
  get levels() {
    return this.project ? this.project.levels.map((level) => level.name) : [];
  }

  /** @param {string} name @returns {import("./types.js").Level} */
  level(name) {
    const found = this.project?.levels.find((level) => level.name === name);
    if (!found) throw new Error(`no level ${name}`);
    return found;
  }

  /** @param {Partial<import("./types.js").Selection>} change */
  select(change) {
    const next = { ...this.selection, range: null, ...change };
    const length = this.shown ? this.shown.length : 1;
    next.step = Math.max(0, Math.min(length - 1, next.step));
    const same = next.level === this.selection.level && next.step === this.selection.step;
    if (same && next.range === null && this.selection.range === null) return;
    this.selection = next;
    this.say("selection");
  }

  /** @param {import("./types.js").Moving | null} moving */
  move(moving) {
    this.moving = moving;
    this.say("moving");
  }
}
