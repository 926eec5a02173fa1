// Change keys: each command with its keys; press one to change it. A key that another command has is explained.

import { commandOf, isChanged, keyFor, keysOf, refusal, resetKeys, setKeys, showKey } from "./bindings.js";
import { open } from "./dialogs.js";
import { make } from "./dom.js";
import { nameOf } from "./keys.js";

/** @typedef {import("./keys.js").Key} Key */

/** @param {string} id */
const keyWords = (id) => keysOf(id).map(showKey).join(" ") || "no key";

/** @param {Key[]} table @param {import("./state.js").State} state */
export function openRemap(table, state) {
  const said = make("div", { className: "remap-said", role: "status" });
  const list = make("div", { className: "remap" });
  /** @type {(() => void) | null} */ let stop = null;
  const explain = (/** @type {string} */ words, /** @type {Node[]} */ ...more) =>
    said.replaceChildren(make("p", {}, words), ...more);

  /** Whether a key may be this command's; gives it to the command if it may. @param {Key} key @param {string} name */
  function take(key, name) {
    const no = refusal(name, state.project);
    if (no) return explain(no);
    const other = table.find(({ id }) => id === commandOf(name));
    if (other?.id === key.id) return explain(`${showKey(name)} is its key already.`);
    if (!other) return give(key, name);
    if (other.fixed) return explain(`${showKey(name)} belongs to "${other.words}", which cannot be changed.`);
    const rest = keysOf(other.id).filter((each) => each !== name);
    const left = rest.length ? `keeps ${rest.map(showKey).join(" ")}` : "is left without a key";
    const move = make(
      "button",
      {
        type: "button",
        onclick: () => {
          setKeys(other.id, rest);
          give(key, name);
        },
      },
      `Take ${showKey(name)} from there`,
    );
    explain(`${showKey(name)} belongs to "${other.words}". Without it, that command ${left}.`, move);
    move.focus();
  }

  /** @param {Key} key @param {string} name */
  function give(key, name) {
    setKeys(key.id, [name]);
    fill(key.id);
    explain(`"${key.words}" has the key ${showKey(name)} now, in this browser.`);
  }

  /** Wait for the next key. @param {Key} key @param {HTMLElement} button */
  function listen(key, button) {
    stop?.();
    button.textContent = "press a key…";
    explain(`Press the new key for "${key.words}". Escape leaves it as it is.`);
    const hear = (/** @type {KeyboardEvent} */ event) => {
      if (["Shift", "Control", "Alt", "Meta", "AltGraph"].includes(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      stop?.();
      if (event.key === "Escape") explain("Nothing was changed.");
      else take(key, nameOf(event));
    };
    stop = () => {
      stop = null;
      button.textContent = keyWords(key.id);
      removeEventListener("keydown", hear, true);
    };
    addEventListener("keydown", hear, true);
    button.addEventListener("blur", () => stop?.(), { once: true });
  }

  /** @param {Key} key */
  function row(key) {
    const button = make("button", { type: "button", "data-command": key.id, "aria-label": `${key.words}: ${keyWords(key.id)}, change` }, keyWords(key.id));
    button.addEventListener("click", () => listen(key, button));
    const back = make(
      "button",
      { type: "button", "aria-label": `${key.words}: the key that the page came with`, onclick: () => undo(key) },
      "Reset",
    );
    return make("div", {}, make("span", {}, key.words), button, isChanged(key.id) ? back : make("span"));
  }

  /** The keys that a command came with, unless another one has them now. @param {Key} key */
  function undo(key) {
    const owner = key.keys.map(commandOf).find((id) => id && id !== key.id);
    const other = table.find(({ id }) => id === owner);
    if (other) return explain(`${keyFor(other.id)} belongs to "${other.words}" now: reset that first.`);
    setKeys(key.id, key.keys);
    fill(key.id);
    explain(`"${key.words}" has its own key again: ${keyWords(key.id)}.`);
  }

  /** @param {string} [focus] command whose button gets the focus */
  function fill(focus) {
    list.replaceChildren(...table.filter((key) => !key.fixed).map(row));
    if (focus) list.querySelector(`[data-command="${focus}"]`)?.focus();
  }

  fill();
  const reset = make(
    "button",
    {
      type: "button",
      onclick: () => {
        resetKeys();
        fill();
        explain("All keys are those that the page came with.");
      },
    },
    "Reset all keys",
  );
  explain("Choose a command, then press its new key. Kept in this browser.");
  open("Change keys", said, list, make("p", {}, reset));
}
