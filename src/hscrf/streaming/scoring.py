"""The log-potentials of one observation, from the weights of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hscrf.arrays import Floats
from hscrf.errors import several
from hscrf.features.blocks import AverageBlock, Block, SegmentBlock
from hscrf.fillers import masked, spread
from hscrf.objective.scorer import Scorer
from hscrf.observations.columns import Table, read_cells
from hscrf.observations.packed import Observations
from hscrf.potentials import Key


class StepScorer:
    """Score observations step by step; scores that do not depend on them are computed once.

    ``constant`` has the parts that are the same at every step, without a time axis. ``durations`` are the tables of
    lengths by level, ``tails`` the scores of steps beyond them. ``limits`` are the longest segments of averages.
    """

    def __init__(self, scorer: Scorer, weights: Floats, encoder: Any) -> None:
        self.encoder = encoder
        self.topology = scorer.topology
        self.moving: list[tuple[Key, Block, Floats, tuple[int, ...]]] = []
        self.constant: dict[Key, Floats] = {}
        self.durations: dict[int, Floats] = {}
        self.limits: dict[int, int] = {}
        self.tails: dict[int, Floats] = {}
        nothing: Any = None  # constant blocks read no observation
        for block, piece in scorer.pieces(weights):
            part, d = block.key
            if isinstance(block, SegmentBlock):
                name = getattr(block.function, "__name__", "a function")
                raise ValueError(f"the feature {name!r} is a function of whole segments, which a stream does not have")
            if isinstance(block, AverageBlock):
                self.limits[d] = min(block.longest, self.limits.get(d, block.longest))
                self.moving.append((("average", d), block.tokens, piece, block.tokens.shape))
            elif block.timed:
                self.moving.append((block.key, block, piece, block.shape))
            else:
                table = np.zeros(block.shape)
                block.add(piece, nothing, table)
                if part in ("duration", "tail"):
                    table, of_level = spread(self.topology, part, d, table), self.durations
                    if part == "tail":
                        of_level = self.tails
                    of_level[d] = of_level.get(d, 0.0) + table
                else:
                    self.constant[block.key] = self.constant.get(block.key, 0.0) + table
        keys = {key for key, *_ in self.moving}
        self.base = {
            key: self.constant.pop(key) for key in keys if key in self.constant
        }  # added to the parts that change
        fixed = masked(self.topology, self._spread(self.constant))
        self.constant = {key: table[0] for key, table in fixed.items() if key not in keys}

    def _spread(self, values: Mapping[Key, Floats]) -> dict[Key, Floats]:
        """Arrays with a place for each hidden copy of a state (:mod:`hscrf.fillers`)."""
        return {(part, d): spread(self.topology, part, d, table) for (part, d), table in values.items()}

    @property
    def keys(self) -> set[Key]:
        """Parts and levels that have a score."""
        return {*self.constant, *(key for key, *_ in self.moving), *(("duration", d) for d in self.durations)}

    def values(self, X: Any) -> tuple[dict[Key, Floats], int]:
        """Return the time-varying scores (steps, ...) and the number of steps, from observations as in training."""
        observations: Observations = self.encoder.pack([X])
        values: dict[Key, Floats] = {}
        for key, block, piece, shape in self.moving:
            if key not in values:
                values[key] = np.zeros((observations.steps, *shape))
                if key in self.base:
                    values[key] += self.base[key]
            block.add(piece, observations, values[key])
        if self.topology.remembers:
            every = masked(self.topology, self._spread(values))
            values = {key: every[key] for key in values}
        return values, observations.steps

    def as_sequence(self, x: Any) -> Any:
        """One observation as a sequence of one step."""
        if hasattr(x, "iloc") and hasattr(x, "columns"):
            return one_row(x)
        if hasattr(x, "to_frame"):  # a row of a DataFrame
            x = x.to_dict()
        if not getattr(self.encoder, "has_columns", False):
            return x if hasattr(x, "tocsr") else [x]
        if not isinstance(x, Mapping) and not self.encoder.texts:
            return one_row(np.atleast_2d(np.asarray(x, dtype=np.float64)))
        cells = self._named_cells(x) if isinstance(x, Mapping) else self._cells_in_order(x)
        return Table({name: read_cells([cell], name, 0) for name, cell in cells.items()})

    def _named_cells(self, x: Mapping[Any, Any]) -> dict[str, Any]:
        """The cells of the model's columns, by name."""
        names, given = self.encoder.given, {str(name): cell for name, cell in x.items()}
        missing, stray = (
            [name for name in one if name not in other] for one, other in ((names, given), (given, names))
        )
        if missing:
            raise ValueError(f"the observation has no column {missing[0]!r}, expected {', '.join(names)}")
        if stray:
            raise ValueError(f"the observation has the column {stray[0]!r}, expected only {', '.join(names)}")
        return {name: given[name] for name in names}

    def _cells_in_order(self, x: Any) -> dict[str, Any]:
        """The cells of a row without names."""
        names = self.encoder.given
        if isinstance(x, str) or not hasattr(x, "__len__"):
            raise ValueError(f"the observation is {x!r}, expected a row of {', '.join(names)}")
        if len(x) != len(names):
            raise ValueError(
                f"the observation has {several(len(x), 'cell')}, expected {len(names)}: {', '.join(names)}"
            )
        return dict(zip(names, x, strict=True))


def one_row(table: Any) -> Any:
    """The table of one observation; raise if it has more rows."""
    if len(table) != 1:
        raise ValueError(f"the observation is a table of {len(table)} rows, expected one: extend() takes several")
    return table
