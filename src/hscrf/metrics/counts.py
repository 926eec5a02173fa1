"""Counts from which all measures of a report follow; those of several parts of the data can be added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hscrf.metrics.cells import Cells, Pairs, cells_of, is_known, known_cells, level_names, ratio
from hscrf.metrics.matching import count_boundaries, edit_scores, score_overlaps, score_segments
from hscrf.metrics.measures import right_sequences, right_tags
from hscrf.metrics.scores import Score, SegmentScores, total_of
from hscrf.metrics.segmentation import OVERLAPS, class_counts

ALL = "all levels"  # the name of the joint count
Counts = Counter[tuple[Any, ...]]


def count_right(pairs: Pairs) -> Counts:
    """Known and right steps by level, and at all levels at once."""
    return _count_steps({name: cells_of(pairs, name) for name in level_names(pairs)})


def count_all(pairs: Pairs, tolerance: int = 0, ignore: Iterable[Any] = ("O",)) -> Counts:
    """All counts of some sequences that :func:`report_of` needs."""
    if not pairs:
        return Counter()
    levels = {name: cells_of(pairs, name) for name in level_names(pairs)}
    skipped = tuple(ignore)  # an iterator is read once
    counts = _count_steps(levels)
    for name, cells in levels.items():
        for what, found in zip(("class steps", "class right"), class_counts(cells), strict=True):
            steps = zip(cells.names, found.tolist(), strict=True)
            counts.update({(what, name, state): count for state, count in steps if count})
        counts.update(_count_segments(pairs, name, tolerance, skipped))
    whole = [pair for pair in pairs if all(is_known(pair[0], name) for name in levels)]
    exact = np.all([right_sequences(known_cells(whole, name)) for name in levels], axis=0)
    counts.update({("sequences", ALL): len(whole), ("exact", ALL): int(exact.sum()), ("total",): len(pairs)})
    return counts


def _count_steps(levels: Mapping[str, Cells]) -> Counts:
    """Known and right steps of each level, and of all at once."""
    known = {name: cells.true >= 0 for name, cells in levels.items()}
    right = {name: known[name] & (cells.true == cells.pred) for name, cells in levels.items()}
    known[ALL] = np.logical_and.reduce(list(known.values()))
    right[ALL] = np.logical_and.reduce(list(right.values()))
    counts: Counts = Counter()
    for what, found in (("known", known), ("right", right)):
        counts.update({(what, name): int(where.sum()) for name, where in found.items()})
    return counts


def _count_segments(pairs: Pairs, level: str, tolerance: int, ignore: Sequence[Any]) -> Counts:
    """Segments, tags and boundaries of the sequences whose level is completely known."""
    known = [pair for pair in pairs if is_known(pair[0], level)]
    inside = known_cells(known, level)
    lasting = not all(labels.ends[labels.topology.level(level)].all() for pair in known for labels in pair)
    matched, boundaries = count_boundaries(inside, tolerance)
    edits: Any = sum(edit_scores(inside, ignore))  # not an integer, unlike the counts
    counts: Counts = Counter(
        {
            ("sequences", level): len(known),
            ("lasting", level): int(lasting),
            ("inside", level): inside.true.size,
            ("tags", level): int(right_tags(inside).sum()),
            ("matched", level): matched,
            ("boundaries", level): boundaries,
            ("edit", level): edits,
        }
    )
    for name, score in score_segments(inside, ignore).per_label.items():
        counts["correct", level, name] = score.correct
        counts["predicted", level, name] = score.predicted
        counts["support", level, name] = score.support
    for overlap in OVERLAPS:
        counts["overlapping", level, overlap] = score_overlaps(inside, overlap, ignore).correct
    return counts


def report_of(counts: Counts, levels: Sequence[str]) -> dict[str, Any]:
    """The numbers of :func:`hscrf.metrics.report`, None where they are not defined."""
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
    scores = total_of({name: Score(*(counts[kind, level, name] for kind in kinds)) for name in names})
    classes = [key[2] for key in counts if key[:2] == ("class steps", level)]
    shares = [counts["class right", level, name] / counts["class steps", level, name] for name in classes]
    found = {
        "accuracy": _share(counts["right", level], counts["known", level]),
        "class_accuracy": _rounded(float(np.mean(shares)) if shares else None),
        "steps": counts["known", level],
        "sequences": counts["sequences", level],
        **_segment_numbers(scores),
    }
    if not counts["lasting", level]:
        return {**found, **dict.fromkeys(("tag_accuracy", "boundary_f1", "overlap_f1", "edit_score"))}
    total = scores.predicted + scores.support
    return {
        **found,
        "tag_accuracy": _share(counts["tags", level], counts["inside", level]),
        "boundary_f1": _share(2 * counts["matched", level], counts["boundaries", level], empty=1.0),
        "overlap_f1": {f"{100 * k:.0f}": ratio(2 * counts["overlapping", level, k], total) for k in OVERLAPS},
        "edit_score": _rounded(_share(counts["edit", level], counts["sequences", level])),
    }


def _segment_numbers(scores: SegmentScores) -> dict[str, Any]:
    """Micro and macro averages and the scores of labels as plain numbers."""
    macro = {"precision": scores.macro_precision, "recall": scores.macro_recall, "f1": scores.macro_f1}
    return {
        "segments": Score.to_dict(scores),
        "macro": {name: _rounded(value) for name, value in macro.items()},
        "per_label": {str(name): score.to_dict() for name, score in scores.per_label.items()},
    }


def _share(part: float, whole: int, empty: float | None = None) -> float | None:
    return part / whole if whole else empty


def _rounded(mean: float | None) -> float | None:
    """A mean rounded, because its last digits depend on the order of summation."""
    return None if mean is None else round(mean, 12)
