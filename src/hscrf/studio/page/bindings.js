// Which keys belong to which command: those that the page came with, and those that a person chose in this browser.

/** @typedef {import("./keys.js").Key} Key */

const STORE = "hscrf-studio-keys";
const FIXED = { Escape: "lets go and closes", Tab: "goes from one part of the page to the next" };
const BROWSER = ["Ctrl+w", "Ctrl+t", "Ctrl+n", "Ctrl+r", "Ctrl+l", "Ctrl+q", "Ctrl+W", "Ctrl+T", "Ctrl+N", "Ctrl+R"];
const SIGNS = {
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", PageUp: "PgUp", PageDown: "PgDn", Escape: "Esc", " ": "Space",
}; // prettier-ignore

/** @type {Map<string, string[]>} */ const defaults = new Map();
/** @type {Map<string, string[]>} */ const chosen = new Map();
/** @type {Set<() => void>} */ const listeners = new Set();

/** A key as people read it. @param {string} name as an event has it, with Ctrl+ or Shift+ before it */
export function showKey(name) {
  const [, held, key] = /** @type {RegExpMatchArray} */ (name.match(/^((?:Ctrl\+|Shift\+)*)(.+)$/s));
  const sign = SIGNS[key] || (held.includes("Ctrl") && key.length === 1 ? key.toUpperCase() : key);
  return held + sign;
}

/** @param {string} id of a command @returns {string[]} its keys now */
export const keysOf = (id) => chosen.get(id) || defaults.get(id) || [];

/** The first key of a command, for sentences. @param {string} id */
export const keyFor = (id) => (keysOf(id).length ? showKey(keysOf(id)[0]) : "no key");

/** @param {string} id */
export const isChanged = (id) => chosen.has(id);

/** @param {() => void} listener */
export const onKeys = (listener) => void listeners.add(listener);

/** The page's commands, with what this browser remembers. @param {Key[]} table */
export function bindTable(table) {
  for (const { id, keys } of table) defaults.set(id, keys);
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) || "{}");
    for (const [id, keys] of Object.entries(kept))
      if (defaults.has(id) && Array.isArray(keys) && keys.every((key) => typeof key === "string")) chosen.set(id, keys);
  } catch {
    console.warn("keys that cannot be read are left out");
  }
}

function changed() {
  localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(chosen)));
  for (const listener of listeners) listener();
}

/** @param {string} id @param {string[]} keys */
export function setKeys(id, keys) {
  const own = defaults.get(id) || [];
  if (keys.length === own.length && keys.every((key, i) => key === own[i])) chosen.delete(id);
  else chosen.set(id, keys);
  changed();
}

/** All keys as the page came with them. */
export function resetKeys() {
  chosen.clear();
  changed();
}

/** The command that a key belongs to. @param {string} key @returns {string | undefined} */
export const commandOf = (key) => [...defaults.keys()].find((id) => keysOf(id).includes(key));

/** Why a key cannot be a command's; empty if it can. @param {string} key
 * @param {import("./types.js").Project | null} project labels may have keys of their own */
export function refusal(key, project) {
  if (key in FIXED) return `${showKey(key)} cannot be changed: it ${FIXED[key]}.`;
  if (/^[1-9]$/.test(key)) return `The digit ${key} gives the label with this number: choose another key.`;
  if (BROWSER.includes(key)) return `${showKey(key)} belongs to the browser, which does not give it away.`;
  for (const [level, labels] of Object.entries(project?.looks || {}))
    for (const [label, look] of Object.entries(labels))
      if (look.key === key) return `${key} is the key of the label ${label} of ${level}: change it in Labels first.`;
  return "";
}
