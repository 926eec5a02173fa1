"""The table of the root's segments by whole columns is that of the kernels for any level."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hscrf.engine import root
from hscrf.engine.kernels.tables import add_persist, add_persist_back, find_columns, find_reach
from hscrf.potentials import OWN

NONE = np.empty((0, 0))


class Case:
    """Sequences with one segment each, of some root states and with some of the parts."""

    def __init__(self, seed, parts, limited):
        rng = self.rng = np.random.default_rng(seed)
        lengths, states = rng.integers(1, 6, rng.integers(1, 5)), int(rng.integers(1, 4))
        self.offsets = np.append(0, np.cumsum(lengths))
        n, last = self.offsets[-1], self.offsets[1:] - 1
        self.allowed = rng.random((n, states)) < 0.9 if rng.random() < 0.7 else np.ones((1, states), dtype=bool)
        self.may_end, self.may_go_on = np.zeros(n, dtype=bool), rng.random(n) < 0.95
        self.may_end[last] = rng.random(last.size) < 0.9
        self.longest = rng.integers(1, 7, states) if limited else np.full(states, 6)
        self.shortest = rng.integers(1, 4, states)
        shapes = dict(zip(OWN, [(n, states)] * 3 + [(6, states), (n * 6, states)], strict=True))
        self.own = [
            rng.standard_normal(shape) if part in parts else NONE.reshape(0, states) for part, shape in shapes.items()
        ]

    def by_kernels(self):
        n, states = self.offsets[-1], self.longest.size
        starts = np.zeros(n, dtype=bool)
        starts[self.offsets[:-1]] = True
        reach = np.empty((n, states), dtype=np.int64)
        base, skip, width, most, least = np.empty((5, n), dtype=np.int64)
        find_reach(self.offsets, self.allowed, starts, self.may_go_on, self.longest, reach, most, least)
        return reach, least, (base, skip, width, find_columns(self.offsets, most, self.may_end, base, skip, width))

    def by_columns(self):
        sets = self.allowed if len(self.allowed) > 1 else None
        reach = root.reach_of_roots(self.offsets, sets, self.may_go_on, self.longest)
        return reach, root.columns_of_roots(self.offsets, reach, self.may_end)


def by_state(arrays):
    """As the kernels have them: states first."""
    return [np.ascontiguousarray(array.T) for array in arrays]


def drawn(function):
    parts = st.sets(st.sampled_from(OWN))
    return given(case=st.builds(Case, st.integers(0, 10**6), parts, st.booleans()))(function)


@drawn
def test_columns_are_those_of_the_kernels(case):
    reach, _, columns = case.by_kernels()
    found, mine = case.by_columns()
    for one, other in zip(mine, columns, strict=True):
        np.testing.assert_array_equal(one, other)
    whole = reach[case.offsets[:-1]] == np.diff(case.offsets)[:, None]
    np.testing.assert_array_equal(found[case.offsets[:-1]], np.where(whole, reach[case.offsets[:-1]], 0))
    assert found.sum() == found[case.offsets[:-1]].sum()


@drawn
def test_persist_is_that_of_the_kernels(case):
    reach, least, (base, skip, width, columns) = case.by_kernels()
    one, other = np.zeros((2, case.longest.size, columns))
    add_persist(base, skip, width, reach, least, case.shortest, *by_state(case.own[:-1]), case.own[-1], one)
    roots = root.roots_of(width, skip, case.by_columns()[0], case.shortest)
    root.add_persist_of_roots(roots, case.own, other)
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


@drawn
def test_counts_are_those_of_the_kernels(case):
    reach, _, (base, skip, width, columns) = case.by_kernels()
    states, n = case.longest.size, case.offsets[-1]
    post = case.rng.random((states, columns))
    one, other = ([np.zeros((n, states)), np.zeros(n), *map(np.zeros_like, case.own[1:])] for _ in range(2))
    state, ending, *parts, segment = one
    state, *parts = by_state([state, *parts])
    add_persist_back(base, skip, width, post, state, ending, *parts, segment)
    roots = root.roots_of(width, skip, reach, case.shortest)
    root.add_persist_of_roots_back(roots, post, other[:2], other[2:])
    for mine, theirs in zip(other, [state.T, ending, *(part.T for part in parts), segment], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
