// What a browser remembers of how the page looks: size of words, sequences around the open one.

import { make } from "./dom.js";

/** @type {Record<string, number>} */ const SIZES = { small: 13, normal: 15, large: 19, "very large": 24 };
const SIZE = "hscrf-studio-size";
const AROUND = "hscrf-studio-around";

/** Pixels of words in a text. */
export const textSize = () => SIZES[localStorage.getItem(SIZE) || "normal"] || SIZES.normal;

/** Whether other sequences are shown above and below the open text. */
export const showsAround = () => localStorage.getItem(AROUND) !== "no";

/** @param {string} id @param {Record<string, string>} options words by value @param {string} value
 * @param {(value: string) => void} changed */
function choice(id, options, value, changed) {
  const select = make("select", { id }, ...Object.entries(options).map(([each, words]) => make("option", { value: each }, words)));
  select.value = value;
  select.addEventListener("change", () => changed(select.value));
  return select;
}

/** Fields of the settings about texts. @param {() => void} changed @returns {Node[]} */
export function textFields(changed) {
  const keep = (/** @type {string} */ key) => (/** @type {string} */ value) => {
    localStorage.setItem(key, value);
    changed();
  };
  const sizes = Object.fromEntries(Object.entries(SIZES).map(([name, pixels]) => [name, `${name} (${pixels} pixels)`]));
  const around = { yes: "shown above and below", no: "not shown" };
  return [
    make("label", { for: "text-size" }, "Size of words"),
    choice("text-size", sizes, localStorage.getItem(SIZE) || "normal", keep(SIZE)),
    make("label", { for: "around" }, "Other sequences"),
    choice("around", around, showsAround() ? "yes" : "no", keep(AROUND)),
    make("p", {}, "Of texts, in this browser. Others are those before and after in the queue: a click opens one."),
  ];
}
