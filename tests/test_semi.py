"""SemiCRF against a semi-Markov forward-backward and Viterbi written out by hand, and as a three-level HSCRF."""

import numpy as np
import pytest
from sklearn.base import clone

import hscrf
from drawing import log_sum
from hscrf.families.semi import semi_crf_as_hscrf

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


class SemiMarkov:
    """The classical recursion in log space: O(T L S^2), plain loops. Times i..j are inclusive.

    token (T, S), start (T, S), stop (T, S), duration (L, S), segment (T, L, S), init (S,), trans (S, S), end (S,);
    possible(i, j, s) says whether evidence and limits allow a segment.
    """

    def __init__(self, token, start, stop, duration, segment, init, trans, end, possible):
        self.T, self.S = token.shape
        self.L = len(duration)
        self.init, self.trans, self.end = init, trans, end
        self.own = np.full((self.T, self.T, self.S), -np.inf)
        for i in range(self.T):
            for j in range(i, min(self.T, i + self.L)):
                for s in range(self.S):
                    if possible(i, j, s):
                        inner = token[i : j + 1, s].sum() + start[i, s] + stop[j, s]
                        self.own[i, j, s] = inner + duration[j - i, s] + segment[i, j - i, s]

    def forward(self, total):
        """alpha[j, s]: all ways to fill 0..j with a last segment of s; total adds, or maximises."""
        alpha = np.full((self.T, self.S), -np.inf)
        for j in range(self.T):
            for s in range(self.S):
                ways = []
                for i in range(j + 1):
                    before = self.init[s] if i == 0 else total(alpha[i - 1] + self.trans[:, s])
                    ways.append(before + self.own[i, j, s])
                alpha[j, s] = total(ways)
        return alpha

    def backward(self):
        """beta[j, s]: all ways to go on after a segment of s that ends at j."""
        beta = np.full((self.T, self.S), -np.inf)
        beta[-1] = self.end
        for j in range(self.T - 2, -1, -1):
            for s in range(self.S):
                ways = [
                    self.trans[s, u] + self.own[j + 1, k, u] + beta[k, u]
                    for k in range(j + 1, self.T)
                    for u in range(self.S)
                ]
                beta[j, s] = log_sum(ways)
        return beta

    def log_partition(self):
        return log_sum(self.forward(log_sum)[-1] + self.end)

    def segments(self):
        """Posterior (T, T, S) of each segment."""
        alpha, beta, log_z = self.forward(log_sum), self.backward(), self.log_partition()
        found = np.zeros_like(self.own)
        for i in range(self.T):
            for s in range(self.S):
                before = self.init[s] if i == 0 else log_sum(alpha[i - 1] + self.trans[:, s])
                found[i, :, s] = np.exp(before + self.own[i, :, s] + beta[:, s] - log_z)
        return found

    def best(self):
        return (self.forward(np.max)[-1] + self.end).max()


def draw(seed, scale=1.0, known=False, length=7, states=3, longest=4):
    """The same random model twice: by hand, and as potentials with labels."""
    rng = np.random.default_rng(seed)
    limits = rng.integers(2, longest + 1, states)
    names = [f"s{k}" for k in range(states)]
    topology = hscrf.Topology({"label": names}, max_duration={"label": dict(zip(names, limits.tolist(), strict=True))})
    T, S, L = length, states, longest

    def table(*shape):
        return scale * rng.standard_normal(shape)

    token, start, stop, duration, segment = table(T, S), table(T, S), table(T, S), table(L, S), table(T, L, S)
    init, trans, end = table(S), table(S, S), table(S)
    trans[0, 1] = -np.inf
    p = hscrf.Potentials(
        topology,
        T,
        token={"label": token},
        start={"label": start},
        stop={"label": stop},
        duration={"label": duration},
        segment={"label": segment},
        init={"root": init[None, None]},
        trans={"root": trans[None, None]},
        end={"root": end[None, None]},
    )
    state, ends, labels = np.full(T, -1), np.full(T, -1), None
    if known:
        truth = hscrf.sample(p, 1, rng)[0]
        state = np.where(rng.random(T) < 0.3, truth.states[1], -1)
        ends = np.where(rng.random(T) < 0.3, truth.ends[1], -1)
        ends[-1] = 1
        root = np.zeros((2, T), dtype=int)
        root[1, -1] = 1
        labels = hscrf.Labels(topology, np.stack([root[0], state]), np.stack([root[1], ends]))

    def possible(i, j, s):
        return (
            j - i < limits[s]
            and ((state[i : j + 1] < 0) | (state[i : j + 1] == s)).all()
            and (ends[i:j] != 1).all()
            and ends[j] != 0
            and (i == 0 or ends[i - 1] != 0)
        )

    return SemiMarkov(token, start, stop, duration, segment, init, trans, end, possible), p, labels


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_classical_recursion(seed, scale, known):
    twin, p, labels = draw(seed, scale, known)
    close = CLOSE if scale == 1.0 else {"rtol": 1e-9, "atol": 1e-7}
    assert hscrf.log_partition(p, labels) == pytest.approx(twin.log_partition(), rel=1e-10)
    assert hscrf.decode(p, labels).score == pytest.approx(twin.best(), rel=1e-10)
    found = hscrf.marginals(p, labels).segment("label")
    expected = np.zeros((twin.T, twin.L, twin.S))
    posterior = twin.segments()
    for i in range(twin.T):
        for length in range(min(twin.L, twin.T - i)):
            expected[i, length] = posterior[i, i + length]
    np.testing.assert_allclose(found, expected[:, : found.shape[1]], **close)
    assert not expected[:, found.shape[1] :].any()


@pytest.mark.parametrize("seed", range(4))
def test_as_a_three_level_hscrf(seed):
    _, p, labels = draw(seed, known=True)
    three = semi_crf_as_hscrf(p)
    states = np.vstack([labels.states, np.full(p.length, -1)])
    ends = np.vstack([labels.ends, np.full(p.length, -1)])
    same = hscrf.Labels(three.topology, states, ends)
    for mine, theirs in ((None, None), (labels, same)):
        assert hscrf.log_partition(three, theirs) == pytest.approx(hscrf.log_partition(p, mine))
        assert hscrf.decode(three, theirs).segments("label") == hscrf.decode(p, mine).segments("label")
        one, other = hscrf.marginals(p, mine), hscrf.marginals(three, theirs)
        np.testing.assert_allclose(one.state["label"], other.state["label"], **CLOSE)
        np.testing.assert_allclose(one.counts.segment["label"], other.counts.segment["label"], **CLOSE)


def test_only_a_persisting_bottom_becomes_three_levels():
    with pytest.raises(ValueError, match="expected one that persists"):
        semi_crf_as_hscrf(hscrf.Potentials(hscrf.Topology({"tag": ["N"]}), 2))


X = [[[f"w={w}"] for w in sentence.split()] for sentence in ("the old cat sleeps", "the cat sleeps well now")]
SEGMENTS = [[(0, 3, "NP"), (3, 4, "O")], [(0, 2, "NP"), (2, 5, "O")]]
TAGS = [["B-NP", "I-NP", "I-NP", "O"], ["B-NP", "I-NP", "O", "O", "O"]]


def test_labels_are_tags_or_segments():
    from_tags, from_segments = hscrf.SemiCRF().fit(X, TAGS), hscrf.SemiCRF().fit(X, SEGMENTS)
    np.testing.assert_allclose(from_tags.coef_, from_segments.coef_)
    assert from_tags.topology_.max_duration[1].tolist() == [3, 3]
    assert [y.segments("label") for y in from_tags.predict(X)] == SEGMENTS
    assert [y.column("label", scheme="bio") for y in from_tags.predict(X)] == TAGS


def test_max_duration_is_kept():
    model = hscrf.SemiCRF(max_duration={"NP": 3, "O": 4}).fit(X, TAGS)
    assert model.topology_.max_duration[1].tolist() == [3, 4]
    long = [[["w=the"]] * 9]
    assert max(j - i for i, j, _ in model.predict(long)[0].segments("label")) <= 4
    with pytest.raises(hscrf.InfeasibleError, match=r"Y\[0\]"):
        hscrf.SemiCRF(max_duration=2).fit(X, TAGS)


def test_partial_labels_tell_no_limit():
    partial = [TAGS[0], ["B-NP", "?", "?", "?", "O"]]
    free = hscrf.SemiCRF().fit(X, partial)
    assert not free.topology_.has_limits(1)
    assert "duration" not in set(free.weights_["part"])
    with pytest.raises(ValueError, match="give max_duration"):
        hscrf.SemiCRF(features=[hscrf.Duration("label")]).fit(X, partial)
    model = hscrf.SemiCRF(max_duration=4, c2=0.1).fit(X, partial)
    known = model.predict(X, evidence=[None, ["?", "?", "?", "B-NP", "I-NP"]])[1]
    assert (3, 5, "NP") in known.segments("label")


def test_segment_features_durations_and_round_trip(tmp_path):
    def words(z, start, stop):
        return [sum(item == ["w=cat"] for item in z[start:stop]), stop - start == 1]

    features = [hscrf.Token("label"), hscrf.Segment("label", words), hscrf.Duration("label", "each")]
    features += [hscrf.Token("label", average=True), hscrf.Trans("root")]
    model = hscrf.SemiCRF(features=features, max_duration=3).fit(X, TAGS)
    assert [y.segments("label") for y in model.predict(X)] == SEGMENTS
    model.save(tmp_path / "m")
    loaded = hscrf.load(tmp_path / "m", functions={"words": words})
    assert type(loaded) is hscrf.SemiCRF
    assert loaded.max_duration == 3
    np.testing.assert_array_equal(loaded.log_likelihood(X, TAGS), model.log_likelihood(X, TAGS))
    assert clone(model).max_duration == 3
    assert set(model.weights_["part"]) == {"token", "segment", "duration", "trans"}


def test_two_levels_are_not_one():
    with pytest.raises(ValueError, match="2 levels below the root"):
        hscrf.SemiCRF().fit(X, [{"a": tags, "b": tags} for tags in TAGS])
