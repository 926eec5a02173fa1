// Sound as pictures: the waveform, and how loud each frequency is over time.

import { colour } from "./colours.js";
import { Pyramid } from "./signals.js";

export const SAMPLES = 8000; // a second: enough to see speech
const WINDOW = 256; // samples of one column of the spectrogram, a power of two
const FAINT = -7; // powers of ten between the loudest and what is drawn as silence

/** Discrete Fourier transform in place. @param {Float32Array} real @param {Float32Array} imaginary */
function transform(real, imaginary) {
  const count = real.length;
  for (let i = 1, j = 0; i < count; i++) {
    let bit = count >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      [real[i], real[j]] = [real[j], real[i]];
      [imaginary[i], imaginary[j]] = [imaginary[j], imaginary[i]];
    }
  }
  for (let size = 2; size <= count; size <<= 1) {
    const angle = (-2 * Math.PI) / size;
    for (let first = 0; first < count; first += size)
      for (let k = 0; k < size / 2; k++) {
        const [a, b] = [first + k, first + k + size / 2];
        const [c, d] = [Math.cos(angle * k), Math.sin(angle * k)];
        const [x, y] = [real[b] * c - imaginary[b] * d, real[b] * d + imaginary[b] * c];
        [real[b], imaginary[b]] = [real[a] - x, imaginary[a] - y];
        [real[a], imaginary[a]] = [real[a] + x, imaginary[a] + y];
      }
  }
}

export class Sound {
  /** @param {Float32Array} samples @param {import("./time.js").Axis} axis */
  constructor(samples, axis) {
    this.samples = samples;
    this.axis = axis;
    this.pyramid = new Pyramid(samples);
    const loudest = samples.reduce((top, value) => Math.max(top, Math.abs(value)), 1e-6);
    this.channel = { name: "sound", min: -loudest, max: loudest, values: samples };
    this.hann = Float32Array.from({ length: WINDOW }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / WINDOW));
    /** @type {{key: string, picture: ImageData} | null} */ this.kept = null;
  }

  /** The sample at a place between steps. @param {number} step */
  at(step) {
    return this.axis.seconds(step) * SAMPLES;
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

  /** Loudness (0 to 1) of each frequency, the lowest first, around a sample. @param {number} centre @param {Float32Array} out */
  column(centre, out) {
    const real = new Float32Array(WINDOW);
    const imaginary = new Float32Array(WINDOW);
    const first = Math.round(centre) - WINDOW / 2;
    for (let i = 0; i < WINDOW; i++) real[i] = (this.samples[first + i] || 0) * this.hann[i];
    transform(real, imaginary);
    for (let i = 0; i < out.length; i++) {
      const power = (real[i] ** 2 + imaginary[i] ** 2) / (WINDOW * this.channel.max) ** 2;
      out[i] = Math.max(0, 1 - Math.log10(power + 1e-12) / FAINT);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {import("./types.js").Line} line @param {import("./signals.js").Box} box */
  drawSpectrum(pen, line, box) {
    const [wide, bands] = [Math.max(1, Math.floor(box.right - box.left)), WINDOW / 2];
    const ink = pen.canvas.ownerDocument.createElement("canvas");
    [ink.width, ink.height] = [wide, bands];
    const key = [wide, line.step(box.left), line.step(box.right), colour("signal")].join(" ");
    const shade = /** @type {CanvasRenderingContext2D} */ (ink.getContext("2d"));
    if (this.kept?.key !== key) this.kept = { key, picture: this.paint(shade, line, box.left, wide, bands) };
    shade.putImageData(this.kept.picture, 0, 0);
    pen.drawImage(ink, box.left, box.top, wide, box.height);
  }

  /** @param {CanvasRenderingContext2D} pen @param {import("./types.js").Line} line @param {number} left @param {number} wide
   * @param {number} bands */
  paint(pen, line, left, wide, bands) {
    const picture = pen.createImageData(wide, bands);
    const loud = new Float32Array(bands);
    pen.fillStyle = colour("signal");
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
    for (let x = 0; x < wide; x++) {
      const centre = this.at(line.step(left + x + 0.5));
      if (centre > this.samples.length) break;
      if (centre < 0) continue;
      this.column(centre, loud);
      for (let band = 0; band < bands; band++) {
        const at = 4 * ((bands - 1 - band) * wide + x);
        picture.data.set([red, green, blue, 255 * Math.min(1, loud[band])], at);
      }
    }
    return picture;
  }
}
