"""Hidden labels: what is left of a model, and what evidence is worth.

Labels of nested BIO columns are hidden in ten ways. Training: a model learns from what is left, and is judged on whole
new sequences, beside one that saw all labels. Evidence: the model of all labels is told what is left of new sequences,
and is judged on the hidden labels alone, beside the same model told nothing. A label is right if its tag is, prefix
included. The ends of fillers (O) follow the parents, known or not; "fixed" is the reading in which a run of O is one
segment unless a parent is known to end in it, "refused" data that it makes contradictory. The generated documents have
three levels, sections > parts > names, the UMass citations too, field > part > name. The topology is that of complete
labels in all cases, the features are the default ones. Every model finds its penalties by `c2="auto"` among the first
100 of its training sequences, with their labels hidden as all others are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from automatic import fit_automatic
from hscrf import HSCRF, LBFGS, InfeasibleError, Labels, Topology, datasets
from hscrf.labels.induction import encode_labels
from pipelines import citation_features
from runner import Study, main

Tags = dict[str, list[str]]  # the columns of one sequence
Random = np.random.Generator
MOST = 100  # sequences among which penalties are searched


class Data(NamedTuple):
    X: list[Any]
    Y: list[Tags]


# -- documents -------------------------------------------------------------------------------------------------------

PARTS = {"head": {"title": 0.5, "date": 0.3}, "body": {"claim": 0.4, "proof": 0.3}, "foot": {"date": 0.5, "note": 0.3}}
NAMES = {"title": 0.3, "date": 0.6, "claim": 0.4, "proof": 0.2, "note": 0.1, "O": 0.05}  # how often a step has one


def make_documents(n: int, seed: int) -> Data:
    """Sections of parts with O between them, parts of names with O between them, and words that tell some of it."""
    random = np.random.default_rng(seed)
    made = [make_document(random) for _ in range(n)]
    return Data([words for words, _ in made], [tags for _, tags in made])


def make_document(random: Random) -> tuple[list[list[str]], Tags]:
    words: list[list[str]] = []
    tags: Tags = {"section": [], "part": [], "name": []}
    for section in ("head", *["body"] * int(random.integers(1, 4)), "foot"):
        first = len(words)
        for part in draw_parts(random, section):
            length = int(random.integers(1, 5))
            tags["part"] += segment(part, length)
            for _ in range(length):
                name = random.choice(["who", "where"]) if random.random() < NAMES[part] else "O"
                tags["name"] += segment(name, 1)
                words.append(draw_word(random, section, part, name))
        tags["section"] += segment(section, len(words) - first)
    return words, tags


def draw_parts(random: Random, section: str) -> list[str]:
    """Names of the parts of a section; two fillers never follow each other."""
    names, chances = [*PARTS[section], "O"], [*PARTS[section].values()]
    drawn = random.choice(names, size=int(random.integers(1, 5)), p=[*chances, 1 - sum(chances)]).tolist()
    return [part for k, part in enumerate(drawn) if part != "O" or k == 0 or drawn[k - 1] != "O"]


def draw_word(random: Random, section: str, part: str, name: str) -> list[str]:
    """Features of a step: each level's state with some noise, or none."""
    told = {"s": (section, 0.3), "p": (part, 0.5), "n": (name, 0.7)}
    return ["any", *(f"{kind}={state}" for kind, (state, chance) in told.items() if random.random() < chance)]


def segment(state: str, length: int) -> list[str]:
    return ["O"] * length if state == "O" else [f"B-{state}", *[f"I-{state}"] * (length - 1)]


def load_citations(study: Study, split: str, n: int | None) -> Data:
    found = datasets.load_citations(study.data, split)
    rows = zip(*found.columns.values(), strict=True)
    Y = [dict(zip(found.columns, map(list, row), strict=True)) for row in rows]
    return Data([citation_features(words) for words in found.tokens[:n]], Y[:n])


# -- ten ways to hide ------------------------------------------------------------------------------------------------


def hide_cells(tags: Tags, hidden: Callable[[list[str]], Sequence[bool]]) -> Tags:
    """A ``?`` wherever ``hidden`` of a column says so."""
    return {
        level: ["?" if gone else tag for tag, gone in zip(column, hidden(column), strict=True)]
        for level, column in tags.items()
    }


def level_of_sequence(tags: Tags, random: Random) -> Tags:
    gone = random.choice(list(tags))
    return {level: column for level, column in tags.items() if level != gone}


def all_but_one_level(tags: Tags, random: Random) -> Tags:
    kept = random.choice(list(tags))
    return {kept: tags[kept]}


def half_of_cells(tags: Tags, random: Random) -> Tags:
    return hide_cells(tags, lambda column: random.random(len(column)) < 0.5)


def half_of_segments(tags: Tags, random: Random) -> Tags:
    """Runs of O count as segments."""

    def hidden(column: list[str]) -> Sequence[bool]:
        starts = [t == 0 or tag[0] == "B" or (tag == "O") != (column[t - 1] == "O") for t, tag in enumerate(column)]
        number = np.cumsum(starts) - 1
        return (random.random(number[-1] + 1) < 0.5)[number].tolist()

    return hide_cells(tags, hidden)


def only(k: int) -> Callable[[Tags, Random], Tags]:
    def hide(tags: Tags, random: Random) -> Tags:
        level = list(tags)[k]
        return {level: tags[level]}

    return hide


def whole_sequences(tags: Tags, random: Random) -> Tags:
    gone = random.random() < 0.5
    return hide_cells(tags, lambda column: [gone] * len(column))


def second_half(tags: Tags, random: Random) -> Tags:
    return hide_cells(tags, lambda column: [2 * t >= len(column) for t in range(len(column))])


def first_steps(tags: Tags, random: Random) -> Tags:
    return hide_cells(tags, lambda column: [tag[0] == "B" for tag in column])


WAYS: dict[str, Callable[[Tags, Random], Tags]] = {
    "a level per sequence": level_of_sequence,
    "all but one level per sequence": all_but_one_level,
    "half of all cells": half_of_cells,
    "half of the segments": half_of_segments,
    "all but the top": only(0),
    "all but the middle": only(1),
    "all but the bottom": only(2),
    "half of the sequences": whole_sequences,
    "second half of each sequence": second_half,
    "first steps of segments": first_steps,
}


# -- the study -------------------------------------------------------------------------------------------------------


def run(study: Study) -> None:
    sizes = study.pick((8, 4), (100, 50), (600, 300))
    sets = {"documents": (make_documents(sizes[0], 0), make_documents(sizes[1], 1))}
    if study.variant != "smallest" and study.data:
        train, test = study.pick((0, 0), (25, 20), (400, None))
        sets["citations"] = (load_citations(study, "train", train), load_citations(study, "test", test))
    for name, (train, test) in sets.items():
        measure(study, name, train, test)
    chart(study, list(sets))


def measure(study: Study, name: str, train: Data, test: Data) -> None:
    topology, _ = encode_labels(train.Y, list(map(len, train.X)), None, "bio")
    known = [n for n, tags in enumerate(test.Y) if is_known(topology, tags)]
    test = Data([test.X[n] for n in known], [test.Y[n] for n in known])
    model = fit(study, topology, train.X, [read(topology, tags) for tags in train.Y])
    study.heading(f"Training on {name}")
    judge(study, "training", model, test, data=name, way="nothing", reading="open")
    for way in WAYS:
        hidden = hide(train.Y, way, seed=2, complete=4)
        for reading in readings(study, name):
            try:
                labels = [read(topology, tags, reading) for tags in hidden]
                judge(
                    study,
                    "training",
                    fit(study, topology, train.X, labels),
                    test,
                    data=name,
                    way=way,
                    reading=reading,
                )
            except InfeasibleError:
                study.say(f"{name}, {way}: refused with {reading} fillers.")
    show(study, "training", name, "Right tags in % on new sequences; every fourth training sequence keeps all labels.")
    study.heading(f"Evidence on {name}")
    for way in WAYS:
        hidden = hide(test.Y, way, seed=3)
        judge(study, "evidence", model, test, hidden, data=name, way=way, reading="none")
        for reading in ("open", "fixed"):
            try:
                told = [read(topology, tags, reading) for tags in hidden]
                judge(study, "evidence", model, test, hidden, told, data=name, way=way, reading=reading)
            except InfeasibleError:
                study.say(f"{name}, {way}: refused with {reading} fillers.")
    show(study, "evidence", name, "Right tags in % among the hidden ones, told nothing (none) and told the rest.")


def readings(study: Study, name: str) -> tuple[str, ...]:
    """Citations are learned with both readings of fillers in the full variant only."""
    return ("open",) if name == "citations" and study.variant != "full" else ("open", "fixed")


def fit(study: Study, topology: Topology, X: list[Any], labels: list[Labels]) -> HSCRF:
    model = HSCRF(topology, solver=LBFGS(max_iter=study.pick(5, 20, 60)))
    return fit_automatic(model, X, labels, MOST, c2=study.pick(0.1, "auto", "auto"))


def read(topology: Topology, tags: Tags, reading: str = "open") -> Labels:
    return Labels.from_columns(topology, tags, "bio", "runs" if reading == "open" else reading)


def is_known(topology: Topology, tags: Tags) -> bool:
    """Whether the labels of a sequence are legal in the topology of the training labels."""
    try:
        read(topology, tags)
    except ValueError:
        return False
    return True


def hide(Y: Sequence[Tags], way: str, seed: int, complete: int = 0) -> list[Tags]:
    """Hide labels of all sequences, or of all but every so many."""
    random = np.random.default_rng(seed)
    return [y if complete and n % complete == 0 else WAYS[way](y, random) for n, y in enumerate(Y)]


def judge(
    study: Study,
    name: str,
    model: HSCRF,
    test: Data,
    hidden: list[Tags] | None = None,
    told: list[Labels] | None = None,
    **keys: Any,
) -> None:
    """Record the share of right tags of each level, of all cells or of the hidden ones."""
    found = model.predict(test.X, evidence=told)
    for level in model.topology_.levels[1:]:
        right = [
            guess == tag
            for n, y in enumerate(found)
            for t, (guess, tag) in enumerate(zip(y.column(level, "bio"), test.Y[n][level], strict=True))
            if hidden is None or hidden[n].get(level, "?" * len(test.X[n]))[t] == "?"
        ]
        if right:
            study.record(name, float(np.mean(right)), level=level, **keys)


def show(study: Study, name: str, data: str, caption: str) -> None:
    """A table of a row for each way to hide and a column for each level and reading."""
    chosen = study.select(name, data=data)
    found = {(r["level"], r["reading"]) for r in chosen}
    levels = dict.fromkeys(r["level"] for r in chosen)
    columns = [(v, r) for v in levels for r in ("none", "open", "fixed") if (v, r) in found]
    lines = [["hidden", *(f"{level}, {reading}" for level, reading in columns)]]
    for way in dict.fromkeys(r["way"] for r in chosen):
        values = [study.values(name, data=data, way=way, level=v, reading=r) for v, r in columns]
        lines.append([way, *(f"{100 * v[0]:.1f}" if v else "–" for v in values)])
    study.lines(lines, caption)


def chart(study: Study, sets: Sequence[str]) -> None:
    """What evidence changes, by reading: the mean over all levels of each way to hide."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, len(sets), figsize=(4.5 * len(sets) + 2, 3.6), sharey=True, squeeze=False)
    for ax, data in zip(axes[0], sets, strict=True):
        for offset, reading in ((-0.2, "open"), (0.2, "fixed")):
            ways = [way for way in WAYS if study.values("evidence", data=data, way=way, reading=reading)]
            gains = [
                100 * (study.mean("evidence", data=data, way=way, reading=reading))
                - 100 * study.mean("evidence", data=data, way=way, reading="none")
                for way in ways
            ]
            ax.barh([list(WAYS).index(way) + offset for way in ways], gains, height=0.38, label=f"{reading} fillers")
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set(title=data, xlabel="points gained by evidence")
    axes[0, 0].set_yticks(range(len(WAYS)), list(WAYS))
    axes[0, 0].invert_yaxis()
    axes[0, 0].legend()
    study.figure("hiding-evidence", axes[0, 0], "Right tags among the hidden ones: told the rest minus told nothing.")


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
