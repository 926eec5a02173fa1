"""Trace paths back through the values of a walk: the best, the k best, or samples; see docs/theory.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.engine.reference.layers import Layer
from hscrf.engine.reference.recursion import Leaves, Runs, walk

Choose = Callable[[Floats, int], tuple[int, ...]]
"""Of candidates (..., ways) take one: its indices, the last of them the way of it that is meant."""


def best(candidates: Floats, rank: int) -> tuple[int, ...]:
    """The candidate of this rank; of equal ones the first comes first."""
    flat = candidates.reshape(-1)
    place = int(flat.argmax()) if rank == 0 else int(np.argsort(-flat, kind="stable")[rank])
    return tuple(map(int, np.unravel_index(place, candidates.shape)))


def draw(rng: np.random.Generator) -> Choose:
    """A choice at random, in proportion to the candidates."""

    def choose(candidates: Floats, _: int) -> tuple[int, ...]:
        flat = candidates.reshape(-1)
        sums = np.cumsum(np.exp(flat - flat.max()))
        place = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        return tuple(map(int, np.unravel_index(min(place, int(np.flatnonzero(flat > -np.inf)[-1])), candidates.shape)))

    return choose


class PathSegment(NamedTuple):
    """A segment of a level whose configuration is still to be traced."""

    path: int  # of how many
    state: int
    first: int
    lag: int
    rank: int


def trace_all(
    layer: Layer,
    leaves: Leaves,
    parts: list[PathSegment],
    ways: int | None,
    choose: Choose,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
) -> list[PathSegment]:
    """Write what lies in segments of the top level into states and ends (paths, D, N); return those of the bottom."""
    below: list[PathSegment] = []
    longest: dict[int, int] = {}
    for part in parts:
        longest[part.first] = max(longest.get(part.first, 0), part.lag + 1)
    firsts = sorted(longest, key=lambda first: (-longest[first], first))
    runs = walk(layer, leaves, np.array(firsts), np.array([longest[first] for first in firsts]), None, ways)
    row_of = {first: row for row, first in enumerate(firsts)}
    for part in parts:
        way = trace(layer, leaves, runs, row_of[part.first], part, choose, states[part.path], ends[part.path])
        below += way
    return below


def trace(
    layer: Layer,
    leaves: Leaves,
    runs: Runs,
    row: int,
    part: PathSegment,
    choose: Choose,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
) -> list[PathSegment]:
    """Walk back through one run, from the end of a segment of its top state to its start."""
    P, G = ({m: values[m][row] for m in values} for values in (runs.starts, runs.ends))
    top, bottom, first = layer.top, layer.bottom, part.first
    below: list[PathSegment] = []
    m, node, k, rank = top, part.state, part.lag, part.rank
    ends[top + 1 :, first + k] = 1
    while True:
        while m < bottom:  # the node ends at k with one of its children
            m += 1
            link = layer.up[m].into[node]
            weight = layer.up[m].weights(np.array([first + k]))[0, link]
            chosen, rank = choose(G[m][k, layer.up[m].source[link]] + weight[:, None], rank)
            node = int(layer.up[m].source[link[chosen]])
        end, k, rank, lower = start_of_leaf(layer, leaves, P[m], G[m], node, first, k, rank, choose)
        for d in layer.levels:
            states[d, first + k : first + end + 1] = layer.state[d][layer.above[d][node]]
        below.append(PathSegment(part.path, int(layer.state[bottom][node]), first + k, end - k, lower))
        while m > top:  # the node starts at k because a sibling has ended, or because its parent starts
            link = layer.across[m].into[node] if k > 0 else np.empty(0, dtype=np.int64)
            source = layer.across[m].source[link]
            weight = layer.across[m].weights(np.array([first + k - 1]))[0, link] if k > 0 else np.empty(0)
            parent = int(layer.parent[m][node])
            from_parent = P[m - 1][k, parent] + layer.down[m].weights(np.array([first + k]))[0, node]
            siblings = G[m][k - 1, source] + weight[:, None]
            chosen, rank = choose(np.concatenate([siblings, from_parent[None]]), rank)
            if chosen < source.size:
                node, k = int(source[chosen]), k - 1
                ends[m:, first + k] = 1
                break
            m, node = m - 1, parent
        else:
            return below


def start_of_leaf(
    layer: Layer, leaves: Leaves, P: Floats, f: Floats, node: int, first: int, k: int, rank: int, choose: Choose
) -> tuple[int, int, int, int]:
    """The last and the first step of a leaf that ends at k, the rank of its start, and the rank of its segment."""
    end = k
    if leaves.segments is None:
        while True:
            candidates = P[k, node][None]
            if k > 0 and layer.goes_on[first + k - 1]:
                candidates = np.concatenate([candidates, f[k - 1, node][None]])
            chosen, rank = choose(candidates, rank)
            if chosen == 0:
                return end, k, rank, 0
            k -= 1
    lag = np.arange(min(leaves.longest, k + 1))
    numbers = leaves.numbers(np.array([first + k]), lag, False)[0]
    chosen, rank, lower = choose(P[k - lag, node][:, :, None] + leaves.table[numbers, node][:, None, :], rank)
    return end, k - chosen, rank, lower
