// Colours come from the style sheet. A label has a hue and, past the ninth, a hatching; its name is always written beside it.

const HUES = 9;
const NAMES = [
  "ground",
  "raised",
  "ink",
  "quiet",
  "line",
  "strong",
  "focus",
  "doubt",
  "doubt-ink",
  "signal",
  "flash",
  "danger",
  "label-ink",
  "label-none",
];

/** @type {Record<string, string>} */ let sheet = {};
/** @type {Map<string, CanvasPattern>} */ const hatchings = new Map();

/** Read the colours of the theme that is shown. The sheet names two for each; only a painted property has chosen. */
export function readColours() {
  const probe = document.body.appendChild(document.createElement("i"));
  const names = [...NAMES, ...Array.from({ length: HUES }, (_, i) => `label-${i}`)];
  const style = getComputedStyle(probe);
  const read = (/** @type {string} */ name) => ((probe.style.color = `var(--${name})`), style.color);
  sheet = Object.fromEntries(names.map((name) => [name, read(name)]));
  probe.remove();
  hatchings.clear();
}

/** @param {string} name */
export const colour = (name) => sheet[name] || "#888";

/** @param {string[]} labels of the level @param {string | null} label */
export function hueOf(labels, label) {
  const index = label === null ? -1 : labels.indexOf(label);
  return index < 0 ? colour("label-none") : colour(`label-${index % HUES}`);
}

/** How a label is hatched: 0 not at all. @param {string[]} labels @param {string | null} label */
export const hatchingOf = (labels, label) =>
  label === null ? 3 : Math.floor(Math.max(0, labels.indexOf(label)) / HUES) % 3;

/** A pattern of thin lines to lay over a hue. @param {CanvasRenderingContext2D} context @param {number} kind 1, 2 or 3 */
export function hatching(context, kind) {
  const key = `${kind} ${colour("label-ink")}`;
  if (!hatchings.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.strokeStyle = colour("label-ink");
    pen.globalAlpha = 0.28;
    pen.beginPath();
    if (kind !== 2) for (const x of [-8, 0, 8]) (pen.moveTo(x, 8), pen.lineTo(x + 8, 0));
    if (kind === 2) (pen.moveTo(0, 2), pen.lineTo(8, 2), pen.moveTo(0, 6), pen.lineTo(8, 6));
    pen.stroke();
    hatchings.set(key, /** @type {CanvasPattern} */ (context.createPattern(tile, "repeat")));
  }
  return /** @type {CanvasPattern} */ (hatchings.get(key));
}

/** Follow the system, or stay light or dark. @param {string} theme auto, light or dark */
export function useTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  readColours();
}
