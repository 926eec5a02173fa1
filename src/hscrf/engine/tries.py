"""The valid stacks of states as tries, and the compact tables of parents and children."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hscrf.engine.kernels.layout import Sizes
from hscrf.topology import Topology


@dataclass(frozen=True, eq=False)
class Trie:
    """Nodes of all stacks of states of levels top .. bottom, one trie for each top state after the other."""

    level_at: NDArray[np.int64]  # (S_top, depth + 2)
    parent: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    state: NDArray[np.int64]
    level: NDArray[np.int64]  # level of each node


@lru_cache(maxsize=64)
def build_trie(topology: Topology, top: int, bottom: int) -> Trie:
    """Number the stacks level by level, children of a node consecutive and in the topology's order."""
    level_at: list[list[int]] = []
    parent: list[int] = []
    first: list[int] = []
    count: list[int] = []
    state: list[int] = []
    level: list[int] = []
    for s in range(topology.n_states[top]):
        bounds, line = [len(state)], [(len(state), s)]
        parent.append(-1)
        state.append(s)
        level.append(top)
        for d in range(top, bottom):
            bounds.append(len(state))
            following = []
            for node, x in line:
                kids = np.flatnonzero(topology.children[d][x])
                first.append(len(state))
                count.append(len(kids))
                following += [(len(state) + k, int(u)) for k, u in enumerate(kids)]
                parent += [node] * len(kids)
                state += kids.tolist()
                level += [d + 1] * len(kids)
            line = following
        first += [-1] * len(line)
        count += [0] * len(line)
        level_at.append([*bounds, len(state)])
    columns = (level_at, parent, first, count, state, level)
    return Trie(*(np.array(column, dtype=np.int64) for column in columns))


@lru_cache(maxsize=64)
def sizes_of(trie: Trie, borders: bool, unit: bool) -> Sizes:
    """The sizes of work space for a layer; ``borders``: has it potentials of first or last steps."""
    level_at, count = trie.level_at, trie.count

    def most(first: int, end: int) -> int:
        return int((level_at[:, end] - level_at[:, first]).max())

    return Sizes(
        most(0, -1),
        most(0, -2),
        most(-2, -1),
        most(-3, -2) if level_at.shape[1] > 3 else 0,
        int(count.max()),
        int((-count % 4).max()),
        int(trie.state.max()) + 4,
        borders and not unit,
        unit,
    )


@dataclass(frozen=True)
class Families:
    """Compact blocks of one parent level: only pairs that the topology allows are kept.

    Every row of children is padded to a multiple of four, see ``kernels.lanes``. What is there is impossible.
    """

    pairs: NDArray[np.int64]  # (K,) index into (S, U) of each parent's children, -1 in the padding
    pair_at: NDArray[np.int64]  # (S,) where the block of each parent begins
    triples: NDArray[np.int64]  # (Q,) index into (S, U, U), -1 in the padding
    triple_at: NDArray[np.int64]  # (S,)
    legal_pairs: NDArray[np.bool_]  # (K,) all but the padding
    legal_triples: NDArray[np.bool_]  # (Q,) neither padding nor forbidden by the successors


@lru_cache(maxsize=256)
def build_families(topology: Topology, d: int) -> Families:
    below = topology.n_states[d + 1]
    pairs, pair_at, triples, triple_at, legal = [], [0], [], [0], []
    for s, row in enumerate(topology.children[d]):
        kids = np.flatnonzero(row)
        padding = [(0, 0), (0, -kids.size % 4)]
        own = (s * below + kids)[:, None]
        pairs.append(np.pad(own.T, padding, constant_values=-1).ravel())
        triples.append(np.pad(own * below + kids, padding, constant_values=-1).ravel())
        legal.append(np.pad(topology.successors[d + 1][np.ix_(kids, kids)], padding).ravel())
        pair_at.append(pair_at[-1] + pairs[-1].size)
        triple_at.append(triple_at[-1] + triples[-1].size)
    all_pairs = np.concatenate(pairs)
    return Families(
        all_pairs,
        np.array(pair_at[:-1], dtype=np.int64),
        np.concatenate(triples),
        np.array(triple_at[:-1], dtype=np.int64),
        all_pairs >= 0,
        np.concatenate(legal),
    )


@lru_cache(maxsize=1024)
def places_of(topology: Topology, trie: Trie, part: str, d: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes of a level, and where each begins in a row of the level's block of a part."""
    nodes = np.flatnonzero(trie.level == d)
    within = trie.state[nodes]
    if part in ("init", "end"):
        within = build_families(topology, d).pair_at[within]
    elif part == "trans":
        within = build_families(topology, d).triple_at[within]
    return nodes, within


@lru_cache(maxsize=256)
def find_kin(topology: Topology, top: int, bottom: int) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """States of the bottom that occur under the same top states, directly or through others, are kin.

    Return the number of the kin under each top state, and the states of each kin.
    """
    below = np.eye(topology.n_states[top], dtype=bool)
    for d in range(top, bottom):
        below = below @ topology.children[d]
    number = np.arange(len(below))
    for states in below.T:
        number[np.isin(number, number[states])] = number[states].min(initial=len(below))
    _, number = np.unique(number, return_inverse=True)
    return number, [np.flatnonzero(below[number == k].any(axis=0)) for k in range(number.max() + 1)]
