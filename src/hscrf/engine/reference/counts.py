"""Posteriors of all events of a layer: forward value x potential x backward value, in linear numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hscrf.arrays import Floats, Ints
from hscrf.engine.reference.layers import Layer, Links, Segments
from hscrf.engine.reference.recursion import ROOM, Leaves, Runs, blocks, walk
from hscrf.potentials import Arrays, Key


class ExpectedSums(NamedTuple):
    """Sums of expectations; the amounts of each step are multiplied by its weight."""

    weight: Floats  # (N,)
    counts: dict[Key, Floats]
    state: list[Floats]  # per level (N, S)
    ending: list[Floats]  # per level (N,)

    def add(self, key: Key, places: tuple[Ints, ...], amounts: Floats) -> None:
        """Add amounts to the counts of a part, if it has any."""
        if key in self.counts:
            np.add.at(self.counts[key], places, amounts)


def outside(
    layer: Layer,
    leaves: Leaves,
    top: Segments,
    posterior: Floats,
    walked: Runs | None,
    found: ExpectedSums,
    room: int = ROOM,
) -> Floats | None:
    """From the posteriors (segments, states) of the top level to all counts of the layer, and those of its bottom.

    The mass that follows a segment of the top is its posterior divided by its inner mass: the backward runs start from
    it. ``walked`` are the runs of the inside pass, if they have been kept.
    """
    padded = np.concatenate([posterior, np.zeros_like(posterior[:1])])
    below = None if leaves.segments is None else np.zeros(leaves.table.shape[:2])
    for rows in blocks(layer, top.length, room):
        start, length = top.start[rows], top.length[rows]
        forward = walked or walk(layer, leaves, start, length)
        within, after = forward.ends[layer.top], padded[top.at[rows]][:, : length[0], :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            given = np.where(after > 0, np.log(after) - within, -np.inf)
        backward = walk(layer, leaves, start, length, given)
        for k in range(int(length[0])):
            count_step(layer, leaves, forward, backward, k, below, found)
    if below is None or leaves.segments is None:
        return None
    below = below[:-1]
    alive = leaves.segments.cover(below * found.weight[leaves.segments.first][:, None], found.weight.size)
    add_states(layer, alive, slice(None), range(layer.top + 1, layer.bottom), found)
    return below @ membership(layer, layer.bottom, found)


def count_step(
    layer: Layer, leaves: Leaves, forward: Runs, backward: Runs, k: int, below: Floats | None, found: ExpectedSums
) -> None:
    """Add what happens k steps after the start of each run."""
    n = np.count_nonzero(forward.length > k)
    t, go_on = forward.start[:n] + k, np.count_nonzero(forward.length > k + 1)
    for m in layer.levels:
        starts, ends = forward.starts[m - 1][:n, k, :, 0], forward.ends[m][:n, k, :, 0]
        count_links(layer, m, layer.down[m], starts, backward.starts[m][:n, k, :, 0], t, found)
        count_links(layer, m, layer.up[m], ends, backward.ends[m - 1][:n, k, :, 0], t, found)
        if go_on:
            after = backward.starts[m][:go_on, k + 1, :, 0]
            count_links(layer, m, layer.across[m], ends[:go_on], after, t[:go_on], found)
    if below is None:  # a leaf is alive; both of its values contain the token score
        with np.errstate(invalid="ignore"):
            alive = forward.ends[layer.bottom] + backward.starts[layer.bottom]
            alive = alive[:n, k, :, 0] - layer.tokens[t]
        alive = np.exp(np.where(np.isnan(alive), -np.inf, alive)) * found.weight[t, None]
        add_states(layer, alive, t, layer.levels, found)
    else:  # a segment of a leaf ends
        lag = np.arange(min(leaves.longest, k + 1))
        numbers = leaves.numbers(t, lag, False)
        before = forward.starts[layer.bottom][:n, :, :, 0][:, k - lag]
        after = backward.ends[layer.bottom][:n, k, None, :, 0]
        np.add.at(below, numbers, np.exp(before + leaves.table[numbers][..., 0] + after))


def count_links(
    layer: Layer, m: int, links: Links, before: Floats, after: Floats, t: Ints, found: ExpectedSums
) -> None:
    """Add the posteriors of all links of level m that are taken at t."""
    source, target = links.source[:-1], links.target[:-1]
    amounts = np.exp(before[:, source] + links.weights(t)[:, :-1] + after[:, target]) * found.weight[t, None]
    part, _ = links.key
    if links.key in found.counts:
        counts = found.counts[links.key].reshape(len(found.counts[links.key]), -1)
        if len(counts) > 1:
            np.add.at(counts, (t[:, None], links.cell), amounts)
        else:
            counts[0] += np.bincount(links.cell, amounts.sum(axis=0), counts.shape[1])
    if part != "init":
        if layer.markov or m < layer.bottom:
            np.add.at(found.ending[m], t, amounts.sum(axis=1))
        if links.stop is not None:
            found.add(("stop", m), (t[:, None], layer.state[m][source]), amounts)
    if links.start is not None:
        found.add(("start", m), (t[:, None] + links.later, layer.state[m][target]), amounts)


def add_states(layer: Layer, alive: Floats, t: Ints | slice, levels: range, found: ExpectedSums) -> None:
    """Add what leaves (n, leaves) are alive at t to the states of Markov levels, and to the counts of their tokens."""
    for m in levels:
        by_state = alive @ membership(layer, m, found)
        places = (np.arange(found.weight.size)[t],)
        np.add.at(found.state[m], places, by_state)
        found.add(("token", m), places, by_state)


def membership(layer: Layer, m: int, found: ExpectedSums) -> Floats:
    """One where a leaf is of a state of level m (leaves, states), else zero."""
    return (layer.state[m][layer.above[m]][:, None] == np.arange(found.state[m].shape[1])).astype(np.float64)


def count_own(segments: Segments, d: int, posterior: Floats, found: ExpectedSums, values: Arrays) -> None:
    """Add the posteriors (segments, states) of a level that has segments to its states, endings and own counts."""
    amounts = posterior * found.weight[segments.first, None]
    alive = segments.cover(amounts, found.weight.size)
    found.state[d][:] += alive
    np.add.at(found.ending[d], segments.last, amounts.sum(axis=1))
    if ("token", d) in values:
        found.counts["token", d] += alive
    found.add(("start", d), (segments.first,), amounts)
    found.add(("stop", d), (segments.last,), amounts)
    found.add(("duration", d), (segments.lag,), amounts)
    found.add(("segment", d), (segments.first, segments.lag), amounts)
