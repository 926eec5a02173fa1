"""How long segments are: the known ones of packed labels, and their mean by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels


class SegmentLengths:
    """Steps and number of the known segments of each level, counted part by part.

    Only segments whose first and last steps are known count. The counts are whole numbers, so parts that are counted
    apart and merged give exactly what one pass gives.

    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
    >>> columns = {"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}
    >>> lengths = SegmentLengths()
    >>> lengths.update([Labels.from_columns(topology, columns)])
    >>> lengths.means()
    {'root': 3.0, 'phrase': 1.5, 'tag': 1.0}
    """

    def __init__(self, counts: Mapping[str, Sequence[int]] | None = None) -> None:
        self.counts: dict[str, list[int]] = {level: list(pair) for level, pair in (counts or {}).items()}

    def update(self, labels: Sequence[Labels]) -> None:
        """Count the segments of one more part of the data."""
        if not labels:
            return
        known = pack_labels(labels)
        for level, ends in zip(labels[0].topology.levels, known.ends, strict=True):
            found = known_lengths(ends, known.offsets)
            self._add(level, int(found.sum()), found.size)

    def merge(self, other: SegmentLengths) -> None:
        """Add the counts of another part of the data."""
        for level, (steps, segments) in other.counts.items():
            self._add(level, steps, segments)

    def means(self) -> dict[str, float]:
        """The mean length of the known segments of each level; 1 where none is known."""
        return {level: steps / segments if segments else 1.0 for level, (steps, segments) in self.counts.items()}

    def _add(self, level: str, steps: int, segments: int) -> None:
        held = self.counts.setdefault(level, [0, 0])
        held[0] += steps
        held[1] += segments


def known_lengths(ends: NDArray[Any], offsets: Ints) -> Ints:
    """Lengths of the segments of one level whose borders and inside are known, in packed sequences.

    An end that depends on the parent counts as no end: a run of one filler is one segment.
    """
    ends = np.where(ends == WITH_PARENT, np.int8(0), ends)
    ends[offsets[1:] - 1] = 1  # a sequence ends all its segments
    stop = np.flatnonzero(ends == 1) + 1
    start = np.append(0, stop[:-1])
    doubts = np.append(0, np.cumsum(ends < 0))
    found: Ints = (stop - start)[doubts[start] == doubts[stop]]
    return found
