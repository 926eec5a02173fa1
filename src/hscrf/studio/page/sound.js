// Sound as pictures: the waveform, and how loud each frequency is over time.

import { colour } from "./colours.js";
import { Pyramid } from "./signals.js";

const HIGHEST = 16000; // samples a second: frequencies up to 8 kHz, as the bands of the channels
const LOWEST = 3000; // what a browser decodes to
const LARGE = 100e6; // bytes of a file of which fewer samples are kept
const WINDOW = 512; // samples of one column of the spectrogram, a power of two
const BANDS = WINDOW / 2;
const TILE = 128; // columns that are kept together
const TILES = 300; // that are kept
const FAINT = -12; // powers of ten of what is silence
const LOOKS = 64; // columns from which the scale of loudness is made

const HANN = Float32Array.from({ length: WINDOW }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW));
const COS = Float32Array.from({ length: BANDS }, (_, k) => Math.cos((2 * Math.PI * k) / WINDOW));
const SIN = Float32Array.from({ length: BANDS }, (_, k) => -Math.sin((2 * Math.PI * k) / WINDOW));
const ALPHA = new Uint8Array(Uint32Array.of(1).buffer)[0] ? 24 : 0; // bits of a pixel before its opacity
const real = new Float32Array(WINDOW);
const imaginary = new Float32Array(WINDOW);

/** Samples a second to decode a file to: its own if it is a WAV file with fewer, so that no empty band is drawn.
 * @param {ArrayBuffer} content */
export function samplesFor(content) {
  const most = content.byteLength > LARGE ? HIGHEST / 2 : HIGHEST;
  const head = new DataView(content);
  const wave = content.byteLength > 44 && head.getUint32(0) === 0x52494646 && head.getUint32(12) === 0x666d7420;
  return wave ? Math.max(LOWEST, Math.min(most, head.getUint32(24, true))) : most;
}

/** Discrete Fourier transform of WINDOW numbers in place. */
function transform() {
  for (let i = 1, j = 0; i < WINDOW; i++) {
    let bit = WINDOW >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      const [a, b] = [real[i], imaginary[i]];
      real[i] = real[j];
      imaginary[i] = imaginary[j];
      real[j] = a;
      imaginary[j] = b;
    }
  }
  for (let size = 2; size <= WINDOW; size <<= 1) {
    const half = size >> 1;
    const apart = WINDOW / size;
    for (let first = 0; first < WINDOW; first += size)
      for (let k = 0; k < half; k++) {
        const a = first + k;
        const b = a + half;
        const c = COS[k * apart];
        const d = SIN[k * apart];
        const x = real[b] * c - imaginary[b] * d;
        const y = real[b] * d + imaginary[b] * c;
        real[b] = real[a] - x;
        imaginary[b] = imaginary[a] - y;
        real[a] += x;
        imaginary[a] += y;
      }
  }
}

export class Sound {
  /** @param {Float32Array} samples @param {number} rate of them a second @param {import("./time.js").Axis} axis */
  constructor(samples, rate, axis) {
    this.samples = samples;
    this.rate = rate;
    this.axis = axis;
    this.top = Number((rate / 2000).toFixed(1)); // kHz
    this.pyramid = new Pyramid(samples);
    const loudest = samples.reduce((top, value) => Math.max(top, Math.abs(value)), 1e-6);
    this.channel = { name: "sound", min: -loudest, max: loudest, values: samples };
    /** Columns that were computed, by their distance and place. @type {Map<string, {ink: Uint8ClampedArray, done: Uint8Array}>} */
    this.tiles = new Map();
    /** @type {{key: string, picture: ImageData} | null} */ this.kept = null;
    const [quiet, loud] = this.scale();
    this.quiet = quiet; // what is drawn as silence
    this.loud = loud;
  }

  /** The sample at a place between steps. @param {number} step */
  at(step) {
    return this.axis.seconds(step) * this.rate;
  }

  /** @param {CanvasRenderingContext2D} pen @param {import("./types.js").Line} line @param {import("./signals.js").Box} box */
  drawWave(pen, line, box) {
    /** @type {[number, number]} */ const found = [0, 0];
    const middle = box.top + box.height / 2;
    const scale = (box.height / 2 - 1) / this.channel.max;
    pen.fillStyle = colour("signal");
    for (let x = Math.floor(box.left); x < box.right; x++) {
      const start = Math.max(0, Math.floor(this.at(line.step(x))));
      const stop = Math.max(start + 1, Math.floor(this.at(line.step(x + 1))));
      if (start >= this.samples.length) break;
      this.pyramid.range(start, stop, found);
      if (found[0] === Infinity) continue;
      const top = middle - found[1] * scale;
      pen.fillRect(x, top, 1, Math.max(1, (found[1] - found[0]) * scale));
    }
  }

  /** Powers of ten of the loudness of each frequency, the lowest first, around a sample. @param {number} centre
   * @param {Float32Array} out */
  column(centre, out) {
    const first = Math.round(centre) - WINDOW / 2;
    for (let i = 0; i < WINDOW; i++) real[i] = (this.samples[first + i] || 0) * HANN[i];
    imaginary.fill(0);
    transform();
    const unit = (WINDOW * this.channel.max) ** 2;
    for (let i = 0; i < BANDS; i++) out[i] = Math.log10((real[i] ** 2 + imaginary[i] ** 2) / unit + 10 ** FAINT);
  }

  /** What is drawn as silence, the middle of all frequencies and times, and what as loudest. @returns {[number, number]} */
  scale() {
    const all = new Float32Array(LOOKS * BANDS);
    for (let n = 0; n < LOOKS; n++)
      this.column(((n + 0.5) / LOOKS) * this.samples.length, all.subarray(n * BANDS, (n + 1) * BANDS));
    all.sort();
    const [middle, top] = [all[all.length >> 1], all[all.length - 1]];
    return [Math.max(middle, top - 8), top > middle ? top : middle + 1];
  }

  /** The tile of a column. @param {number} hop samples between columns @param {number} index of the column */
  tile(hop, index) {
    const key = `${hop} ${Math.floor(index / TILE)}`;
    let tile = this.tiles.get(key);
    if (!tile) {
      tile = { ink: new Uint8ClampedArray(TILE * BANDS), done: new Uint8Array(TILE) };
      this.tiles.set(key, tile);
      if (this.tiles.size > TILES) this.tiles.delete(/** @type {string} */ (this.tiles.keys().next().value));
    }
    return tile;
  }

  /** @param {CanvasRenderingContext2D} pen @param {import("./types.js").Line} line @param {import("./signals.js").Box} box */
  drawSpectrum(pen, line, box) {
    const wide = Math.max(1, Math.floor(box.right - box.left));
    const ink = pen.canvas.ownerDocument.createElement("canvas");
    [ink.width, ink.height] = [wide, BANDS];
    const key = [wide, line.step(box.left), line.step(box.right), colour("signal")].join(" ");
    const shade = /** @type {CanvasRenderingContext2D} */ (ink.getContext("2d"));
    if (this.kept?.key !== key) this.kept = { key, picture: this.paint(shade, line, box.left, wide) };
    shade.putImageData(this.kept.picture, 0, 0);
    pen.drawImage(ink, box.left, box.top, wide, box.height);
  }

  /** @param {CanvasRenderingContext2D} pen @param {import("./types.js").Line} line @param {number} left @param {number} wide */
  paint(pen, line, left, wide) {
    const picture = pen.createImageData(wide, BANDS);
    pen.fillStyle = colour("signal");
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
    const dot = new Uint32Array(picture.data.buffer);
    const hue = new Uint32Array(Uint8Array.of(red, green, blue, 0).buffer)[0];
    const apart = Math.abs(this.at(line.step(left + wide)) - this.at(line.step(left))) / wide;
    const hop = 2 ** Math.max(3, Math.floor(Math.log2(Math.max(1, apart))));
    const loud = new Float32Array(BANDS);
    for (let x = 0; x < wide; x++) {
      const centre = this.at(line.step(left + x + 0.5));
      if (centre > this.samples.length) break;
      if (centre < 0) continue;
      const index = Math.round(centre / hop);
      const { ink, done } = this.tile(hop, index);
      const first = (index % TILE) * BANDS;
      if (!done[index % TILE]) {
        done[index % TILE] = 1;
        this.column(index * hop, loud);
        for (let band = 0; band < BANDS; band++)
          ink[first + band] = (255 * (loud[band] - this.quiet)) / (this.loud - this.quiet);
      }
      for (let band = 0; band < BANDS; band++)
        dot[(BANDS - 1 - band) * wide + x] = hue | (ink[first + band] << ALPHA);
    }
    return picture;
  }
}
