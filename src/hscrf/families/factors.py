"""Weights of a factor, spread over combinations of states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.features.blocks import Block
from hscrf.features.bounds import check_inside, check_key, check_same, check_states, table_shape
from hscrf.features.specifications import CellSpecification
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations
from hscrf.potentials import FAMILY, Key
from hscrf.topology import Topology

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class FactorBlock(Block):
    """Weights of a factor, spread over an array with more cells: its cell c has the score of the factor's index[c].

    The factor is one level of a DynamicCRF, or two, and the array is that of their product. A factor that is the
    same at every time is repeated where the array has a time axis.
    """

    factor: Block
    key: Key
    shape: tuple[int, ...]
    index: Ints  # (cells,)
    levels: tuple[str, ...]
    states: tuple[str, ...]  # of the factor

    @property
    def timed(self) -> bool:  # type: ignore[override]
        """Whether the array has a time axis."""
        return self.factor.timed or self.key[0] not in FAMILY

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of weights."""
        return self.factor.size

    @cached_property
    def members(self) -> csr_matrix:
        """Sparse (cells, factor's cells): which cells a factor's cell is spread over."""
        from scipy.sparse import csr_matrix

        cells = self.index.size
        width = int(np.prod(self.factor.shape))
        return csr_matrix((np.ones(cells), self.index, np.arange(cells + 1)), shape=(cells, width))

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        """Add the scores of the factor to all combinations."""
        steps = observations.steps if self.factor.timed else 1
        scores = np.zeros((steps, *self.factor.shape) if self.factor.timed else self.factor.shape)
        self.factor.add(weights, observations, scores, factor)
        flat = out.reshape(len(out), -1)
        flat += scores.reshape(steps, -1)[:, self.index]

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        """Add the gradient: counts of combinations, summed over those with the same states of the factor."""
        flat = counts.reshape(len(counts), -1)
        if not self.factor.timed:
            flat = flat.sum(axis=0, keepdims=True)
        shape = (len(flat), *self.factor.shape) if self.factor.timed else self.factor.shape
        self.factor.pull((flat @ self.members).reshape(shape), observations, gradient, factor)

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        """Raise a ``ValueError`` unless the factor and its states fit the topology."""
        check_key(self.key, topology)
        if isinstance(self.factor, FactorBlock):
            raise ValueError("factor is a FactorBlock, expected another block")
        check_same("factor.key", self.factor.key, self.key)
        check_states("states", len(self.states))
        try:
            self.factor.check(self._own_topology(), names, columns)
        except ValueError as error:
            raise ValueError(f"factor: {error}") from None
        step = table_shape(topology, self.key)
        check_same("shape", self.shape, step if self.timed else (1, *step))
        check_same("the size of index", self.index.size, math.prod(step))
        check_inside("index", self.index, math.prod(self.factor.shape))

    def _own_topology(self) -> Topology:
        """The factor's states alone, at the level of its key."""
        at_root = self.key[0] not in FAMILY and self.key[1] == 0
        return Topology({"step": ["step"]}, root=self.states) if at_root else Topology({"factor": self.states})

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        """Return for each weight the feature's name and the place in the factor's array."""
        return self.factor.describe(encoder)

    def locate(self, topology: Topology, place: tuple[int, ...]) -> tuple[str, str, str]:
        """Return level, part and states of a place by name."""
        part = self.key[0] if len(self.levels) == 1 else "pair"
        own = place[1:] if part in FAMILY else place  # the first is the root
        return " & ".join(self.levels), part, " > ".join(str(self.states[s]) for s in own)


@dataclass(frozen=True, repr=False)
class Pair(CellSpecification):
    """Weights for the labels of two levels at the same step.

    Parameters
    ----------
    level, other : str
        The two levels.
    observed : bool
        Whether to combine the labels with the features of the step.
    only, without : str
        Prefixes of the names of features to take, or to leave out.
    penalty : float or "length"
        A factor of c1 and c2; "length" is the mean length of the level's segments in training.
    """

    other: str
    observed: bool = False
    part: ClassVar[str] = "token"

    @property
    def levels(self) -> tuple[str, ...]:
        """The two levels."""
        return (self.level, self.other)
