"""Fillers that remember: hidden copies of a state, one for each state that may have come before it.

In a chain, a filler such as the ``O`` of BIO hides the state before it: in ``surname O ?`` the last label depends on
``O`` alone. ``Topology(..., fillers={"part": "O"})`` gives ``O`` hidden copies. There is one for each state of its
level that may be the last one before it under the same parent, and one for "none yet". Copies share all weights of
their own segments. Transitions from a copy, and ends after it, have separate weights.

Only the engine uses copies. Its topology is :func:`expanded`, and its arrays have an entry for each copy. Labels,
columns, evidence and posteriors use the states of the topology itself. The history determines the copy, and
:func:`expanded` and :func:`masked` forbid every other one: each labelling has exactly one hidden labelling. So log Z,
entropy, the best labellings and samples need no correction, and posteriors are sums over copies (:func:`summed`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, sealed
from hscrf.topology import Topology

NONE, UNKNOWN = -1, -2  # memories: no state yet, or an unknown state
Scalar = TypeVar("Scalar", bound=np.generic)


class Copy(NamedTuple):
    """The name of a hidden state: a filler, and the state it remembers; None if there was none.

    Attributes
    ----------
    state : the filler
    after : the state that it remembers, or None
    """

    state: Any
    after: Any


@dataclass(frozen=True, eq=False)
class Copies:
    """The hidden states of a topology by level: H_d at level d; the copies of a state are adjacent."""

    topology: Topology  # of the hidden states
    origin: tuple[Ints, ...]  # (H_d,) the state that is shown
    memory: tuple[Ints, ...]  # (H_d,) the state that a copy remembers, or NONE
    begin: tuple[Ints, ...]  # (S_d,) the first copy of each state
    place: tuple[Ints, ...]  # (S_d, S_d + 1) the hidden state of a state that remembers another, or NONE; -1 if none
    later: dict[int, NDArray[np.bool_]]  # by level with copies: (H_d,) those that are never the first child

    def has_copies(self, d: int) -> bool:
        """Whether a level has more hidden states than states."""
        return self.origin[d].size > self.begin[d].size


def copies_of(topology: Topology) -> Copies | None:
    """The hidden states of a topology; None if no state remembers."""
    return _hidden_copies(topology) if topology.remembers else None


@lru_cache(maxsize=64)
def _hidden_copies(topology: Topology) -> Copies:
    origin, memory, begin, place = zip(*(_copies(topology, d) for d in range(topology.depth)), strict=True)
    later = {d: memory[d] >= 0 for d in range(topology.depth) if topology.fillers[d].any()}
    hidden = topology.with_fields(
        states=tuple(_names(topology, d, origin[d], memory[d]) for d in range(topology.depth)),
        children=tuple(sealed(_children(topology, d, origin, memory)) for d in range(topology.depth - 1)),
        successors=tuple(sealed(_successors(topology, d, origin[d], memory[d])) for d in range(topology.depth)),
        min_duration=tuple(sealed(row[own]) for row, own in zip(topology.min_duration, origin, strict=True)),
        max_duration=tuple(sealed(row[own]) for row, own in zip(topology.max_duration, origin, strict=True)),
        fillers=tuple(sealed(np.zeros(own.size, dtype=bool)) for own in origin),
        open_duration=tuple(sealed(row[own]) for row, own in zip(topology.open_duration, origin, strict=True)),
    )
    return Copies(hidden, origin, memory, begin, place, later)


def _copies(topology: Topology, d: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Origin, memory, begin and place of one level."""
    states, filler = topology.n_states[d], topology.fillers[d]
    siblings = np.ones((states, states), dtype=bool)
    if d:
        parents = topology.children[d - 1].astype(np.int64)
        siblings = parents.T @ parents > 0
    before = topology.successors[d] & siblings  # (S, S) a state comes before a filler, perhaps with fillers between
    for _ in range(int(filler.sum())):
        before = before | ((before[:, filler].astype(np.int64) @ before[filler].astype(np.int64)) > 0)
    before = before & siblings & ~filler[:, None]
    origin: list[int] = []
    memory: list[int] = []
    begin: list[int] = []
    place = np.full((states, states + 1), -1, dtype=np.int64)
    for s in range(states):
        begin.append(len(origin))
        kept = [NONE, *np.flatnonzero(before[:, s]).tolist()] if filler[s] else [NONE]
        place[s, kept] = len(origin) + np.arange(len(kept))
        origin += [s] * len(kept)
        memory += kept
    return np.array(origin), np.array(memory), np.array(begin), place


def _names(topology: Topology, d: int, origin: Ints, memory: Ints) -> tuple[Any, ...]:
    names, filler = (*topology.states[d], None), topology.fillers[d]
    pairs = zip(origin.tolist(), memory.tolist(), strict=True)
    return tuple(Copy(names[s], names[m]) if filler[s] else names[s] for s, m in pairs)


def _children(topology: Topology, d: int, origin: tuple[Ints, ...], memory: tuple[Ints, ...]) -> NDArray[np.bool_]:
    """A parent may have a copy if it may have both the state and the remembered state; its own copies do not differ."""
    table = np.column_stack([topology.children[d], np.ones(topology.n_states[d], dtype=bool)])  # the last: NONE
    own = table[:, origin[d + 1]] & table[:, memory[d + 1]]
    found: NDArray[np.bool_] = own[origin[d]]
    return found


def _successors(topology: Topology, d: int, origin: Ints, memory: Ints) -> NDArray[np.bool_]:
    """A copy follows the state it remembers, or a filler that remembers the same."""
    filler = topology.fillers[d][origin]
    passed = np.where(filler, memory, origin)  # the memory of a filler after this state
    return topology.successors[d][np.ix_(origin, origin)] & (~filler | (passed[:, None] == memory))


def expanded(topology: Topology) -> Topology:
    """The topology that the engine works on: that of the hidden states, or the same if no state remembers.

    >>> topology = Topology({"phrase": ["NP", "VP", "O"]}, fillers={"phrase": "O"})
    >>> [str(tuple(name)) if isinstance(name, Copy) else name for name in expanded(topology).states[1]]
    ['NP', 'VP', "('O', None)", "('O', 'NP')", "('O', 'VP')"]
    """
    found = copies_of(topology)
    return topology if found is None else found.topology


def usual_fillers(topology: Topology) -> dict[str, list[Any]]:
    """The states named "O" of levels that have others.

    >>> usual_fillers(Topology({"phrase": ["NP", "O"], "tag": ["D", "N"]}))
    {'phrase': ['O']}
    """
    levels = zip(topology.levels[1:], topology.states[1:], strict=True)
    return {level: ["O"] for level, names in levels if "O" in names and len(names) > 1}


# -- labels ------------------------------------------------------------------------------------------------------------


def shown(topology: Topology, states: NDArray[np.int32]) -> NDArray[np.int32]:
    """States (..., D, N) of the topology from complete hidden ones."""
    found = copies_of(topology)
    if found is None:
        return states
    public = states.copy()
    for d, origin in enumerate(found.origin):
        public[..., d, :] = origin[states[..., d, :]]
    return public


def hidden(topology: Topology, states: NDArray[np.int32], ends: NDArray[np.int8], offsets: Ints) -> NDArray[np.int32]:
    """Hidden states (D, N) of packed sequences from states and ends, -1 where the state or its copy is not known."""
    found = copies_of(topology)
    if found is None:
        return states
    result = states.copy()
    for d, own in enumerate(states):
        copy = found.begin[d][own]
        if d in found.later:
            remembered = memories(topology, d, states, ends, offsets)
            copy = np.where(remembered == UNKNOWN, -1, found.place[d][own, np.maximum(remembered, NONE)])
            copy = np.where(topology.fillers[d][own], copy, found.begin[d][own])
        result[d] = np.where(own < 0, -1, copy)
    return result


def memories(topology: Topology, d: int, states: NDArray[np.int32], ends: NDArray[np.int8], offsets: Ints) -> Ints:
    """Return what a filler of level d remembers at each of N packed steps: a state, NONE or UNKNOWN.

    It is NONE at the first step of a parent. It is the state one step before if that is known, ends there, and its
    parent goes on. It is the memory of the step before if the segment goes on, or if a filler is before it under the
    same parent. Otherwise it is UNKNOWN.
    """
    own, last = states[d], ends[d][:-1]
    known, filler = own[:-1] >= 0, topology.fillers[d][own[:-1]]
    inside = ends[d - 1][:-1] == 0
    value = np.full(own.size, UNKNOWN, dtype=np.int64)
    follows = (last == 1) & inside & known & ~filler
    value[1:][follows] = own[:-1][follows]
    fresh = np.append(True, ends[d - 1][:-1] == 1)
    fresh[offsets[:-1]] = True
    value[fresh] = NONE
    carried = np.append(False, (last == 0) | (inside & known & filler)) & ~fresh
    origin = np.maximum.accumulate(np.where(carried, 0, np.arange(own.size)))
    return value[origin]


def hidden_sets(
    topology: Topology,
    sets: tuple[NDArray[np.bool_] | None, ...],
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
    offsets: Ints,
) -> tuple[NDArray[np.bool_] | None, ...]:
    """Allowed hidden states (N, H_d) of each level from allowed states (N, S_d); None: every state."""
    copies = copies_of(topology)
    if copies is None:
        return sets
    result = list(sets)
    for d, allowed in enumerate(sets):
        if d not in copies.later:
            continue
        origin, memory = copies.origin[d], copies.memory[d]
        remembered = memories(topology, d, states, ends, offsets)[:, None]
        fits = (remembered == UNKNOWN) | (remembered == memory) | ~topology.fillers[d][origin]
        if allowed is not None:
            fits &= allowed[:, origin]
        result[d] = None if fits.all() else fits
    return tuple(result)


def child_name(topology: Topology, d: int, state: int) -> str:
    """The name that is shown of a hidden state of level d."""
    copies = copies_of(topology)
    return str(topology.states[d][state if copies is None else copies.origin[d][state]])


def memory_name(topology: Topology, d: int, state: int) -> str | None:
    """The state that a hidden state of level d remembers, by name; "" if none came before, None if it is no filler."""
    copies = copies_of(topology)
    if copies is None or not topology.fillers[d][copies.origin[d][state]]:
        return None
    remembered = copies.memory[d][state]
    return "" if remembered == NONE else str(topology.states[d][remembered])


# -- arrays ------------------------------------------------------------------------------------------------------------


def spread(topology: Topology, part: str, d: int, values: Floats) -> Floats:
    """An array of the engine from one without copies of level d: of segments (..., S_d), of families (T, S_d, ...).

    Copies share the scores of their segments and their scores as parents.
    """
    copies = copies_of(topology)
    if copies is None or not copies.has_copies(d):
        return values
    return values.take(copies.origin[d], axis=_axis(part))


def pulled(topology: Topology, part: str, d: int, counts: Floats) -> Floats:
    """Transpose of :func:`spread`: the counts of copies are added."""
    copies = copies_of(topology)
    if copies is None or not copies.has_copies(d):
        return counts
    found: Floats = np.add.reduceat(counts, copies.begin[d], axis=_axis(part))
    return found


def summed(topology: Topology, d: int, posterior: Floats) -> Floats:
    """Posteriors (..., S_d) of states from those (..., H_d) of hidden states."""
    return pulled(topology, "token", d, posterior)


def _axis(part: str) -> int:
    return 1 if part in ("init", "trans", "end") else -1


def masked(topology: Topology, values: Mapping[tuple[str, int], Floats]) -> dict[tuple[str, int], Floats]:
    """Arrays of the engine in which no first child remembers a state: their init is -inf."""
    copies, result = copies_of(topology), dict(values)
    if copies is None:
        return result
    for d, later in copies.later.items():
        table = result.get(("init", d - 1))
        if table is None:
            table = np.zeros((1, copies.origin[d - 1].size, copies.origin[d].size))
        if not np.isneginf(table[..., later]).all():
            table = table.copy()
            table[..., later] = -np.inf
        result["init", d - 1] = table
    return result
