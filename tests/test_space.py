"""Work space that threads keep: nothing that a caller holds lies in it."""

import itertools
import threading

import numpy as np
import pytest

import hscrf
from drawing import draw_model
from hscrf.engine import Batch
from hscrf.engine.kbest import KBest
from hscrf.engine.space import LINE, MOST, PAGE, SPACE, Space, fresh, zeros_beside
from hscrf.inference.posterior import values_of

KINDS = [("markov", "unit"), ("segmental", "unit"), ("segmental", "segmental"), ("markov", "segmental", "markov")]


def two_of_a_kind(kinds):
    """Two models of one topology and the batch of either."""
    one, other = (draw_model(np.random.default_rng(seed), kinds, 20, size=3, longest=6) for seed in (0, 1))
    return Batch(one.topology, np.array([0, 20])), values_of(one), values_of(other)


def arrays_of(found):
    """All arrays in a result of the engine."""
    if isinstance(found, np.ndarray):
        return [found]
    items = found.values() if isinstance(found, dict) else found
    return [array for item in items for array in arrays_of(item)]


@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_what_was_found_stays_when_others_are_asked(kinds):
    batch, values, others = two_of_a_kind(kinds)
    verbs = [
        batch.log_partition,
        batch.expectations,
        lambda given: batch.expectations(given, explicit=[1]),
        batch.best,
        lambda given: batch.draw(given, 3, np.random.default_rng(0)),
    ]
    found = [arrays_of(verb(values)) for verb in verbs]
    copies = [[array.copy() for array in arrays] for arrays in found]
    for verb in verbs:
        verb(others)
    for array, copy in zip(itertools.chain(*found), itertools.chain(*copies), strict=True):
        np.testing.assert_array_equal(array, copy)


def test_the_k_best_go_on_after_other_questions():
    one, other = (draw_model(np.random.default_rng(seed), ("segmental", "unit"), 20, size=3) for seed in (0, 1))
    batch, values = Batch(one.topology, np.array([0, 20])), values_of(one)
    for score, states, ends in itertools.islice(KBest(batch.plan(values), values), 6):
        np.testing.assert_allclose(hscrf.score(one, hscrf.Labels(one.topology, states, ends)), score, rtol=1e-10)
        batch.expectations(values_of(other))
        batch.best(values_of(other))


def test_tables_of_segments_come_only_when_asked_for():
    batch, values, _ = two_of_a_kind(("segmental", "unit"))
    assert batch.expectations(values).segments == {}
    assert batch.expectations(values, explicit=()).segments.keys() == {0, 1}


def test_an_array_is_kept_by_its_name():
    space = Space()
    first = space.array("a", (3, 4))
    assert np.shares_memory(first, space.array("a", 5))
    assert not np.shares_memory(first, space.array("b", 5))
    assert space.array("a", (0, 7)).shape == (0, 7)


def test_very_large_arrays_are_not_kept():
    space = Space()
    space.array("a", MOST + 1)
    assert "a" not in space.held


def test_each_thread_has_its_own():
    found = []
    thread = threading.Thread(target=lambda: found.append(SPACE.array("test", 8)))
    thread.start()
    thread.join()
    assert not np.shares_memory(found[0], SPACE.array("test", 8))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_arrays_begin_with_lines_of_the_cache(size):
    for array in (Space().array("some", size), fresh("some", (size, 3)), Space().array("truths", size, np.bool_)):
        assert array.ctypes.data % LINE == 0
        assert array.flags.c_contiguous


def test_counts_lie_half_a_page_from_what_they_count():
    for _ in range(5):
        array = np.empty(1003)
        counts = zeros_beside(array)
        assert (counts.ctypes.data - array.ctypes.data) % PAGE == PAGE // 2
        assert counts.size == array.size
        assert not counts.any()
