"""All measures of all levels, as text or numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from hscrf.errors import several
from hscrf.metrics.cells import level_names, pairs_of
from hscrf.metrics.counts import count_all, report_of

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
    result = report_of(count_all(pairs, tolerance, ignore), level_names(pairs))
    return result if output_dict else report_text(result, len(pairs), digits)


def report_text(result: dict[str, Any], total: int, digits: int = 3) -> str:
    """The numbers of a report as text; ``total`` is the number of sequences."""
    blocks = [_level_text(name, numbers, total, digits) for name, numbers in result["levels"].items()]
    joint, exact = (_digits(result[key], digits) for key in ("joint_accuracy", "exact_match"))
    steps, sequences = several(result["steps"], "step"), several(result["sequences"], "sequence")
    last = f"all levels right: {joint} of {steps}, {exact} of {sequences}"
    return "\n\n".join([*blocks, last])


def _level_text(name: str, numbers: dict[str, Any], total: int, digits: int) -> str:
    lines = [f"{name}: accuracy {_digits(numbers['accuracy'], digits)} of {several(numbers['steps'], 'step')}"]
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
