// The words of a text, as real text: only the lines near the screen exist.

import { make } from "./dom.js";
import { GUTTER } from "./layout.js";

/** @typedef {import("./types.js").Line} Line */

/** Make the lines that are wanted, drop the others. @param {HTMLElement} holder @param {Line[]} lines @param {string[]} tokens */
export function layWords(holder, lines, tokens) {
  const wanted = new Map(lines.map((line) => [line.start, line]));
  for (const child of [...holder.children]) {
    const start = child instanceof HTMLElement ? Number(child.dataset.start) : -1;
    if (!wanted.delete(start)) child.remove();
  }
  for (const line of wanted.values()) holder.append(wordsOf(line, tokens));
}

/** @param {Line} line @param {string[]} tokens */
function wordsOf(line, tokens) {
  const element = make("div", { className: "wordline", "data-start": line.start });
  element.style.top = `${line.top}px`;
  element.style.left = `${GUTTER}px`;
  for (let step = line.start; step < line.stop; step++) {
    const word = make("span", { dir: "auto" }, tokens[step]);
    word.style.width = `${line.x(step + 1) - line.x(step)}px`;
    element.append(word);
  }
  return element;
}
