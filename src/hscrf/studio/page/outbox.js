// Fixes on their way to the disk. Each is kept in the browser from the moment it is made until the server has said that
// it is saved; each has a uid, so that sending it again never stores it twice.

import { Offline, Refused, readView, tell } from "./api.js";

/** @typedef {import("./types.js").Fix} Fix */
/** @typedef {import("./types.js").View} View */

const PREFIX = "hscrf-studio/"; // of all keys in the storage that hold a fix
const AGAIN = 3000; // milliseconds between two attempts while nothing gets through
const LATE = 150; // a fix that takes longer is drawn before its answer

/** Whether a fix only means something on the labelling it was made on. @param {Fix} fix */
const isBound = (fix) => fix.kind === "undo" || fix.kind === "redo" || Boolean(fix.body.whole);

export class Outbox {
  /**
   * @param {Storage} storage
   * @param {string} project identity of the database: fixes of another one stay where they are
   * @param {{saved: (fix: Fix, view: View) => void, dropped: (fix: Fix, why: string, view: View | null) => void,
   *   changed: () => void, moved: () => void}} ears `moved`: the server has another database open
   */
  constructor(storage, project, ears) {
    this.storage = storage;
    this.prefix = `${PREFIX}${project}/`;
    this.ears = ears;
    /** @type {Fix[]} */ this.fixes = [];
    /** Uids of fixes that were sent from here and are not in the news yet. @type {Set<string>} */ this.sent =
      new Set();
    /** The newest version known of each sequence. @type {Map<number, number>} */ this.versions = new Map();
    this.sending = false;
    this.late = false;
    this.reason = "";
    this.made = 0;
    /** Sequences that another person is working on. @type {Set<number>} */ this.held = new Set();
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.timer = undefined;
    /** @type {(() => void)[]} */ this.sleepers = [];
    this.adopt();
  }

  /** Take over what an earlier page, or a closed tab, could not send. */
  adopt() {
    const known = new Set(this.fixes.map((fix) => fix.uid));
    for (let i = 0; i < this.storage.length; i++) {
      const key = this.storage.key(i) || "";
      if (!key.startsWith(this.prefix) || known.has(key.slice(this.prefix.length))) continue;
      try {
        this.fixes.push(JSON.parse(this.storage.getItem(key) || ""));
      } catch {
        console.warn("unreadable fix left alone", key);
      }
    }
    this.fixes.sort((a, b) => a.made - b.made);
    if (this.fixes.length) this.late = true;
  }

  /** How many changes of other databases wait in this browser. */
  foreign() {
    const keys = Array.from({ length: this.storage.length }, (_, i) => this.storage.key(i) || "");
    return keys.filter((key) => key.startsWith(PREFIX) && !key.startsWith(this.prefix)).length;
  }

  /** @param {number} sequence @param {string} kind @param {any} body @param {string} annotator @param {number} version
   * @param {number} length of the sequence, which changes if its text is cut into other tokens */
  add(sequence, kind, body, annotator, version, length) {
    this.made = Math.max(Date.now(), this.made + 1);
    const uid = crypto.randomUUID();
    /** @type {Fix} */ const fix = { uid, sequence, version, kind, body, annotator, length, made: this.made };
    try {
      this.storage.setItem(this.prefix + uid, JSON.stringify(fix));
    } catch {
      console.warn("the browser keeps no copy: its storage is full");
    }
    this.fixes.push(fix);
    this.ears.changed();
    this.flush();
    return fix;
  }

  /** @param {number} sequence @returns {Fix[]} */
  of(sequence) {
    return this.fixes.filter((fix) => fix.sequence === sequence);
  }

  /** Resolves when nothing is on its way, or after a while. @param {number} [patience] milliseconds */
  settled(patience = 400) {
    if (!this.fixes.length || this.reason) return Promise.resolve();
    return new Promise((resolve) => {
      this.sleepers.push(() => resolve(undefined));
      setTimeout(resolve, patience);
    });
  }

  /** Send everything, oldest first, one after the other. */
  async flush() {
    if (this.sending) return;
    this.sending = true;
    this.held.clear();
    clearTimeout(this.timer);
    while (this.fixes.length && (await this.sendFirst()));
    this.sending = false;
    if (!this.fixes.length) this.reason = "";
    this.late = this.fixes.length > 0;
    this.ears.changed();
    for (const wake of this.sleepers.splice(0)) wake();
    if (this.fixes.length) this.timer = setTimeout(() => this.flush(), AGAIN);
  }

  /** @returns {Promise<boolean>} whether to go on with the next one */
  async sendFirst() {
    const fix = this.fixes[0];
    const late = setTimeout(() => this.isLate(), LATE);
    try {
      const { uid, kind, body, annotator, length } = fix;
      const version = Math.max(fix.version, this.versions.get(fix.sequence) ?? 0);
      this.sent.add(uid);
      const answer = await tell(`/api/sequences/${fix.sequence}/events`, { uid, version, kind, body, annotator, length });
      this.forget(fix);
      this.reason = "";
      this.versions.set(fix.sequence, answer.version);
      this.ears.saved(fix, readView(answer));
      return true;
    } catch (error) {
      return this.failed(fix, error);
    } finally {
      clearTimeout(late);
    }
  }

  isLate() {
    this.late = true;
    this.ears.changed();
  }

  /** @param {Fix} fix @param {unknown} error @returns {boolean} whether to go on */
  failed(fix, error) {
    if (error instanceof Refused && error.status === 409 && error.data.sequence) return this.behind(fix, error);
    if (error instanceof Refused && [400, 404, 413, 422].includes(error.status)) {
      this.forget(fix);
      this.ears.dropped(fix, error.message, null);
      return true;
    }
    if (error instanceof Refused && error.kind === "held") return this.wait(fix, error);
    if (error instanceof Refused && error.kind === "project") this.ears.moved();
    this.reason = error instanceof Offline ? "the server does not answer" : String(/** @type {any} */ (error).message);
    return false;
  }

  /** Another person works on the sequence: its fixes wait until they leave, those of others go on.
   * @param {Fix} fix @param {Refused} error */
  wait(fix, error) {
    this.held.add(fix.sequence);
    this.reason = error.message;
    this.fixes.sort((a, b) => Number(this.held.has(a.sequence)) - Number(this.held.has(b.sequence)));
    return !this.held.has(this.fixes[0].sequence);
  }

  /** Another tab was quicker: take what it made, then say the same again on top of it.
   * @param {Fix} fix @param {Refused} error */
  behind(fix, error) {
    const view = readView(error.data.sequence);
    this.versions.set(fix.sequence, view.version);
    if (isBound(fix)) {
      this.forget(fix);
      this.ears.dropped(fix, "this sequence was changed in another window; look at it and do it again", view);
      return true;
    }
    fix.version = view.version;
    this.ears.dropped(fix, "", view);
    return true;
  }

  /** @param {Fix} fix */
  forget(fix) {
    this.fixes = this.fixes.filter((other) => other !== fix);
    this.storage.removeItem(this.prefix + fix.uid);
  }
}
