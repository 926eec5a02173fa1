// A canvas that is sharp on every screen, and the fonts that are drawn on it.

export const FAMILY = "system-ui, 'DejaVu Sans', sans-serif";
export const FONT = `13px ${FAMILY}`;
export const SMALL = `11px ${FAMILY}`;

/** Sharp on every screen. @param {HTMLCanvasElement} canvas @param {number} width @param {number} height */
export function sharpen(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}
