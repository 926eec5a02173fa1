"""Open longest durations as plain tables: an engine for the same model with durations up to the longest sequence.

A segment of l > L steps scores ``duration[L - 1] + segment[t, L - 1] + (l - L) * tail``. Written out for all lengths
this is a table of durations like any other. It costs as much as the longest sequence is long, not as L; it serves the
reference, and the core where the core has no recursion for the tail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations
from hscrf.potentials import Arrays, explicit_lengths
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.engine.choice import Engine


class DurationRows(NamedTuple):
    """How the durations of one level are written out: rows of tables for lengths 1 .. R."""

    source: Ints  # (R, S) the length whose score a length has
    possible: NDArray[np.bool_]  # (R, S) False: longer than the tables of a state that is not open
    beyond: Floats  # (R, S) steps beyond L

    @classmethod
    def of(cls, topology: Topology, d: int, values: Arrays, longest: int) -> DurationRows:
        """Those of level d."""
        shapes = {key: table.shape for key, table in values.items()}
        limit, length = explicit_lengths(topology, d, shapes), np.arange(1, longest + 1)[:, None]
        source = np.minimum(length, limit)
        return cls(source, (length == source) | topology.open_duration[d], np.maximum(length - limit, 0).astype(float))

    def table(self, given: Floats) -> Floats:
        """A table (..., L, S) of scores by length, for all lengths (..., R, S)."""
        found = given[..., self.source - 1, np.arange(given.shape[-1])]
        return np.where(self.possible, found, -np.inf)

    def folded(self, counts: Floats, like: Floats) -> Floats:
        """Counts of the input of :meth:`table`, from counts of its output."""
        found = np.zeros_like(like)
        for length in range(self.source.shape[0]):
            for s in np.flatnonzero(self.possible[length]):
                found[..., self.source[length, s] - 1, s] += counts[..., length, s]
        return found


def has_recursion(topology: Topology, values: Arrays) -> bool:
    """Whether the core has a recursion for the tails: only the bottom is open, and L is not below its shortest."""
    bottom = topology.depth - 1
    if topology.open_levels != (bottom,):
        return False
    longest = explicit_lengths(topology, bottom, {key: table.shape for key, table in values.items()})
    return bool((topology.min_duration[bottom] <= longest)[topology.open_duration[bottom]].all())


class Lengthened:
    """The engine of a topology with open durations, by an engine of the same topology without them.

    The methods are those of :class:`hscrf.engine.Batch`. ``core`` has a recursion for the tail of some topologies
    (:func:`has_recursion`), at a cost that grows with L. Posteriors of all segments need the tables even so.
    """

    def __init__(
        self,
        engine: Callable[[Topology, Ints, Evidence | None], Engine],
        topology: Topology,
        offsets: Ints,
        evidence: Evidence | None,
        core: Engine | None = None,
    ) -> None:
        self.topology, self.core = topology, core
        self.longest = int(np.diff(offsets).max(initial=1))
        plain = topology.with_fields(
            max_duration=tuple(topology.longest_legal(d) for d in range(topology.depth)),
            open_duration=tuple(np.zeros_like(row) for row in topology.open_duration),
        )
        self.engine = engine(plain, offsets, evidence)

    def log_partition(self, values: Arrays) -> Floats:
        """Log Z (n,) of each sequence."""
        return self._engine(values).log_partition(self._given(values))

    def expectations(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> Expectations:
        """Log Z of each sequence, and the weighted counts and posteriors of all."""
        if not explicit and self._engine(values) is self.core:
            return self.core.expectations(values, weights)
        found = self.engine.expectations(self._written(values), weights, explicit)
        counts = dict(found.counts)
        for d in self.topology.open_levels:
            written = DurationRows.of(self.topology, d, values, self.longest)
            by_length = counts.pop(("duration", d))
            if ("tail", d) in values:
                counts["tail", d] = (by_length * written.beyond).sum(axis=0)
            if ("duration", d) in values:
                counts["duration", d] = written.folded(by_length, values["duration", d])
            if ("segment", d) in values:
                counts["segment", d] = written.folded(counts["segment", d], values["segment", d])
        return found._replace(counts=counts)

    def best(self, values: Arrays) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (D, N) of the best configuration of each sequence, and its score (n,)."""
        return self._engine(values).best(self._given(values))

    def k_best(self, values: Arrays, k: int) -> list[tuple[float, NDArray[np.int32], NDArray[np.int8]]]:
        """The k best configurations of a single sequence, fewer if there are fewer: score, states and ends (D, N)."""
        return self._engine(values).k_best(self._given(values), k)

    def draw(
        self, values: Arrays, draws: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (draws, D, N) of exact samples from the posterior of each sequence, and log Z (n,)."""
        return self._engine(values).draw(self._given(values), draws, rng)

    def _engine(self, values: Arrays) -> Engine:
        """The core, if it has a recursion for these tails."""
        return self.core if self.core is not None and has_recursion(self.topology, values) else self.engine

    def _given(self, values: Arrays) -> Arrays:
        return values if self._engine(values) is self.core else self._written(values)

    def _written(self, values: Arrays) -> Arrays:
        """The values without tails, with durations of all lengths."""
        found = {key: table for key, table in values.items() if key[0] != "tail"}
        for d in self.topology.open_levels:
            written, none = DurationRows.of(self.topology, d, values, self.longest), np.zeros(self.topology.n_states[d])
            given = values.get(("duration", d))
            table = np.zeros_like(written.beyond) if given is None else written.table(given)
            per_step = np.broadcast_to(values.get(("tail", d), none), table.shape)
            found["duration", d] = table + np.multiply(
                written.beyond, per_step, where=written.beyond > 0, out=np.zeros_like(table)
            )
            if ("segment", d) in values:
                found["segment", d] = written.table(values["segment", d])
        return found
