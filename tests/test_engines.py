"""Both engines and the enumeration agree on models that Hypothesis draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hscrf
from drawing import MIXES, draw_evidence, draw_model, mixes_of
from exactness import ask_engine, ask_enumeration, differences, draw_case
from hscrf import native
from hscrf.engine import Batch
from hscrf.engine.choice import ENGINES
from hscrf.engine.reference import Reference
from hscrf.engine.tally import COUNTER
from hscrf.errors import InfeasibleError
from hscrf.inference.posterior import values_of
from processes import run

SCALES = (0.0, 1.0, 30.0, 1e4)


def available():
    """The names of the engines that can be used here."""
    return [name for name in ENGINES if name != "compiled" or native.core is not None]


@st.composite
def models(draw):
    """Potentials of any mix of levels, and evidence or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    options = {
        "size": draw(st.integers(1, 3)),
        "classes": draw(st.sampled_from([1, 1, 3])),
        "sparse": draw(st.booleans()),
        "longest": draw(st.sampled_from([None, 1, 2, 4])),
        "constant": draw(st.booleans()),
        "forbidden": draw(st.sampled_from([0.0, 0.0, 0.03])),
        "scale": draw(st.sampled_from(SCALES)),
    }
    kinds = draw(st.sampled_from(mixes_of(2, 3, 4, 5)))
    options["size"] = min(options["size"], 2 if len(kinds) == 4 else 3)  # stacks of states multiply
    options["sparse"] &= options["size"] > 1
    p = draw_model(rng, kinds, draw(st.integers(1, 8)), **options)
    try:
        return p, draw_evidence(rng, p, draw(st.sampled_from([0.1, 0.5]))) if draw(st.booleans()) else None
    except InfeasibleError:  # nothing to draw evidence from
        return p, None


def answers(p, evidence):
    """What both engines must agree on, as one dict of arrays; None if no configuration is possible."""
    try:
        found = hscrf.marginals(p, evidence)
    except InfeasibleError:
        return None
    numbers = {"log Z": [hscrf.log_partition(p, evidence), found.log_partition]}
    numbers |= {(part, level): values for part, level, values in found.counts.parts()}
    numbers |= {("state", level): values for level, values in found.state.items()}
    numbers |= {("ending", level): values for level, values in found.ending.items()}
    numbers |= {("segment", level): found.segment(level) for level in p.topology.levels}
    best = hscrf.k_best(p, 5, evidence)
    numbers |= {"best": [hscrf.decode(p, evidence).score], "k best": [y.score for y in best]}
    numbers["their scores"] = [hscrf.score(p, y) for y in best]
    return numbers


@settings(max_examples=25)
@given(models())
def test_engines_agree(drawn):
    found = []
    for name in available():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HSCRF_ENGINE", name)
            found.append(answers(*drawn))
    first, *others = found
    scale = 1.0 if first is None else max(1.0, abs(first["log Z"][0]))
    for other in others:
        assert (first is None) == (other is None)
        for key in first or ():
            np.testing.assert_allclose(other[key], first[key], rtol=1e-9, atol=1e-9 * scale, err_msg=str(key))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_engines_agree_with_the_enumeration(seed, depth):
    case = draw_case(seed, depth)
    expected = ask_enumeration(case)
    for name in available():
        assert (differences(ask_engine(name, case), expected) <= 1e-8).all(), name


def test_answers_that_differ_are_distinguished():
    """The comparison of engines finds differences of log Z, of a probability, of a score, and a missing answer."""
    one = ask_engine("reference", draw_case(0, 3))
    log_z, probabilities, scores = one
    key = next(iter(probabilities))
    others = [
        (log_z + [0, 1e-6], probabilities, scores),
        (log_z, {**probabilities, key: probabilities[key] + 1e-6}, scores),
        (log_z, probabilities, scores + 1e-4),
        (log_z, {}, scores),
        (log_z, probabilities, scores[:-1]),
        None,
    ]
    assert (differences(one, one) == 0).all()
    assert all((differences(one, other) > 1e-8).any() for other in others)


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
def test_engines_decode_alike_where_nothing_decides(kinds, monkeypatch):
    """All configurations score the same: the rule for ties decides."""
    p = draw_model(np.random.default_rng(0), kinds, 5, scale=0.0)
    found = []
    for name in available():
        monkeypatch.setenv("HSCRF_ENGINE", name)
        found.append(hscrf.decode(p))
    for other in found[1:]:
        np.testing.assert_array_equal(other.states, found[0].states)
        np.testing.assert_array_equal(other.ends, found[0].ends)


def check_samples(p, n, evidence=None):
    """States and ends of n draws occur as often as the posterior says, up to five standard errors."""
    found, drawn = hscrf.marginals(p, evidence), hscrf.sample(p, n, 0, evidence)
    for d, level in enumerate(p.topology.levels):
        seen = np.mean([y.states[d][:, None] == np.arange(p.topology.n_states[d]) for y in drawn], axis=0)
        ended = np.mean([y.ends[d] for y in drawn], axis=0)
        for share, chance in ((seen, found.state[level]), (ended, found.ending[level])):
            error = np.sqrt(np.maximum(chance * (1 - chance), 0) / n)
            np.testing.assert_array_less(np.abs(share - chance), 5 * error + 5 / n)


@pytest.mark.parametrize(
    "kinds", [("markov", "markov"), ("segmental", "markov"), ("markov", "segmental")], ids="-".join
)
def test_samples_have_the_posterior(engine, kinds):
    check_samples(draw_model(np.random.default_rng(1), kinds, 4), 400)


@pytest.mark.parametrize("scale", [1.0, 6.0])
@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
def test_samples_of_long_sequences_have_the_posterior(core, kinds, scale):
    """So long that scaled numbers leave their range many times."""
    length = 400 if len(kinds) < 3 else 100
    rng = np.random.default_rng(2)
    p = draw_model(rng, kinds, length, scale=scale, longest=8)
    check_samples(p, 400)
    check_samples(p, 400, draw_evidence(rng, p, 0.1))


def test_runs_that_do_not_fit_walk_one_after_the_other():
    p = draw_model(np.random.default_rng(2), ("segmental", "segmental"), 8, longest=3)
    values = values_of(p)
    together, alone = (Reference(p.topology, np.array([0, 8]), None, *room).expectations(values) for room in ((), (1,)))
    np.testing.assert_allclose(alone.log_z, together.log_z, rtol=1e-13)
    for key, counts in together.counts.items():
        np.testing.assert_allclose(alone.counts[key], counts, rtol=1e-12, atol=1e-15, err_msg=str(key))


def test_the_engine_is_chosen_by_name(monkeypatch):
    batch = Batch(hscrf.Topology({"tag": ["N", "V"]}), np.array([0, 2]))
    monkeypatch.setenv("HSCRF_ENGINE", "reference")
    assert type(batch.engine).__name__ == "Reference"
    monkeypatch.setenv("HSCRF_ENGINE", "quick")
    with pytest.raises(ValueError, match="HSCRF_ENGINE is 'quick', expected one of compiled, reference"):
        Batch(batch.topology, batch.offsets).log_partition({})


def test_the_reference_needs_no_compiled_kernels():
    code = """
import sys, hscrf
p = hscrf.Potentials(hscrf.Topology({"tag": ["N", "V"]}), 3)
hscrf.decode(p), hscrf.sample(p, 2), hscrf.k_best(p, 2), hscrf.marginals(p)
print(*({"hscrf._core", "hscrf.engine.compiled"} & set(sys.modules)))
"""
    assert run(code, HSCRF_ENGINE="reference") == []


def test_without_the_core_the_reference_serves():
    code = """
import sys
sys.modules["hscrf._core"] = None
import hscrf
model = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=2)).fit([[["a"], ["b"]]] * 3, [["x", "y"]] * 3)
print(*model.predict([[["b"], ["a"]]])[0])
from hscrf.engine.choice import choose_engine
print(choose_engine().__name__)
"""
    assert run(code) == ["y", "x", "Reference"]


def test_asking_for_a_core_that_is_missing_is_an_error(monkeypatch):
    monkeypatch.setattr(native, "core", None)
    monkeypatch.setattr(native, "why_not", "hscrf was installed without it")
    monkeypatch.setenv("HSCRF_ENGINE", "compiled")
    with pytest.raises(ValueError, match="the compiled core is missing: hscrf was installed without it"):
        Batch(hscrf.Topology({"tag": ["N", "V"]}), np.array([0, 2])).log_partition({})


def wild_model(verbose):
    """A chain whose first weights are far beyond what scaled numbers hold."""
    X, Y = [[["a"], ["b"], ["a"]]] * 2, [["x", "y", "x"]] * 2
    model = hscrf.ChainCRF(solver=hscrf.LBFGS(max_iter=1), verbose=verbose).fit(X, Y)
    model.coef_ = 1e4 * model.coef_ / np.abs(model.coef_).max()
    model.warm_start = True
    return model, X, Y


@pytest.mark.parametrize("verbose", [0, 1])
def test_fit_says_how_many_sequences_needed_logarithms(core, capsys, verbose):
    model, X, Y = wild_model(verbose)
    capsys.readouterr()
    model.fit(X, Y)
    said = capsys.readouterr().err
    assert said.count("some sequences run in logarithms") == verbose
    assert said.count("2 sequences ran in logarithms, in ") == verbose


def test_evaluations_are_counted(core):
    topology = hscrf.Topology({"tag": ["N", "V"]})
    batch, before = Batch(topology, np.array([0, 3, 5])), COUNTER.total
    batch.log_partition({("token", 1): np.zeros((5, 2))})
    assert COUNTER.total.since(before) == (2, 0, 0)
    trans = np.array([[[[0.0, -1e4], [1e4, 0.0]]]])
    batch.expectations({("trans", 0): trans})
    assert COUNTER.total.since(before) == (4, 2, 2)
    batch.expectations({("trans", 0): trans})
    assert COUNTER.total.since(before) == (6, 4, 2), "the same two sequences"


@pytest.mark.parametrize(
    "kinds", [*MIXES, ("unit",), ("markov", "unit"), ("markov", "segmental", "markov")], ids="-".join
)
@pytest.mark.parametrize("known", [False, True], ids=["free", "evidence"])
def test_nothing_is_read_before_it_is_written(core, kinds, known):
    """Work space is full of NaN before it is used: the answers stay the same, to the last bit."""
    rng = np.random.default_rng(len(kinds))
    p = draw_model(rng, kinds, 21, size=3, longest=11, classes=1 + known, constant=not known)
    evidence = draw_evidence(rng, p, 0.1) if known else None
    expected = answers(p, evidence)
    core.poison(True)
    try:
        found = answers(p, evidence)
    finally:
        core.poison(False)
    assert found.keys() == expected.keys()
    for key in expected:
        np.testing.assert_array_equal(found[key], expected[key], err_msg=str(key))
