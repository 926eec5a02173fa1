"""Streams: the labels of each step equal those of the prefix so far and, at the end, those of ``predict``."""

import numpy as np
import pytest

import hscrf
from drawing import MIXES, draw_topology, log_sum
from hscrf.streaming.lookback import SegmentalRecursion
from hscrf.streaming.stream import Shown, Stream


class Given:
    """Scores that are drawn instead of learned, with what a Stream asks of a scorer."""

    def __init__(self, rng, topology, kinds, length, longest, moving):
        self.length, sizes = length, topology.n_states
        self.durations = {
            d + 1: rng.normal(size=(longest, sizes[d + 1])) for d, k in enumerate(kinds) if k == "segmental"
        }
        self.limits, self.tails = {}, {d: rng.uniform(-2.0, -0.4, sizes[d]) for d in topology.open_levels}
        shapes = {}
        for d in range(topology.depth):
            shapes |= {(part, d): (sizes[d],) for part in ("token", "start", "stop")}
            if d < topology.depth - 1:
                shapes |= {("init", d): sizes[d : d + 2], ("end", d): sizes[d : d + 2]}
                shapes["trans", d] = (sizes[d], sizes[d + 1], sizes[d + 1])
        self.constant, self.moving = {}, {}
        for key, shape in shapes.items():
            if key[0] in ("init", "trans", "end") and not moving:
                self.constant[key] = rng.normal(size=shape)
            else:
                self.moving[key] = rng.normal(size=(length, *shape))

    @property
    def keys(self):
        return {*self.constant, *self.moving}

    def rows(self):
        return [{key: table[t] for key, table in self.moving.items()} for t in range(self.length)]

    def potentials(self, topology, n, finished, best=True):
        """The first n steps as Potentials; unless finished, what would happen after them is left out."""
        parts = {part: {} for part in ("token", "start", "stop", "segment", "init", "trans", "end")}
        for (part, d), values in {**{k: v[None] for k, v in self.constant.items()}, **self.moving}.items():
            values = np.broadcast_to(values, (self.length, *values.shape[1:]))[:n].copy()
            if part in ("stop", "end") and not finished:
                values[n - 1] = 0.0
            parts[part][topology.levels[d]] = values
        for d in range(1, topology.depth):
            if d not in self.durations and not topology.has_limits(d):
                continue
            parts["segment"][topology.levels[d]] = self.lengths(topology, d, n, finished, best)
        loose = {**topology.to_dict(), "min_duration": {}, "open_duration": {}}
        loose["max_duration"] |= {topology.levels[d]: None for d in topology.open_levels}
        return hscrf.Potentials(hscrf.Topology.from_dict(loose), n, **parts)

    def lengths(self, topology, d, n, finished, best):
        """A table (n, n, S) of the lengths of all segments; those that reach the end may go on unless finished."""
        low, high, opened = topology.min_duration[d], topology.max_duration[d], topology.open_duration[d]
        table = np.full((n, n, topology.n_states[d]), -np.inf)
        bounded = d in self.durations or (high < 10**9).all()
        for s in range(topology.n_states[d]):
            longest = min(int(high[s]), len(self.durations[d]) if d in self.durations else 10**9)
            own = {
                length: self.durations[d][length - 1, s] if d in self.durations else 0.0
                for length in range(int(low[s]), min(longest, 200) + 1)
            }
            if opened[s]:
                own |= {length: own[longest] + (length - longest) * self.tails[d][s] for length in range(longest, 200)}
            for i in range(n):
                for length in range(1, n - i + 1):
                    if i + length < n or finished:
                        table[i, length - 1, s] = own.get(length, -np.inf)
                        continue
                    later = [value for other, value in own.items() if other >= length]
                    if not bounded:
                        table[i, length - 1, s] = 0.0 if length <= longest else -np.inf
                    elif later:
                        table[i, length - 1, s] = max(later) if best else log_sum(later)
        return table


def stream_of(scores, topology, lag, marginals=False):
    return Stream(scores, topology, lambda states: Shown(topology, states, True), lag, marginals)


def check_labels(step, labels):
    topology = labels.topology
    for d, level in enumerate(topology.levels):
        if d:
            assert step.labels[level] == topology.states[d][labels.states[d, step.step]]
            begins = step.step == 0 or labels.ends[d, step.step - 1] == 1
            assert step.starts[level] == begins


def check_probabilities(step, marginals):
    for level, row in step.probabilities.items():
        np.testing.assert_allclose(row, marginals.state[level][step.step], rtol=0, atol=1e-9)


def check_stream(scores, topology, lag):
    """Each step against inference about the prefix, the rest against inference about the whole."""
    stream = stream_of(scores, topology, lag, marginals=True)
    for n, row in enumerate(scores.rows(), start=1):
        step = stream.push_scores(row)
        assert (step is None) == (n <= lag)
        if step is not None:
            assert step.step == n - 1 - lag
            check_labels(step, hscrf.decode(scores.potentials(topology, n, finished=False)))
            check_probabilities(step, hscrf.marginals(scores.potentials(topology, n, finished=False, best=False)))
    whole = scores.potentials(topology, scores.length, finished=True)
    best, marginals = hscrf.decode(whole), hscrf.marginals(whole)
    rest = stream.flush()
    assert [step.step for step in rest] == list(range(max(scores.length - lag, 0), scores.length))
    for step in rest:
        check_labels(step, best)
        check_probabilities(step, marginals)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
def test_every_step_is_that_of_the_prefix(kinds, seed):
    rng = np.random.default_rng([seed, MIXES.index(kinds)])
    length, longest, lag = int(rng.integers(4, 7)), int(rng.integers(2, 5)), int(rng.integers(0, 4))
    topology = draw_topology(rng, kinds, classes=int(rng.integers(1, 3)), sparse=bool(rng.integers(2)), longest=longest)
    check_stream(Given(rng, topology, kinds, length, longest, bool(rng.integers(2))), topology, lag)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kinds", [("segmental",), ("segmental", "unit"), ("segmental", "segmental"), ("markov", "segmental")]
)
def test_open_durations(kinds, seed):
    rng = np.random.default_rng([seed, len(kinds)])
    closed = draw_topology(rng, kinds, sparse=bool(rng.integers(2)), longest=2)
    levels = [chr(97 + d) for d, kind in enumerate(kinds) if kind == "segmental"]
    opened = {level: True if rng.integers(2) else [f"{level}0"] for level in levels}
    topology = hscrf.Topology.from_dict({**closed.to_dict(), "open_duration": opened})
    check_stream(Given(rng, topology, kinds, 6, 2, bool(rng.integers(2))), topology, int(rng.integers(0, 4)))


@pytest.mark.parametrize("seed", range(3))
def test_limits_of_single_states(seed):
    rng = np.random.default_rng(seed)
    levels = {"a": ["x", "y", "z"], "b": ["u", "v"]}
    low = {"a": {"x": int(rng.integers(1, 4))}}
    high = {"a": {"y": int(rng.integers(1, 4))}, "b": {"u": 2, "v": None}}
    topology = hscrf.Topology(levels, min_duration=low, max_duration=high)
    check_stream(Given(rng, topology, ("none", "none"), 6, 1, True), topology, seed)


@pytest.mark.parametrize(
    ("kinds", "size"), [(("unit",), 70), (("markov", "markov"), 9), (("markov", "markov", "unit"), 5)]
)
def test_stacks_too_many_for_a_matrix(kinds, size):
    rng = np.random.default_rng(5)
    topology = draw_topology(rng, kinds, size, classes=2, sparse=True)
    scores = Given(rng, topology, kinds, 6, 1, True)
    assert isinstance(stream_of(scores, topology, 3).survivor.recursion, SegmentalRecursion)
    check_stream(scores, topology, 3)


# -- models


def numbers(rng, n, length=12):
    X = [rng.normal(size=(length, 3)) for _ in range(n)]
    Y = [
        {
            "day": ["ab"[int(t >= 6)] for t in range(length)],
            "act": ["xyz"[int(row[0] > 0) + int(row[1] > 1)] for row in x],
        }
        for x in X
    ]
    return X, Y


def words(X):
    return [[[f"w{int(np.sign(cell))}{k}" for k, cell in enumerate(row)] for row in x] for x in X]


def symbols(X):
    return [["pqr"[int(row[0] > 0) + int(row[1] > 1)] for row in x] for x in X]


def few(cls, *args, **options):
    return cls(*args, solver=hscrf.LBFGS(max_iter=15), **options)


MODELS = {
    "numbers": lambda X, Y: (X, few(hscrf.HSCRF).fit(X, Y)),
    "words": lambda X, Y: (words(X), few(hscrf.HSCRF).fit(words(X), Y)),
    "durations": lambda X, Y: (X, few(hscrf.HSCRF, max_duration={"day": 8}).fit(X, Y)),
    "averages": lambda X, Y: (
        X,
        few(hscrf.HSCRF, features=["default", hscrf.Token("day", average=True)], max_duration={"day": 8}).fit(X, Y),
    ),
    "transitions": lambda X, Y: (
        words(X),
        few(hscrf.HSCRF, features=["default", hscrf.Trans("day", observed=True), hscrf.Start("act")]).fit(words(X), Y),
    ),
    "fillers": lambda X, Y: (words(X), few(hscrf.HSCRF, fillers={"act": "y"}).fit(words(X), Y)),
    "chain": lambda X, Y: (X, few(hscrf.ChainCRF).fit(X, [y["act"] for y in Y])),
    "semi": lambda X, Y: (X, few(hscrf.SemiCRF, max_duration=8, scheme="plain").fit(X, [y["day"] for y in Y])),
    "dynamic": lambda X, Y: (X, few(hscrf.DynamicCRF).fit(X, Y)),
    "hhmm": lambda X, Y: (symbols(X), hscrf.HHMM(random_state=0).fit(symbols(X), Y)),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    X, Y = numbers(np.random.default_rng(0), 8)
    return MODELS[request.param](X, Y)


def check_whole(steps, labels, marginals):
    topology = labels.topology
    assert [step.step for step in steps] == list(range(labels.length))
    for d, level in enumerate(topology.levels):
        if d:
            assert [step.labels[level] for step in steps] == [topology.states[d][s] for s in labels.states[d]]
            assert [step.starts[level] for step in steps] == [True, *(labels.ends[d][:-1] == 1)]
            found = np.array([step.probabilities[level] for step in steps])
            np.testing.assert_allclose(found, marginals.state[level], rtol=0, atol=1e-9)


def test_a_long_lag_gives_what_predict_gives(fitted):
    X, model = fitted
    stream = model.stream(lag=12, marginals=True)
    for x, labels, marginals in zip(X[:3], model.predict(X[:3]), model.predict_marginals(X[:3]), strict=True):
        check_whole(list(stream.run(x)), labels, marginals)  # the stream begins anew each time


def test_pushed_one_by_one_or_together(fitted):
    X, model = fitted
    one, other = model.stream(lag=3), model.stream(lag=3)
    by_one = [step for step in map(one.push, X[0]) if step is not None]
    together = [*other.extend(X[0][:5]), *other.extend(X[0][5:])]
    assert [(step.step, step.labels, step.starts) for step in by_one] == [
        (step.step, step.labels, step.starts) for step in together
    ]
    assert len(by_one) == len(X[0]) - 3
    assert len(one.flush()) == len(other.flush()) == 3


def test_memory_does_not_grow():
    X, Y = numbers(np.random.default_rng(1), 6)
    stream = few(hscrf.HSCRF, max_duration={"day": 8}).fit(X, Y).stream(lag=4, marginals=True)
    x = np.random.default_rng(2).normal(size=(200, 3))

    def held():
        kept = [window.records for window in (stream.survivor, stream.smoother)]
        return [len(records) for records in kept] + [len(stream.survivor.path), stream.survivor.recursion.masses.size]

    stream.extend(x[:50])
    before = held()
    stream.extend(x[50:])
    assert held() == before == [5, 5, 5, stream.layout.leaves * 8]
    assert np.isfinite(stream.survivor.recursion.masses.max())
    assert stream.seen == 200


def test_rows_by_name():
    X, Y = numbers(np.random.default_rng(0), 4)
    pandas = pytest.importorskip("pandas")
    tables = [pandas.DataFrame(x, columns=list("uvw")) for x in X]
    model = few(hscrf.HSCRF).fit(tables, Y)
    by_name, plain = model.stream(lag=0), model.stream(lag=0)
    for row, (_, series) in zip(X[0], tables[0].iterrows(), strict=True):
        assert by_name.push(series).labels == plain.push(row).labels
    with pytest.raises(ValueError, match="no column 'w'"):
        by_name.push({"u": 1.0, "v": 2.0})


def test_what_a_stream_refuses():
    X, Y = numbers(np.random.default_rng(0), 4)

    def longest(z, start, stop):
        return [float(z[start:stop].max())]

    model = few(hscrf.HSCRF, features=["default", hscrf.Segment("day", longest)], max_duration={"day": 6}).fit(X, Y)
    with pytest.raises(ValueError, match="'longest' is a function of whole segments"):
        model.stream()
    model = few(hscrf.HSCRF).fit(X, Y)
    for lag in (-1, 1.5, True):
        with pytest.raises(ValueError, match="lag is"):
            model.stream(lag=lag)
    assert model.stream().flush() == []


def test_impossible_steps_are_named():
    topology = hscrf.Topology({"a": ["x", "y"]}, successors={"a": {"x": ["y"], "y": []}})
    rng = np.random.default_rng(0)
    stream = stream_of(Given(rng, topology, ("unit",), 3, 1, True), topology, 0)
    rows = Given(rng, topology, ("unit",), 3, 1, True).rows()
    stream.push_scores(rows[0])
    stream.push_scores(rows[1])
    with pytest.raises(hscrf.InfeasibleError, match="no labelling of the 3 steps"):
        stream.push_scores(rows[2])
