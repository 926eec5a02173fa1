// Time in words: seconds where the project says how many steps there are in one.

const NICE = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

/** Seconds as 1:02.5. @param {number} time */
export function seconds(time) {
  const rest = time % 60;
  const minutes = Math.floor(time / 60);
  const text = Number(rest.toFixed(3)).toString();
  return minutes ? `${minutes}:${rest < 10 ? "0" : ""}${text}` : `${text} s`;
}

/** How many steps marks on the axis are apart. @param {number} least @param {number} rate steps a second, 0: not known */
export function apartOnAxis(least, rate) {
  if (rate) {
    const time = NICE.find((each) => each * rate >= least && each * rate >= 1);
    if (time) return time * rate;
  }
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return Math.max(1, [1, 2, 5, 10].map((f) => f * power).find((each) => each >= least) || 1);
}

/** The time of a step in words, "" where it is not known: by its own times, or by the rate.
 * @param {number} step @param {number | null | undefined} rate @param {number[] | null} [times] of all steps */
export function timeWords(step, rate, times) {
  const time = times ? times[Math.min(times.length - 1, Math.max(0, Math.floor(step)))] : rate ? step / rate : null;
  return time === null || time === undefined ? "" : `${time < 0 ? "-" : ""}${seconds(Math.abs(time))}`;
}

/** From when to when steps last, "" where that is not known. @param {number} start @param {number} stop
 * @param {number | null | undefined} rate @param {number[] | null | undefined} times */
export function spanWords(start, stop, rate, times) {
  if (!times && !rate) return "";
  const last = times ? 2 * times[times.length - 1] - (times[times.length - 2] ?? times[0]) : 0; // the last step ends
  const to = times && stop >= times.length ? seconds(Math.max(0, last)) : timeWords(stop, rate, times);
  return `, ${timeWords(start, rate, times).replace(/ s$/, "")} to ${to}`;
}

/** A step, with its time where that is known.
 * @param {number} step @param {number | null | undefined} rate @param {number[] | null} [times] */
export function stepWords(step, rate, times) {
  const time = timeWords(step, rate, times);
  return time ? `step ${step} (${time})` : `step ${step}`;
}

/** Between steps and seconds: by the times of the steps, or by the rate; without both a step is a second. */
export class Axis {
  /** @param {number} length steps @param {number | null | undefined} rate steps a second @param {number[] | null | undefined} times
   * at which steps begin */
  constructor(length, rate, times) {
    this.length = length;
    this.rate = rate || 1;
    /** Seconds of all borders. @type {number[] | null} */ this.borders = null;
    if (times?.length) {
      const lengths = times
        .slice(1)
        .map((time, i) => time - times[i])
        .sort((a, b) => a - b);
      const middle = lengths.length >> 1;
      const last = !lengths.length
        ? 1 / this.rate
        : lengths.length % 2
          ? lengths[middle]
          : (lengths[middle - 1] + lengths[middle]) / 2;
      this.borders = [...times, times[times.length - 1] + last];
    }
    this.offset = 0;
  }

  /** A recording lasts so long. Where the times begin after its end they are those of a clock: the recording begins with
   * the first step. @param {number} duration seconds */
  fit(duration) {
    if (this.borders && Number.isFinite(duration))
      this.offset = this.borders[0] > duration || this.borders[0] < 0 ? this.borders[0] : 0;
  }

  /** Seconds of the recording at a place between steps. @param {number} step */
  seconds(step) {
    const { borders } = this;
    if (!borders) return step / this.rate;
    const at = Math.max(0, Math.min(this.length - 1, Math.floor(step)));
    return borders[at] + (step - at) * (borders[at + 1] - borders[at]) - this.offset;
  }

  /** The place between steps at some seconds of the recording. @param {number} seconds */
  step(seconds) {
    const { borders } = this;
    if (!borders) return seconds * this.rate;
    const time = seconds + this.offset;
    let [low, high] = [0, this.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (borders[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low + (time - borders[low]) / (borders[low + 1] - borders[low]);
  }
}
