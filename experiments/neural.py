"""Neural encoders: four output layers on the same networks.

Citations (field > part > name), author names (person > part) and electrocardiograms (beat > wave; twelve leads in steps
of 20 ms). The encoders are those of ``hscrf.torch.Tagger``: text is read by embeddings of words (50), of what they
begin and end with and of their shape, a convolution over characters (30) and a BiLSTM (100 units a side), and the
features of linear models have scores of their own; the ECG is read by a temporal convolution (64 channels, 5 blocks)
and a BiLSTM (128 units a side). On top of the same encoder: a softmax for each level, a chain CRF for each level, a
chain of product labels, and the nested layer, which scores tokens, first and last steps of segments at every level. In
author names its "O" remembers the part before it, as ``fillers="auto"`` decides. The flat layers see BIO tags. Training
is that of ``Tagger`` too, in batches of 16 (ECG: 8). Encoders and training were chosen on folds of the training data of
names and of the ECG, and on the development citations. No test data decide when training ends. Then labels that are
missing: one sequence in ten has all of its labels, the others have those of the top level only.

A wave of an ECG is right if one of the same kind is there whose first and last steps are within 40 ms; P, QRS and T are
counted, where a person has annotated the record.

The file of results is written after every fit, so ``--full --resume`` goes on where a study was ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hscrf import Labels, Topology, datasets, learn_topology, metrics
from hscrf.labels.packed import FillerNeighbours
from hscrf.torch import CRF, Inputs, Tagger
from hscrf.torch.options import design_of, network_for
from hscrf.torch.training import HIDDEN, Schedule, Trainer
from nested import Columns, all_right, columns_of, made_up, rows, violations
from runner import Study, main, paired, table_cell, take

SOFTMAX, FLAT, PRODUCT, NESTED = "softmax a level", "CRF a level", "product chain", "nested"
FEW, TOP = "10 % of the sequences", "10 %, and the top level of the others"
BROKEN = "nesting broken"
UNKNOWN = "?"
SEEDS = 5


@dataclass
class Split:
    """Observations and columns of tags; ``spans`` are the annotated steps, where they are not all."""

    X: list[Any]
    columns: Columns
    spans: list[tuple[int, int]] | None = None

    def __len__(self) -> int:
        return len(self.X)

    def take(self, which: Sequence[int]) -> Split:
        spans = None if self.spans is None else take(self.spans, which)
        return Split(take(self.X, which), {k: take(column, which) for k, column in self.columns.items()}, spans)


@dataclass
class Task:
    """A data set, its encoder, and how it is judged."""

    name: str
    train: Split
    test: Split
    score: Callable[[Split, Columns], dict[str, float]]
    options: dict[str, Any] = field(default_factory=dict)  # of Tagger, where they are not the default ones
    inputs: Inputs = field(init=False)

    def __post_init__(self) -> None:
        self.inputs = Inputs().fit(self.train.X)

    @property
    def main(self) -> str:
        """The measure that the tables of missing labels show."""
        return "sequences right" if self.name != "ECG" else "waves within 40 ms, F1"


# -- output layers -----------------------------------------------------------------------------------------------------


class Softmax(torch.nn.Module):
    """A softmax over the BIO tags of each level."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self.tags = {level: distinct(column) for level, column in columns.items()}
        self.sizes = [len(tags) for tags in self.tags.values()]
        self.size = sum(self.sizes)

    def targets(self, columns: Columns) -> list[Any]:
        """For each sequence the numbers (T, levels) of its tags, negative where unknown."""
        numbers = {level: {tag: k for k, tag in enumerate(tags)} for level, tags in self.tags.items()}
        return [
            torch.tensor(
                [[numbers[level].get(tag, -1) for level, tag in zip(columns, step, strict=True)] for step in some]
            )
            for some in (list(zip(*one, strict=True)) for one in zip(*columns.values(), strict=True))
        ]

    def loss(self, scores: Any, targets: Sequence[Any], lengths: Any) -> Any:
        wanted = padded(targets)
        parts = scores.split(self.sizes, dim=2)
        losses = [
            torch.nn.functional.cross_entropy(part.transpose(1, 2), wanted[..., k], ignore_index=-1, reduction="sum")
            for k, part in enumerate(parts)
        ]
        return sum(losses) / len(targets)

    def decode(self, scores: Any, lengths: Any) -> Columns:
        best = [part.argmax(dim=2).tolist() for part in scores.split(self.sizes, dim=2)]
        return {
            level: [[tags[k] for k in row[:n]] for row, n in zip(found, lengths.tolist(), strict=True)]
            for (level, tags), found in zip(self.tags.items(), best, strict=True)
        }


class Chains(Softmax):
    """A chain CRF over the BIO tags of each level."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.chains = torch.nn.ModuleList(CRF(Topology({"tag": tags})) for tags in self.tags.values())

    def loss(self, scores: Any, targets: Sequence[Any], lengths: Any) -> Any:
        wanted, parts = padded(targets), scores.split(self.sizes, dim=2)
        pairs = enumerate(zip(self.chains, parts, strict=True))
        return sum(chain(part, wanted[..., k], lengths=lengths) for k, (chain, part) in pairs)

    def decode(self, scores: Any, lengths: Any) -> Columns:
        parts = scores.split(self.sizes, dim=2)
        return {
            level: [y.column() for y in chain.decode(part, lengths=lengths)]
            for level, chain, part in zip(self.tags, self.chains, parts, strict=True)
        }


class Product(Chains):
    """A chain CRF over combinations of the tags of all levels that occur in training."""

    def __init__(self, columns: Columns) -> None:
        self.levels = list(columns)
        super().__init__({"all": joined(columns)})

    def targets(self, columns: Columns) -> list[Any]:
        return super().targets({"all": joined(columns)})

    def decode(self, scores: Any, lengths: Any) -> Columns:
        found = super().decode(scores, lengths)["all"]
        return {level: [[tag.split("/")[k] for tag in some] for some in found] for k, level in enumerate(self.levels)}


class Nested(torch.nn.Module):
    """The nested layer; fillers remember the state before them where ``Tagger`` lets them."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        learned, neighbours = learn_topology(rows(columns), scheme="bio"), FillerNeighbours()
        neighbours.update([Labels.from_columns(learned, y, scheme="bio") for y in rows(columns)])
        self.topology = neighbours.remembering(learned, "auto")
        self.crf = CRF(self.topology, parts=("token", "start", "stop"))
        self.size = self.crf.size

    def targets(self, columns: Columns) -> list[Labels]:
        return [Labels.from_columns(self.topology, y, scheme="bio") for y in rows(columns)]

    def loss(self, scores: Any, targets: Sequence[Labels], lengths: Any) -> Any:
        return self.crf(scores, targets, lengths=lengths)

    def decode(self, scores: Any, lengths: Any) -> Columns:
        return columns_of(self.crf.decode(scores, lengths=lengths))


HEADS = {SOFTMAX: Softmax, FLAT: Chains, PRODUCT: Product, NESTED: Nested}


def distinct(column: Sequence[Sequence[str]]) -> list[str]:
    return sorted({tag for some in column for tag in some if UNKNOWN not in tag})


def joined(columns: Columns) -> list[list[str]]:
    return [["/".join(step) for step in zip(*some, strict=True)] for some in zip(*columns.values(), strict=True)]


def padded(targets: Sequence[Any]) -> Any:
    return torch.nn.utils.rnn.pad_sequence(list(targets), batch_first=True, padding_value=-1)


# -- training ----------------------------------------------------------------------------------------------------------


def train(task: Task, train: Split, head: Any, seed: int) -> tuple[Columns, dict[str, float]]:
    """Train one network; return its labels of the test data, and what training took."""
    torch.manual_seed(seed)
    options = Tagger(**task.options).get_params()
    encoder = network_for(design_of(options, task.inputs), task.inputs, head.size)
    items, targets = task.inputs.encode(train.X), head.targets(train.columns)
    chance = torch.Generator().manual_seed(seed)

    def step(which: Sequence[int]) -> Any:
        batch = task.inputs.batch(take(items, which))
        lengths = batch.pop("lengths")
        if "names" in batch:
            batch["names"] = task.inputs.hide_rare(batch["names"], HIDDEN, chance)
        return head.loss(encoder(batch, lengths), take(targets, which), lengths)

    begin = time.process_time()
    schedule = Schedule(**{name: options[name] for name in Schedule._fields})
    network = torch.nn.ModuleList([encoder, head])
    outcome = Trainer(network, step, None, schedule, seed).run([len(x) for x in train.X])
    cost = {"epochs": len(outcome.history), "seconds": time.process_time() - begin}
    return predict(task, encoder, head, task.inputs.encode(task.test.X)), cost


def predict(task: Task, encoder: Any, head: Any, items: Sequence[Any]) -> Columns:
    encoder.eval()
    order = np.argsort([int(item["length"]) for item in items], kind="stable").tolist()
    found: dict[str, list[Any]] = {}
    with torch.no_grad():
        for k in range(0, len(order), 64):
            batch = task.inputs.batch(take(items, order[k : k + 64]))
            lengths = batch.pop("lengths")
            for level, column in head.decode(encoder(batch, lengths), lengths).items():
                found.setdefault(level, []).extend(column)
    places = np.argsort(order).tolist()
    return {level: take(column, places) for level, column in found.items()}


# -- scores ------------------------------------------------------------------------------------------------------------


def score_text(split: Split, found: Columns) -> dict[str, float]:
    right = all_right(split.columns, found)
    scores = {"sequences right": float(np.mean([some.all() for some in right]))}
    scores["steps right"] = float(np.concatenate(right).mean())
    for level in split.columns:
        scores[f"{level} F1"] = float(metrics.conlleval(split.columns[level], found[level]).f1)
    return scores


def score_ecg(split: Split, found: Columns) -> dict[str, float]:
    assert split.spans is not None
    hits = guesses = truths = 0
    for n, span in enumerate(split.spans):
        true = [s for s in segments(split.columns["wave"][n], span) if s[2] in ("P", "QRS", "T")]
        guess = [s for s in segments(found["wave"][n], span) if s[2] in ("P", "QRS", "T")]
        hits += matches(true, guess, 2)
        guesses, truths = guesses + len(guess), truths + len(true)
    beats = [
        (set(segments(split.columns["beat"][n], span)), set(segments(found["beat"][n], span)))
        for n, span in enumerate(split.spans)
    ]
    same = sum(len(true & guess) for true, guess in beats)
    return {
        "waves within 40 ms, F1": 2 * hits / max(1, guesses + truths),
        "beats F1": 2 * same / max(1, sum(len(true) + len(guess) for true, guess in beats)),
    }


def segments(tags: Sequence[str], span: tuple[int, int]) -> list[tuple[int, int, str]]:
    """Segments of BIO tags, those that begin in the span, cut at its end."""
    found: list[tuple[int, int, str]] = []
    for t, tag in enumerate(tags):
        begins = tag[:2] == "B-" or t == 0 or tag[2:] != tags[t - 1][2:]
        if begins:
            found.append((t, t + 1, tag[2:]))
        else:
            found[-1] = (found[-1][0], t + 1, found[-1][2])
    return [(a, min(b, span[1]), name) for a, b, name in found if span[0] <= a < span[1]]


def matches(true: Sequence[Any], guess: Sequence[Any], tolerance: int) -> int:
    """Predicted segments matched to a true segment of the same label nearby; each true segment is matched once."""
    left, hits = list(true), 0
    for a, b, name in guess:
        near = [s for s in left if s[2] == name and abs(s[0] - a) <= tolerance and abs(s[1] - b) <= tolerance]
        if near:
            left.remove(near[0])
            hits += 1
    return hits


# -- data --------------------------------------------------------------------------------------------------------------


def citations(study: Study) -> Task:
    splits = []
    for name in ("train", "test"):
        found = datasets.load_citations(study.data, name)
        splits.append(Split(found.tokens, dict(found.columns)))
    return Task("citations", *splits, score_text)


def names(study: Study) -> Task:
    folder = Path(study.data or ".") / "author_names"
    train, test = (read_names(folder / f"{split}.tsv") for split in ("train", "test"))
    return Task("author names", train, test, score_text)


MISSPELT = {"surename": "surname", "forenname": "forename", "firstname": "forename"}


def read_names(path: Path) -> Split:
    """Tokens, persons and parts; separators are outside of parts."""
    sequences: list[list[list[str]]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# source\t"):
            continue
        if line:
            sequences[-1].append(line.split("\t"))
        elif sequences[-1]:
            sequences.append([])
    sequences = [some for some in sequences if some]
    parts = [[step[2][:2] + MISSPELT.get(step[2][2:], step[2][2:]) for step in some] for some in sequences]
    persons = [[step[1] for step in some] for some in sequences]
    return Split([[step[0] for step in some] for some in sequences], {"person": persons, "part": parts})


def ecg(study: Study) -> Task:
    """Records in steps of 20 ms: two samples of twelve leads; what is not annotated is unknown."""
    folder = Path(study.data or ".") / "ludb"
    signals = np.load(folder / "signals_100hz.npz")
    labels: dict[str, list[list[str]]] = {}
    for line in (folder / "labels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        record, *rest = line.split("\t")
        labels.setdefault(record, []).append(rest)
    found: dict[bool, list[Any]] = {True: [], False: []}
    for record, listed in labels.items():
        x = signals[f"r{record}"].astype(float)
        x = np.arcsinh((x - np.median(x, axis=0)) / 200).reshape(len(x) // 2, -1)
        columns = {level: [UNKNOWN] * len(x) for level in ("beat", "wave")}
        for _, level, start, stop, label in listed:
            for t in range(int(start), min(int(stop), len(x))):
                columns[level][t] = ("B-" if t == int(start) else "I-") + label
        known = [t for t, tag in enumerate(columns["wave"]) if tag != UNKNOWN]
        found[int(record) % 2 == 1].append((x, columns, (known[0], known[-1] + 1)))
    train, test = (
        Split([x for x, _, _ in some], {k: [c[k] for _, c, _ in some] for k in ("beat", "wave")}, [s for *_, s in some])
        for some in (found[True], found[False])
    )
    return Task("ECG", train, test, score_ecg, {"batch_size": 8})


def smallest(study: Study) -> Task:
    words, columns = made_up(12, (2, 3), (6, 2), 0)
    whole = Split(words, columns)
    few = [whole.take(range(a, b)) for a, b in ((0, 8), (8, 12))]
    return Task("made up", *few, score_text, {"hidden": 4, "epochs": 1})


# -- the study --------------------------------------------------------------------------------------------------------


def partly(split: Split, kind: str, seed: int) -> Split:
    """A tenth of the sequences, or all of them with the top level alone for the others."""
    keep = set(np.random.default_rng(seed).permutation(len(split))[: max(2, len(split) // 10)].tolist())
    if kind == FEW:
        return split.take(sorted(keep))
    top, *lower = split.columns
    columns = {top: split.columns[top]}
    for level in lower:
        columns[level] = [
            column if n in keep else [UNKNOWN] * len(column) for n, column in enumerate(split.columns[level])
        ]
    return Split(split.X, columns, split.spans)


ALL = "all"
WHOLE = [(head, ALL) for head in (NESTED, PRODUCT, FLAT, SOFTMAX)]
PARTLY = [(NESTED, TOP), (NESTED, FEW), (PRODUCT, FEW)]
# What matters most comes first, so that a study may be ended early.
STAGES = [(layers, range(SEEDS)) for layers in (WHOLE[:1], WHOLE[1:3], WHOLE[3:], PARTLY)]


def run_one(task: Task, head: str, labels: str, seed: int) -> dict[str, dict[str, float]]:
    training = task.train if labels == ALL else partly(task.train, labels, seed)
    layer = HEADS[head](training.columns)
    found, cost = train(task, training, layer, seed)
    scores = task.score(task.test, found)
    scores[BROKEN] = float(violations(found, task.train.columns))
    return {"accuracy": scores, "cost": cost}


def run(study: Study) -> None:
    torch.set_num_threads(1)
    load = {"citations": citations, "author names": names, "ECG": ecg}
    tasks = [one(study) for one in study.pick([smallest], [names], list(load.values()))]
    stages = study.pick([(WHOLE + PARTLY, range(1))], [(WHOLE + PARTLY, range(1))], STAGES)
    try:
        for systems, seeds in stages:
            for seed, task in product(seeds, tasks):
                fit_all(study, task, systems, seed)
    finally:  # the tables of what is there, also where Ctrl-C ends the study
        for write in (write_whole, write_partly):
            for task in tasks:
                write(study, task)


def fit_all(study: Study, task: Task, systems: Sequence[tuple[str, str]], seed: int) -> None:
    """Fit all layers, but those whose numbers the study has already."""
    for head, labels in systems:
        keys = {"set": task.name, "system": head, "labels": labels, "seed": seed}
        if study.select("accuracy", **keys):
            continue
        found = run_one(task, head, labels, seed)
        for name in ("accuracy", "cost"):
            for measure, value in found[name].items():
                study.record(name, value, measure=measure, **keys)
        study.write(finished=False)


def write_whole(study: Study, task: Task) -> None:
    """The tables of a set with all of its labels."""
    study.heading(task.name[0].upper() + task.name[1:])
    keys = {"set": task.name, "labels": ALL}
    measures = list(dict.fromkeys(record["measure"] for record in study.select("accuracy", **keys)))
    shares = [measure for measure in measures if measure != BROKEN]
    for measure in measures:
        scale, unit = (1, "steps") if measure == BROKEN else (100, "%")
        by_seed(study, f"Test data: {measure} ({unit}), every seed.", "system", scale, measure=measure, **keys)
    lines = [["difference in points", *shares]]
    for other in (PRODUCT, FLAT, SOFTMAX):
        found = [study.compare("accuracy", NESTED, other, "system", measure=m, **keys) for m in shares]
        lines.append([f"{NESTED} − {other}", *map(str, found)])
    study.lines(lines, "Paired over the seeds: points, seeds in which nested is better, p of a paired t-test.")
    study.table(
        "cost",
        rows="system",
        columns="measure",
        caption="Training on one thread: epochs, and seconds of a core.",
        **keys,
    )


def write_partly(study: Study, task: Task) -> None:
    """The table of a set whose labels are missing for nine in ten sequences."""
    if not any(study.select("accuracy", set=task.name, labels=labels) for labels in (FEW, TOP)):
        return
    study.heading(f"{task.name[0].upper() + task.name[1:]}, missing labels")
    for record in study.records:
        record["layer and labels"] = f"{record['system']}, {record['labels']}"
    chosen = [f"{head}, {labels}" for head, labels in PARTLY]
    keys = {"set": task.name, "measure": task.main}
    by_seed(study, f"Test data: {task.main} in %, every seed.", "layer and labels", 100, chosen, **keys)
    lines = [["difference in points", task.main]]
    pairs = [((NESTED, TOP), (NESTED, FEW)), ((NESTED, FEW), (PRODUCT, FEW))]
    for one, other in pairs:
        first, second = (
            {r["seed"]: r["value"] for r in study.select("accuracy", system=head, labels=labels, **keys)}
            for head, labels in (one, other)
        )
        shared = [seed for seed in first if seed in second]
        found = paired([first[seed] for seed in shared], [second[seed] for seed in shared])
        lines.append([f"{', '.join(one)} − {', '.join(other)}", str(found)])
    study.lines(lines, "Paired over the seeds.")


def by_seed(
    study: Study, caption: str, rows: str, scale: float, only: Sequence[str] | None = None, **keys: Any
) -> None:
    """A table with a column for each seed, the mean and the deviation."""
    records = study.select("accuracy", **keys)
    seeds = sorted({r["seed"] for r in records})
    lines = [[rows, *(f"seed {seed}" for seed in seeds), "mean ± deviation"]]
    for row in only or dict.fromkeys(r[rows] for r in records):
        values = {r["seed"]: scale * r["value"] for r in records if r[rows] == row}
        cells = [f"{values[seed]:.1f}" if seed in values else "–" for seed in seeds]
        lines.append([row, *cells, table_cell(np.array(list(values.values())), 1, True)])
    study.lines(lines, caption)


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
