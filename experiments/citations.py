"""Citations: fields, their parts, the names in them.

UMass citations have three nested levels, field > part > name, of segments that last: a nested model of D = 4 with a
persisting bottom. Where a level has no label, O is its state. Against chains: one for each level, cascades down and up,
one chain of product labels; all see the same features of the words. Every model, each chain too, finds its penalties by
`c2="auto"` among the first 200 of its training citations and then learns from all of them, with 100 iterations at most.
The blocks of the nested model were chosen on the development split: of six sets tried there at one penalty (tokens;
with starts; with starts and stops; observed first children; another padding of missing labels; a stronger penalty), the
one with starts and stops was best. The features of the pipelines are as first written. Then two economies. Labels: how
good is the model if only some segments are labelled, drawn at random, or only some citations, completely? Corrections:
how many segments must a person enter until all citations are right, if every correction is evidence for a new
prediction, or if none is?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from automatic import fit_automatic, penalty_table, record_penalties
from hscrf import HSCRF, LBFGS, End, Init, Labels, Start, Stop, Token, Topology, Trans, datasets
from nested import Nested, all_right, columns_of, compare_sequences, judge, made_up
from pipelines import Cascade, Columns, Independent, Product, citation_features
from runner import Study, main, take

LEVELS = ("field", "part", "name")
OURS, PRODUCT = "HSCRF", "product labels"
FEATURES = [
    *(block(level) for level in LEVELS for block in (Token, Start, Stop)),
    *(block(level) for level in ("root", "field", "part") for block in (Init, Trans, End)),
]
MOST = 200  # citations among which penalties are searched


class Data(NamedTuple):
    X: list[list[list[str]]]
    columns: Columns


def systems(max_iter: int, c2: float | str) -> dict[str, Any]:
    """All that is compared, by name."""
    return {
        OURS: Nested(FEATURES, max_iter, MOST, c2=c2),
        "independent": Independent(max_iter, MOST, c2),
        "cascade down": Cascade(LEVELS, max_iter, MOST, c2),
        "cascade up": Cascade(LEVELS[::-1], max_iter, MOST, c2),
        PRODUCT: Product(max_iter, MOST, c2),
    }


# -- data ------------------------------------------------------------------------------------------------------------


def load(study: Study) -> dict[str, Data]:
    """Train and test; generated for the smallest variant."""
    if study.variant == "smallest":
        words, columns = made_up(12, (2, 3, 3), (8, 4, 2), 0)
        made = Data([citation_features(some) for some in words], dict(zip(LEVELS, columns.values(), strict=True)))
        return {"train": part(made, range(8)), "test": part(made, range(8, 12))}
    return {"train": read(study, "train", study.pick(0, 300, None)), "test": read(study, "test", None)}


def read(study: Study, split: str, n: int | None) -> Data:
    """The first n citations of a split."""
    found = datasets.load_citations(study.data, split)
    columns = {level: found.columns[level][:n] for level in LEVELS}
    return Data([citation_features(words) for words in found.tokens[:n]], columns)


def part(data: Data, which: Sequence[int]) -> Data:
    return Data(take(data.X, which), {level: take(column, which) for level, column in data.columns.items()})


def labels_of(topology: Topology, columns: Columns) -> list[Labels]:
    some = zip(*columns.values(), strict=True)
    return [Labels.from_columns(topology, dict(zip(columns, one, strict=True)), scheme="bio") for one in some]


# -- all labels ------------------------------------------------------------------------------------------------------


def run(study: Study) -> None:
    data = load(study)
    found = {}
    c2 = study.pick(0.1, "auto", "auto")
    for name, system in systems(study.pick(10, 60, 100), c2).items():
        found[name] = measure(study, name, system, data)
        if name == OURS:
            model = system.model
    write_comparison(study, data["test"].columns, found)
    label_economy(study, model, data, study.pick(10, 30, 100), c2)
    correction_economy(study, model, data["test"])


def whole(truth: Columns, found: Columns) -> float:
    return float(np.mean([some.all() for some in all_right(truth, found)]))


def measure(study: Study, name: str, system: Any, data: dict[str, Data]) -> Columns:
    """Fit and judge one system; time its training."""
    with study.timed("cost", system=name, measure="seconds to train"):
        system.fit(*data["train"])
    for part_, chosen in system.models.items():
        record_penalties(study, chosen, system=f"{name}, {part_}")
    found = system.predict(data["test"].X)
    judge(study, data["test"].columns, found, data["train"].columns, system=name)
    return found


def write_comparison(study: Study, truth: Columns, found: dict[str, Columns]) -> None:
    study.heading("All labels")
    study.table("accuracy", rows="system", columns="measure", percent=True, caption="Test citations, in %.")
    study.table("violations", rows="system", columns="name", digits=0, caption="Steps that break the nesting.")
    study.table("cost", rows="system", columns="measure", caption="Training on one core, with the search.")
    penalty_table(study)
    for name in list(found)[1:]:
        first, second, p = compare_sequences(truth, found[OURS], found[name])
        study.say(
            f"Against {name}: {whole(truth, found[OURS]):.1%} of the citations are wholly right against "
            f"{whole(truth, found[name]):.1%}; {first} only with {OURS}, {second} only with the other "
            f"(McNemar, p = {p:.3g})."
        )


# -- fewer labels ----------------------------------------------------------------------------------------------------


def label_economy(study: Study, model: HSCRF, data: dict[str, Data], max_iter: int, c2: float | str) -> None:
    """Train on a share of the segments, or of the citations, and judge on the test split."""
    topology, n = model.topology_, len(data["train"].X)
    complete = labels_of(topology, data["train"].columns)
    for share in study.pick((0.5,), (0.1, 0.5), (0.1, 0.25)):
        random = np.random.default_rng(int(100 * share))
        known = [some_segments(y, share, random) for y in complete]
        few = sorted(random.choice(n, max(1, round(share * n)), replace=False).tolist())
        parts = (data["train"].X, known), (take(data["train"].X, few), take(complete, few))
        fitted = [partial_fit(topology, *some, max_iter, c2) for some in parts]
        spread, together = (columns_of(some.predict(data["test"].X)) for some in fitted)
        chain = Product(max_iter, MOST).fit(*part(data["train"], few)).predict(data["test"].X)
        names = ("HSCRF, segments at random", "HSCRF, whole citations", f"{PRODUCT}, whole citations")
        for name, found in zip(names, (spread, together, chain), strict=True):
            economy(study, name, share, data["test"].columns, found)
    for name, system in zip(names, (OURS, OURS, PRODUCT), strict=True):
        for measure_ in ("all levels right", "sequences right"):
            value = study.mean("accuracy", system=system, measure=measure_)
            study.record("economy", value, system=name, share="100 %", measure=measure_)
    write_economy(study)


def partial_fit(topology: Topology, X: Sequence[Any], Y: Sequence[Labels], max_iter: int, c2: float | str) -> HSCRF:
    """Training on partial labels; which children a parent may have is known from the annotation scheme."""
    return fit_automatic(HSCRF(topology, features=FEATURES, solver=LBFGS(max_iter=max_iter)), X, Y, MOST, c2=c2)


def some_segments(y: Labels, share: float, random: np.random.Generator) -> Labels:
    """Each segment of each level is known with this probability."""
    kept = {level: [one for one in y.segments(level) if random.random() < share] for level in LEVELS}
    return Labels.from_segments(y.topology, kept, length=y.length)


def economy(study: Study, name: str, share: float, truth: Columns, found: Columns) -> None:
    right = all_right(truth, found)
    for measure_, value in (
        ("all levels right", np.concatenate(right).mean()),
        ("sequences right", np.mean([some.all() for some in right])),
    ):
        study.record("economy", value, system=name, share=f"{share:.0%}".replace("%", " %"), measure=measure_)


def write_economy(study: Study) -> None:
    import matplotlib.pyplot as plt

    study.heading("Fewer labels")
    _, axes = plt.subplots(figsize=(5, 3))
    for measure_ in ("all levels right", "sequences right"):
        caption = f"Training on a share of the labels: {measure_}, in %."
        study.table("economy", rows="system", columns="share", percent=True, caption=caption, measure=measure_)
    for name in dict.fromkeys(record["system"] for record in study.select("economy")):
        chosen = study.select("economy", system=name, measure="all levels right")
        shares = [int(record["share"].split()[0]) for record in chosen]
        axes.plot(shares, [100 * record["value"] for record in chosen], marker="o", label=name)
    axes.set(xlabel="labels known, %", ylabel="all levels right, %")
    axes.legend(fontsize=7)
    study.figure("citations-labels", axes, "Steps with all levels right against the share of labels in training.")


# -- corrections -----------------------------------------------------------------------------------------------------


def correction_economy(study: Study, model: HSCRF, test: Data) -> None:
    """Enter the first missing segment of each citation, predict again, until nothing is missing."""
    loose = Topology({level: states_of(model, test, level) for level in LEVELS}, max_duration={"name": None})
    truth = labels_of(loose, test.columns)
    possible = [n for n, y in enumerate(truth) if feasible(model, y)]
    truth, X = take(truth, possible), take(test.X, possible)
    known: list[list[tuple[str, Any]]] = [[] for _ in X]
    guess = model.predict(X)
    blind = sum(len(missing(y, g)) for y, g in zip(truth, guess, strict=True))
    while wrong := [n for n, (y, g) in enumerate(zip(truth, guess, strict=True)) if missing(y, g)]:
        for n in wrong:
            known[n].append(missing(truth[n], guess[n])[0])
        evidence = [evidence_of(model.topology_, known[n], len(X[n])) for n in wrong]
        for n, g in zip(wrong, model.predict(take(X, wrong), evidence=evidence), strict=True):
            guess[n] = g
    total = sum(len(y.segments(level)) for y in truth for level in LEVELS)
    write_corrections(study, len(X), len(test.X), total, blind, sum(map(len, known)))


def states_of(model: HSCRF, test: Data, level: str) -> list[str]:
    """The states that the model knows, and those that only the test has."""
    known = model.topology_.states[model.topology_.level(level)]
    return [
        *known,
        *sorted({tag[2:] if tag != "O" else "O" for some in test.columns[level] for tag in some} - set(known)),
    ]


def feasible(model: HSCRF, y: Labels) -> bool:
    """Whether the model's topology allows the true labels: no state or child that training never showed."""
    try:
        labels_of(model.topology_, {level: [y.column(level, "bio")] for level in LEVELS})
    except ValueError:
        return False
    return True


def missing(truth: Labels, guess: Labels) -> list[tuple[str, Any]]:
    """True segments that the guess lacks, from left to right, the upper levels first."""
    lacking = [
        (segment[0], k, level, segment)
        for k, level in enumerate(LEVELS)
        for segment in sorted(set(truth.segments(level)) - set(guess.segments(level)))
    ]
    return [(level, segment) for _, _, level, segment in sorted(lacking)]


def evidence_of(topology: Topology, known: list[tuple[str, Any]], length: int) -> Labels:
    segments = {level: [segment for name, segment in known if name == level] for level in LEVELS}
    return Labels.from_segments(topology, segments, length=length)


def write_corrections(study: Study, n: int, all_: int, total: int, blind: int, fed: int) -> None:
    for mode, fixes in (("no feedback", blind), ("every fix is evidence", fed)):
        study.record("fixes", fixes, mode=mode, measure="segments entered")
        study.record("fixes", fixes / n, mode=mode, measure="for each citation")
    study.heading("Corrections")
    study.table("fixes", rows="mode", columns="measure", digits=2, caption="Segments a person enters, O included.")
    study.say(
        f"{total} segments in {n} of the {all_} test citations (the others have a child that training never showed "
        f"under its parent): a person enters {blind} without feedback and {fed} if each is evidence for the next "
        f"prediction, {1 - fed / max(blind, 1):.0%} fewer."
    )


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
