"""The seam of the library: packed log-potentials of many sequences in, log Z of each and expected counts out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine.choice import Engine, make_engine
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations
from hscrf.fillers import expanded
from hscrf.potentials import Arrays
from hscrf.topology import Topology


class Batch:
    """Sequences of one topology, one after the other on a packed time axis of N steps.

    Sequence k has the steps ``offsets[k] .. offsets[k + 1]``. ``evidence`` is the known labels of all of them, closed
    once, or None. The methods take ``values``: a dict from (part, level index) to an array of log-potentials, shaped
    as in :class:`hscrf.Potentials` with T = N. Tables of durations, and tables whose time axis has length 1, are
    shared by all steps of all sequences.

    ``expectations`` promises: ``log_z`` (n,) of each sequence; ``counts`` of the same shapes as the values, the
    gradient of ``(weights * log_z).sum()`` with respect to them. The weights may be any finite numbers, also negative.
    A sequence without any configuration has log Z = -inf and no counts. The results of a sequence do not depend
    on its neighbours. A sequence that scaled arithmetic cannot hold is computed alone, in logarithms.

    Where states of the topology remember (:mod:`hscrf.fillers`), arrays, evidence and the states that come out are of
    its hidden states.

    Two engines can do the work, see :mod:`hscrf.engine.choice`; one is chosen when the batch is first used. A batch
    pickles without what its engine has prepared.

    >>> from hscrf import Topology
    >>> batch = Batch(Topology({"tag": ["N", "V"]}), np.array([0, 3, 5]))
    >>> np.exp(batch.log_partition({("token", 1): np.zeros((5, 2))})).round(6).tolist()
    [8.0, 4.0]
    """

    def __init__(self, topology: Topology, offsets: Ints, evidence: Evidence | None = None) -> None:
        self.topology = expanded(topology)
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.evidence = evidence
        self._engine: Engine | None = None

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None}

    @property
    def engine(self) -> Engine:
        """The engine in use."""
        if self._engine is None:
            self._engine = make_engine(self.topology, self.offsets, self.evidence)
        return self._engine

    def log_partition(self, values: Arrays) -> Floats:
        """Log Z (n,) of each sequence."""
        return self.engine.log_partition(values)

    def expectations(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> Expectations:
        """Return log Z of each sequence, and the weighted sums of counts and posteriors.

        ``explicit`` names the levels whose segment posteriors are returned.
        """
        return self.engine.expectations(values, weights, explicit)

    def best(self, values: Arrays) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (D, N) of the best configuration of each sequence, and its score (n,)."""
        return self.engine.best(values)

    def k_best(self, values: Arrays, k: int) -> list[tuple[float, NDArray[np.int32], NDArray[np.int8]]]:
        """The k best configurations of a single sequence, fewer if there are fewer: score, states and ends (D, N)."""
        return self.engine.k_best(values, k)

    def draw(
        self, values: Arrays, draws: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (draws, D, N) of exact samples from the posterior of each sequence, and log Z (n,)."""
        return self.engine.draw(values, draws, rng)
