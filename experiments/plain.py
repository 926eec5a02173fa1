"""The plain call against pipelines of chains.

`HSCRF().fit(X, Y)`, with nothing chosen, on six data sets; against the features by hand that were the best of this
project's earlier studies (tokens, first and last steps, one penalty), and against what people build today from CRFsuite
chains: one a level, a cascade from the top, a cascade from the bottom, product labels. All systems see the same
features of each step: words as `hscrf fit` describes them by default, signals and relations in a window. Every chain
finds its penalty by a held-out grid on training data and tries fillers that remember; nested models choose nothing.
*Whole*: sequences in which every label of every level is right, with all borders. *F1*: segments with both borders
(ECG: within 40 ms), mean over the levels that have segments. *Steps*: right at all levels, without borders. Tests are
paired: McNemar's exact test of whole sequences, and where borders are never exact a sign test of which system has more
steps of a sequence right. The kitchen is generated, by seeds that chose nothing. CAD-120 has four people, each left out
in turn; what is chosen by hand in its set-up (a window of four steps) was chosen with a view of all four. For these two
sets there is also the nested model over scores of trees, `StackedCRF()`, and the trees alone, which label steps and
know no borders. Of CoNLL-2000 the first 1,000 sentences are learned by all systems, and all 8,936 by the plain call and
the pipeline that was best with 1,000; its product labels are about 300, so that they take minutes an iteration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction import DictVectorizer

import chains
import sets
from hscrf import HSCRF, End, Init, Start, Stop, Token, Trans
from hscrf.stacking import StackedCRF, windows
from nested import Columns, all_right, columns_of
from runner import Study, main
from summary import BY_STEPS

PLAIN, FORGETTING, BY_HAND = "HSCRF()", "HSCRF(fillers=None)", "features by hand"
STACKED, STACKED_STEPS, TREES = "StackedCRF()", 'StackedCRF(), loss="step"', "trees alone"
SENTENCES, EVERY = "CoNLL-2000, 1,000 sentences", "CoNLL-2000"
STACKABLE = ("kitchen", "CAD-120")  # sensors in small sets
OWN = (PLAIN, FORGETTING, BY_HAND, STACKED, STACKED_STEPS)
INDEPENDENT, DOWN, UP, PRODUCT = "a chain a level", "cascade down", "cascade up", "product labels"


class Nested:
    """A nested model behind the interface of the pipelines."""

    def __init__(self, data: sets.Set, **options: Any) -> None:
        self.plain, self.model = data.plain, HSCRF(**options)

    def fit(self, X: Sequence[Any], columns: Columns) -> Nested:
        self.model.fit(X, sets.Data(list(X), columns, []).rows)
        return self

    def predict(self, X: Sequence[Any]) -> Columns:
        return columns_of(self.model.predict(X), self.plain)


class Stacked:
    """Scores of trees below a nested model."""

    def __init__(self, data: sets.Set, loss: str = "sequence") -> None:
        self.plain, self.loss, self.model = data.plain, loss, StackedCRF()

    def fit(self, X: Sequence[Any], columns: Columns) -> Stacked:
        self.model.fit(X, sets.Data(list(X), columns, []).rows)
        return self

    def predict(self, X: Sequence[Any]) -> Columns:
        return columns_of(self.model.predict(X, loss=self.loss), self.plain)


class Trees:
    """The classifier of StackedCRF() alone: trees for each level, which see the same windows. No borders."""

    def fit(self, X: Sequence[Any], columns: Columns) -> Trees:
        self.encoder = DictVectorizer()
        rows = self.encoder.fit_transform([step for x in windows(self._named(X)) for step in x])
        bare = sets.bare_columns(columns)
        self.trees = {
            level: ExtraTreesClassifier(200, min_samples_leaf=2, random_state=0).fit(
                rows, [tag for tags in bare[level] for tag in tags]
            )
            for level in columns
        }
        return self

    def predict(self, X: Sequence[Any]) -> Columns:
        rows = self.encoder.transform([step for x in windows(self._named(X)) for step in x])
        ends = np.cumsum([len(x) for x in X])
        return {
            level: [[f"I-{tag}" for tag in tags] for tags in np.split(trees.predict(rows), ends[:-1])]
            for level, trees in self.trees.items()
        }

    def _named(self, X: Sequence[Any]) -> list[Any]:
        """Feature dicts of each step."""
        if isinstance(X[0], np.ndarray):
            return [[{str(k): v for k, v in enumerate(row)} for row in x.tolist()] for x in X]
        return [[step if isinstance(step, dict) else dict.fromkeys(step, 1.0) for step in x] for x in X]


def by_hand(data: sets.Set) -> Nested:
    """Tokens, first and last steps, one penalty: the best of earlier studies."""
    lasting = [level for level in data.levels if level not in data.plain]
    features: list[Any] = [Token(level) for level in data.levels]
    features += [block(level) for level in lasting for block in (Start, Stop)]
    features += [block(level, penalty=0.1) for level in ("root", *data.levels[:-1]) for block in (Init, Trans, End)]
    return Nested(data, features=features, fillers=None)


def systems(study: Study, data: sets.Set) -> dict[str, Callable[[], Any]]:
    """All that is compared, by name."""
    options = study.pick(5, 100, 200), study.pick(8, 200, 400), study.pick((0.1,), (0.1, 1.0), chains.GRID)
    found: dict[str, Callable[[], Any]] = {PLAIN: lambda: Nested(data), BY_HAND: lambda: by_hand(data)}
    if any("O" in tags for column in data.train.columns.values() for tags in column):
        found[FORGETTING] = lambda: Nested(data, fillers=None)
    if data.name in STACKABLE:
        found[STACKED] = lambda: Stacked(data)
        found[STACKED_STEPS] = lambda: Stacked(data, "step")
        found[TREES] = Trees
    found |= {
        INDEPENDENT: lambda: chains.Independent(*options),
        DOWN: lambda: chains.Cascade(False, *options),
        UP: lambda: chains.Cascade(True, *options),
    }
    if data.name == EVERY:
        return {name: found[name] for name in (PLAIN, UP)}
    if data.name != SENTENCES:
        found[PRODUCT] = lambda: chains.Product(*options)
    return found


def samples(study: Study) -> list[sets.Set]:
    """All data sets; the quick variant has fewer kitchens, and pipelines try fewer penalties."""
    if study.variant == "smallest":
        return sets.imitation()
    found = sets.meals(range(study.pick(1, 3, 5)))
    for name in ("author names", "citations"):
        found += sets.LOADERS[name](study.data, None)
    found += sets.videos(study.data)
    found += sets.LOADERS["ECG"](study.data, None)
    found += [replace(data, name=SENTENCES) for data in sets.LOADERS["CoNLL-2000"](study.data, 1000)]
    return found + (sets.LOADERS["CoNLL-2000"](study.data, None) if study.variant == "full" else [])


def run(study: Study) -> None:
    for data in samples(study):
        for name, make in systems(study, data).items():
            keys = {"data": data.name, "system": name, "place": data.place}
            if not study.select("marks", **keys):
                measure(study, data, make(), keys)
                study.write(finished=False)
    write_tables(study)


def measure(study: Study, data: sets.Set, system: Any, keys: dict[str, str]) -> None:
    begin = time.process_time()
    system.fit(data.train.X, data.train.columns)
    study.record("seconds", time.process_time() - begin, **keys)
    begin = time.process_time()
    found = system.predict(data.test.X)
    study.record("prediction seconds", time.process_time() - begin, **keys)
    scores = sets.measures(data, found)
    f1 = [value for name, value in scores.items() if name.endswith(" F1")]
    for name, value in {**scores, "F1": float(np.mean(f1))}.items():
        study.record("score", value, measure=name, **keys)
    for level, chain in getattr(system, "chains", {}).items():
        study.record("penalty", chain.c2, level=level, memory=chain.memory, **keys)
    bare = [sets.bare_columns(columns) for columns in (data.test.columns, found)]
    whole = "".join("1" if some.all() else "0" for some in all_right(data.test.columns, found))
    steps = [round(float(some.mean()), 4) for some in all_right(*bare)]
    study.record("marks", len(whole), whole=whole, steps=steps, **keys)


# -- the page --------------------------------------------------------------------------------------------------------


def marks(study: Study, data: str, system: str) -> tuple[list[bool], list[float]]:
    """For each test sequence of all places: whether it is wholly right, and the share of its right steps."""
    records = study.select("marks", data=data, system=system)
    return [bit == "1" for r in records for bit in r["whole"]], [share for r in records for share in r["steps"]]


def sign_test(one: Sequence[float], other: Sequence[float]) -> tuple[int, int, float]:
    """How often one is larger, how often the other, and the exact two-sided p; McNemar's test for bits."""
    from scipy import stats

    first = sum(a > b for a, b in zip(one, other, strict=True))
    second = sum(a < b for a, b in zip(one, other, strict=True))
    p = float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0
    return first, second, p


def names_of(study: Study) -> list[str]:
    return list(dict.fromkeys(record["data"] for record in study.select("marks")))


def write_tables(study: Study) -> None:
    study.heading("Test data")
    for measure_, caption in (
        ("whole", "Test sequences that are wholly right, in %."),
        ("F1", "F1 of segments, mean over levels, in %."),
        ("states", "Steps that are right at all levels, without borders, in %."),
    ):
        study.table("score", "system", "data", caption, percent=True, spread=False, measure=measure_)
    study.table("seconds", "system", "data", "Seconds of one core to learn, searches included.", spread=False)
    study.heading("Paired tests")
    lines = [["data", "judged by", "against", "only HSCRF() better", "only the other better", "p"]]
    for data in names_of(study):
        whole, steps = marks(study, data, PLAIN)
        exact = data not in BY_STEPS
        for system in dict.fromkeys(r["system"] for r in study.select("marks", data=data)):
            if system != PLAIN:
                other = marks(study, data, system)
                first, second, p = sign_test(*((whole, other[0]) if exact else (steps, other[1])))
                judged = "whole sequences" if exact else "steps of a sequence"
                lines.append([data, judged, system, str(first), str(second), f"{p:.3g}"])
    study.lines(lines, "Test sequences on which one system is better than the other.")
    study.heading("All levels")
    for data in names_of(study):
        rows = [r for r in study.select("score", data=data) if r["measure"] != "F1"]
        measures = list(dict.fromkeys(r["measure"] for r in rows))
        table = [["system", *measures]]
        for system in dict.fromkeys(r["system"] for r in rows):
            means = [study.mean("score", data=data, system=system, measure=name) for name in measures]
            table.append([system, *(f"{100 * mean:.1f}" for mean in means)])
        study.lines(table, f"{data}: every measure, in %; *steps* with borders, *states* without.")


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
