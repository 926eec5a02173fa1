"""The engine of the compiled core: scaled numbers, and logarithms where these would lose precision.

The recursion itself is in ``core/src``; ``reference`` is the same in NumPy. This module passes arrays and topologies to
it.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf import native
from hscrf.arrays import Floats, Ints
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations
from hscrf.engine.kbest import KBest
from hscrf.engine.stretches import Stretches
from hscrf.engine.tally import COUNTER
from hscrf.potentials import Arrays
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf import _core

FEWEST = 8  # fewest sequences of a batch for which cutting pays


class Compiled:
    """Sequences of one topology; the methods are those of :class:`hscrf.engine.Batch`."""

    has_tails = True  # for topologies for which :func:`hscrf.engine.lengthened.has_recursion` is true

    def __init__(
        self, topology: Topology, offsets: Ints, evidence: Evidence | None = None, fewest: int = FEWEST
    ) -> None:
        self.topology, self.fewest = topology, fewest
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.evidence = evidence
        self._cut: Stretches | None = None
        self._in_logarithms = 0  # the most sequences in one evaluation

    def log_partition(self, values: Arrays) -> Floats:
        """Log Z (n,) of each sequence."""
        log_z, in_logarithms = (self.cut and self.cut.sums(values)) or self.sums(values)
        self._tally(in_logarithms)
        return log_z

    def expectations(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> Expectations:
        """Log Z of each sequence, and the weighted counts and posteriors of all."""
        cut = None if explicit else self.cut
        found, in_logarithms = (cut and cut.counts(values, weights)) or self.counts(values, weights, explicit)
        self._tally(in_logarithms)
        return found

    def _tally(self, in_logarithms: int) -> None:
        """Count an evaluation of all sequences."""
        count = self.offsets.size - 1
        found = min(in_logarithms, count)  # a sequence that was cut may need them in several pieces
        more, self._in_logarithms = max(found - self._in_logarithms, 0), max(found, self._in_logarithms)
        COUNTER.add(count, in_logarithms, more)

    @property
    def cut(self) -> Stretches | None:
        """The sequences, cut where their upper levels are known; None if there are too few."""
        if self.evidence is None or self.offsets.size <= self.fewest:
            return None
        if self._cut is None:
            self._cut = Stretches(self.topology, self.offsets, self.evidence, Compiled)
        return self._cut if self._cut.useful else None

    def sums(self, values: Arrays) -> tuple[Floats, int]:
        """Log Z (n,) of each sequence in one piece, and how many of them needed logarithms."""
        return self._core(values).log_partition(values, self.offsets, self.evidence)

    def counts(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> tuple[Expectations, int]:
        """The expectations of all sequences in one piece, and how many of them needed logarithms."""
        core = self._core(values, explicit or ())
        log_z, counts, state, ending, tables, in_logarithms = core.expectations(
            values, self.offsets, self.evidence, weights, bool(explicit)
        )
        segments = {d: tables.get(d, state[d][:, None]) for d in explicit or ()}
        return Expectations(log_z, counts, state, ending, segments), in_logarithms

    def best(self, values: Arrays) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (D, N) of the best configuration of each sequence, and its score (n,)."""
        return self._core(values).best(values, self.offsets, self.evidence)

    def k_best(self, values: Arrays, k: int) -> list[tuple[float, NDArray[np.int32], NDArray[np.int8]]]:
        """The k best configurations of a single sequence, fewer if there are fewer: score, states and ends (D, N)."""
        segmental = segmental_levels(self.topology, values)
        runs = self._core(values).runs(values, self.offsets, self.evidence)
        return list(islice(KBest(runs, segmental, int(self.offsets[-1])), k))

    def draw(
        self, values: Arrays, draws: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (draws, D, N) of exact samples from the posterior of each sequence, and log Z (n,)."""
        return self._core(values).draw(values, self.offsets, self.evidence, draws, int(rng.integers(2**63)))

    def _core(self, values: Arrays, explicit: Sequence[int] = ()) -> _core.Engine:
        return make_core(self.topology, segmental_levels(self.topology, values, explicit))


def segmental_levels(topology: Topology, values: Arrays, explicit: Sequence[int] = ()) -> tuple[bool, ...]:
    """The levels with tables of segments: the root, requested levels, and those with durations, scores or limits."""
    timed = {d for part, d in values if part in ("duration", "segment")}.union(explicit, (0,))
    levels = range(topology.depth - topology.unit_bottom)
    return (*(d in timed or topology.has_limits(d) for d in levels), *[False] * topology.unit_bottom)


@lru_cache(maxsize=512)  # there is one for each state of a known level, see ``stretches``
def make_core(topology: Topology, segmental: tuple[bool, ...]) -> _core.Engine:
    """The compiled engine of a topology."""
    assert native.core is not None

    def rows(tables: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        return [np.ascontiguousarray(table) for table in tables]

    engine: _core.Engine = native.core.Engine(
        list(topology.n_states),
        rows(topology.children),
        rows(topology.successors),
        rows(topology.min_duration),
        rows(topology.max_duration),
        list(segmental),
        topology.unit_bottom,
        rows(topology.open_duration),
    )
    return engine


atexit.register(make_core.cache_clear)  # nanobind reports engines that are still alive when Python has ended
