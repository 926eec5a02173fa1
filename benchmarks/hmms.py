"""Hidden Markov models beside hmmlearn and dynamax: the grid of the comparison of HiddenMarkovModels.jl.

    python benchmarks/hmms.py [--quick] [--states 2 4 6 8 10]

50 sequences of 100 steps, Gaussian observations of one dimension, 2 to 10 states, one thread. Four questions:
log-likelihood (forward), best states (Viterbi), posterior states (forward-backward), and five iterations of Baum-Welch
from the same parameters. All systems are asked in turns, after one round that is not counted (dynamax compiles in it),
and the best time of each counts. Before that their answers are compared. hmmlearn runs with its faster implementation
("scaling"), dynamax on all sequences at once (``vmap``) in double precision, its EM step compiled once. Systems that
are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_ENABLE_X64", "1")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from families import in_turns  # noqa: E402

import hscrf  # noqa: E402
from hscrf.families.hhmm.emissions import Gaussian  # noqa: E402

SEQUENCES, STEPS, ITERATIONS = 50, 100, 5
QUESTIONS = ("forward", "Viterbi", "forward-backward", f"{ITERATIONS} x Baum-Welch")
Calls = dict[str, Callable[[], Any]]  # question -> a call that answers it


class Parameters:
    """Of one model, and sequences drawn from it."""

    def __init__(self, states: int, rng: np.random.Generator) -> None:
        self.states = states
        self.init, self.trans = rng.dirichlet(np.ones(states)), rng.dirichlet(np.ones(states), states)
        self.mean, self.variance = 2.0 * rng.standard_normal((states, 1)), np.ones((states, 1))
        self.X = [np.asarray(x) for x in self.ours().generate(SEQUENCES, STEPS, rng)[0]]

    def ours(self) -> Any:
        topology = hscrf.Topology({"state": [f"s{k}" for k in range(self.states)]})
        start, steps = {"root": self.init[None]}, {"root": self.trans[None]}
        return hscrf.HHMM.from_parameters(topology, start, steps, {}, Gaussian(self.mean, self.variance), smoothing=0.0)


def ask_hscrf(given: Parameters) -> Calls:
    model, X = given.ours(), given.X

    def learn() -> Any:
        return given.ours().set_params(warm_start=True, max_iter=ITERATIONS, tol=0).fit(X)

    calls = (lambda: model.log_likelihood(X), lambda: model.predict(X), lambda: model.predict_marginals(X), learn)
    return dict(zip(QUESTIONS, calls, strict=True))


def ask_hmmlearn(given: Parameters) -> Calls:
    from hmmlearn.hmm import GaussianHMM

    flat, lengths = np.concatenate(given.X), [STEPS] * SEQUENCES

    def made() -> Any:
        options = {"n_iter": ITERATIONS, "tol": -np.inf, "init_params": "", "min_covar": 0, "covars_prior": 0}
        model = GaussianHMM(given.states, "diag", implementation="scaling", **options)
        model.startprob_, model.transmat_ = given.init.copy(), given.trans.copy()
        model.means_, model.covars_ = given.mean.copy(), given.variance.copy()
        return model

    model = made()
    calls = (
        lambda: model.score(flat, lengths),
        lambda: model.predict(flat, lengths),
        lambda: model.predict_proba(flat, lengths),
        lambda: made().fit(flat, lengths),
    )
    return dict(zip(QUESTIONS, calls, strict=True))


def ask_dynamax(given: Parameters) -> Calls:
    import jax
    from dynamax.hidden_markov_model import DiagonalGaussianHMM

    model = DiagonalGaussianHMM(given.states, 1)
    parameters, properties = model.initialize(
        jax.random.PRNGKey(0),
        initial_probs=jax.numpy.asarray(given.init),
        transition_matrix=jax.numpy.asarray(given.trans),
        emission_means=jax.numpy.asarray(given.mean),
        emission_scale_diags=jax.numpy.sqrt(jax.numpy.asarray(given.variance)),
    )
    X = jax.numpy.asarray(np.stack(given.X))
    each = [
        jax.jit(jax.vmap(call, in_axes=(None, 0)))
        for call in (model.marginal_log_prob, model.most_likely_states, model.smoother)
    ]

    @jax.jit
    def step(found: Any, state: Any) -> Any:  # that of fit_em, which compiles it again in each call
        statistics, _ = jax.vmap(lambda x: model.e_step(found, x))(X)
        return model.m_step(found, properties, statistics, state)

    def learn() -> Any:
        found, state = parameters, model.initialize_m_step_state(parameters, properties)
        for _ in range(ITERATIONS):
            found, state = step(found, state)
        return jax.block_until_ready(found)

    calls = [*(lambda call=call: jax.block_until_ready(call(parameters, X)) for call in each), learn]
    return dict(zip(QUESTIONS, calls, strict=True))


SYSTEMS = {"hscrf": ask_hscrf, "hmmlearn": ask_hmmlearn, "dynamax": ask_dynamax}


def check(given: Parameters, systems: dict[str, Calls]) -> None:
    """Stop if two systems answer differently."""
    ours = systems["hscrf"]
    total = ours["forward"]().sum()
    learned = ours[QUESTIONS[3]]()
    after = learned.log_likelihood(given.X).sum()
    best = [label for one in ours["Viterbi"]() for label in one.column("state")]
    if "hmmlearn" in systems:
        other = systems["hmmlearn"]
        flat, lengths = np.concatenate(given.X), [STEPS] * SEQUENCES
        np.testing.assert_allclose(total, other["forward"](), rtol=1e-9)
        np.testing.assert_allclose(after, other[QUESTIONS[3]]().score(flat, lengths), rtol=1e-6)
        assert best == [f"s{k}" for k in other["Viterbi"]()], "the best states differ"
    if "dynamax" in systems:
        np.testing.assert_allclose(total, np.asarray(systems["dynamax"]["forward"]()).sum(), rtol=1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 rounds instead of 15")
    parser.add_argument("--states", type=int, nargs="+", default=[2, 4, 6, 8, 10])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):  # one thread, whatever a library starts
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    present = {name: ask for name, ask in SYSTEMS.items() if name == "hscrf" or importlib.util.find_spec(name)}
    others = [name for name in present if name != "hscrf"]
    print("| states | question | hscrf, ms | " + " | ".join(f"{name}, ms | times faster" for name in others) + " |")
    print("|--:|---|--:|" + "--:|--:|" * len(others), flush=True)
    for states in options.states:
        given = Parameters(states, np.random.default_rng(states))
        systems = {name: ask(given) for name, ask in present.items()}
        check(given, systems)
        for question in QUESTIONS:
            seconds = dict(
                zip(
                    systems,
                    in_turns([calls[question] for calls in systems.values()], 3 if options.quick else 15),
                    strict=True,
                )
            )
            ours = seconds["hscrf"]
            cells = "".join(f" {1e3 * seconds[name]:.2f} | {seconds[name] / ours:.1f} |" for name in others)
            print(f"| {states} | {question} | {1e3 * ours:.2f} |{cells}", flush=True)


if __name__ == "__main__":
    main()
