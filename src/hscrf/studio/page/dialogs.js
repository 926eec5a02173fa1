// The dialogs over the page: keys, progress, files, settings.

import { Refused, ask, named, tell } from "./api.js";
import { agreementChart, correctionChart, qualityChart } from "./charts.js";
import { useTheme } from "./colours.js";
import { byId, make } from "./dom.js";

const FORMATS = [
  ["jsonl", "JSON Lines", "all levels, nested; what hscrf reads and writes"],
  ["columns", "CoNLL columns", "one step a line, one column a level"],
  ["csv", "CSV", "one step a row"],
  ["segments", "CSV of segments", "one segment a row, with its times"],
  ["elan", "ELAN", "a zip of .eaf files with a tier for each level"],
  ["textgrid", "Praat", "a zip of TextGrids with a tier for each level"],
  ["boris", "BORIS", "a project with an observation for each sequence"],
  ["label-studio", "Label Studio", "JSON with a from_name for each level"],
  ["label-config", "Label Studio's config", "the labels of all levels, for its labeling interface"],
  ["model", "Model", "the newest model, for hscrf.load"],
];

/** @param {string} title @param {...Node} content */
export function open(title, ...content) {
  const dialog = byId("dialog");
  const close = make("button", { type: "button", className: "close", onclick: () => dialog.close() }, "Close");
  dialog.replaceChildren(make("h2", { id: "dialog-title" }, title), close, ...content);
  if (!dialog.open) dialog.showModal();
  close.focus();
}

/** @param {{keys: string[], words: string}[]} lines @param {...Node} first what stands above it */
export function openKeys(lines, ...first) {
  const rows = lines.map(({ keys, words }) =>
    make("div", {}, make("dt", {}, ...keys.flatMap((key) => [make("kbd", {}, key), " "])), make("dd", {}, words)),
  );
  const legend = [
    ["drag over a track", "chooses steps; it ends at a border that is near, with Alt anywhere"],
    ["drag a border", "moves it, or chooses unlabelled steps next to it; with Shift the other of the two"],
    ["double click", "shows the segment as large as the tracks"],
    ["wheel", "moves in time if all tracks are in sight, with Shift always; with Ctrl it zooms"],
    ["? and a dashed outline", "suggested by the model"],
    ["✓ and a solid outline", "accepted by a person"],
    ["lock and a solid outline", "fixed by a person: the model works around it"],
    ["lock and a stroke below", "these steps are fixed; the model made the segment longer"],
    ["paper sign and a solid outline", "came with the file"],
    ["wedge on a border", "a border fixed by a person; a stroke below: no border there"],
    ["! and a red dashed frame", "contradicts another label: release one of them"],
    ["purple strip and line", "doubt: 1 − probability of the label shown"],
  ].flatMap(([sign, words]) => [make("dt", {}, sign), make("dd", {}, words)]);
  open("Keys, mouse and signs", ...first, make("dl", { className: "keylist" }, ...rows), make("dl", { className: "legend" }, ...legend));
}

export async function openProgress() {
  const progress = await ask("/api/progress");
  const corrections = correctionChart(progress.corrections, false);
  const quality = qualityChart(progress.models);
  const agreement = agreementChart(progress.corrections);
  for (const svg of [corrections, quality, agreement]) svg.setAttribute("class", "chart");
  const note = (/** @type {string} */ words) => make("p", { className: "quiet" }, words);
  const rated = progress.models.some(
    (/** @type {any} */ model) => model.quality !== null && model.quality !== undefined,
  );
  open(
    `Progress: ${progress.corrections.length} of ${progress.sequences} sequences accepted`,
    make(
      "p",
      { id: "totals" },
      `${progress.segments} labelled segments · ${progress.minutes} minutes of work (pauses of more than 5 minutes left out)`,
    ),
    make("h3", {}, "Steps on which model and person agreed, for each accepted sequence, in order"),
    progress.corrections.some((/** @type {any} */ each) => typeof each.agreed === "number")
      ? agreement
      : note("Not known yet: it is measured when a sequence is accepted while there is a model."),
    make("h3", {}, "Corrections for each accepted sequence, in order"),
    progress.corrections.length ? corrections : note("Nothing is accepted yet."),
    note(
      "Dots: sequences; rings: drawn at random. Line: mean of the last five. Falling means that the model gets better.",
    ),
    make("h3", {}, "Steps that the model got right at first, by model"),
    rated
      ? quality
      : note("Not known yet: it is estimated on accepted sequences that were drawn at random (rnd in the queue)."),
    note(
      "Only sequences of the random tenth count: the most uncertain ones would make the model look worse than it is.",
    ),
  );
}

/** @param {(words: string) => void} say */
export function openFiles(say) {
  const only = make("input", { type: "checkbox", id: "only" });
  const links = FORMATS.flatMap(([format, name, words]) => {
    const link = make(
      "a",
      {
        href: "#",
        "data-format": format,
        onclick: (/** @type {Event} */ event) => fetchFile(event, format, only.checked),
      },
      name,
    );
    return [link, make("span", { className: "quiet" }, words)];
  });
  const file = make("input", {
    type: "file",
    accept: ".eaf,.TextGrid,.textgrid,.boris,.csv,.tsv,.json,.zip",
    multiple: "",
    id: "import",
    "aria-label": "Files to import",
  });
  const result = make("div", { role: "status" });
  file.addEventListener("change", () => importFiles([...file.files], result, say));
  open(
    "Files",
    make("h3", {}, "Export"),
    make("p", {}, only, " ", make("label", { for: "only" }, "only accepted sequences")),
    make("div", { className: "exports" }, ...links),
    make("p", { className: "quiet" }, "Every export says which labels are a person's and which the model's."),
    make("h3", {}, "Import labels"),
    make(
      "p",
      { className: "quiet" },
      "ELAN (.eaf), Praat (.TextGrid), BORIS (.boris, .csv), Label Studio (.json), CSV of segments, or a .zip of these. A file belongs to the sequence of its name, its recording or its text. Each import can be undone.",
    ),
    file,
    result,
  );
}

/** @param {Event} event @param {string} format @param {boolean} only */
function fetchFile(event, format, only) {
  event.preventDefault();
  location.assign(named(`/api/export/${format}?accepted_only=${only ? 1 : 0}`));
}

/** The content of a file as base64. @param {File} file @returns {Promise<string>} */
function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result).replace(/^[^,]*,/, "")));
    reader.addEventListener("error", () => reject(new Error(`${file.name} cannot be read`)));
    reader.readAsDataURL(file);
  });
}

/** @param {any} answer @returns {string} */
function importWords(answer) {
  const moved = answer.moved ? `; ${answer.moved} borders were moved to the nearest step` : "";
  const out = answer.left_out.length ? `; tiers without a level were left out: ${answer.left_out.join(", ")}` : "";
  return `${answer.labels} labels in ${answer.sequences} sequences${moved}${out}`;
}

/** @param {File[]} files @param {Element} result @param {(words: string) => void} say */
async function importFiles(files, result, say) {
  result.replaceChildren();
  let labels = 0;
  for (const file of files) {
    try {
      const answer = await tell("/api/import", { file: file.name, data: await base64(file) });
      const refused = answer.refused.map((/** @type {any} */ each) =>
        make("li", {}, `${each.name ? `${each.name}: ` : ""}${each.message}`),
      );
      labels += answer.labels;
      result.append(
        make("p", {}, `${file.name}: ${importWords(answer)}`),
        make("ul", { className: "notices" }, ...refused),
      );
    } catch (error) {
      result.append(make("p", {}, `Not imported: ${String(/** @type {any} */ (error).message)}`));
    }
  }
  say(`imported ${labels} labels`);
}

/** @param {import("./state.js").State} state @param {(words: string) => void} say
 * @param {...Node} more fields of texts, of keys */
export function openSettings(state, say, ...more) {
  const { project } = state;
  if (!project) return;
  const name = make("input", { id: "annotator", value: project.annotator || "", maxlength: "100" });
  name.disabled = Boolean(project.invited);
  const after = make("input", {
    id: "after",
    type: "number",
    min: "1",
    max: "100000",
    value: String(project.train_after),
  });
  const theme = make(
    "select",
    { id: "theme" },
    ...["auto", "light", "dark"].map((each) => make("option", { value: each }, each)),
  );
  theme.value = localStorage.getItem("hscrf-studio-theme") || "auto";
  theme.addEventListener("change", () => {
    localStorage.setItem("hscrf-studio-theme", theme.value);
    useTheme(theme.value);
    state.say("theme");
  });
  const save = async () => {
    try {
      state.project = await tell("/api/settings", { annotator: name.value, train_after: Number(after.value) });
      state.say("project");
      byId("dialog").close();
      say("settings saved");
    } catch (error) {
      say(error instanceof Refused ? error.message : "the server does not answer: settings not saved");
    }
  };
  open(
    "Settings",
    make(
      "div",
      { className: "form" },
      make("label", { for: "annotator" }, "Your name"),
      name,
      make("p", {}, "Stored with every label you fix or accept."),
      make("label", { for: "after" }, "Train after"),
      after,
      make("p", {}, "Newly accepted sequences until a new model is trained in the background."),
      make("label", { for: "theme" }, "Colours"),
      theme,
      make("p", {}, "auto follows the system."),
      ...more,
      make("button", { type: "button", className: "main", onclick: save }, "Save"),
    ),
  );
}
