"""The recursion: one walk over a layer, forward or backward, in sums or for the k best; see docs/theory.md.

Values are logarithms. Each has a last axis of *ways*: one sum, or the k best ways in order. Rows of an array are runs:
a run starts at one step and has ``length`` steps. All runs take their first step together, then their second, and so
on.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine.reference.layers import Layer, Links, Segments

ROOM = 4_000_000  # most numbers of one array; further runs are computed later


def total(terms: Floats, ways: int | None, kept: int) -> Floats:
    """Log of the sum of exponentials over all but the first axes (``ways`` is None), or the best ``ways`` values."""
    terms = terms.reshape(*terms.shape[:kept], prod(terms.shape[kept:]))
    if ways is None:
        top = terms.max(axis=-1, keepdims=True, initial=-np.inf)
        top = np.where(top > -np.inf, top, 0.0)
        with np.errstate(divide="ignore"):
            return top + np.log(np.exp(terms - top).sum(axis=-1, keepdims=True))
    if ways == 1:
        return terms.max(axis=-1, keepdims=True, initial=-np.inf)
    found = -np.sort(-terms, axis=-1)[..., :ways]
    return np.pad(found, [(0, 0)] * (terms.ndim - 1) + [(0, ways - found.shape[-1])], constant_values=-np.inf)


def pull(links: Links, values: Floats, t: Ints, ways: int | None) -> Floats:
    """For each target node the total of its sources' values (n, sources, ways), each times the link's potential."""
    terms = values[:, links.source[links.into]] + links.weights(t)[:, links.into, None]
    return total(terms, ways, 2)


class Runs(NamedTuple):
    """Runs of a layer, the longest first, and the values of all nodes: level -> (runs, steps since start, nodes, ways).

    Forward, ``starts`` is P and ``ends`` is G of the theory: the total of all that may have happened until a node
    starts (before its first token), or ends. Backward, ``ends`` holds what follows after a node has ended, ``starts``
    what follows once it starts: their derivatives, if the run is entered with the derivatives of its masses.
    """

    start: Ints
    length: Ints
    starts: dict[int, Floats]
    ends: dict[int, Floats]


def walk(
    layer: Layer,
    leaves: Leaves,
    start: Ints,
    length: Ints,
    given: Floats | None = None,
    ways: int | None = None,
) -> Runs:
    """Walk runs forward from the start of their top state; or, with ``given``, backward from its ends.

    ``given`` (runs, steps, top states, 1) is what follows if the top state ends at a step. Backward is forward on the
    model read from right to left: up and down change places, and all links are taken from target to source.
    """
    backward = given is not None
    down, across, up = layer.down, layer.across, layer.up
    if backward:
        down, across, up = ({m: links[m].backward() for m in links} for links in (up, across, down))
    last_axis, steps, top, bottom = ways or 1, int(length.max(initial=0)), layer.top, layer.bottom
    shape = {m: (start.size, steps, nodes.size, last_axis) for m, nodes in layer.state.items()}
    P, G = ({m: np.full(shape[m], -np.inf) for m in shape} for _ in range(2))
    if given is None:
        P[top][:, :1, :, :1] = 0.0
    else:
        P[top] = given
    H: dict[int, Floats] = {}
    f = None
    for k in range(steps):
        n = np.count_nonzero(length > k)
        since = length[:n] - 1 - k if backward else np.full(n, k)  # steps since the start of the run
        t, here = start[:n] + since, (np.arange(n), since)
        # down: a node starts because its parent does, or because a sibling has ended
        for m in layer.levels:
            P[m][here] = pull(down[m], P[m - 1][here], t, ways)
            if k > 0:
                P[m][here] = total(np.concatenate([H[m], P[m][here]], axis=-1), ways, 2)
        # leaf: it starts, or goes on, and meets its tokens; or a segment of it ends here
        f = leaves.live(layer, P[bottom], here, t, None if f is None else f[:n], backward, ways)
        # up: a node ends because its last child does
        G[bottom][here] = f
        for m in reversed(layer.levels):
            G[m - 1][here] = pull(up[m], G[m][here], t, ways)
        # across: a node has ended, a sibling starts at the next step
        n = np.count_nonzero(length > k + 1)
        H = {m: pull(across[m], G[m][np.arange(n), since[:n]], t[:n] - backward, ways) for m in layer.levels}
    return Runs(start, length, *((G, P) if backward else (P, G)))


class Leaves(NamedTuple):
    """The scores of leaves over time: over steps if the bottom is Markov, else over the segments of the bottom."""

    segments: Segments | None
    table: Floats  # (segments + 1, leaves, ways) log mass of each segment, the tokens of Markov levels above included

    def live(
        self,
        layer: Layer,
        P: Floats,
        here: tuple[Ints, Ints],
        t: Ints,
        f: Floats | None,
        backward: bool,
        ways: int | None,
    ) -> Floats:
        """The total of all ways in which a leaf lives at t (Markov), or in which a segment of it ends there."""
        if self.segments is None:
            entering = P[here]
            if f is not None:
                goes_on = layer.goes_on[t - 1 + backward, None, None]
                entering = total(np.concatenate([entering, np.where(goes_on, f, -np.inf)], axis=-1), ways, 2)
            return entering + layer.tokens[t, :, None]
        rows, since = here
        lag = np.arange(min(self.longest, P.shape[1]))
        entered = since[:, None] + lag if backward else since[:, None] - lag
        inside = (entered >= 0) & (entered < P.shape[1])
        numbers = self.numbers(t, lag, backward)
        before = np.where(inside[..., None, None], P[rows[:, None], entered * inside], -np.inf)
        terms = before[..., :, None] + self.table[numbers][..., None, :]  # (n, lags, leaves, ways, ways)
        return total(np.moveaxis(terms, 2, 1), ways, 2)

    @property
    def longest(self) -> int:
        """Of the segments."""
        return self.segments.longest if self.segments else 1

    def numbers(self, t: Ints, lag: Ints, backward: bool) -> Ints:
        """The numbers (n, lags) of the segments that end at t; backward: that start at t."""
        assert self.segments is not None
        first = np.broadcast_to(t[:, None], (t.size, lag.size)) if backward else t[:, None] - lag
        row = np.where(first >= 0, self.segments.row_of[first], len(self.segments.at) - 1)
        return self.segments.at[row, lag]


def make_leaves(layer: Layer, segments: Segments | None, table: Floats) -> Leaves:
    """Leaves from the log masses (segments, states, ways) of the bottom level's segments."""
    if segments is None:
        return Leaves(None, table)
    found = table[:, layer.state[layer.bottom]] + segments.sums(layer.tokens)[:, :, None]
    return Leaves(segments, np.pad(found, ((0, 1), (0, 0), (0, 0)), constant_values=-np.inf))


def blocks(layer: Layer, length: Ints, room: int = ROOM) -> Iterator[Ints]:
    """The numbers of runs that walk together: the longest first, as many as have at most ``room`` numbers in all."""
    order = np.argsort(-length, kind="stable")
    size = sum(nodes.size for nodes in layer.state.values())
    while order.size:
        n = max(1, room // int(length[order[0]] * size))
        yield order[:n]
        order = order[n:]
