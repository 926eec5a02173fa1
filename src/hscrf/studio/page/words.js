// The words of a text, as real text: only the lines near the screen exist. And which way a text runs.

import { make } from "./dom.js";
import { sides } from "./layout.js";

/** @typedef {import("./types.js").Line} Line */

const LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u; // Hebrew, Arabic, ...

/** Whether a text runs from right to left: most of its words that have letters do. @param {string[]} tokens */
export function runsLeft(tokens) {
  let [left, right] = [0, 0];
  for (const token of tokens) {
    const letter = token.match(/\p{L}/u);
    if (letter && LEFT.test(letter[0])) left++;
    else if (letter) right++;
  }
  return left > right;
}

/** Make the lines that are wanted, drop the others. @param {HTMLElement} holder @param {Line[]} lines
 * @param {string[]} tokens @param {number[] | null} gaps @param {boolean} rtl */
export function layWords(holder, lines, tokens, gaps, rtl) {
  const wanted = new Map(lines.map((line) => [line.start, line]));
  for (const child of [...holder.children]) {
    const start = child instanceof HTMLElement ? Number(child.dataset.start) : -1;
    if (!wanted.delete(start)) child.remove();
  }
  for (const line of wanted.values()) holder.append(wordsOf(line, tokens, gaps, rtl));
}

/** Words that nothing separates in the text have a mark between them. @param {Line} line @param {string[]} tokens
 * @param {number[] | null} gaps @param {boolean} rtl @returns {HTMLElement} */
export function wordsOf(line, tokens, gaps, rtl) {
  const element = make("span", { className: "wordline", "data-start": line.start, dir: rtl ? "rtl" : "ltr" });
  element.style.top = `${line.top}px`;
  element.style.left = `${sides(line, line.start, line.stop)[0]}px`;
  for (let step = line.start; step < line.stop; step++) {
    const word = make("span", { dir: "auto", className: gaps?.[step] === 0 ? "glued" : null }, tokens[step]);
    word.style.width = `${Math.abs(line.x(step + 1) - line.x(step))}px`;
    element.append(word);
  }
  return element;
}
