"""The seam of the library: packed log-potentials of many sequences in, log Z of each and expected counts out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine import passes
from hscrf.engine.evidence import Evidence
from hscrf.engine.kernels.arithmetic import LINEAR, LOG, MAX
from hscrf.engine.passes import Expectations
from hscrf.engine.plan import Plan
from hscrf.engine.space import SPACE, New, fresh
from hscrf.engine.walk import walk_back
from hscrf.potentials import Arrays
from hscrf.topology import Topology

UNUSED = np.random.default_rng(0)  # the best is found without chance


class Batch:
    """Sequences of one topology, one after the other on a packed time axis of N steps.

    Sequence k has the steps ``offsets[k] .. offsets[k + 1]``. ``evidence`` is what is known of all of them, closed
    once, or None. The methods take ``values``: a dict from (part, level index) to an array of log-potentials, shaped
    as in :class:`hscrf.Potentials` with T = N. Tables of durations, and tables whose time axis has length 1, are
    shared by all steps of all sequences.

    ``expectations`` promises: ``log_z`` (n,) of each sequence; ``counts`` of the same shapes as the values, the
    gradient of ``(weights * log_z).sum()`` with respect to them. Any finite weights will do, also of both signs.
    A sequence without any configuration has log Z = -inf and no counts. What comes out for a sequence does not depend
    on its neighbours. A sequence that the scaled arithmetic cannot hold is done in logarithms, alone.

    A batch pickles without its plans, which are made when first needed and kept for the shapes they are made for.

    >>> from hscrf import Topology
    >>> batch = Batch(Topology({"tag": ["N", "V"]}), np.array([0, 3, 5]))
    >>> np.exp(batch.log_partition({("token", 1): np.zeros((5, 2))})).round(6).tolist()
    [8.0, 4.0]
    """

    def __init__(self, topology: Topology, offsets: Ints, evidence: Evidence | None = None) -> None:
        self.topology = topology
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.evidence = evidence
        self._plans: dict[Any, Plan] = {}

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_plans": {}}

    def plan(self, values: Arrays, explicit: Sequence[int] = ()) -> Plan:
        """The plan for arrays of these shapes; ``explicit`` names levels that are to have a table of segments."""
        shapes = {key: array.shape for key, array in values.items()}
        signature = (frozenset(shapes.items()), tuple(explicit))
        if signature not in self._plans:
            self._plans[signature] = Plan(self.topology, self.offsets, shapes, self.evidence, explicit)
        return self._plans[signature]

    def log_partition(self, values: Arrays) -> Floats:
        """Log Z (n,) of each sequence."""
        plan = self.plan(values)
        tables, lossy = passes.inside(plan, LINEAR, values, new=SPACE.array)
        if lossy.all():
            return log_partition_in_logs(plan, values)
        log_z = passes.log_z_of(plan, LINEAR, tables[0])
        if lossy.any():
            log_z[lossy] = log_partition_in_logs(*plan.select(np.flatnonzero(lossy), values))
        return log_z

    def expectations(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> Expectations:
        """Log Z of each sequence, and the counts and posteriors of all, each sequence's times its weight.

        ``explicit`` names levels of which tables of segments are wanted; None: no table is.
        """
        plan = self.plan(values, explicit or ())
        found = self._expectations(plan, values, weights, SPACE.array if explicit is None else fresh)
        return found._replace(segments={}) if explicit is None else found

    def _expectations(self, plan: Plan, values: Arrays, weights: Floats | None, new: New) -> Expectations:
        if weights is None or (weights > 0).all():
            return weighted(plan, values, weights, new)
        merged = passes.empty(plan)
        signs = np.sign(weights)
        for sign in np.unique(signs):
            which = np.flatnonzero(signs == sign)
            part, own = plan.select(which, values)
            if sign == 0:
                merged.log_z[which] = log_partition_of(part, own)
            else:
                merge(plan, merged, which, part, weighted(part, own, np.abs(weights[which]), new), sign)
        return merged

    def best(self, values: Arrays) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (D, N) of the best configuration of each sequence, and its score (n,)."""
        (states,), (ends,), score = walk_back(self.plan(values), MAX, values, 1, UNUSED)
        return states, ends, score

    def draw(
        self, values: Arrays, draws: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
        """States and ends (draws, D, N) of exact samples from the posterior of each sequence, and log Z (n,)."""
        return walk_back(self.plan(values), LOG, values, draws, rng)


def log_partition_of(plan: Plan, values: Arrays) -> Floats:
    return Batch(plan.topology, plan.offsets, plan.evidence).log_partition(values)


def log_partition_in_logs(plan: Plan, values: Arrays) -> Floats:
    return passes.log_z_of(plan, LOG, passes.inside(plan, LOG, values, new=SPACE.array)[0][0])


def weighted(plan: Plan, values: Arrays, weights: Floats | None, new: New) -> Expectations:
    """Expectations with positive weights; sequences that LINEAR cannot hold go to LOG, the others stay."""
    result, lossy = passes.outside(plan, LINEAR, values, weights, new)
    if not lossy.any():
        return result
    if lossy.all():
        return passes.outside(plan, LOG, values, weights, new)[0]
    merged = passes.empty(plan)
    for mode, which in ((LINEAR, np.flatnonzero(~lossy)), (LOG, np.flatnonzero(lossy))):
        part, own = plan.select(which, values)
        given = own, None if weights is None else weights[which], new
        # without the others what LINEAR can hold is judged anew
        found = weighted(part, *given) if mode is LINEAR else passes.outside(part, LOG, *given)[0]
        merge(plan, merged, which, part, found)
    return merged


def merge(plan: Plan, whole: Expectations, which: Ints, part: Plan, found: Expectations, sign: float = 1.0) -> None:
    """Put the results of some sequences, run on their own plan, into those of the whole batch."""
    steps = plan.steps_of(which)
    whole.log_z[which] = found.log_z
    for key, counts in found.counts.items():
        if plan.is_timed(key):
            whole.counts[key][steps] = sign * counts
        else:
            whole.counts[key][:] += sign * counts
    for d in range(plan.topology.depth):
        whole.state[d][steps] = sign * found.state[d]
        whole.ending[d][steps] = sign * found.ending[d]
    for d, table in plan.tables.items():
        whole.segments[d][:, table.columns_of(steps)] = sign * found.segments[d]
