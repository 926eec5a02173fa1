// Which channels are shown, in which order and on which scale; kept in the browser for each database.

import { open } from "./dialogs.js";
import { make } from "./dom.js";

/** @typedef {import("./types.js").Project} Project */
/** @typedef {import("./types.js").Observations} Observations */
/** @typedef {{order: string[], hidden: string[], scales: Record<string, [number, number]>}} Kept */

/** @param {Project | null} project */
const place = (project) => `hscrf-studio-channels/${project?.id}`;

/** Names that were put in order, those that are hidden, and scales that were set. @param {Project | null} project
 * @returns {Kept} */
function kept(project) {
  const nothing = { order: [], hidden: [], scales: {} };
  try {
    return { ...nothing, ...JSON.parse(localStorage.getItem(place(project)) || "{}") };
  } catch {
    return nothing;
  }
}

/** @param {Project | null} project @param {Partial<Kept>} change */
function keep(project, change) {
  localStorage.setItem(place(project), JSON.stringify({ ...kept(project), ...change }));
}

/** Numbers of all channels from top to bottom. @param {Project | null} project @param {Observations} seen */
function ordered(project, seen) {
  const { order } = kept(project);
  const rank = (/** @type {number} */ i) => {
    const at = order.indexOf(seen.channels[i].name);
    return at < 0 ? order.length + i : at;
  };
  return seen.channels.map((_, i) => i).sort((a, b) => rank(a) - rank(b));
}

/** Numbers of the channels that are shown, from top to bottom. @param {Project | null} project @param {Observations} seen
 * @returns {number[]} */
export function channelOrder(project, seen) {
  const { hidden } = kept(project);
  return ordered(project, seen).filter((i) => !hidden.includes(seen.channels[i].name));
}

/** The scales that people set, by the names of channels. @param {Project | null} project */
export const channelScales = (project) => kept(project).scales;

/** @param {Project | null} project @param {string[]} names of the channels as they are shown @param {string} name @param {number} by */
export function moveChannel(project, names, name, by) {
  const at = names.indexOf(name);
  const to = Math.max(0, Math.min(names.length - 1, at + by));
  const order = names.filter((each) => each !== name);
  order.splice(to, 0, name);
  keep(project, { order });
}

/** @param {Project | null} project @param {string} name */
export function hideChannel(project, name) {
  keep(project, { hidden: [...kept(project).hidden, name] });
}

/** @param {Project | null} project */
export function showAllChannels(project) {
  keep(project, { hidden: [] });
}

/** What the columns of the dialog are. */
const heads = () =>
  make(
    "div",
    { className: "channel heads", "aria-hidden": "true" },
    ...["shown", "order", "smallest", "largest", "scale"].map((words) => make("span", { className: "quiet" }, words)),
  );

/** The dialog of channels. @param {Project | null} project @param {Observations} seen @param {() => void} changed draws the tracks */
export function openChannels(project, seen, changed) {
  const list = make("div", { className: "channels", role: "list" });
  const show = (/** @type {string} */ focus = "") => {
    const names = ordered(project, seen).map((i) => seen.channels[i].name);
    list.replaceChildren(heads(), ...names.map((name) => row(name, names)));
    const [words, at] = focus.split("-");
    const turned = { up: "down", down: "up" }[words] || words; // at an end only the other way is left
    const found = [focus, `${turned}-${at}`].map((name) => list.querySelector(`[data-focus="${name}"]:not(:disabled)`));
    found.find((each) => each)?.focus();
  };
  const done = (/** @type {() => void} */ change, /** @type {string} */ focus = "") => {
    change();
    changed();
    show(focus);
  };
  const row = (/** @type {string} */ name, /** @type {string[]} */ names) => {
    const at = names.indexOf(name);
    const { hidden, scales } = kept(project);
    const box = make("input", { type: "checkbox", "aria-label": `Show ${name}`, "data-focus": `show-${at}` });
    box.checked = !hidden.includes(name);
    box.disabled = box.checked && names.every((each) => each === name || hidden.includes(each)); // one stays
    box.addEventListener("change", () => {
      const others = hidden.filter((each) => each !== name);
      done(() => keep(project, { hidden: box.checked ? others : [...others, name] }), `show-${at}`);
    });
    const move = (/** @type {number} */ by, /** @type {string} */ words) =>
      make(
        "button",
        {
          type: "button",
          "aria-label": `Move ${name} ${words}`,
          "data-focus": `${words}-${at}`,
          disabled: at + by < 0 || at + by >= names.length,
          onclick: () => done(() => moveChannel(project, names, name, by), `${words}-${at + by}`),
        },
        by < 0 ? "↑" : "↓",
      );
    return make(
      "div",
      { className: "channel", role: "listitem" },
      make("label", {}, box, ` ${name}`),
      move(-1, "up"),
      move(1, "down"),
      ...scaleFields(name, scales[name]),
    );
  };
  const scaleFields = (/** @type {string} */ name, /** @type {[number, number] | undefined} */ scale) => {
    const { min, max } = /** @type {import("./types.js").Channel} */ (seen.channels.find((each) => each.name === name));
    const field = (/** @type {string} */ words, /** @type {number} */ i, /** @type {number} */ known) => {
      const input = make("input", {
        type: "number",
        step: "any",
        "aria-label": `${words} value of the scale of ${name}`,
        placeholder: String(Number(known.toPrecision(3))),
      });
      input.value = scale ? String(scale[i]) : "";
      return input;
    };
    const [low, high] = [field("Smallest", 0, min), field("Largest", 1, max)];
    const words = make("span", { className: "quiet", role: "status" }, scale ? "" : "follows the data");
    const auto = make("button", { type: "button", "aria-label": `Automatic scale of ${name}`, disabled: !scale }, "Automatic");
    const set = () => {
      const { [name]: _, ...others } = kept(project).scales;
      const empty = low.value === "" && high.value === "";
      const found = /** @type {[number, number]} */ ([
        low.value === "" ? min : Number(low.value),
        high.value === "" ? max : Number(high.value),
      ]);
      words.textContent = empty
        ? "follows the data"
        : found[0] < found[1]
          ? ""
          : "the smallest must be below the largest";
      auto.disabled = empty;
      if (!empty && !(found[0] < found[1])) return;
      keep(project, { scales: empty ? others : { ...others, [name]: found } });
      changed();
    };
    for (const input of [low, high]) input.addEventListener("change", set);
    auto.addEventListener("click", () => {
      low.value = high.value = "";
      low.focus(); // the button ends what it can do
      set();
    });
    return [low, high, auto, words];
  };
  show();
  open(
    "Channels",
    make("p", { className: "quiet" }, "Without a scale, a channel fills its track with the values on the screen."),
    list,
  );
}
