"""The log-potentials of one step, arranged by the stacks of states."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hscrf.arrays import Floats
from hscrf.potentials import Key
from hscrf.streaming.layout import Layout

Row = Mapping[Key, Floats]  # potentials, by part and level


class Terms:
    """The scores of one step, by the level and the number of the stack.

    Parts that do not change in time are arranged once, by :class:`Arranger`, and shared by all steps.
    """

    __slots__ = ("average", "end", "enter", "start", "stop", "token", "trans")

    token: Floats | None  # (leaves,) of all levels
    start: dict[int, Floats]  # (nodes of the level,) a segment starts at this step
    enter: dict[int, Floats]  # (leaves,) all levels below this one start at this step
    stop: dict[int, Floats]  # (nodes,) a segment has its last step here
    end: dict[int, Floats]  # (nodes,) the level above ends here with this child
    trans: dict[int, Floats]  # (stacks above, k, k) one child ends here, the other starts at the next step
    average: dict[int, Floats]  # (S,) token scores that are averaged over segments


class Arranger:
    """Turns the potentials of steps into :class:`Terms`; ``constant`` are those that are the same at every step."""

    def __init__(self, layout: Layout, constant: Row) -> None:
        self.layout = layout
        self.legal = {m: self._legal(m) for m in layout.nodes}
        self.constant = dict(constant)
        self.init: dict[int, Floats] = {}
        self.fixed = self._arranged(constant, constant)

    def __call__(self, values: Row, steps: int) -> list[Terms]:
        """The terms of some steps, from the potentials (steps, ...) that change in time."""
        own = self._arranged(values, {**self.constant, **values})
        token, fixed = own.token, self.fixed.token
        if fixed is not None:
            token = np.broadcast_to(fixed, (steps, fixed.size)) if token is None else token + fixed
        return [self._at(own, token, t) for t in range(steps)]

    def _at(self, own: Terms, token: Floats | None, t: int) -> Terms:
        """The terms of one step, from those of all."""
        fixed, found = self.fixed, Terms()
        found.token = None if token is None else token[t]
        found.start = {**fixed.start, **{d: table[t] for d, table in own.start.items()}}
        found.stop = {**fixed.stop, **{d: table[t] for d, table in own.stop.items()}}
        found.end = {**fixed.end, **{d: table[t] for d, table in own.end.items()}} if own.end else fixed.end
        found.trans = {**fixed.trans, **{d: table[t] for d, table in own.trans.items()}} if own.trans else fixed.trans
        found.average = {d: table[t] for d, table in own.average.items()}
        enter = {m: table[t] if table.ndim > 1 else table for m, table in own.enter.items()}
        found.enter = enter or fixed.enter
        return found

    def _legal(self, m: int) -> Floats:
        """Zero for siblings (stacks above, k, k) that may follow each other, -inf for others and for the padding."""
        nodes = self.layout.nodes[m]
        state = nodes.state[nodes.members]
        allowed = self.layout.topology.successors[m][state[:, :, None], state[:, None, :]]
        return np.where(allowed & nodes.real[:, :, None] & nodes.real[:, None, :], 0.0, -np.inf)

    def _arranged(self, row: Row, known: Row) -> Terms:
        """The terms of some potentials; ``known`` has others that belong to the same sums.

        All may have an axis of steps before the others.
        """
        layout, found = self.layout, Terms()
        tokens = [values.take(layout.states[d], axis=-1) for (part, d), values in row.items() if part == "token"]
        found.token = sum(tokens[1:], start=tokens[0]) if tokens else None
        found.start = {d: values.take(self._state(d), axis=-1) for (part, d), values in row.items() if part == "start"}
        found.stop = {d: values.take(self._state(d), axis=-1) for (part, d), values in row.items() if part == "stop"}
        found.average = {d: values for (part, d), values in row.items() if part == "average"}
        found.end, found.trans = {}, {}
        for (part, d), values in row.items():
            if part == "end":
                nodes = layout.nodes[d + 1]
                found.end[d + 1] = values[..., nodes.above, nodes.state]
            elif part == "trans":
                nodes = layout.nodes[d + 1]
                state, parents = nodes.state[nodes.members], nodes.above[nodes.first]
                table = values[..., parents[:, None, None], state[:, :, None], state[:, None, :]]
                found.trans[d + 1] = table + self.legal[d + 1]
        moving = row is known or any(part in ("start", "init") for part, _ in row)
        found.enter = self._enter(known) if moving else {}
        if row is known:  # all levels, even without scores
            found.trans = {m: found.trans.get(m, legal) for m, legal in self.legal.items()}
        return found

    def _state(self, d: int) -> np.ndarray:
        return self.layout.roots if d == 0 else self.layout.nodes[d].state

    def _enter(self, row: Row) -> dict[int, Floats]:
        """Of each level m, the sum of ``init`` and ``start`` of all levels below it, by complete stack."""
        layout = self.layout
        total = np.zeros(layout.leaves)
        found = {layout.bottom: total}
        for m in range(layout.bottom, 0, -1):
            if ("init", m - 1) in row:
                total = total + self._init(m, row["init", m - 1])
            if ("start", m) in row:
                total = total + row["start", m].take(layout.states[m], axis=-1)
            found[m - 1] = total
        return found

    def _init(self, m: int, values: Floats) -> Floats:
        """Scores of first children of level m by complete stack; made once if they do not change in time."""
        if values is not self.constant.get(("init", m - 1)):
            return np.asarray(values[..., self.layout.states[m - 1], self.layout.states[m]])
        if m not in self.init:
            self.init[m] = values[self.layout.states[m - 1], self.layout.states[m]]
        return self.init[m]
