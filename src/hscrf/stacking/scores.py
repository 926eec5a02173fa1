"""Log-probabilities of the states of steps, from any classifier: cross-fitted in training, refitted for prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.features.specifications import BEGINS, SCORES
from hscrf.hierarchy import in_order
from hscrf.labels.labels import Labels

DOUBT = 0.01  # share of a uniform distribution that is mixed in: no class is impossible


@dataclass
class LevelScores:
    """The classifier of one level, and the names of its classes.

    A class is a state; at a level whose tags delimit segments it is a state and whether the step begins a segment.
    """

    level: str
    classes: list[tuple[Any, bool]]  # state, and whether a segment begins; always False if boundaries are not scored
    delimited: bool
    model: Any = None  # None: only one class is known

    def probabilities(self, model: Any, rows: Any) -> Floats:
        """Probabilities (N, classes), none of which is zero."""
        found = np.zeros((rows.shape[0], len(self.classes)))
        if model is None:
            found[:, 0] = 1.0
        else:
            found[:, np.asarray(model.classes_, dtype=np.int64)] = model.predict_proba(rows)
        return (1 - DOUBT) * found + DOUBT / len(self.classes)

    def columns(self, probabilities: Floats) -> dict[str, Floats]:
        """The scores (N,) by name: of the states, and of states that begin."""
        states = list(dict.fromkeys(state for state, _ in self.classes))
        found = {}
        for state in states:
            own = [k for k, (name, _) in enumerate(self.classes) if name == state]
            found[f"{SCORES}{self.level}={state}"] = np.log(probabilities[:, own].sum(axis=1))
        for k, (state, begins) in enumerate(self.classes):
            if begins:
                found[f"{BEGINS}{self.level}={state}"] = np.log(probabilities[:, k])
        return found


@dataclass
class Targets:
    """The class of each step at one level, -1 where it is unknown."""

    scores: LevelScores
    codes: Ints  # (N,)


def targets_of(labels: Sequence[Labels], delimited: Sequence[str]) -> list[Targets]:
    """The classes of all steps of all sequences, for each level with a choice."""
    found = []
    first = labels[0].topology
    for level in first.levels[first.n_states[0] == 1 :]:
        tags = [tag for y in labels for tag in _tags(y, level, level in delimited)]
        known = {tag for tag in tags if tag is not None}
        if not known:
            continue
        names = in_order({state for state, _ in known})
        classes = [(name, begins) for name in names for begins in (False, True) if (name, begins) in known]
        place = {tag: k for k, tag in enumerate(classes)}
        codes = np.array([-1 if tag is None else place[tag] for tag in tags], dtype=np.int64)
        found.append(Targets(LevelScores(level, classes, level in delimited), codes))
    return found


def _tags(y: Labels, level: str, delimited: bool) -> list[tuple[Any, bool] | None]:
    """State of each step and whether a segment begins there; None where that is unknown."""
    d = y.topology.level(level)
    names, states = y.topology.states[d], y.states[d]
    if not delimited:
        return [None if s < 0 else (names[s], False) for s in states.tolist()]
    before = np.append(1, y.ends[d, :-1])
    tags: list[tuple[Any, bool] | None] = []
    for s, end in zip(states.tolist(), before.tolist(), strict=True):
        if s < 0 or (end < 0 and names[s] != "O"):
            tags.append(None)
        else:
            tags.append((names[s], end == 1 and names[s] != "O"))
    return tags


def make_folds(cv: Any, size: int, groups: Any, random_state: Any) -> list[Ints]:
    """The numbers of the sequences of each fold; a group of sequences is in one fold."""
    from sklearn.model_selection import GroupKFold, KFold

    if groups is not None and len(groups) != size:
        raise ValueError(f"groups has {len(groups)} entries, but X has {size} sequences")
    splitter = cv
    if not hasattr(cv, "split"):
        if isinstance(cv, bool) or not isinstance(cv, int | np.integer) or cv < 2:
            raise ValueError(f"cv is {cv!r}, expected a number of folds of at least 2, or a splitter of scikit-learn")
        several = size if groups is None else len(set(map(str, groups)))
        if several < 2:
            what = "sequence" if groups is None else "group"
            raise ValueError(f"there is one {what}, but scores are fitted on others: expected at least 2 of them")
        folds = min(int(cv), several)
        seed = int(random_state) if isinstance(random_state, int | np.integer) else 0
        splitter = KFold(folds, shuffle=True, random_state=seed) if groups is None else GroupKFold(folds)
    held = [np.asarray(test) for _, test in splitter.split(np.zeros(size), None, groups)]
    missing = np.setdiff1d(np.arange(size), np.concatenate(held))
    if missing.size or sum(map(len, held)) != size:
        raise ValueError(f"cv is {cv!r}, which does not hold out every sequence once")
    return held


def fitted(classifier: Any, rows: Any, codes: Ints) -> Any:
    """A copy of the classifier that has learned the known steps; None if they have one class."""
    from sklearn.base import clone

    known = np.flatnonzero(codes >= 0)
    if np.unique(codes[known]).size < 2:
        return None
    return clone(classifier).fit(rows[known], codes[known])


def cross_fitted(
    classifier: Any, rows: Any, offsets: Ints, targets: Targets, folds: Sequence[Ints]
) -> dict[str, Floats]:
    """Scores of each step from classifiers that have not seen its sequence."""
    scores = targets.scores
    probabilities = np.zeros((rows.shape[0], len(scores.classes)))
    sequence = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    for numbers in folds:
        held = np.isin(sequence, numbers)
        codes = np.where(held, -1, targets.codes)
        present = np.unique(codes[codes >= 0])
        model = fitted(classifier, rows, codes)
        if model is None and present.size == 1:
            probabilities[held] = DOUBT / len(scores.classes)
            probabilities[held, present[0]] += 1 - DOUBT
        elif model is None:  # the other folds have no labels of this level
            probabilities[held] = 1 / len(scores.classes)
        else:
            probabilities[held] = scores.probabilities(model, rows[np.flatnonzero(held)])
    return scores.columns(probabilities)
