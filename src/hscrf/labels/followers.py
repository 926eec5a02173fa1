"""What follows a filler, and whether it depends on what came before it: the rule of ``fillers="auto"``.

A filler that remembers the state before it costs hidden states. It pays where that state says much about the one after
the filler, as in author names: after ``forename O`` comes a surname. In chunks of sentences it says little. The measure
is the mutual information of the state before a filler and what comes after it, given the parent, from the known labels.
It is stated in nats for each run of equal states of the level, fillers and others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.fillers import usual_fillers
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.topology import Topology

WORTH = 0.05  # nats a run from which memory pays: author names have 0.2 or more, citations and chunks 0.02 or less
BORDER = -1  # before or after a filler that is the first or the last child
UNKNOWN = -2  # an unknown neighbour

Key = tuple[Any, Any, Any, Any]  # filler, parent, state before and state after; None for a border


class FillerNeighbours:
    """Counts of what comes before and after fillers named "O", part by part of the data.

    Only fillers with known neighbours count; a missing label or border leaves them out. The counts are whole numbers, so
    parts that are counted apart and merged give exactly what one pass gives.

    >>> columns = [{"part": ["a", "O", "a"]}, {"part": ["b", "O", "b"]}]
    >>> topology = Topology({"part": ["a", "b", "O"]})
    >>> found = FillerNeighbours()
    >>> found.update([Labels.from_columns(topology, row) for row in columns * 10])
    >>> round(found.information("part"), 2), found.worth_it(topology)
    (0.22, {'part': ['O']})
    """

    def __init__(self) -> None:
        self.counts: dict[str, Counter[Key]] = {}
        self.runs: Counter[str] = Counter()  # known runs of equal states of levels with fillers

    def update(self, labels: Sequence[Labels]) -> None:
        """Count the fillers of one more part of the data."""
        found = usual_fillers(labels[0].topology) if labels else {}
        if not found:
            return
        topology, known = labels[0].topology, pack_labels(labels)
        parents_end = np.zeros(known.offsets[-1], dtype=np.int8)
        parents_end[known.offsets[1:] - 1] = 1
        for d, level in enumerate(topology.levels[1:], start=1):
            if level in found:
                self._count(topology, d, known.states[d - 1 : d + 1], parents_end, found[level][0])
            ends = np.where(known.ends[d] == WITH_PARENT, parents_end, known.ends[d])
            parents_end = np.where(parents_end == 1, parents_end, ends)

    def merge(self, other: FillerNeighbours) -> None:
        """Add the counts of another part of the data."""
        for level, counts in other.counts.items():
            self.counts.setdefault(level, Counter()).update(counts)
        self.runs.update(other.runs)

    def information(self, level: str) -> float:
        """Nats, for each run of the level, that the state before a filler tells about what comes after it.

        Chance gives independent neighbours some information, too: half a degree of freedom over all runs. That is
        subtracted.
        """
        tables: dict[tuple[Any, Any], Counter[tuple[Any, Any]]] = {}
        for (filler, parent, *pair), n in self.counts.get(level, Counter()).items():
            tables.setdefault((filler, parent), Counter())[tuple(pair)] += n
        return sum(map(_surplus, tables.values())) / max(self.runs[level], 1)

    def worth_it(self, topology: Topology) -> dict[str, list[Any]]:
        """The fillers of a topology for which memory pays, by level."""
        return {
            level: names for level, names in usual_fillers(topology).items() if self.information(level) >= WORTH
        }

    def _count(
        self, topology: Topology, d: int, states: NDArray[np.int32], parents_end: NDArray[np.int8], filler: Any
    ) -> None:
        """Count the runs of one level; ``states`` (2, N) are those of the parents and its own."""
        (parents, own), level = states, topology.levels[d]
        start = np.flatnonzero(np.append(True, (own[1:] != own[:-1]) | (parents_end[:-1] != 0)))
        of_run = own[start]
        between = parents_end[start[1:] - 1]  # whether the parent ends before each run but the first
        left = np.append(BORDER, neighbours(of_run[:-1], between))
        right = np.append(neighbours(of_run[1:], between), BORDER)
        self.runs[level] += int((of_run >= 0).sum())
        here = (of_run == topology.states[d].index(filler)) & (left != UNKNOWN) & (right != UNKNOWN)
        keys = np.stack([parents[start], left, right])[:, here]
        above, names = (*topology.states[d - 1], None), (*topology.states[d], None)  # the last one: of -1
        found, counts = np.unique(keys, axis=1, return_counts=True)
        counted = self.counts.setdefault(level, Counter())
        for (parent, one, other), n in zip(found.T.tolist(), counts.tolist(), strict=True):
            counted[filler, above[parent], names[one], names[other]] += n


def neighbours(states: Ints, parents_end: NDArray[np.int8]) -> Ints:
    """The states of neighbouring runs, by whether the parent ends between the two: 1, 0, or less if unknown."""
    return np.where(parents_end == 1, BORDER, np.where((parents_end == 0) & (states >= 0), states, UNKNOWN))


def _surplus(pairs: Counter[tuple[Any, Any]]) -> float:
    """The mutual information of pairs in nats, times their number, less what chance gives."""
    before, after = Counter[Any](), Counter[Any]()
    for (one, other), n in pairs.items():
        before[one] += n
        after[other] += n
    total = sum(before.values())
    found = sum(n * np.log(n * total / (before[one] * after[other])) for (one, other), n in pairs.items())
    return float(found) - (len(before) - 1) * (len(after) - 1) / 2
