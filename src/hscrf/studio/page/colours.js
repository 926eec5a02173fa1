// Colours come from the style sheet. A label has a hue and a shade: its own, or those of the label it lies in.
// Past the ninth hue, and past the third shade, it has a hatching too; its name is always written next to it.

export const HUES = 9;
const SHADES = [100, 70, 42]; // per cent of the hue; the rest is the ground, so that words stay readable
const HUE_NAMES = ["blue", "orange", "yellow", "green", "pink", "cyan", "olive", "violet", "grey"];
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

/** @type {Record<string, string>} */ let palette = {};
/** @type {Map<string, CanvasPattern>} */ const hatchings = new Map();

/** Read the colours of the theme that is shown. The style sheet names two colours for each; only a painted property has the chosen one. */
export function readColours() {
  const probe = document.body.appendChild(document.createElement("i"));
  const names = [...NAMES, ...Array.from({ length: HUES }, (_, i) => `label-${i}`)];
  const style = getComputedStyle(probe);
  const read = (/** @type {string} */ name) => ((probe.style.color = `var(--${name})`), style.color);
  palette = Object.fromEntries(names.map((name) => [name, read(name)]));
  for (let hue = 0; hue < HUES; hue++)
    for (const share of SHADES.slice(1)) {
      probe.style.color = `color-mix(in srgb, var(--label-${hue}) ${share}%, var(--ground))`;
      palette[`label-${hue}-${share}`] = style.color;
    }
  probe.remove();
  hatchings.clear();
}

/** @param {string} name */
export const colour = (name) => palette[name] || "#888";

/** @param {number} hue */
export const nameHue = (hue) => HUE_NAMES[hue];

/** @typedef {{name: string, labels: string[]}} Labelled */
/** @typedef {{hue: number, shade: number, hatching: number}} Look */

/** Level -> label -> how it looks. @type {Map<string, Map<string, Look>>} */ let looks = new Map();

/** Give each label its look: what a person chose, or a shade of the label it lies in, or its own hue.
 * @param {import("./types.js").Project} project */
export function colourLabels(project) {
  looks = new Map();
  project.levels.forEach(({ name, labels }, depth) => {
    const above = depth ? project.levels[depth - 1] : null;
    const rows = above ? project.children[above.name] || {} : {};
    /** @type {Map<string, number>} */ const seen = new Map();
    /** @type {Map<string, Look>} */ const found = new Map();
    labels.forEach((label, index) => {
      const inside = above ? above.labels.filter((parent) => !rows[parent] || rows[parent].includes(label)) : [];
      const parent = above && inside.length < above.labels.length ? looks.get(above.name)?.get(inside[0]) : undefined;
      const rank = (seen.get(inside[0]) || 0) + 1;
      if (parent) seen.set(inside[0], rank);
      const own = project.looks?.[name]?.[label]?.hue;
      if (own !== undefined) found.set(label, { hue: own, shade: 0, hatching: 0 });
      else if (parent)
        found.set(label, { hue: parent.hue, shade: rank % SHADES.length, hatching: Math.floor(rank / SHADES.length) % 3 });
      else found.set(label, { hue: index % HUES, shade: depth ? 2 : 0, hatching: Math.floor(index / HUES) % 3 });
    });
    looks.set(name, found);
  });
}

/** @param {Labelled} level @param {string} label @returns {Look} */
function lookOf(level, label) {
  const index = Math.max(0, level.labels.indexOf(label));
  return looks.get(level.name)?.get(label) || { hue: index % HUES, shade: 0, hatching: Math.floor(index / HUES) % 3 };
}

/** @param {Labelled} level @param {string | null} label */
export function hueOf(level, label) {
  if (label === null || !level.labels.includes(label)) return colour("label-none");
  const { hue, shade } = lookOf(level, label);
  return colour(shade ? `label-${hue}-${SHADES[shade]}` : `label-${hue}`);
}

/** How a label is hatched: 0 not at all. @param {Labelled} level @param {string | null} label */
export const hatchingOf = (level, label) => (label === null ? 3 : lookOf(level, label).hatching);

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
