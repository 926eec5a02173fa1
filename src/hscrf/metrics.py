"""How right a prediction is: per time step, segment, boundary and sequence; and conlleval's counting.

Every function takes two lists of :class:`Labels`, the truth first, and compares levels and states by name.
Cells unknown in the truth are left out of measures per time step; measures of segments need them known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from hscrf.labels import Labels
from hscrf.topology import Topology

__all__ = [
    "ConllScores",
    "Score",
    "SegmentScores",
    "accuracy",
    "boundary_f1",
    "confusion",
    "conlleval",
    "conlleval_text",
    "exact_match",
    "joint_accuracy",
    "report",
    "segment_scores",
]

Ints = NDArray[np.int64]
Pairs = list[tuple[Labels, Labels]]


# ------------------------------------------------------------------------------
# Results


@dataclass(frozen=True)
class Score:
    """Counts of segments, and the ratios they give; a ratio of nothing is 0, as in conlleval.

    >>> score = Score(correct=2, predicted=4, support=3)
    >>> score.precision, round(score.recall, 3), round(score.f1, 3)
    (0.5, 0.667, 0.571)
    """

    correct: int  # found with the right start, stop and state
    predicted: int
    support: int  # in the truth

    @property
    def precision(self) -> float:
        """Share of the predicted segments that are right."""
        return _ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """Share of the true segments that were found."""
        return _ratio(self.correct, self.support)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _ratio(2 * self.correct, self.predicted + self.support)

    def to_dict(self) -> dict[str, float]:
        """Return ratios and counts as plain numbers."""
        ratios = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**ratios, "support": self.support, "predicted": self.predicted, "correct": self.correct}


@dataclass(frozen=True)
class SegmentScores(Score):
    """The micro average over all labels, and the score of each."""

    per_label: dict[str, Score] = field(default_factory=dict)


@dataclass(frozen=True)
class ConllScores(SegmentScores):
    """What conlleval counts; ``per_label`` is by chunk type."""

    tokens: int = 0
    correct_tokens: int = 0  # the whole tag is right

    @property
    def accuracy(self) -> float:
        """Share of the tokens with the right tag."""
        return _ratio(self.correct_tokens, self.tokens)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(right: NDArray[np.bool_]) -> float:
    """The share of true cells; nan if there are none."""
    return float(right.mean()) if right.size else float("nan")


# ------------------------------------------------------------------------------
# Measures on labels


@overload
def accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels], level: None = None) -> dict[str, float]: ...
@overload
def accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int) -> float: ...
def accuracy(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int | None = None
) -> dict[str, float] | float:
    """Return the share of time steps with the right state: of one level, or of every level by name.

    Steps unknown in the truth are left out; nan means that none is known. A dummy root is not listed.

    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "O"], "tag": ["N", "?", "V"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "O", "O"], "tag": ["N", "V", "V"]})]
    >>> accuracy(truth, guess, "tag")
    1.0
    >>> {level: round(share, 3) for level, share in accuracy(truth, guess).items()}
    {'phrase': 0.667, 'tag': 1.0}
    """
    pairs = _pairs(y_true, y_pred)
    if level is not None:
        return _step_accuracy(_cells(pairs, level))
    return {name: _step_accuracy(_cells(pairs, name)) for name in _level_names(pairs)}


def joint_accuracy(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> float:
    """Return the share of time steps with the right state at all levels, of those known at all levels.

    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "O"], "tag": ["N", "V"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "NP"], "tag": ["N", "V"]})]
    >>> joint_accuracy(truth, guess)
    0.5
    """
    pairs = _pairs(y_true, y_pred)
    if not pairs:
        return float("nan")
    levels = [_cells(pairs, name) for name in _level_names(pairs)]
    known = np.all([cells.true >= 0 for cells in levels], axis=0)
    right = np.all([cells.true == cells.pred for cells in levels], axis=0)
    return _mean(right[known])


def confusion(y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int) -> tuple[Ints, tuple[str, ...]]:
    """Return how many time steps of each true state (rows) got each state (columns), and the states' names.

    >>> topology = Topology({"tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"tag": ["N", "N", "V", "?"]})]
    >>> guess = [Labels.from_columns(topology, {"tag": ["N", "V", "V", "V"]})]
    >>> matrix, names = confusion(truth, guess, "tag")
    >>> matrix.tolist(), names
    ([[1, 1], [0, 1]], ('N', 'V'))
    """
    cells = _cells(_pairs(y_true, y_pred), level)
    size, known = len(cells.names), cells.true >= 0
    counts = np.bincount(cells.true[known] * size + cells.pred[known], minlength=size * size)
    return counts.reshape(size, size), cells.names


def segment_scores(
    y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int, ignore: Iterable[str] = ("O",)
) -> SegmentScores:
    """Count the segments of one level that have the right start, stop and state, as conlleval does.

    The total is micro averaged; labels in ``ignore`` are no segments. A level whose segments have unit
    length counts every time step.

    >>> topology = Topology({"phrase": ["NP", "VP", "O"]}, max_duration={"phrase": None})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "VP", "O", "NP"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "NP", "O", "NP"]})]
    >>> scores = segment_scores(truth, guess, "phrase")
    >>> scores.precision, round(scores.recall, 3), scores.per_label["VP"]
    (0.5, 0.333, Score(correct=0, predicted=0, support=1))
    """
    return _score_segments(_known_cells(_pairs(y_true, y_pred), level), ignore)


def boundary_f1(y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int, tolerance: int = 0) -> float:
    """Return the F1 of the times where a new segment begins within a sequence, whatever its state.

    A predicted boundary is right within ``tolerance`` steps of a true one; each is matched at most once,
    and as many as can be. Without any boundary on either side the result is 1.

    >>> topology = Topology({"phrase": ["NP", "O"]}, max_duration={"phrase": None})
    >>> truth = [Labels.from_columns(topology, {"phrase": ["NP", "NP", "O", "O"]})]
    >>> guess = [Labels.from_columns(topology, {"phrase": ["NP", "O", "O", "O"]})]
    >>> boundary_f1(truth, guess, "phrase"), boundary_f1(truth, guess, "phrase", tolerance=1)
    (0.0, 1.0)
    """
    if tolerance < 0:
        raise ValueError(f"tolerance is {tolerance}; expected a number of steps, 0 or more")
    return _score_boundaries(_known_cells(_pairs(y_true, y_pred), level), tolerance)


def exact_match(y_true: Sequence[Labels], y_pred: Sequence[Labels], level: str | int | None = None) -> float:
    """Return the share of sequences whose states and boundaries are all right, at one level or at all.

    >>> topology = Topology({"tag": ["N", "V"]})
    >>> truth = [Labels.from_columns(topology, {"tag": tags}) for tags in (["N", "V"], ["N"])]
    >>> guess = [Labels.from_columns(topology, {"tag": tags}) for tags in (["N", "V"], ["V"])]
    >>> exact_match(truth, guess)
    0.5
    """
    pairs = _pairs(y_true, y_pred)
    if not pairs:
        return float("nan")
    names = _level_names(pairs) if level is None else [level]
    return _mean(np.all([_right_sequences(_known_cells(pairs, name)) for name in names], axis=0))


# ------------------------------------------------------------------------------
# The border: pairs of labels become rows of cells


class _Cells(NamedTuple):
    """One level of all sequences end to end, N steps; states are positions in ``names``."""

    true: Ints  # (N,), -1 unknown
    pred: Ints  # (N,)
    true_ends: NDArray[np.int8]  # (N,)
    pred_ends: NDArray[np.int8]  # (N,)
    stops: Ints  # where each sequence stops
    names: tuple[str, ...]


def _pairs(y_true: Sequence[Labels], y_pred: Sequence[Labels]) -> Pairs:
    """Truth and prediction side by side, of equal number and lengths."""
    for what, labels in (("y_true", y_true), ("y_pred", y_pred)):
        _check_labels(what, labels)
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences but y_pred has {len(y_pred)}")
    pairs = list(zip(y_true, y_pred, strict=True))
    for n, (true, pred) in enumerate(pairs):
        if true.length != pred.length:
            raise ValueError(f"y_true[{n}] has {true.length} steps but y_pred[{n}] has {pred.length}")
    return pairs


def _check_labels(what: str, labels: Sequence[Labels]) -> None:
    if isinstance(labels, Labels):
        raise TypeError(f"{what} is one Labels; expected a list of them")
    for n, one in enumerate(labels):
        if not isinstance(one, Labels):
            raise TypeError(f"{what}[{n}] is a {type(one).__name__}; expected Labels")


def _level_names(pairs: Pairs) -> list[str]:
    """The levels of the truth, without a dummy root."""
    if not pairs:
        return []
    topology = pairs[0][0].topology
    return list(topology.levels[topology.n_states[0] == 1 :])


def _cells(pairs: Pairs, level: str | int) -> _Cells:
    """One level of all pairs; the predicted states must be known."""
    if pairs and not isinstance(level, str):
        level = pairs[0][0].topology.levels[pairs[0][0].topology.level(level)]
    names: dict[str, int] = {}
    true = _side("y_true", [one for one, _ in pairs], level, names)
    pred = _side("y_pred", [other for _, other in pairs], level, names)
    stops = np.cumsum([one.length for one, _ in pairs], dtype=np.int64)
    cells = _Cells(true[0], pred[0], true[1], pred[1], stops, tuple(names))
    _check_known(cells, cells.pred >= 0, "y_pred", level)
    return cells


def _known_cells(pairs: Pairs, level: str | int) -> _Cells:
    """One level of all pairs; states and ends must be known on both sides."""
    cells = _cells(pairs, level)
    _check_known(cells, (cells.true >= 0) & (cells.true_ends >= 0), "y_true", level)
    _check_known(cells, cells.pred_ends >= 0, "y_pred", level)
    return cells


def _side(what: str, labels: list[Labels], level: str | int, names: dict[str, int]) -> tuple[Ints, NDArray[np.int8]]:
    """States and ends (N,) of one side end to end; new state names are added to ``names``."""
    codes: dict[int, tuple[int, Ints]] = {}
    states, ends = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int8)]
    for n, one in enumerate(labels):
        if id(one.topology) not in codes:
            codes[id(one.topology)] = _code(f"{what}[{n}]", one.topology, level, names)
        d, code = codes[id(one.topology)]
        states.append(code[one.states[d]])
        ends.append(np.append(one.ends[d, :-1], np.int8(1)))
    return np.concatenate(states), np.concatenate(ends)


def _code(what: str, topology: Topology, level: str | int, names: dict[str, int]) -> tuple[int, Ints]:
    """The level's index and its states (S + 1,) as positions in ``names``; the last is for unknown."""
    try:
        d = topology.level(level)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    return d, np.array([*(names.setdefault(name, len(names)) for name in topology.states[d]), -1])


def _check_known(cells: _Cells, known: NDArray[np.bool_], what: str, level: str | int) -> None:
    if not known.all():
        at = int(known.argmin())
        n = int(np.searchsorted(cells.stops, at, side="right"))
        t = at - int(np.append(0, cells.stops)[n])
        raise ValueError(f"{what}[{n}]: level {level!r} is unknown at {t}; expected every state and end to be known")


# ------------------------------------------------------------------------------
# Counting


def _step_accuracy(cells: _Cells) -> float:
    known = cells.true >= 0
    return _mean((cells.true == cells.pred)[known])


def _score_segments(cells: _Cells, ignore: Iterable[str]) -> SegmentScores:
    size, skipped = len(cells.names), set(ignore)
    true_key, true_state = _segments(cells.true, cells.true_ends)
    pred_key, pred_state = _segments(cells.pred, cells.pred_ends)
    _, i, j = np.intersect1d(true_key, pred_key, assume_unique=True, return_indices=True)
    both = true_state[i][true_state[i] == pred_state[j]]
    counts = (np.bincount(state, minlength=size).tolist() for state in (both, pred_state, true_state))
    rows = zip(cells.names, *counts, strict=True)
    return _total({name: Score(*row) for name, *row in rows if name not in skipped and any(row)})


def _segments(states: Ints, ends: NDArray[np.int8]) -> tuple[Ints, Ints]:
    """A number for the start and stop of each segment, and its state."""
    stop = np.flatnonzero(ends) + 1
    start = np.append(0, stop)[:-1]
    return start * (len(states) + 1) + stop, states[start]


def _total(table: dict[str, Score]) -> SegmentScores:
    """The micro average over a table of labels."""
    correct = sum(score.correct for score in table.values())
    predicted = sum(score.predicted for score in table.values())
    return SegmentScores(correct, predicted, sum(score.support for score in table.values()), table)


def _score_boundaries(cells: _Cells, tolerance: int) -> float:
    matched = total = 0
    start = 0
    for stop in cells.stops.tolist():
        true = np.flatnonzero(cells.true_ends[start : stop - 1]).tolist()
        pred = np.flatnonzero(cells.pred_ends[start : stop - 1]).tolist()
        matched += _matches(true, pred, tolerance)
        total += len(true) + len(pred)
        start = stop
    return 2 * matched / total if total else 1.0


def _matches(one: list[int], other: list[int], tolerance: int) -> int:
    """The most pairs of two sorted lists that lie within the tolerance, each number used at most once."""
    matched = i = j = 0
    while i < len(one) and j < len(other):
        if abs(one[i] - other[j]) <= tolerance:
            matched, i, j = matched + 1, i + 1, j + 1
        elif one[i] < other[j]:
            i += 1
        else:
            j += 1
    return matched


def _right_sequences(cells: _Cells) -> NDArray[np.bool_]:
    """Which sequences (n,) have every state and end of the level right."""
    wrong = (cells.true != cells.pred) | (cells.true_ends != cells.pred_ends)
    return np.diff(np.append(0, np.cumsum(wrong))[cells.stops], prepend=0) == 0


# ------------------------------------------------------------------------------
# Report


@overload
def report(
    y_true: Sequence[Labels],
    y_pred: Sequence[Labels],
    *,
    ignore: Iterable[str] = ...,
    tolerance: int = ...,
    digits: int = ...,
    output_dict: Literal[False] = False,
) -> str: ...
@overload
def report(
    y_true: Sequence[Labels],
    y_pred: Sequence[Labels],
    *,
    ignore: Iterable[str] = ...,
    tolerance: int = ...,
    digits: int = ...,
    output_dict: Literal[True],
) -> dict[str, Any]: ...
def report(
    y_true: Sequence[Labels],
    y_pred: Sequence[Labels],
    *,
    ignore: Iterable[str] = ("O",),
    tolerance: int = 0,
    digits: int = 3,
    output_dict: bool = False,
) -> str | dict[str, Any]:
    """Return all measures of every level as text, or as plain numbers that JSON can hold.

    Measures of segments are over the sequences whose level is completely known in the truth.

    >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]})
    >>> truth = [Labels.from_tree(topology, [("NP", ["N", "N"]), ("VP", ["V"])])]
    >>> guess = [Labels.from_tree(topology, [("NP", ["N"]), ("VP", ["V", "V"])])]
    >>> print(report(truth, guess))
    phrase: accuracy 0.667 of 3 steps
    <BLANKLINE>
                  precision    recall  f1-score   support
               NP     0.000     0.000     0.000         1
               VP     0.000     0.000     0.000         1
        micro avg     0.000     0.000     0.000         2
      boundary F1                         0.000
    <BLANKLINE>
    tag: accuracy 0.667 of 3 steps
    <BLANKLINE>
                  precision    recall  f1-score   support
                N     1.000     0.500     0.667         2
                V     0.500     1.000     0.667         1
        micro avg     0.667     0.667     0.667         3
    <BLANKLINE>
    all levels right: 0.667 of 3 steps, 0.000 of 1 sequences
    """
    pairs = _pairs(y_true, y_pred)
    names = _level_names(pairs)
    skipped = tuple(ignore)  # an iterator is read once
    levels = {name: _level_report(pairs, name, skipped, tolerance) for name in names}
    whole = [pair for pair in pairs if all(_is_known(pair[0], name) for name in names)]
    result = {
        "levels": levels,
        "joint_accuracy": _number(joint_accuracy(y_true, y_pred)),
        "exact_match": _number(exact_match(*_unzip(whole))),
        "steps": _jointly_known(pairs, names),
        "sequences": len(whole),
    }
    return result if output_dict else _report_text(result, len(pairs), digits)


def _level_report(pairs: Pairs, level: str, ignore: tuple[str, ...], tolerance: int) -> dict[str, Any]:
    """The measures of one level as plain numbers, None where they are not defined."""
    cells = _cells(pairs, level)
    known = [pair for pair in pairs if _is_known(pair[0], level)]
    inside = _known_cells(known, level)
    scores = _score_segments(inside, ignore)
    unit = all(labels.ends[labels.topology.level(level)].all() for pair in known for labels in pair)
    return {
        "accuracy": _number(_step_accuracy(cells)),
        "steps": int((cells.true >= 0).sum()),
        "sequences": len(known),
        "segments": Score.to_dict(scores),
        "per_label": {name: score.to_dict() for name, score in scores.per_label.items()},
        "boundary_f1": None if unit else _score_boundaries(inside, tolerance),
    }


def _is_known(labels: Labels, level: str) -> bool:
    """Whether every state and inner end of a level is known."""
    d = labels.topology.level(level)
    return bool((labels.states[d] >= 0).all() and (labels.ends[d, :-1] >= 0).all())


def _jointly_known(pairs: Pairs, names: list[str]) -> int:
    """The number of steps that are known at all levels."""
    rows = ([one.states[one.topology.level(name)] for name in names] for one, _ in pairs)
    return sum(int((np.array(states) >= 0).all(axis=0).sum()) for states in rows)


def _unzip(pairs: Pairs) -> tuple[list[Labels], list[Labels]]:
    return [one for one, _ in pairs], [other for _, other in pairs]


def _number(value: float) -> float | None:
    """A number for JSON, which has no nan."""
    return None if np.isnan(value) else value


def _report_text(result: dict[str, Any], total: int, digits: int) -> str:
    blocks = [_level_text(name, numbers, total, digits) for name, numbers in result["levels"].items()]
    joint, exact = (_digits(result[key], digits) for key in ("joint_accuracy", "exact_match"))
    last = f"all levels right: {joint} of {result['steps']} steps, {exact} of {result['sequences']} sequences"
    return "\n\n".join([*blocks, last])


def _level_text(name: str, numbers: dict[str, Any], total: int, digits: int) -> str:
    lines = [f"{name}: accuracy {_digits(numbers['accuracy'], digits)} of {numbers['steps']} steps"]
    if numbers["sequences"] < total:
        lines.append(f"(segments of the {numbers['sequences']} of {total} sequences that are fully labelled)")
    rows = {**numbers["per_label"], "micro avg": numbers["segments"]}
    width = max(len(row) for row in [*rows, "boundary F1"]) + 2
    cell = max(10, digits + 5)
    titles = ("precision", "recall", "f1-score", "support")
    lines += ["", " " * width + "".join(f"{title:>{cell}}" for title in titles)]
    for row, score in rows.items():
        ratios = "".join(f"{score[key]:{cell}.{digits}f}" for key in ("precision", "recall", "f1"))
        lines.append(f"{row:>{width}}{ratios}{score['support']:{cell}d}")
    if numbers["boundary_f1"] is not None:
        lines.append(f"{'boundary F1':>{width}}{'':{2 * cell}}{numbers['boundary_f1']:{cell}.{digits}f}")
    return "\n".join(lines)


def _digits(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


# ------------------------------------------------------------------------------
# conlleval


def conlleval(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> ConllScores:
    """Score tag sequences as the CoNLL shared tasks' script does (version 2004-01-26).

    A chunk begins at B-x, at I-x after O, and wherever the type changes, so ill-formed tags are repaired;
    IOE and bracket tags are understood too. Beyond the script, S-x (or U-x) is a chunk of its own and E-x
    (or L-x) is followed by a new chunk, so that BIOES is scored right.

    >>> scores = conlleval([["B-NP", "I-NP", "O", "B-VP"]], [["I-NP", "I-NP", "O", "B-NP"]])
    >>> scores.precision, scores.recall, scores.accuracy
    (0.5, 0.5, 0.5)
    """
    _check_tags(y_true, y_pred)
    true, pred = _all_chunks(y_true), _all_chunks(y_pred)
    counts = [Counter(kind for *_, kind in chunks) for chunks in (true & pred, pred, true)]
    kinds = sorted(counts[1].keys() | counts[2].keys())
    scores = _total({kind: Score(*(count[kind] for count in counts)) for kind in kinds})
    right = sum(
        tag == other for one, two in zip(y_true, y_pred, strict=True) for tag, other in zip(one, two, strict=True)
    )
    return ConllScores(scores.correct, scores.predicted, scores.support, scores.per_label, sum(map(len, y_true)), right)


def conlleval_text(scores: ConllScores) -> str:
    """Return the scores in conlleval's own words.

    >>> print(conlleval_text(conlleval([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "B-NP"]])))
    processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  66.67%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                   NP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
                   VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
    """
    first = f"processed {scores.tokens} tokens with {scores.support} phrases; "
    lines = [f"{first}found: {scores.predicted} phrases; correct: {scores.correct}."]
    if scores.tokens:
        accuracy = 100 * scores.correct_tokens / scores.tokens
        lines.append(f"accuracy: {accuracy:6.2f}%; {_percentages(scores)}")
    for kind, score in scores.per_label.items():
        lines.append(f"{kind:>17}: {_percentages(score)}  {score.predicted}")
    return "\n".join(lines)


def _percentages(score: Score) -> str:
    precision = _ratio(100 * score.correct, score.predicted)
    recall = _ratio(100 * score.correct, score.support)
    f1 = 2 * precision * recall / (precision + recall) if score.correct else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _check_tags(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> None:
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} sequences but y_pred has {len(y_pred)}")
    for n, (one, other) in enumerate(zip(y_true, y_pred, strict=True)):
        for what, tags in (("y_true", one), ("y_pred", other)):
            if isinstance(tags, str):
                raise TypeError(f"{what}[{n}] is the string {tags!r}; expected a list of tags")
        if len(one) != len(other):
            raise ValueError(f"y_true[{n}] has {len(one)} tags but y_pred[{n}] has {len(other)}")


def _all_chunks(sequences: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
    """Chunks (sequence, start, stop, type) of all tag sequences."""
    return {(n, *chunk) for n, tags in enumerate(sequences) for chunk in _chunks(tags)}


def _chunks(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Chunks (start, stop, type) of one tag sequence."""
    chunks, start = [], None
    before = ("O", "")
    for t, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        here = (_SYNONYMS.get(prefix, prefix), kind)
        if start is not None and _chunk_ends(before, here):
            chunks.append((start, t, before[1]))
            start = None
        if _chunk_starts(before, here):
            start = t
        before = here
    return chunks


_SYNONYMS = {"L": "E", "U": "S"}
# between these prefixes of one type lies a border
_BORDERS = {("B", "B"), ("I", "B"), ("E", "E"), ("E", "I"), ("E", "B")}


def _border(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether prefixes alone put a border between two tags; S and brackets are chunks of their own."""
    alone = {"S", "[", "]"}
    return (before[0], here[0]) in _BORDERS or before[0] in alone or here[0] in alone


def _chunk_ends(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether a chunk, if there is one, ends between two tags (prefix, type)."""
    if before[0] in ("O", "."):
        return False
    return here[0] == "O" or before[1] != here[1] or _border(before, here)


def _chunk_starts(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether a chunk starts at the second of two tags (prefix, type)."""
    if here[0] in ("O", "."):
        return False
    return before[0] == "O" or before[1] != here[1] or _border(before, here)
