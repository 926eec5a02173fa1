"""Work space that threads keep: nothing that a caller holds lies in it."""

import itertools

import numpy as np
import pytest

import hscrf
from drawing import draw_model
from hscrf.engine import Batch
from hscrf.engine.compiled import make_core, segmental_levels
from hscrf.engine.kbest import KBest
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
def test_earlier_results_stay_when_others_are_computed(engine, kinds):
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


def test_the_k_best_go_on_after_other_questions(core):
    one, other = (draw_model(np.random.default_rng(seed), ("segmental", "unit"), 20, size=3) for seed in (0, 1))
    batch, values = Batch(one.topology, np.array([0, 20])), values_of(one)
    segmental = segmental_levels(one.topology, values)
    runs = make_core(one.topology, segmental).runs(values, batch.offsets, None)
    for score, states, ends in itertools.islice(KBest(runs, segmental, 20), 6):
        np.testing.assert_allclose(hscrf.score(one, hscrf.Labels(one.topology, states, ends)), score, rtol=1e-10)
        batch.expectations(values_of(other))
        batch.best(values_of(other))


def test_tables_of_segments_come_only_when_asked_for(engine):
    batch, values, _ = two_of_a_kind(("segmental", "unit"))
    assert batch.expectations(values).segments == {}
    assert batch.expectations(values, explicit=[1]).segments.keys() == {1}
