// Edit the labels: names, colours, descriptions, keys, parents. What an edit does is said before; one undo takes it back.

import { keyFor } from "./bindings.js";
import { Refused, ask, readView, tell } from "./api.js";
import { HUES, hueOf, nameHue } from "./colours.js";
import { open } from "./dialogs.js";
import { byId, make } from "./dom.js";

/** @typedef {import("./types.js").Project} Project */
/** @typedef {import("./types.js").Level} Level */
/** @typedef {{level: string, label: string, name: HTMLInputElement, hue: HTMLSelectElement, key: HTMLInputElement,
 *    words: HTMLInputElement, parents: HTMLInputElement[], remove: HTMLInputElement | null}} Row */

/** The labels that a label may lie in. @param {Project} project @param {number} depth @param {string} label */
function parentsOf(project, depth, label) {
  if (!depth) return [];
  const above = project.levels[depth - 1];
  const rows = project.children[above.name] || {};
  return above.labels.filter((parent) => !rows[parent] || rows[parent].includes(label));
}

/** @param {Project} project @param {number} depth @param {string} label empty: a new one @returns {Row} */
function row(project, depth, label) {
  const level = project.levels[depth];
  const look = project.looks[level.name]?.[label] || {};
  const said = label || `new label of ${level.name}`;
  const field = (/** @type {string} */ what, /** @type {object} */ more, /** @type {string} */ value) =>
    make("input", { "aria-label": `${what} of ${said}`, autocomplete: "off", ...more, value });
  const hue = make(
    "select",
    { "aria-label": `colour of ${said}` },
    make("option", { value: "" }, "of its parent"),
    ...Array.from({ length: HUES }, (_, i) => make("option", { value: String(i) }, nameHue(i))),
  );
  if (!depth) hue.options[0].textContent = "by its place";
  hue.value = look.hue === undefined ? "" : String(look.hue);
  const inside = label ? parentsOf(project, depth, label) : null;
  const parents = (depth ? project.levels[depth - 1].labels : []).map((parent) => {
    const box = make("input", { type: "checkbox", "data-parent": parent, "aria-label": `${said} in ${parent}` });
    box.checked = box.defaultChecked = !inside || inside.includes(parent);
    return box;
  });
  const remove = label ? make("input", { type: "checkbox", "aria-label": `remove ${said}` }) : null;
  return {
    level: level.name,
    label,
    name: field("name", { maxlength: 200, placeholder: "new label" }, label),
    hue,
    key: field("key", { maxlength: 1, size: 2, placeholder: "key" }, look.key || ""),
    words: field("description", { className: "meaning", maxlength: 2000, placeholder: "what it means" }, look.words || ""),
    parents,
    remove,
  };
}

/** What a row asks for, as changes. @param {Row} row @param {Project} project @returns {object[]} */
function changesOf({ level, label, name, hue, key, words, parents, remove }, project) {
  const now = name.value.trim();
  if (remove?.checked) return [{ do: "remove", level, label }];
  if (!label && !now) return [];
  const found = [];
  const inside = parents.filter((box) => box.checked).map((box) => box.dataset.parent);
  const moved = parents.some((box) => box.checked !== (label ? box.defaultChecked : true));
  if (!label) found.push({ do: "add", level, label: now, ...(moved ? { parents: inside } : {}) });
  else if (now !== label) found.push({ do: "rename", level, label, to: now });
  if (label && moved) found.push({ do: "move", level, label: now, parents: inside });
  const before = project.looks[level]?.[label] || {};
  /** @type {Record<string, any>} */ const look = {};
  const wanted = { hue: hue.value === "" ? null : Number(hue.value), key: key.value || null, words: words.value.trim() || null };
  for (const [part, value] of Object.entries(wanted)) if (value !== (before[part] ?? null)) look[part] = value;
  if (Object.keys(look).length) found.push({ do: "look", level, label: now, look });
  return found;
}

/** @param {Row} row @param {Level} level */
function drawn(row, level) {
  const swatch = make("span", { className: "swatch" });
  swatch.style.backgroundColor = hueOf(level, row.label || null);
  const parents = row.parents.length
    ? make(
        "details",
        {},
        make("summary", {}, `in ${row.parents.filter((box) => box.checked).length} of ${row.parents.length}`),
        ...row.parents.map((box) => make("label", {}, box, ` ${box.dataset.parent}`)),
      )
    : make("span");
  const remove = row.remove ? make("label", { className: "remove" }, row.remove, " remove") : make("span");
  return make("div", { className: "edit-label" }, swatch, row.name, row.key, row.hue, row.words, parents, remove);
}

/** @param {import("./studio.js").Studio} studio @param {(key: string) => boolean} isTaken by a command */
export function openLabels(studio, isTaken) {
  const project = /** @type {Project} */ (studio.state.project);
  /** @type {Row[]} */ const rows = [];
  const parts = project.levels.flatMap((level, depth) => {
    const list = make("div", { className: "edit-labels" });
    const append = (/** @type {string} */ label) => {
      rows.push(row(project, depth, label));
      list.append(drawn(rows[rows.length - 1], level));
    };
    for (const label of level.labels) append(label);
    append("");
    const more = make("button", { type: "button", onclick: () => append("") }, `Another label of ${level.name}`);
    return [make("h3", {}, `Level ${level.name}`), list, more];
  });
  const result = make("div", { role: "status", className: "edit-result" });
  const say = (/** @type {string[]} */ words) => result.replaceChildren(...words.map((each) => make("p", {}, each)));
  const apply = make("button", { type: "button", className: "main", disabled: true }, "Apply");
  const changes = () => rows.flatMap((each) => changesOf(each, project));
  const attempt = async (/** @type {() => Promise<void>} */ work) => {
    try {
      await work();
    } catch (error) {
      apply.disabled = true;
      say([error instanceof Refused ? error.message : "the server does not answer"]);
    }
  };
  const check = () =>
    attempt(async () => {
      const wanted = changes();
      const taken = rows.find((each) => each.key.value && isTaken(each.key.value));
      apply.disabled = true;
      if (taken) return say([`the key ${taken.key.value} belongs to a command: choose another, or give the command another key in Settings, Change keys`]);
      if (!wanted.length) return say(["nothing was changed"]);
      const { words } = await tell("/api/labels/preview", { changes: wanted });
      say(words.length ? words : ["Only looks change: no label that exists is concerned."]);
      apply.disabled = false;
    });
  const done = (/** @type {string} */ words) => {
    byId("dialog").close();
    studio.say(words);
  };
  apply.addEventListener("click", () =>
    attempt(async () => {
      await tell("/api/labels", { changes: changes() });
      done(`labels changed; ${keyFor("labels")} opens them again, to undo it as one step`);
    }),
  );
  const undo = make("button", { type: "button", disabled: !project.last_edit }, `Undo: ${project.last_edit || "nothing"}`);
  undo.addEventListener("click", () =>
    attempt(async () => {
      await tell("/api/labels/undo", {});
      done("the last edit of labels is undone");
    }),
  );
  const guide = make("textarea", { id: "guide-text", rows: 5, maxlength: 100000 });
  guide.value = project.guidelines;
  const keep = make("button", { type: "button" }, "Save guidelines");
  keep.addEventListener("click", () =>
    attempt(async () => {
      studio.state.project = await tell("/api/settings", { guidelines: guide.value });
      studio.state.say("project");
      say([`guidelines saved: ${keyFor("guide")} shows them next to the work`]);
    }),
  );
  open(
    "Labels",
    make("div", { oninput: () => (apply.disabled = true) }, ...parts),
    make("p", { className: "edit-tools" }, make("button", { type: "button", onclick: check }, "Check what it does"), apply, undo),
    result,
    make("h3", {}, make("label", { for: "guide-text" }, "Guidelines")),
    guide,
    make("p", {}, keep),
  );
}

/** Labels were edited, or texts were cut anew, here or in another window: show everything with them.
 * @param {import("./studio.js").Studio} studio @param {boolean} anew with other tokens */
export async function relabelled(studio, anew) {
  const { state } = studio;
  try {
    state.project = await ask("/api/project");
    if (!state.levels.includes(state.selection.level)) state.selection.level = state.levels[0];
    if (anew) studio.seen.clear();
    if (anew) await studio.refreshQueue();
    if (anew && state.view) await studio.open(state.view.id);
    else if (state.view) studio.take(readView(await ask(`/api/sequences/${state.view.id}`)));
    state.say("project theme");
    await studio.refreshQueue();
  } catch (error) {
    studio.explain(error);
  }
}

/** Guidelines and descriptions next to the work. @param {import("./state.js").State} state */
export function showGuide(state) {
  const { project } = state;
  const level = project?.levels.find(({ name }) => name === state.selection.level);
  if (!project || !level || byId("guide").hidden) return;
  const said = level.labels.filter((label) => project.looks[level.name]?.[label]?.words);
  byId("guide").replaceChildren(
    make("h3", {}, "Guidelines"),
    make("p", { className: "guide-text" }, project.guidelines || `None yet: ${keyFor("labels")} opens the labels, where they are written.`),
    make("h3", {}, `Labels of ${level.name}`),
    said.length
      ? make("dl", {}, ...said.flatMap((label) => [make("dt", {}, label), make("dd", {}, project.looks[level.name][label].words)]))
      : make("p", { className: "quiet" }, "No label is described yet."),
  );
}

/** @param {import("./state.js").State} state */
export function toggleGuide(state) {
  const guide = byId("guide");
  guide.hidden = !guide.hidden;
  document.body.classList.toggle("guided", !guide.hidden);
  showGuide(state);
}
