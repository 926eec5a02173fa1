"""The state of the layer: its topology, the columns of its scores, its tables, its state dict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import nn

from hscrf.arrays import Floats
from hscrf.errors import InfeasibleError
from hscrf.fillers import expanded
from hscrf.hierarchy import unknown_name
from hscrf.inference import Posterior
from hscrf.potentials import FAMILY, Key, Potentials
from hscrf.topology import Topology
from hscrf.torch.autograd import Evaluation, LogMass
from hscrf.torch.copies import hidden_values
from hscrf.torch.layout import Parts, Scores, check_numbers, longest_durations, read_scores, score_columns
from hscrf.torch.targets import KeptTargets, Target, read_target
from hscrf.torch.terms import Impossible, Partition, Ratio, by_key, has_time_axis
from hscrf.torch.transfer import begin_early, begin_reading

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def outside_graphs(method: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A method of the layer that ``torch.compile`` does not trace: it runs as it is, between the graphs."""

    @wraps(method)
    def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        if torch.compiler.is_compiling():
            from hscrf.torch.uncompiled import call as call_uncompiled

            return call_uncompiled(method, *arguments, **options)
        return method(*arguments, **options)

    return call


class CRFLayer(nn.Module):
    """Topology, columns and tables of a CRF, and how a call reads its scores and its evidence; see :class:`CRF`."""

    def __init__(
        self,
        topology: Topology,
        parts: Parts = ("token",),
        durations: Any = None,
        *,
        tables: Any = FAMILY,
        n_jobs: int = 1,
    ) -> None:
        super().__init__()
        if not isinstance(topology, Topology):
            kind = type(topology).__name__
            raise TypeError(f"topology is a {kind}; expected a hscrf.Topology such as Topology({{'tag': ['N', 'V']}})")
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs < 1:
            raise ValueError(f"n_jobs is {n_jobs!r}; expected a positive number of threads")
        self.topology = topology
        self.n_jobs = n_jobs
        self._columns = score_columns(topology, parts)
        self.columns = {(part, topology.levels[d]): place for (part, d), place in self._columns.items()}
        self.size = sum(place.stop - place.start for place in self._columns.values())
        self.tables = nn.ParameterDict()
        for part in _checked_tables(tables):
            for d in range(topology.depth - 1):
                self.tables[f"{part}_{d}"] = nn.Parameter(torch.zeros(_table_shape(topology, part, d)))
        for d, longest in longest_durations(topology, durations).items():
            self.tables[f"duration_{d}"] = nn.Parameter(torch.zeros(longest, topology.n_states[d]))
        for d in topology.open_levels:
            self.tables[f"tail_{d}"] = nn.Parameter(torch.zeros(topology.n_states[d]))
        self._table_keys = {name: (name.rpartition("_")[0], int(name.rpartition("_")[2])) for name in self.tables}
        self._kept = KeptTargets()

    def extra_repr(self) -> str:
        parts = ", ".join(f"{part} {level}" for part, level in self.columns)
        return f"{self.topology}, size {self.size}: {parts}"

    def table(self, part: str, level: str) -> nn.Parameter:
        """Return a learnable table by its part and level.

        Parameters
        ----------
        part : {"init", "trans", "end", "duration", "tail"}
        level : str
            The parent's level, for durations and tails the level itself.

        Returns
        -------
        Parameter
            (S, U) for init and end, (S, U, U) for trans, (L, S) for durations, (S,) for tails. A filler that remembers
            counts as a child for each of its copies (:mod:`hscrf.fillers`).

        Examples
        --------
        >>> from hscrf import Topology
        >>> from hscrf.torch import CRF
        >>> CRF(Topology({"tag": ["N", "V"]})).table("trans", "root").shape
        torch.Size([1, 2, 2])
        """
        name = f"{part}_{self.topology.level(level)}"
        if name not in self.tables:
            known = [(kind, self.topology.levels[d]) for kind, d in self._table_keys.values()]
            raise ValueError(unknown_name("table", (part, level), known))
        return self.tables[name]

    # -- helpers

    def _read(self, scores: Any, mask: Any, lengths: Any) -> Scores:
        """Scores of a batch, packed, with the tables of the layer; on CUDA their copy to the host is started."""
        read = read_scores(self.topology, self._columns, scores, mask, lengths)
        self._check_device(read)
        for name, key in self._table_keys.items():
            table, given = self.tables[name], read.values.get(key)
            if given is not None and key[0] == "duration" and given.shape != table.shape:
                raise ValueError(
                    f"scores['duration'][{self.topology.levels[key[1]]!r}] has shape {tuple(given.shape)}; "
                    f"expected {tuple(table.shape)}, as the layer's own table"
                )
            read.values[key] = table if given is None else table + given
        values = hidden_values(self.topology, read.values)
        return Scores(read.frame, values, begin_early(tuple(values.values())))

    def _check_device(self, read: Scores) -> None:
        first = next(iter(self._table_keys), None)
        device = read.tensors[0].device if first is None else self.tables[first].device
        if device.type == "meta":
            raise ValueError("this CRF is on the meta device, which holds no values; expected crf.to_empty(device=...)")
        for (part, d), tensor in read.values.items():
            if tensor.device != device:
                raise ValueError(
                    f"scores ({part} of level {self.topology.levels[d]!r}) are on {tensor.device}, but this CRF is on "
                    f"{device}; expected one device, see crf.to"
                )

    def _partition(self, read: Scores, evidence: Any) -> tuple[Target | None, Partition]:
        if evidence is None:
            return None, Partition(self.topology, read.frame.offsets, n_jobs=self.n_jobs)
        target = read_target(self._kept, self.topology, read.frame, evidence, "evidence")
        known = target.evidence("evidence")
        return target, Partition(self.topology, read.frame.offsets, known, n_jobs=self.n_jobs)

    def _mass(
        self,
        read: Scores,
        ratio: Ratio,
        target: Target | None,
        name: str = "evidence",
        weights: Floats | None = None,
        function: Any = LogMass,
    ) -> Any:
        """Log masses (n,), or another differentiable function of the values; errors name the cause."""
        check = partial(check_numbers, self.topology, read.frame)
        work = Evaluation(ratio, read.keys, read.tensors, weights, check, read.reader)
        try:
            return function.apply(work, *read.tensors)
        except Impossible as error:
            n, name = error.sequence, "scores" if target is None else name
            if error.problem:
                raise InfeasibleError(error.problem).of_sequence(n, name) from None
            raise self._posterior(read, work.last, target, n).infeasible().of_sequence(n, name) from None

    def _arrays(self, read: Scores) -> dict[Key, Floats]:
        arrays = by_key(read.keys, (read.reader or begin_reading(read.tensors))())
        check_numbers(self.topology, read.frame, arrays)
        return arrays

    def _require(self, read: Scores, arrays: dict[Key, Floats], target: Target | None, log_mass: Any) -> None:
        """Raise if a sequence has no configuration, and say why."""
        impossible = np.flatnonzero(log_mass == -np.inf)
        if impossible.size:
            n = int(impossible[0])
            name = "scores" if target is None else "evidence"
            raise self._posterior(read, arrays, target, n).infeasible().of_sequence(n, name)

    def _posterior(self, read: Scores, arrays: dict[Key, Floats], target: Target | None, n: int) -> Posterior:
        """The posterior of one sequence."""
        a, b = read.frame.offsets[n : n + 2].tolist()
        own = {key: array[a:b] if has_time_axis(key, array.shape) else array for key, array in arrays.items()}
        potentials = Potentials.from_arrays(self.topology, b - a, own)
        return Posterior(potentials, None if target is None else target.labels(n))

    # -- state

    def get_extra_state(self) -> dict[str, Any]:
        """The content of a state dict in addition to the tables: the topology."""
        return {"topology": self.topology.to_json()}

    def set_extra_state(self, state: Any) -> None:
        """Raise if a state dict belongs to a layer of another topology."""
        try:
            found = Topology.from_dict(state["topology"])
        except (TypeError, KeyError, AttributeError, ValueError):
            raise ValueError("the state dict holds no topology; expected that of a hscrf.torch.CRF") from None
        if found != self.topology:
            raise ValueError(f"the state dict is of another topology: {difference(found, self.topology)}")


def difference(found: Topology, own: Topology) -> str:
    """The first thing in which two topologies differ."""
    if found.levels != own.levels:
        return f"it has the levels {', '.join(found.levels)}; this layer has {', '.join(own.levels)}"
    for d, level in enumerate(own.levels):
        if found.states[d] != own.states[d]:
            apart = [name for name in found.states[d] if name not in own.states[d]]
            apart = apart or [name for name in own.states[d] if name not in found.states[d]]
            what = f"only one of them has {apart[0]!r}" if apart else "their order differs"
            return f"level {level!r} has {found.n_states[d]} states, and {own.n_states[d]} in this layer; {what}"
    for rule in ("children", "successors", "min_duration", "max_duration", "fillers", "open_duration"):
        for d, (one, other) in enumerate(zip(getattr(found, rule), getattr(own, rule), strict=True)):
            if not np.array_equal(one, other):
                return f"{rule} of level {own.levels[d]!r} are not those of this layer"
    return "its rules are not those of this layer"


def _checked_tables(tables: Any) -> tuple[str, ...]:
    if isinstance(tables, str):
        raise ValueError(f"tables is the string {tables!r}; expected a tuple such as ({tables!r},)")
    if not isinstance(tables, Iterable):
        raise TypeError(f"tables is {tables!r}; expected a tuple with some of 'init', 'trans', 'end'")
    for part in tables:
        if part not in FAMILY:
            raise ValueError(f"tables has {unknown_name('table', part, FAMILY)}")
    return tuple(part for part in FAMILY if part in tables)


def _table_shape(topology: Topology, part: str, d: int) -> tuple[int, ...]:
    parents, children = topology.n_states[d], expanded(topology).n_states[d + 1]
    return (parents, children, children) if part == "trans" else (parents, children)
