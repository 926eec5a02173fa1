"""The likelihood and the perceptron's loss: values by the public inference functions, gradients by differences."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - loads its BLAS
from scipy.sparse import csr_matrix
from threadpoolctl import ThreadpoolController

import hscrf
from drawing import hide
from fitting import fit_blocks
from hscrf import Duration, End, InfeasibleError, Init, Labels, Segment, Start, Stop, Token, Topology, Trans
from hscrf.engine import Evidence
from hscrf.labels.packed import pack_labels
from hscrf.objective.chunk import Chunk
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.margin import costs_of_steps, equal_costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import CUTS, Cuts, Workers
from hscrf.observations.encoder import ObservationEncoder

TOPOLOGIES = {
    2: Topology({"c": ["x", "y", "z"]}, successors={"c": {"x": ["y", "z"]}}, max_duration={"c": 4}),
    3: Topology({"b": ["A", "B"], "c": ["x", "y", "z"]}, children={"b": {"A": ["x", "y"]}}, max_duration={"b": 4}),
    4: Topology(
        {"a": ["P", "Q"], "b": ["A", "B"], "c": ["x", "y", "z"]},
        children={"a": {"P": ["A"]}, "b": {"A": ["x", "y"]}},
        max_duration={"a": 5, "c": 3},
    ),
}
PLACES = {2: ("c", "root"), 3: ("b", "b"), 4: ("a", "b")}  # a level with a longest duration, and a parent's level
LENGTHS = (6, 1, 4, 7)
WEIGHTS = np.array([1.0, 0.5, 1.0, 3.0])


def extent(z, start, stop):
    """A segment function of a user: sum and place of a segment."""
    return [sum(len(z[t]) for t in range(start, stop)) / 4, np.cos(start + 2 * stop)]


def draw_observations(kind, rng):
    words = [[[f"w{k}" for k in rng.choice(5, 2, replace=False)] for _ in range(n)] for n in LENGTHS]
    if kind == "strings":
        return words
    if kind == "dicts":
        return [[{"word": step[0], "size": float(rng.normal()), step[1]: True} for step in x] for x in words]
    if kind == "matrix":
        return [csr_matrix(rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.6)) for n in LENGTHS]
    return [rng.normal(size=(n, 3)) for n in LENGTHS]


def draw_labels(topology, rng, hidden=0.0):
    """Legal labels, some of their cells unknown."""
    drawn = [hscrf.sample(hscrf.Potentials(topology, n), 1, rng)[0] for n in LENGTHS]
    return [hide(rng, y, hidden) for y in drawn]


def blocks_of(own, family):
    return {
        "token": Token(own),
        "average": Token(own, average=True),
        "start": Start(own),
        "stop": Stop(own),
        "gamma": Duration(own, "gamma"),
        "bins": Duration(own, "bins"),
        "each": Duration(own, "each"),
        "segment": Segment(own, extent),
        **{f"{kind.__name__} constant": kind(family) for kind in (Init, Trans, End)},
        **{f"{kind.__name__} observed": kind(family, observed=True) for kind in (Init, Trans, End)},
    }


BLOCKS = list(blocks_of("c", "root"))


def build(
    depth,
    specifications,
    kind="dense",
    hidden=0.0,
    pairs="all",
    weights=WEIGHTS,
    workers=None,
    seed=0,
    margin=0.0,
    chunk=CUTS.chunk,
):
    """A likelihood on random data, and random weights for it."""
    rng = np.random.default_rng(seed + depth)
    topology = TOPOLOGIES[depth]
    encoder = ObservationEncoder()
    seen = encoder.fit_pack(draw_observations(kind, rng))
    labels = draw_labels(topology, rng, hidden)
    blocks = fit_blocks(specifications, topology, encoder, seen, pack_labels(labels), pairs)
    costs, cuts = equal_costs(topology, margin), Cuts(chunk=chunk)
    loss = Likelihood(Scorer(topology, blocks), seen, labels, weights, workers, costs, cuts)
    return loss, rng.normal(size=loss.size)


def potentials_of(loss, w, n):
    """The public potentials of one sequence."""
    seen = loss.observations.take([n])
    topology = loss.scorer.topology
    parts = {}
    for (part, d), values in loss.scorer.values(w, seen).items():
        parts.setdefault(part, {})[topology.levels[d]] = values
    return hscrf.Potentials(topology, seen.steps, **parts)


def expected_loss(loss, w):
    """The same by log_partition and score, sequence by sequence."""
    total = 0.0
    for n, y in enumerate(loss.labels):
        p = potentials_of(loss, w, n)
        known = hscrf.score(p, y) if y.is_complete else hscrf.log_partition(p, y)
        total += loss.sample_weight[n] * (hscrf.log_partition(p) - known)
    return total


def check_gradient(function, w, rng, entries=10, step=1e-5):
    """Central differences of some entries, and along one direction through all of them."""
    _, gradient = function(w)
    assert np.isfinite(gradient).all()
    directions = [np.eye(w.size)[k] for k in rng.permutation(w.size)[:entries]]
    for direction in [*directions, rng.normal(size=w.size)]:
        above, below = (function(w + sign * step * direction)[0] for sign in (1, -1))
        np.testing.assert_allclose(gradient @ direction, (above - below) / (2 * step), rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------
# The likelihood


@pytest.mark.parametrize("hidden", [0.0, 0.5], ids=["full", "partial"])
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("depth", TOPOLOGIES)
def test_gradient_of_each_block(depth, name, hidden):
    for kind in ("strings", "dicts", "dense"):
        loss, w = build(depth, [blocks_of(*PLACES[depth])[name]], kind, hidden)
        assert loss.size > 0
        np.testing.assert_allclose(loss(w)[0], expected_loss(loss, w), rtol=1e-10)
        check_gradient(loss, w, np.random.default_rng(1), entries=3)


@pytest.mark.parametrize("hidden", [0.0, 0.5, 1.0], ids=["full", "partial", "nothing"])
@pytest.mark.parametrize("kind", ["strings", "dicts", "matrix", "dense"])
@pytest.mark.parametrize("depth", TOPOLOGIES)
def test_gradient_of_all_blocks_together(depth, kind, hidden):
    blocks = blocks_of(*PLACES[depth])
    if kind == "matrix":
        del blocks["segment"]  # its function reads lists
    loss, w = build(depth, list(blocks.values()), kind, hidden, pairs="seen")
    np.testing.assert_allclose(loss(w)[0], expected_loss(loss, w), rtol=1e-10, atol=1e-9)
    check_gradient(loss, w, np.random.default_rng(1))


@pytest.mark.parametrize("depth", TOPOLOGIES)
@pytest.mark.parametrize("kind", ["strings", "dense"])
def test_gradient_of_the_bottom_and_the_root(depth, kind):
    levels = TOPOLOGIES[depth].levels
    specifications = [Token(levels[0]), Start(levels[-1]), Token(levels[-1], average=True), Duration(levels[-1])]
    loss, w = build(depth, specifications, kind, hidden=0.3)
    np.testing.assert_allclose(loss(w)[0], expected_loss(loss, w), rtol=1e-10)
    check_gradient(loss, w, np.random.default_rng(1), entries=loss.size)


@pytest.mark.parametrize("hidden", [0.0, 0.5], ids=["full", "partial"])
def test_a_weight_is_a_repetition(hidden):
    blocks = list(blocks_of(*PLACES[3]).values())
    plain, w = build(3, blocks, hidden=hidden, weights=None)
    heavy, _ = build(3, blocks, hidden=hidden, weights=[2.0, 0.0, 1.0, 1.0])
    values = [plain.part(w, np.array(which)) for which in ([0], [0], [2, 3])]
    np.testing.assert_allclose(heavy(w)[0], sum(value for value, _ in values), rtol=1e-10)
    np.testing.assert_allclose(heavy(w)[1], sum(gradient for _, gradient in values), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("hidden", [0.0, 0.4], ids=["full", "partial"])
def test_parts_sum_to_the_whole(hidden):
    loss, w = build(4, list(blocks_of(*PLACES[4]).values()), hidden=hidden)
    parts = [loss.part(w, np.array(which)) for which in ([2], [3, 0], [1])]
    value, gradient = loss(w)
    np.testing.assert_allclose(sum(part for part, _ in parts), value, rtol=1e-10)
    np.testing.assert_allclose(sum(part for _, part in parts), gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["strings", "dicts", "matrix", "dense"])
def test_frequencies_are_sums_of_squared_values(kind):
    blocks = [Token("c"), Start("b"), Trans("b", observed=True), Trans("root"), Duration("b", "bins")]
    loss, _ = build(3, blocks, kind)
    found = loss.frequencies()
    for block, own in zip(loss.scorer.blocks, loss.scorer.slices, strict=True):
        expected = np.zeros(block.size)
        for k in range(block.size):
            unit = np.eye(block.size)[k]
            table = np.zeros((loss.observations.steps, *block.shape) if block.timed else block.shape)
            block.add(unit, loss.observations, table)
            each = 1 / np.prod(block.shape) if block.timed else loss.observations.steps / np.prod(block.shape)
            expected[k] = (table**2).sum() * each
        np.testing.assert_allclose(found[own], expected, rtol=1e-10, atol=1e-12)


def test_no_labels_no_loss():
    loss, w = build(3, [Token("b"), Token("c")], hidden=1.0)
    value, gradient = loss(w)
    np.testing.assert_allclose(value, 0.0, atol=1e-9)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


def test_large_weights_stay_exact():
    """Scores of some thousands, where scaled arithmetic gives way to logarithms."""
    loss, w = build(3, list(blocks_of(*PLACES[3]).values()), hidden=0.5)
    np.testing.assert_allclose(loss(1000 * w)[0], expected_loss(loss, 1000 * w), rtol=1e-9)


@pytest.mark.parametrize("hidden", [0.0, 0.4], ids=["full", "partial"])
def test_same_bits_for_any_number_of_threads(hidden):
    """Many chunks, dealt to several partial sums."""
    specifications = list(blocks_of(*PLACES[3]).values())
    results = []
    for n_jobs in (1, 2, 5):
        with Workers(n_jobs, strands=3) as threads:
            loss, w = build(3, specifications, "dicts", hidden, workers=threads, chunk=7)
            assert len(loss.chunks) > 2
            results.append(loss(w))
    for value, gradient in results[1:]:
        assert value == results[0][0]
        assert np.array_equal(gradient, results[0][1])


def test_no_chunk_waits_for_another(monkeypatch):
    """Each thread makes what its chunk needs while another thread is at it."""
    (_, one), (_, other), *_ = build(3, list(blocks_of(*PLACES[3]).values()), chunk=7)[0].chunks
    meeting, made = Barrier(2, timeout=10), Chunk._counts_of

    def met(chunk, known):
        meeting.wait()  # breaks if only one thread comes
        return made(chunk, known)

    monkeypatch.setattr(Chunk, "_counts_of", met)
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(lambda chunk: chunk.observed, [one, other]))) == 2
    assert one.observed is one.observed


def test_chunks_change_nothing_but_rounding():
    whole, w = build(3, list(blocks_of(*PLACES[3]).values()), hidden=0.4)
    single, _ = build(3, list(blocks_of(*PLACES[3]).values()), hidden=0.4, chunk=1)
    assert len(single.chunks) == len(LENGTHS)
    np.testing.assert_allclose(single(w)[0], whole(w)[0], rtol=1e-11)
    np.testing.assert_allclose(single(w)[1], whole(w)[1], rtol=1e-9, atol=1e-11)


# ------------------------------------------------------------------------------
# The perceptron


@pytest.mark.parametrize("hidden", [0.0, 0.5], ids=["full", "partial"])
@pytest.mark.parametrize("depth", TOPOLOGIES)
def test_mistakes_are_the_distance_to_the_best(depth, hidden):
    loss, w = build(depth, list(blocks_of(*PLACES[depth]).values()), hidden=hidden, weights=None)
    expected = 0.0
    for n, y in enumerate(loss.labels):
        p = potentials_of(loss, w, n)
        expected += hscrf.decode(p).score - hscrf.decode(p, y).score
    everything = np.arange(loss.n_parts)
    np.testing.assert_allclose(loss.mistakes(w, everything)[0], expected, rtol=1e-9)
    check_gradient(lambda v: loss.mistakes(v, everything), w, np.random.default_rng(0))


def test_no_mistakes_where_the_labels_are_best():
    loss, w = build(3, [Token("b"), Token("c")], weights=None)
    best = [hscrf.decode(potentials_of(loss, w, n)) for n in range(loss.n_parts)]
    content = Likelihood(loss.scorer, loss.observations, best)
    value, gradient = content.mistakes(w, np.arange(content.n_parts))
    assert value == 0
    assert not gradient.any()


# ------------------------------------------------------------------------------
# Bad input


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight has shape \(2,\), expected \(4,\)"),
        ([1.0] * 5, r"sample_weight has shape \(5,\), expected \(4,\)"),
        ([1.0, np.nan, 1.0, 1.0], r"sample_weight\[1\] is nan"),
        ([1.0, 1.0, 1.0, -2.0], r"sample_weight\[3\] is -2.0, expected a finite number of at least 0"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        build(2, [Token("c")], weights=weights)


def test_impossible_partial_labels_name_the_sequence_and_the_labels():
    topology = Topology({"c": ["x", "y"]}, min_duration={"c": 2}, max_duration={"c": 3})
    good, bad = (Labels(topology, [[0] * 3, row], np.full((2, 3), -1)) for row in ([0, 0, -1], [0, -1, 1]))
    encoder = ObservationEncoder()
    seen = encoder.fit_pack([np.zeros((3, 1))] * 3)
    labels = [good, good, bad]
    blocks = fit_blocks([Token("c")], topology, encoder, seen, pack_labels(labels))
    loss = Likelihood(Scorer(topology, blocks), seen, labels)
    with pytest.raises(InfeasibleError, match=r"Y\[2\]: .*level 'c' is 'x' at 0 and level 'c' is 'y' at 2"):
        loss(np.zeros(loss.size))


# ------------------------------------------------------------------------------
# The margin

MARGINS = {2: 0.7, 3: {"b": 1.5, "c": 0.4}, 4: {"a": 0.3, "c": 2.0}}


def margin_of(y, z, margin):
    """What the known states of y cost where z has others."""
    by_level = margin if isinstance(margin, dict) else dict.fromkeys(y.topology.levels, margin)
    rows = [(y.topology.level(level), cost) for level, cost in by_level.items()]
    return sum(cost * ((y.states[d] >= 0) & (y.states[d] != z.states[d])).sum() for d, cost in rows)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("features", [[], ["token"]], ids=["no tokens", "tokens"])
def test_margin_is_a_cost_in_the_exponent(depth, features):
    """All configurations, listed: each gains the cost of what it has wrong."""
    own, family = PLACES[depth]
    blocks = blocks_of(own, family)
    specifications = [blocks[name] for name in [*features, "Trans constant", "Init constant"]]
    loss, w = build(depth, specifications, margin=MARGINS[depth])
    expected, hinge = 0.0, 0.0
    short = [1, 2] if depth < 4 else [min((1, 2), key=lambda n: loss.labels[n].length)]
    for n in short:
        p, y = potentials_of(loss, w, n), loss.labels[n]
        augmented = [z.score + margin_of(y, z, MARGINS[depth]) for z in hscrf.k_best(p, 100_000)]
        expected += loss.sample_weight[n] * (np.logaddexp.reduce(augmented) - hscrf.score(p, y))
        hinge += loss.sample_weight[n] * (max(augmented) - hscrf.score(p, y))
    np.testing.assert_allclose(loss.part(w, short)[0], expected, rtol=1e-9)
    np.testing.assert_allclose(loss.mistakes(w, short)[0], hinge, rtol=1e-9)


@pytest.mark.parametrize("hidden", [0.0, 0.5], ids=["full", "partial"])
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_gradient_with_a_margin(depth, hidden):
    own, family = PLACES[depth]
    blocks = blocks_of(own, family)
    specifications = [blocks[name] for name in ("token", "start", "each", "Trans constant")]
    loss, w = build(depth, specifications, hidden=hidden, margin=MARGINS[depth])
    without, _ = build(depth, specifications, hidden=hidden)
    assert loss(w)[0] > without(w)[0]
    check_gradient(loss, w, np.random.default_rng(1))
    everything = np.arange(loss.n_parts)
    check_gradient(lambda v: loss.mistakes(v, everything), w, np.random.default_rng(2))


def test_margin_of_a_set_is_that_of_the_nearest_state():
    topology = Topology({"c": ["x", "y", "z"]})
    labels = Labels(topology, [[0, 0], [-1, 2]], [[0, 1], [1, 1]], {"c": np.array([[1, 1, 0], [1, 1, 1]], dtype=bool)})
    table = np.array([[0.0, 3, 4], [5, 0, 1], [6, 7, 0]])
    found = costs_of_steps({1: table}, Evidence.of([labels.closed()]))
    assert found[1].tolist() == [[0, 0, 1], [6, 7, 0]]


# ------------------------------------------------------------------------------
# Threads of others


def blas_threads():
    return [library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@pytest.fixture
def two_blas_threads():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def test_blas_has_one_thread_while_we_work_and_its_own_again_after(two_blas_threads):
    before = blas_threads()
    assert set(before) == {2}
    seen = []

    class Spy:
        def minimize(self, objective, weights, *rest):
            seen.append(blas_threads())
            return hscrf.LBFGS(max_iter=1).minimize(objective, weights, *rest)

    model = hscrf.ChainCRF(solver=Spy()).fit([[["a"], ["b"]]] * 3, [["x", "y"]] * 3)
    assert set(seen[0]) == {1}
    assert blas_threads() == before
    model._decode = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        model.predict([[["a"]]])
    assert blas_threads() == before


def test_the_last_of_several_holds_frees_blas(two_blas_threads):
    outer, inner = Workers(), Workers()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__()
    assert set(blas_threads()) == {1}
    inner.__exit__()
    assert set(blas_threads()) == {2}
