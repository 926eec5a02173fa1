"""Sequences that are cut at known labels give the same answers as from an engine that never cuts."""

import contextlib
import itertools

import numpy as np
import pytest

import enumeration as twin
import hscrf
from drawing import draw_potentials, draw_topology, mixes_of
from exactness import ask_engine, ask_enumeration, differences, draw_case
from hscrf import native
from hscrf.engine import Evidence
from hscrf.engine.choice import ENGINES
from hscrf.engine.compiled import FEWEST, Compiled
from hscrf.engine.reference import Reference
from hscrf.errors import InfeasibleError
from hscrf.fillers import expanded, masked
from hscrf.inference.posterior import values_of
from hscrf.potentials import FAMILY

pytestmark = pytest.mark.skipif(native.core is None, reason="the compiled core cuts, the reference does not")


class Cutting(Compiled):
    """The compiled engine, which cuts single sequences too."""

    def __init__(self, topology, offsets, evidence=None):
        super().__init__(topology, offsets, evidence, fewest=0)


def packed(models):
    """The arrays of several sequences of one topology, one after the other; constant tables are those of the first."""
    found = {}
    for key, table in values_of(models[0]).items():
        constant = key[0] == "duration" or (key[0] in FAMILY and len(table) == 1 < models[0].length)
        found[key] = table if constant else np.concatenate([values_of(p)[key] for p in models])
    return masked(models[0].topology, found)


def known_above(rng, p, level):
    """Labels of a sample: all of the levels down to one, and a few below it."""
    truth = hscrf.sample(p, 1, rng)[0]
    kept = rng.random(truth.states.shape) < rng.choice([0.0, 0.2])
    kept[: level + 1] = True
    return hscrf.Labels(p.topology, np.where(kept, truth.states, -1), np.where(kept, truth.ends, -1)).closed()


def engines(models, evidence, fewest=0):
    """The reference engine, and the engine that cuts batches into parts of this many sequences."""
    offsets = np.concatenate([[0], np.cumsum([p.length for p in models])])
    given = expanded(models[0].topology), offsets, evidence
    return Compiled(*given, fewest), Reference(*given)


def assert_same(one, other, values, weights=None):
    """Log Z, counts and posteriors of two engines agree."""
    found, wanted = one.expectations(values, weights), other.expectations(values, weights)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(found.log_z, wanted.log_z, **close)
    np.testing.assert_allclose(one.log_partition(values), wanted.log_z, **close)
    assert found.counts.keys() == wanted.counts.keys()
    for key, table in wanted.counts.items():
        np.testing.assert_allclose(found.counts[key], table, err_msg=str(key), **close)
    for d, (state, ending) in enumerate(zip(wanted.state, wanted.ending, strict=True)):
        np.testing.assert_allclose(found.state[d], state, err_msg=f"state {d}", **close)
        np.testing.assert_allclose(found.ending[d], ending, err_msg=f"ending {d}", **close)


@pytest.mark.parametrize("kinds", mixes_of(3, 4), ids="-".join)
@pytest.mark.parametrize(("constant", "classes"), [(True, 1), (False, 2)])
def test_cut_sequences_have_the_same_expectations(kinds, constant, classes):
    rng = np.random.default_rng([classes, *map(len, kinds)])
    topology = draw_topology(rng, kinds, 3, classes, sparse=True, longest=6)
    lengths = (2, *rng.integers(1, 7, size=4).tolist())
    models = [draw_potentials(rng, topology, kinds, n, longest=6, constant=constant) for n in lengths]
    levels = [0, *rng.permutation([1, 1, len(kinds) - 1, len(kinds) - 1])]  # down to which all is known
    evidence = Evidence.of([known_above(rng, p, d) for p, d in zip(models, levels, strict=True)])
    one, other = engines(models, evidence)
    assert_same(one, other, packed(models))
    assert {group.top for group in one.cut.groups} >= set(levels[1:])
    assert_same(one, other, packed(models), rng.normal(size=5))


@pytest.mark.parametrize("seed", range(20))
def test_cut_sequences_by_enumeration(seed, monkeypatch):
    """All is known of the levels above the bottom, or of the upper ones of these."""
    monkeypatch.setitem(ENGINES, "compiled", (Cutting.__module__, Cutting.__name__))
    for number in itertools.count(seed, 100):
        case = draw_case(number, 3 + seed % 2)
        topology = case.potentials.topology
        with contextlib.suppress(InfeasibleError):  # a model without any configuration: the next one
            known = known_above(np.random.default_rng(number), case.potentials, topology.depth - 2 - seed % 2)
            break
    labels = hscrf.Labels(topology, known.states, known.ends)
    case = case._replace(evidence=twin.Evidence(known.states, known.ends), labels=labels)
    apart = differences(ask_engine("compiled", case), ask_enumeration(case))
    np.testing.assert_array_less(apart, 1e-8)


def test_fillers_remember_in_stretches():
    rng = np.random.default_rng(3)
    levels, limits = {"a": ["x", "y"], "b": ["s", "t", "O"]}, {"b": None}
    topology = hscrf.Topology(levels, {"a": {"x": ["s", "O"]}}, max_duration=limits, fillers={"b": "O"})
    hidden = expanded(topology).n_states
    trans = {"a": rng.normal(size=(1, hidden[1], hidden[2], hidden[2]))}
    models = []
    for n in (6, 1, 4):
        token = {level: rng.normal(size=(n, hidden[d])) for d, level in enumerate(topology.levels)}
        models.append(hscrf.Potentials(topology, n, token=token, trans=trans))
    one, other = engines(models, Evidence.of([known_above(rng, p, 1) for p in models]))
    assert_same(one, other, {**packed(models), ("trans", 1): trans["a"]})
    assert {group.top for group in one.cut.groups} == {1}


def nested(columns):
    """Potentials and closed labels of a small model in which x has one child and y two, from columns of both levels."""
    topology = hscrf.Topology(
        {"a": ["x", "y"], "b": ["s", "t", "u"]},
        {"a": {"x": ["s"], "y": ["t", "u"]}},
        {"a": {"x": ["y"]}},
    )
    labels = [hscrf.Labels.from_columns(topology, some, scheme={"a": "bio", "b": "plain"}) for some in columns]
    return [hscrf.Potentials(topology, y.length) for y in labels], labels


def test_parts_have_only_the_states_below_theirs_and_no_evidence():
    models, labels = nested([{"a": ["B-x", "I-x", "B-y"], "b": ["?"] * 3}, {"a": ["B-y", "B-y"], "b": ["?"] * 2}])
    one, other = engines(models, Evidence.of([y.closed() for y in labels]))
    assert_same(one, other, packed(models))
    below_x, below_y = one.cut.groups
    assert [own.tolist() for own in below_x.columns] == [[], [0], [0]]
    assert [own.tolist() for own in below_y.columns] == [[], [1], [1, 2]]
    assert (below_x.end - below_x.begin, below_y.end - below_y.begin) == (2, 3)
    assert below_y.owners.tolist() == [0, 1, 1]
    assert below_x.engine.evidence is None
    assert below_y.engine.evidence is None
    np.testing.assert_allclose(one.log_partition({}), np.log([2, 4]), rtol=1e-12)


def test_sequences_with_unknown_ends_stay_in_one_piece():
    models, labels = nested([{"a": ["B-y", "B-y"], "b": ["t", "?"]}])
    ends = labels[0].ends.copy()
    ends[1, 0] = -1
    unsure = hscrf.Labels(labels[0].topology, labels[0].states, ends)
    one, other = engines(models, Evidence.of([unsure.closed()]))
    assert_same(one, other, packed(models))
    assert one.cut is None


@pytest.mark.parametrize("part", ["token", "duration"])
def test_known_labels_without_configuration(part):
    """A forbidden token of a known state, or a known segment that is longer than its table."""
    models, labels = nested([{"a": ["B-y", "I-y", "B-y"], "b": ["?"] * 3}, {"a": ["B-x"], "b": ["?"]}])
    values = {("duration", 1): np.zeros((1, 2))} if part == "duration" else {("token", 1): np.zeros((4, 2))}
    if part == "token":
        values["token", 1][1, 1] = -np.inf
    one, other = engines(models, Evidence.of([y.closed() for y in labels]))
    assert_same(one, other, values)
    assert one.expectations(values).log_z.tolist() == [-np.inf, 0.0]
    assert one.cut is not None


def test_small_batches_stay_in_one_piece():
    models, labels = nested([{"a": ["B-y", "B-y"], "b": ["?", "?"]}])
    known = labels[0].closed()
    assert engines(models, Evidence.of([known]), FEWEST)[0].cut is None
    assert engines(models * FEWEST, Evidence.of([known] * FEWEST), FEWEST)[0].cut is not None
