"""What is learned before any weight: five merged parts equal one pass, field by field."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from hscrf.labels.packed import SegmentLengths
from scale_fixtures import numbers, partly, sentences


def segments_of(Y):
    found = []
    for y in Y:
        labels = hscrf.Labels.from_columns(hscrf.Topology({k: sorted(set(v)) for k, v in y.items()}), y)
        found.append({"phrase": labels.segments("phrase"), "tag": y["tag"]})
    return found


CASES = {
    "complete": (hscrf.HSCRF(scheme="plain", min_count=2), lambda X, Y: (X, Y)),
    "partial": (hscrf.HSCRF(scheme="plain", min_count=2), lambda X, Y: (X, partly(Y))),
    "segments": (hscrf.HSCRF(scheme="plain"), lambda X, Y: (X, segments_of(Y))),
    "arrays": (hscrf.HSCRF(scheme="plain"), lambda X, Y: (numbers(X), Y)),
    "dicts": (hscrf.HSCRF(scheme="plain"), lambda X, Y: ([[{"w": s[0], "n": 2.0} for s in x] for x in X], Y)),
    "seen": (hscrf.HSCRF(scheme="plain", transitions="seen"), lambda X, Y: (X, Y)),
    "all pairs": (hscrf.HSCRF(scheme="plain", pairs="all"), lambda X, Y: (X, Y)),
    "durations": (
        hscrf.HSCRF(scheme="plain", features=[hscrf.Token("tag"), hscrf.Duration("phrase"), hscrf.Trans("phrase")]),
        lambda X, Y: (X, Y),
    ),
    "chain": (hscrf.ChainCRF(), lambda X, Y: (X, [y["tag"] for y in Y])),
    "semi": (hscrf.SemiCRF(scheme="plain"), lambda X, Y: (X, [y["phrase"] for y in Y])),
    "dynamic": (hscrf.DynamicCRF(), lambda X, Y: (X, Y)),
    "dynamic, partial": (hscrf.DynamicCRF(), lambda X, Y: (X, partly(Y))),
}


def learn(model, X, Y, parts, elsewhere=False):
    """The frame of a model, learned in parts that are merged, and its blocks; parts are perhaps sent by pickle."""
    send = (lambda thing: pickle.loads(pickle.dumps(thing))) if elsewhere else (lambda thing: thing)
    model = clone(model)
    cuts = np.linspace(0, len(X), parts + 1).astype(int)
    pieces = [(X[a:b], Y[a:b], int(a)) for a, b in pairwise(cuts)]

    frames = []
    for x, y, offset in pieces:
        frame = model.new_frame(model.scheme)
        frame.update(x, y, offset)
        frames.append(send(frame))
    whole = model.new_frame(model.scheme)
    for other in frames:
        whole.merge(other)
    whole.settle(max(map(len, X)))
    model._adopt(whole)
    features = model._feature_statistics(whole.encoder)
    for x, y, offset in pieces:  # the second pass reads each part again, with what was learned from all of them
        observations = whole.encoder.pack(x)
        lengths = np.diff(observations.offsets).tolist()
        labels = whole.statistics.over(
            model.new_frame(model.scheme).statistics.update(y, lengths, offset), whole.topology
        )
        features.update(observations, labels)
    return whole, features.blocks()


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "pickled"])
@pytest.mark.parametrize("case", CASES)
def test_five_merged_parts_equal_one_pass(case, elsewhere):
    model, change = CASES[case]
    X, Y = change(*sentences(40))
    one, blocks = learn(model, X, Y, 1)
    five, others = learn(model, X, Y, 5, elsewhere)
    assert five.topology == one.topology
    assert five.lengths.means() == one.lengths.means()
    assert five.encoder.names == one.encoder.names
    assert list(five.encoder.names) == list(one.encoder.names), "names are in order of appearance"
    assert five.encoder.columns == one.encoder.columns
    np.testing.assert_allclose(five.encoder.mean, one.encoder.mean, rtol=1e-12)
    np.testing.assert_allclose(five.encoder.scale, one.encoder.scale, rtol=1e-12)
    assert len(blocks) == len(others)
    for ours, theirs in zip(blocks, others, strict=True):
        assert type(ours) is type(theirs)
        assert ours.describe(one.encoder) == theirs.describe(five.encoder)


@pytest.mark.parametrize("case", ["complete", "partial", "segments", "semi", "dynamic", "durations"])
def test_fit_learns_the_same_frame(case):
    model, change = CASES[case]
    X, Y = change(*sentences(40))
    fitted = clone(model).set_params(solver=hscrf.LBFGS(max_iter=1)).fit(X, Y)
    five, blocks = learn(model, X, Y, 5)
    assert fitted.topology_ == five.topology
    assert fitted.mean_lengths_ == five.lengths.means()
    assert list(fitted.encoder_.names) == list(five.encoder.names)
    for ours, theirs in zip(fitted.blocks_, blocks, strict=True):
        assert ours.describe(fitted.encoder_) == theirs.describe(five.encoder)


def test_parts_number_their_sequences_on():
    X, Y = sentences(6)
    frame = hscrf.HSCRF().new_frame("plain")
    frame.update(X[:3], Y[:3])
    with pytest.raises(ValueError, match=r"X\[3\] has \d+ steps? but Y\[3\] has \d+"):
        frame.update(X[3:], [{level: tags * 2 for level, tags in y.items()} for y in Y[3:]], offset=3)


def test_mean_lengths_count_the_segments_whose_borders_are_known():
    topology = hscrf.Topology({"phrase": ["NP", "VP"], "word": ["a"]}, max_duration={"word": None})
    complete = hscrf.Labels.from_segments(topology, {"phrase": [(0, 3, "NP"), (3, 4, "VP")]}, 4)
    partial = hscrf.Labels.from_segments(topology, {"phrase": [(2, 7, "NP")]}, 9)  # nothing is known before and after
    lengths = SegmentLengths()
    lengths.update([complete])
    lengths.update([partial])
    assert lengths.means() == {"root": 13 / 2, "phrase": (3 + 1 + 5) / 3, "word": 1.0}
    assert SegmentLengths(lengths.counts).means() == lengths.means()


def test_a_run_of_fillers_is_one_segment():
    y = {"phrase": ["B-NP", "I-NP", "O", "O", "O", "B-NP", "B-NP"]}
    model = hscrf.HSCRF(solver=hscrf.LBFGS(max_iter=1)).fit([[["w"]] * 7], [y])
    assert model.mean_lengths_["phrase"] == 7 / 4
