"""All measures of labels beyond memory: counted file by file, added, and turned into ratios in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hscrf.metrics.cells import Pairs, cells_of, is_known, known_cells, level_names, ratio
from hscrf.metrics.measures import Score, right_sequences, score_boundaries, score_segments, tag_accuracy, total_of

ALL = "all levels"  # at once
IGNORED = ("O",)  # no segments
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


def count_all(pairs: Pairs, tolerance: int = 0) -> Counts:
    """Everything that :func:`report_of` needs to know of some sequences; counts of several can be added."""
    names = level_names(pairs)
    counts = count_right(pairs)
    for name in names:
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
    for name, score in score_segments(inside, IGNORED).per_label.items():
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
    lasting, ends = bool(counts["lasting", level]), counts["boundaries", level]
    return {
        "accuracy": _share(counts["right", level], counts["known", level]),
        "steps": counts["known", level],
        "sequences": counts["sequences", level],
        "segments": Score.to_dict(total_of(scores)),
        "per_label": {str(name): score.to_dict() for name, score in scores.items()},
        "tag_accuracy": _share(counts["tags", level], counts["inside", level]) if lasting else None,
        "boundary_f1": (ratio(2 * counts["matched", level], ends) if ends else 1.0) if lasting else None,
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
