"""The data of the recursion: admissible segments of a level, stacks of states, and the links between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges
from hscrf.engine.evidence import Evidence
from hscrf.potentials import Arrays, explicit_lengths
from hscrf.topology import Topology

Bools = NDArray[np.bool_]


class Segments:
    """The admissible segments of one level, listed by first step and then by lag (length - 1).

    A *row* stands for a first step: row r has segments from ``start[r]`` on, none of more than ``length[r]`` steps.
    ``at[r, lag]`` is the number of such a segment, or the number of all segments if it is not admissible: arrays over
    segments have one more entry there, for "impossible". ``row_of[t]`` is the row of first step t, or one more row.
    """

    def __init__(self, topology: Topology, d: int, evidence: Evidence, offsets: Ints, values: Arrays) -> None:
        steps, states = int(offsets[-1]), topology.n_states[d]
        longest = explicit_lengths(topology, d, {key: table.shape for key, table in values.items()})
        allowed = evidence.allowed[d]
        reach = np.zeros((steps + 1, states), dtype=np.int64)  # how many steps each state may last from t on
        for t in reversed(range(steps)):
            reach[t] = 1 + reach[t + 1] * evidence.may_go_on[d, t]
            if allowed is not None:
                reach[t] *= allowed[t]
        may_start = np.append(True, evidence.may_end[d, :-1])
        may_start[offsets[:-1]] = True
        reach = np.minimum(reach[:-1], longest) * may_start[:, None]

        self.start = np.flatnonzero(reach.any(axis=1))
        self.length = reach[self.start].max(axis=1, initial=0)
        self.longest = int(self.length.max(initial=1))
        rows = np.repeat(np.arange(self.start.size), self.length)
        lag = ranges(np.zeros_like(self.length), self.length)
        ends = evidence.may_end[d, self.start[rows] + lag]
        rows, lag = rows[ends], lag[ends]
        self.lag, self.first = lag, self.start[rows]
        self.last = self.first + lag
        long_enough = lag[:, None] + 1 >= topology.min_duration[d]
        self.admissible = long_enough & (lag[:, None] < reach[self.first])  # (segments, states)
        self.at = np.full((self.start.size + 1, self.longest), self.first.size)
        self.at[rows, lag] = np.arange(self.first.size)
        self.row_of = np.full(steps, self.start.size)
        self.row_of[self.start] = np.arange(self.start.size)

    def sums(self, scores: Floats) -> Floats:
        """The sum of scores (N, S) over the steps of each segment."""
        borders = np.column_stack([self.first, self.last + 1]).reshape(-1)
        padded = np.concatenate([scores, np.zeros_like(scores[:1])])
        return np.add.reduceat(padded, borders, axis=0)[::2] if borders.size else scores[:0]

    def persist(self, values: Arrays, d: int) -> Floats:
        """Log R (segments, states): all that a segment scores by itself; -inf where it is not admissible."""
        score = np.where(self.admissible, 0.0, -np.inf)
        for part, given in ((part, values[part, level]) for part, level in values if level == d):
            if part == "token":
                score += self.sums(given)
            elif part == "start":
                score += given[self.first]
            elif part == "stop":
                score += given[self.last]
            elif part == "duration":
                score += given[self.lag]
            elif part == "segment":
                score += given[self.first, self.lag]
        return score

    def cover(self, amounts: Floats, steps: int) -> Floats:
        """The sum (N, S) of the amounts (segments, S) of all segments that cover a step."""
        padded = np.concatenate([amounts, np.zeros_like(amounts[:1])])
        total = np.zeros((steps, amounts.shape[1]))
        lasting = np.zeros((self.start.size, amounts.shape[1]))  # by least number of steps of a segment
        for lag in reversed(range(self.longest)):
            lasting += padded[self.at[:-1, lag]]
            reached = self.length > lag
            total[self.start[reached] + lag] += lasting[reached]
        return total


@dataclass
class Links:
    """Ways from the nodes of one level to nodes of the next, or of the same: parent to child, sibling to sibling.

    Link p leads from node ``source[p]`` to ``target[p]`` and meets the potential of ``cell[p]``, at time t. ``out`` and
    ``into`` list the links of each node, padded by one link more that is impossible.
    """

    key: tuple[str, int]
    source: Ints
    target: Ints
    cell: Ints
    table: Floats  # (T or 1, links + 1)
    out: Ints  # (sources, at most)
    into: Ints  # (targets, at most)
    stop: Floats | None = None  # (T, links + 1) what the source scores as it ends at t
    start: Floats | None = None  # (T, links + 1) what the target scores as it starts
    later: int = 0  # number of steps by which it starts later
    may: Bools | None = None  # (T,) False: no link may be taken

    def weights(self, t: Ints) -> Floats:
        """Log-potentials (n, links + 1) at times t (n,), or (1, links + 1) if they are the same at all times."""
        found = self.table[t] if len(self.table) > 1 else self.table
        if self.stop is not None:
            found = found + self.stop[t]
        if self.start is not None:
            found = found + self.start[t + self.later]
        return found if self.may is None else np.where(self.may[t, None], found, -np.inf)

    def backward(self) -> Links:
        """The same links, walked from target to source."""
        changed = {"source": self.target, "target": self.source, "out": self.into, "into": self.out}
        return Links(**{**self.__dict__, **changed})


def places_by_node(nodes: Ints, n: int) -> Ints:
    """For each of n nodes the places where it stands in ``nodes``, in order, padded by ``nodes.size``."""
    counts = np.bincount(nodes, minlength=n)
    found = np.full((n, max(int(counts.max(initial=0)), 1)), nodes.size)
    order = np.argsort(nodes, kind="stable")
    found[nodes[order], ranges(np.zeros_like(counts), counts)] = order
    return found


class Layer:
    """A layer from an explicit level ``top`` down to the next, or to a Markov bottom; levels between are Markov.

    A node of level m is a stack of states from ``top`` to m: ``state[m]`` its lowest, ``parent[m]`` its parent node.
    The nodes of ``top`` are its states, those of ``bottom`` are the leaves; ``above[m]`` is the node of m above each
    leaf.
    """

    def __init__(
        self, topology: Topology, top: int, bottom: int, markov: bool, evidence: Evidence, steps: int, values: Arrays
    ) -> None:
        self.top, self.bottom, self.markov = top, bottom, markov
        self.levels = range(top + 1, bottom + 1)
        self.state, self.parent = {top: np.arange(topology.n_states[top])}, {}
        for m in self.levels:
            self.parent[m], self.state[m] = np.nonzero(topology.children[m - 1][self.state[m - 1]])
        self.above = {bottom: np.arange(self.state[bottom].size)}
        for m in reversed(self.levels):
            self.above[m - 1] = self.parent[m][self.above[m]]

        self.down, self.across, self.up = {}, {}, {}
        goes_on = np.ones(steps, dtype=bool)  # all levels between top and m
        self.tokens = np.zeros((steps, self.state[bottom].size))  # of a stack, as far as its levels are Markov
        for m in self.levels:
            nodes, parent, state = np.arange(self.state[m].size), self.parent[m], self.state[m]
            lasts = markov or m < bottom  # a level that is not Markov has its scores in its segments
            borders = {part: values.get((part, m)) if lasts else None for part in ("start", "stop")}
            may_end, shape = evidence.may_end[m], (topology.n_states[m - 1], topology.n_states[m])
            link = self._linker(values, m, borders)

            cell = np.ravel_multi_index((self.state[m - 1][parent], state), shape)
            self.down[m] = link("init", parent, nodes, cell)
            self.up[m] = link("end", nodes, parent, cell, may=may_end)
            siblings = (parent[:, None] == parent) & topology.successors[m][state][:, state]
            u, v = np.nonzero(siblings)
            cell = np.ravel_multi_index((self.state[m - 1][parent[u]], state[u], state[v]), (*shape, shape[1]))
            may = may_end & evidence.may_follow[m] & goes_on | ~evidence.may_go_on[0]  # not used at the last step
            self.across[m] = link("trans", u, v, cell, later=1, may=may)
            if lasts:
                goes_on = goes_on & evidence.may_go_on[m]
                allowed = evidence.allowed[m]
                own = values.get(("token", m), np.zeros((steps, shape[1])))
                own = own if allowed is None else np.where(allowed, own, -np.inf)
                self.tokens += own[:, state[self.above[m]]]
        self.goes_on = goes_on

    def _linker(self, values: Arrays, m: int, borders: dict[str, Floats | None]) -> Callable[..., Links]:
        """A function that makes links of level m, or between m and its parent's level."""
        sizes = {m - 1: self.state[m - 1].size, m: self.state[m].size}

        def by_link(scores: Floats | None, nodes: Ints) -> Floats | None:
            return None if scores is None else np.pad(scores[:, self.state[m][nodes]], ((0, 0), (0, 1)))

        def link(part: str, source: Ints, target: Ints, cell: Ints, later: int = 0, may: Bools | None = None) -> Links:
            given = values.get((part, m - 1))
            table = np.zeros((1, cell.size)) if given is None else given.reshape(len(given), -1)[:, cell]
            table = np.pad(table, ((0, 0), (0, 1)), constant_values=-np.inf)
            out = places_by_node(source, sizes[m - 1 if part == "init" else m])
            into = places_by_node(target, sizes[m - 1 if part == "end" else m])
            stop = None if part == "init" else by_link(borders["stop"], source)
            start = None if part == "end" else by_link(borders["start"], target)
            nodes = (np.append(source, 0), np.append(target, 0))
            may = None if may is None or may.all() else may
            return Links((part, m - 1), *nodes, cell, table, out, into, stop, start, later, may)

        return link
