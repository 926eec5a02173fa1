"""All measures of labels beyond memory: counted for each file, added, and divided at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hscrf.metrics.cells import Cells, Pairs, cells_of, is_known, known_cells, level_names, ratio
from hscrf.metrics.matching import edit_scores, score_boundaries, score_overlaps, score_segments
from hscrf.metrics.measures import right_sequences, tag_accuracy
from hscrf.metrics.reports import rounded, segment_numbers, whole_percent
from hscrf.metrics.scores import Score, SegmentScores, total_of
from hscrf.metrics.segmentation import OVERLAPS

ALL = "all levels"  # the name of the joint count
IGNORED = ("O",)  # labels that are not segments
Counts = Counter[tuple[Any, ...]]


def count_right(pairs: Pairs) -> Counts:
    """Known and right steps by level, and at all levels at once."""
    levels = {name: cells_of(pairs, name) for name in level_names(pairs)}
    known = {name: cells.true >= 0 for name, cells in levels.items()}
    right = {name: known[name] & (cells.true == cells.pred) for name, cells in levels.items()}
    known[ALL] = np.logical_and.reduce(list(known.values()))
    right[ALL] = np.logical_and.reduce(list(right.values()))
    counts: Counts = Counter()
    for what, found in (("known", known), ("right", right)):
        counts.update({(what, name): int(where.sum()) for name, where in found.items()})
    return counts


def _count_classes(cells: Cells, level: str) -> Counts:
    """Known and right steps of each true class."""
    counts: Counts = Counter()
    for what, where in (("class steps", cells.true >= 0), ("class right", cells.true == cells.pred)):
        found = np.bincount(cells.true[where & (cells.true >= 0)], minlength=len(cells.names)).tolist()
        counts.update({(what, level, name): count for name, count in zip(cells.names, found, strict=True) if count})
    return counts


def count_all(pairs: Pairs, tolerance: int = 0) -> Counts:
    """All counts of some sequences that :func:`report_of` needs; counts of several files can be added."""
    names = level_names(pairs)
    counts = count_right(pairs)
    for name in names:
        counts.update(_count_classes(cells_of(pairs, name), name))
        counts.update(_count_segments(pairs, name, tolerance))
    whole = [pair for pair in pairs if all(is_known(pair[0], name) for name in names)]
    exact = np.all([right_sequences(known_cells(whole, name)) for name in names], axis=0)
    counts.update({("sequences", ALL): len(whole), ("exact", ALL): int(exact.sum()), ("total",): len(pairs)})
    return counts


def _count_segments(pairs: Pairs, level: str, tolerance: int) -> Counts:
    """Segments, tags and boundaries of the sequences whose level is completely known."""
    known = [pair for pair in pairs if is_known(pair[0], level)]
    inside = known_cells(known, level)
    steps = inside.true.size
    ends = sum(int(side.sum()) for side in (inside.true_ends, inside.pred_ends)) - 2 * len(known)
    lasting = not all(labels.ends[labels.topology.level(level)].all() for pair in known for labels in pair)
    counts: Counts = Counter({("sequences", level): len(known), ("lasting", level): int(lasting)})
    if steps:
        counts["tags", level] = round(tag_accuracy(inside) * steps)
        counts["matched", level] = round(score_boundaries(inside, tolerance) * ends / 2)
    counts.update({("inside", level): steps, ("boundaries", level): ends})
    counts.update(_count_scores(score_segments(inside, IGNORED), level))
    for overlap in OVERLAPS:
        counts["overlapping", level, overlap] = score_overlaps(inside, overlap, IGNORED).correct
    edits: Any = sum(edit_scores(inside, IGNORED))  # not an integer, unlike the counts
    counts["edit", level] = edits
    return counts


def _count_scores(scores: SegmentScores, level: str) -> Counts:
    counts: Counts = Counter()
    for name, score in scores.per_label.items():
        counts["correct", level, name] = score.correct
        counts["predicted", level, name] = score.predicted
        counts["support", level, name] = score.support
    return counts


def report_of(counts: Counts, levels: Sequence[str]) -> dict[str, Any]:
    """The numbers of :func:`hscrf.metrics.report`, from counts."""
    return {
        "levels": {level: _level_report(counts, level) for level in levels},
        "joint_accuracy": _share(counts["right", ALL], counts["known", ALL]),
        "exact_match": _share(counts["exact", ALL], counts["sequences", ALL]),
        "steps": counts["known", ALL],
        "sequences": counts["sequences", ALL],
    }


def _level_report(counts: Counts, level: str) -> dict[str, Any]:
    names = [key[2] for key in counts if key[:2] == ("support", level)]
    kinds = ("correct", "predicted", "support")
    scores = {name: Score(*(counts[kind, level, name] for kind in kinds)) for name in names}
    lasting, ends, total = bool(counts["lasting", level]), counts["boundaries", level], total_of(scores)
    shares = [
        counts["class right", level, key[2]] / count
        for key, count in counts.items()
        if key[:2] == ("class steps", level) and count
    ]
    return {
        "accuracy": _share(counts["right", level], counts["known", level]),
        "class_accuracy": rounded(float(np.mean(shares)) if shares else None),
        "steps": counts["known", level],
        "sequences": counts["sequences", level],
        **segment_numbers(total),
        "tag_accuracy": _share(counts["tags", level], counts["inside", level]) if lasting else None,
        "boundary_f1": (ratio(2 * counts["matched", level], ends) if ends else 1.0) if lasting else None,
        "overlap_f1": {
            whole_percent(k): ratio(2 * counts["overlapping", level, k], total.predicted + total.support)
            for k in OVERLAPS
        }
        if lasting
        else None,
        "edit_score": rounded(_share(counts["edit", level], counts["sequences", level])) if lasting else None,
    }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
