// What a person does, turned into fixes. Every action works on what is on the screen.

import { keyFor } from "./bindings.js";
import { chosen, digitsOf, doubtful, indexAt } from "./segments.js";

/** @typedef {import("./types.js").Segment} Segment */

const REST = 350; // milliseconds without a key until a border that is moved by keys stays

export class Actions {
  /** @param {import("./state.js").State} state @param {(kind: string, body: any) => void} send
   * @param {(words: string) => void} say @param {() => Promise<void>} settled */
  constructor(state, send, say, settled) {
    this.state = state;
    this.sendNow = send;
    this.say = say;
    this.settled = settled;
    /** @type {ReturnType<typeof setTimeout> | undefined} */ this.resting = undefined;
    /** @type {string[]} */ this.visited = [];
    this.visitedAt = "";
    this.queue = Promise.resolve();
    /** Takes back what was accepted together. @type {() => void} */ this.undoMany = () => {};
  }

  /** Do it in its turn, as soon as the fix before it has been answered: a person may be quicker than the model.
   * @param {() => unknown} work */
  then(work) {
    this.queue = this.queue.then(async () => {
      this.drop();
      await this.settled();
      if (this.state.shown) await work();
    });
    return this.queue;
  }

  /** @param {string} kind @param {any} body */
  send(kind, body) {
    this.sendNow(kind, body);
  }

  now() {
    const shown = /** @type {import("./types.js").View} */ (this.state.shown);
    const { level } = this.state.selection;
    return {
      shown,
      level,
      segments: shown.segments[level],
      unit: this.state.level(level).unit,
      ...chosen(shown, this.state.selection),
    };
  }

  /** These steps have this label; a range chosen by hand becomes exactly one segment. @param {string} label */
  label(label) {
    const { level, start, stop, free, unit } = this.now();
    this.send(free && !unit ? "segment" : "label", { level, start, stop, label });
    this.state.select({ level, step: start });
  }

  /** A border before the cursor; in the middle if the cursor stands on the segment's first step. */
  split() {
    const { level, segment, unit } = this.now();
    const [start, stop] = segment;
    if (unit)
      return this.say(`at level ${level} every step is a segment of its own: choose steps and give them another label`);
    if (stop - start < 2) return this.say("a segment of one step cannot be split");
    const step = this.state.selection.step;
    const at = step > start ? step : start + ((stop - start) >> 1);
    this.send("boundary", { level, at, on: true });
    this.state.select({ level, step: at });
  }

  /** No border between this segment and the next (or the one before). @param {boolean} [before] */
  merge(before = false) {
    const { level, index, segments, unit } = this.now();
    const right = before ? index : index + 1;
    if (right < 1 || right >= segments.length)
      return this.say(`there is no segment ${before ? "before" : "after"} this one`);
    const other = segments[before ? right - 1 : right];
    if (unit) this.send("label", { level, start: other[0], stop: other[1], label: segments[index][2] });
    else this.send("boundary", { level, at: segments[right][0], on: false });
    this.state.select({ level, step: segments[before ? right - 1 : index][0] });
  }

  /** This segment is right; go on to the next unconfirmed one. */
  accept() {
    const { level, segment, index, by } = this.now();
    if (segment[2] === null)
      return this.say(`there is no label to accept here yet: press ${digitsOf(this.state.level(level).labels)} or Enter`);
    if (by === "accepted") return this.stepOn(index);
    this.send("accept", { segments: { [level]: [segment] } });
    this.stepOn(index);
  }

  /** On to the next unconfirmed segment. @param {number} index of this one */
  stepOn(index) {
    const { shown, level, segments } = this.now();
    const next = segments.findIndex((_, i) => i > index && shown.by[level][i] === "model");
    this.state.select({ level, step: segments[next < 0 ? index : next][0] });
  }

  /** All that is shown is right. */
  acceptAll() {
    const { shown } = this.now();
    const empty = Object.entries(shown.segments).find(([, segments]) =>
      segments.some((segment) => segment[2] === null),
    );
    if (shown.conflict) return this.say("release one of the contradicting labels first");
    if (shown.status === "done") return this.say("the whole sequence is accepted already");
    if (empty) return this.say(`level ${empty[0]} still has steps without a label`);
    this.send("accept", { whole: true, segments: shown.segments });
  }

  release() {
    const { level, start, stop } = this.now();
    this.send("release", { level, start, stop });
  }

  /** Flag the sequence, skip it, or write a note; labels stay as they are. @param {import("./types.js").Marks} marks */
  mark(marks) {
    this.send("mark", marks);
  }

  /** Put the flag up or down. */
  flag() {
    this.mark({ flag: !this.state.view?.marks.flag });
  }

  undo() {
    if (this.state.fresh) return this.undoMany();
    if (!this.state.shown?.can_undo && !this.state.unsaved.count) return this.say("nothing to undo");
    this.send("undo", {});
  }

  redo() {
    if (!this.state.shown?.can_redo) return this.say("nothing to redo");
    this.send("redo", {});
  }

  /** How far a border may go: to its neighbours, and there the segment between is gone. @param {string} level @param {number} from */
  limits(level, from) {
    const segments = this.state.shown?.segments[level] || [];
    const right = indexAt(segments, from);
    if (right < 1 || segments[right][0] !== from) return null;
    return {
      low: segments[right - 1][0],
      high: segments[right][1],
      left: segments[right - 1][2],
      label: segments[right][2],
    };
  }

  /** Move a border on the screen only. @param {string} level @param {number} from @param {number} at */
  carry(level, from, at) {
    const limits = this.limits(level, from);
    if (!limits) return false;
    this.state.move({ level, from, at: Math.max(limits.low, Math.min(limits.high, at)) });
    return true;
  }

  /** The border that is being moved stays where it is. */
  drop() {
    clearTimeout(this.resting);
    const moving = this.state.moving;
    if (!moving) return;
    this.state.move(null);
    const { level, from, at } = moving;
    const limits = this.limits(level, from);
    if (at === from || !limits) return;
    this.send(...this.moved(level, from, at, limits));
    this.state.select({ level, step: at });
  }

  /** What it means that a border was moved. The segment that grew takes its label along where it covers the other segment
   * as a whole, and without a model, as a label does not spread by itself then.
   * @param {string} level @param {number} from @param {number} at
   * @param {{low: number, high: number, left: string | null, label: string | null}} limits @returns {[string, any]} */
  moved(level, from, at, limits) {
    const label = at > from ? limits.left : limits.label;
    const crossed = { level, start: Math.min(from, at), stop: Math.max(from, at) };
    const gone = at === limits.low || at === limits.high;
    if (this.state.level(level).unit) return ["label", { ...crossed, label }];
    if (gone && label === null) return ["release", crossed];
    if (!gone && this.isHeld(level, from))
      return this.state.shown?.model === null ? ["release", crossed] : ["boundary", { level, at, on: true }];
    if (!gone && (this.state.shown?.model !== null || label === null)) return ["boundary", { level, at, on: true, from }];
    const [start, stop] = at > from ? [limits.low, at] : [at, limits.high];
    return ["segment", { level, start, stop, label }];
  }

  /** Whether a level above has a fixed border there: it stays, and so does one below. What is crossed becomes a segment of its
   * own. @param {string} level @param {number} at */
  isHeld(level, at) {
    const { levels, shown } = this.state;
    return levels.slice(0, levels.indexOf(level)).some((above) => shown?.fixed_borders[above]?.on.includes(at));
  }

  /** The border that is being moved goes back. */
  cancel() {
    clearTimeout(this.resting);
    this.state.move(null);
  }

  /** Move the first (or last) border of the chosen segment by steps. @param {number} by @param {boolean} [end] */
  nudge(by, end = false) {
    const moving = this.state.moving;
    if (!moving && this.state.unsaved.count && !this.state.unsaved.late) return this.then(() => this.nudge(by, end));
    const { level, segment } = this.now();
    const from = moving ? moving.from : segment[end ? 1 : 0];
    const moved = this.carry(moving ? moving.level : level, from, (moving ? moving.at : from) + by);
    if (!moved) return this.say(`the ${end ? "last" : "first"} segment has no border at its ${end ? "end" : "start"}`);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.then(() => {}), REST);
  }

  /** @param {number} by segments */
  step(by) {
    const { level, segments, index } = this.now();
    const next = Math.max(0, Math.min(segments.length - 1, index + by));
    this.state.select({ level, step: segments[next][0] });
  }

  /** The level above or below, at the same steps. @param {number} by */
  climb(by) {
    const { levels, selection } = this.state;
    const next = levels[Math.max(0, Math.min(levels.length - 1, levels.indexOf(selection.level) + by))];
    this.state.select({ level: next, step: selection.step });
  }

  /** Move the cursor inside the sequence; with `stretch`, choose the steps between. @param {number} by @param {boolean} stretch */
  creep(by, stretch) {
    const { selection, shown } = this.state;
    if (!shown) return;
    if (!stretch) return this.state.select({ step: selection.step + by });
    const [start, stop] = selection.range || [selection.step, selection.step + 1];
    const forward = selection.range ? selection.step === stop - 1 : by > 0;
    const anchor = forward ? start : stop - 1;
    const step = Math.max(0, Math.min(shown.length - 1, selection.step + by));
    this.state.select({ step, range: [Math.min(anchor, step), Math.max(anchor, step) + 1] });
  }

  /** The most doubtful segment; asked again, the next one. */
  nextDoubt() {
    const { shown, levels } = this.state;
    if (!shown) return;
    const at = `${shown.id} ${shown.version}`;
    if (this.visitedAt !== at) this.visited = [];
    this.visitedAt = at;
    const all = doubtful(shown, levels);
    const key = (/** @type {any} */ each) => `${each.level} ${each.start}`;
    let found = all.find((each) => !this.visited.includes(key(each)));
    if (!found && all.length) {
      this.visited = [];
      found = all[0];
    }
    if (!found) return this.say(`every segment is confirmed: ${keyFor("acceptAll")} accepts the sequence`);
    this.visited.push(key(found));
    this.state.select({ level: found.level, step: found.start });
  }
}
