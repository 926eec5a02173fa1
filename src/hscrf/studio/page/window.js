// The part of the time axis that is on the screen.

const CLOSEST = 4; // steps on the screen at the closest look

export class Window {
  /** @param {number} length */
  constructor(length) {
    this.length = length;
    this.start = 0;
    this.stop = length;
  }

  get span() {
    return this.stop - this.start;
  }

  /** @param {number} start @param {number} span */
  set(start, span) {
    const width = Math.min(this.length, Math.max(Math.min(CLOSEST, this.length), span));
    this.start = Math.max(0, Math.min(this.length - width, start));
    this.stop = this.start + width;
  }

  /** @param {number} steps */
  pan(steps) {
    this.set(this.start + steps, this.span);
  }

  /** @param {number} factor above 1: closer @param {number} about the step that stays where it is */
  zoom(factor, about) {
    const share = (about - this.start) / this.span;
    const span = Math.min(this.length, Math.max(Math.min(CLOSEST, this.length), this.span / factor));
    this.set(about - share * span, span);
  }

  /** Move as little as needed to show these steps with some room; whether anything moved.
   * @param {number} start @param {number} stop @returns {boolean} */
  show(start, stop) {
    const before = this.start;
    const room = Math.min(0.08 * this.span, 8);
    if (stop - start + 2 * room > this.span) {
      if (this.start > start || this.stop < start + 1) this.set(start - room, this.span);
    } else if (start - room < this.start) this.set(start - room, this.span);
    else if (stop + room > this.stop) this.set(stop + room - this.span, this.span);
    return this.start !== before;
  }
}
