"""All measures of all levels, as text or numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np

from hscrf.errors import several
from hscrf.metrics.cells import Pairs, cells_of, is_known, known_cells, level_names, pairs_of, unzip
from hscrf.metrics.matching import edit_scores, score_boundaries, score_overlaps, score_segments
from hscrf.metrics.measures import exact_match, joint_accuracy, step_accuracy, tag_accuracy
from hscrf.metrics.scores import Score, SegmentScores
from hscrf.metrics.segmentation import OVERLAPS, class_mean

UNSCORED = "(no sequence is fully labelled: segments are not scored)"
SINGLE = "(every segment has one step: segment F1 is the accuracy of steps)"


@overload
def report(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    ignore: Iterable[Any] = ...,
    tolerance: int = ...,
    digits: int = ...,
    output_dict: Literal[False] = False,
    scheme: Any = ...,
) -> str: ...
@overload
def report(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    ignore: Iterable[Any] = ...,
    tolerance: int = ...,
    digits: int = ...,
    output_dict: Literal[True],
    scheme: Any = ...,
) -> dict[str, Any]: ...
def report(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    ignore: Iterable[Any] = ("O",),
    tolerance: int = 0,
    digits: int = 3,
    output_dict: bool = False,
    scheme: Any = "auto",
) -> str | dict[str, Any]:
    """Return all measures of every level as text, or as plain numbers for JSON.

    Accuracy is the share of steps with the right state. A level of longer segments has four more measures. The share of
    right BIO tags, which also mark where segments begin, is conlleval's accuracy. The others are the F1 of its
    boundaries, the F1 of segments that overlap by 10, 25 and 50 %, and the edit score. Micro averages count segments;
    macro averages are means over labels. Measures of segments count only sequences whose level is completely known in
    the truth.

    Parameters
    ----------
    y_true, y_pred : sequences of labels
        The truth and the prediction, in any form that ``fit`` takes.
    ignore : iterable of labels
        Segments of these labels are left out of the measures of segments.
    tolerance : int
        The number of steps by which a boundary may be wrong in the F1 of boundaries.
    digits : int
        Digits after the decimal point in the text.
    output_dict : bool
        Whether to return a dict of numbers instead of text.
    scheme : str or dict
        How columns are written.

    Returns
    -------
    str or dict

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]})
    >>> truth = [Labels.from_tree(topology, [("NP", ["N", "N"]), ("VP", ["V"])])]
    >>> guess = [Labels.from_tree(topology, [("NP", ["N"]), ("VP", ["V", "V"])])]
    >>> print(report(truth, guess))
    phrase: accuracy 0.667 of 3 steps (states; 0.333 of the BIO tags, as conlleval counts)
    <BLANKLINE>
                  precision    recall  f1-score   support
               NP     0.000     0.000     0.000         1
               VP     0.000     0.000     0.000         1
        micro avg     0.000     0.000     0.000         2
        macro avg     0.000     0.000     0.000         2
      boundary F1                         0.000
      F1@10/25/50     1.000     1.000     1.000
       edit score                         1.000
    <BLANKLINE>
    tag: accuracy 0.667 of 3 steps
    (every segment has one step: segment F1 is the accuracy of steps)
    <BLANKLINE>
                  precision    recall  f1-score   support
                N     1.000     0.500     0.667         2
                V     0.500     1.000     0.667         1
        micro avg     0.667     0.667     0.667         3
        macro avg     0.750     0.750     0.667         3
    <BLANKLINE>
    all levels right: 0.667 of 3 steps, 0.000 of 1 sequence
    """
    pairs = pairs_of(y_true, y_pred, scheme)
    names = level_names(pairs)
    skipped = tuple(ignore)  # an iterator is read once
    levels = {name: _level_report(pairs, name, skipped, tolerance) for name in names}
    whole = [pair for pair in pairs if all(is_known(pair[0], name) for name in names)]
    result = {
        "levels": levels,
        "joint_accuracy": _number(joint_accuracy(*unzip(pairs))),
        "exact_match": _number(exact_match(*unzip(whole))),
        "steps": _jointly_known(pairs, names),
        "sequences": len(whole),
    }
    return result if output_dict else report_text(result, len(pairs), digits)


def _level_report(pairs: Pairs, level: str, ignore: tuple[Any, ...], tolerance: int) -> dict[str, Any]:
    """The measures of one level as plain numbers, None where they are not defined."""
    cells = cells_of(pairs, level)
    known = [pair for pair in pairs if is_known(pair[0], level)]
    inside = known_cells(known, level)
    scores = score_segments(inside, ignore)
    unit = all(labels.ends[labels.topology.level(level)].all() for pair in known for labels in pair)
    return {
        "accuracy": _number(step_accuracy(cells)),
        "class_accuracy": rounded(_number(class_mean(cells))),
        "steps": int((cells.true >= 0).sum()),
        "sequences": len(known),
        **segment_numbers(scores),
        "tag_accuracy": None if unit else _number(tag_accuracy(inside)),
        "boundary_f1": None if unit else score_boundaries(inside, tolerance),
        "overlap_f1": None if unit else {whole_percent(k): score_overlaps(inside, k, ignore).f1 for k in OVERLAPS},
        "edit_score": None if unit else rounded(_number(_mean(edit_scores(inside, ignore)))),
    }


def segment_numbers(scores: SegmentScores) -> dict[str, Any]:
    """Micro and macro averages and the scores of labels as plain numbers."""
    means = {"precision": scores.macro_precision, "recall": scores.macro_recall, "f1": scores.macro_f1}
    macro = {name: rounded(value) for name, value in means.items()}
    return {
        "segments": Score.to_dict(scores),
        "macro": macro,
        "per_label": {str(name): score.to_dict() for name, score in scores.per_label.items()},
    }


def rounded(mean: float | None) -> float | None:
    """A mean rounded, because its last digits depend on the order of summation."""
    return None if mean is None else round(mean, 12)


def whole_percent(share: float) -> str:
    """A share as a whole number of percent."""
    return f"{100 * share:.0f}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _jointly_known(pairs: Pairs, names: list[str]) -> int:
    """The number of steps that are known at all levels."""
    rows = ([one.states[one.topology.level(name)] for name in names] for one, _ in pairs)
    return sum(int((np.array(states) >= 0).all(axis=0).sum()) for states in rows)


def _number(value: float) -> float | None:
    """A number for JSON: None for nan."""
    return None if np.isnan(value) else value


def report_text(result: dict[str, Any], total: int, digits: int = 3) -> str:
    """The numbers of a report as text; ``total`` is the number of sequences."""
    blocks = [_level_text(name, numbers, total, digits) for name, numbers in result["levels"].items()]
    joint, exact = (_digits(result[key], digits) for key in ("joint_accuracy", "exact_match"))
    last = (
        f"all levels right: {joint} of {result['steps']} steps, {exact} of {several(result['sequences'], 'sequence')}"
    )
    return "\n\n".join([*blocks, last])


def _level_text(name: str, numbers: dict[str, Any], total: int, digits: int) -> str:
    lines = [f"{name}: accuracy {_digits(numbers['accuracy'], digits)} of {numbers['steps']} steps"]
    if numbers["tag_accuracy"] is not None:
        lines[0] += f" (states; {_digits(numbers['tag_accuracy'], digits)} of the BIO tags, as conlleval counts)"
    if total and not numbers["sequences"]:
        return "\n".join([*lines, UNSCORED])
    if numbers["sequences"] < total:
        lines.append(f"(segments of the {numbers['sequences']} of {total} sequences that are fully labelled)")
    if numbers["tag_accuracy"] is None and numbers["steps"]:
        lines.append(SINGLE)
    macro = {**numbers["macro"], "support": numbers["segments"]["support"]}
    rows = {**numbers["per_label"], "micro avg": numbers["segments"], "macro avg": macro}
    overlaps = numbers["overlap_f1"] or {}
    named = f"F1@{'/'.join(overlaps)}"
    width = max(len(row) for row in [*rows, "boundary F1", named]) + 2
    cell = max(10, digits + 5)
    titles = ("precision", "recall", "f1-score", "support")
    lines += ["", " " * width + "".join(f"{title:>{cell}}" for title in titles)]
    for row, score in rows.items():
        ratios = "".join(f"{score[key]:{cell}.{digits}f}" for key in ("precision", "recall", "f1"))
        lines.append(f"{row:>{width}}{ratios}{score['support']:{cell}d}")
    if numbers["boundary_f1"] is not None:
        lines.append(f"{'boundary F1':>{width}}{'':{2 * cell}}{numbers['boundary_f1']:{cell}.{digits}f}")
        lines.append(f"{named:>{width}}" + "".join(f"{value:{cell}.{digits}f}" for value in overlaps.values()))
        lines.append(f"{'edit score':>{width}}{'':{2 * cell}}{_digits(numbers['edit_score'], digits):>{cell}}")
    return "\n".join(lines)


def _digits(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"
