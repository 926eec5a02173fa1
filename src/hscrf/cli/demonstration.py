"""A demonstration on generated data: activities of a person in a kitchen, three models, a table and pictures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.cli.pictures import FRACTIONS, evidence_curve, revealed, save_figure
from hscrf.datasets.activities import make_activities
from hscrf.estimator.hscrf import HSCRF
from hscrf.families.chain import ChainCRF
from hscrf.families.dynamic import DynamicCRF
from hscrf.labels.labels import Labels

if TYPE_CHECKING:
    from hscrf.estimator.contract import Labeller, Model

LEVELS = ("activity", "trajectory")
Columns = Callable[[Any], dict[str, list[list[str]]]]  # observations -> predicted columns by level


def demonstrate(folder: str, seed: int = 0, quick: bool = False) -> int:
    """Print the demonstration; pictures go to a folder. Returns the exit code."""
    n = 30 if quick else 90
    X, Y = make_activities(n, random_state=seed)
    half = n // 2
    train, test = (X[:half], Y[:half]), (X[half:], Y[half:])
    describe_data(train, test)
    models = compare_families(train, test)
    curve = show_evidence(models["HSCRF"], test, seed)
    draw_pictures(folder, models["HSCRF"], test, curve, seed)
    return 0


def describe_data(train: Any, test: Any) -> None:
    """Describe the data."""
    topology = train[1][0].topology
    steps = sum(map(len, train[1])), sum(map(len, test[1]))
    print(
        f"A person walks around a kitchen: {topology.n_states[1]} activities share {topology.n_states[2]} trajectories."
    )
    print(f"Noisy positions are observed: {steps[0]} steps of {len(train[0])} days for training,", end=" ")
    print(f"{steps[1]} steps of {len(test[0])} days for testing.")
    labels = test[1][0]
    print("\nThe first test day:", ", ".join(f"{name} {i}-{j}" for i, j, name in labels.segments("activity")))


def compare_families(train: Any, test: Any) -> dict[str, Any]:
    """Train all models and print a row of accuracies for each."""
    print(f"\n{'correct steps in %':24}{'activity':>10}{'trajectory':>12}{'seconds':>10}")
    models = {}
    for name, learn in {"HSCRF": hierarchical, "DCRF": dynamic, "flat CRF": flat}.items():
        begin = time.perf_counter()
        models[name], predict = learn(*train)
        found = predict(test[0])
        top, bottom = (100 * share_right(test[1], found, level) for level in LEVELS)
        print(f"{name:24}{top:10.1f}{bottom:12.1f}{time.perf_counter() - begin:10.1f}", flush=True)
    return models


def share_right(truth: Sequence[Labels], found: dict[str, list[list[str]]], level: str) -> float:
    """The share of steps with the right state."""
    true, guess = (np.concatenate(columns) for columns in ([y.column(level) for y in truth], found[level]))
    return float(np.mean(true == guess))


def hierarchical(X: Any, Y: Sequence[Labels]) -> tuple[HSCRF, Columns]:
    """Both levels together, as nested segments."""
    model = HSCRF(c2=0.1, verbose=1).fit(X, Y)
    return model, lambda Z: label_columns(model.predict(Z))


def dynamic(X: Any, Y: Sequence[Labels]) -> tuple[DynamicCRF, Columns]:
    """Both levels together, without segments."""
    model = DynamicCRF(c2=0.1, verbose=1).fit(X, [{level: y.column(level) for level in LEVELS} for y in Y])
    return model, lambda Z: label_columns(model.predict(Z))


def flat(X: Any, Y: Sequence[Labels]) -> tuple[dict[str, ChainCRF], Columns]:
    """One chain per level, independent of each other."""
    chains = {level: ChainCRF(c2=0.1, verbose=1).fit(X, [y.column(level) for y in Y]) for level in LEVELS}
    return chains, lambda Z: {level: [y.column("label") for y in chain.predict(Z)] for level, chain in chains.items()}


def label_columns(labels: Sequence[Labels]) -> dict[str, list[list[str]]]:
    return {level: [y.column(level) for y in labels] for level in LEVELS}


def show_evidence(model: Labeller, test: Any, seed: int) -> dict[str, list[float]]:
    """Print how the prediction improves with labels that are given."""
    curve = evidence_curve(model, test[0], test[1], FRACTIONS, seed)
    print("\nNow the labels of some test steps, drawn at random, are given; correct in % of the others:")
    print(f"{'given':24}" + "".join(f"{100 * fraction:9.0f}%" for fraction in FRACTIONS))
    for level, values in curve.items():
        print(f"{level:24}" + "".join(f"{100 * value:10.1f}" for value in values))
    k = FRACTIONS.index(0.2)
    gains = [f"{100 * v[0]:.1f} to {100 * v[k]:.1f} % ({level})" for level, v in curve.items()]
    print(f"A fifth of the labels improves the rest from {' and from '.join(gains)}.")
    return curve


def draw_pictures(folder: str, model: Model, test: Any, curve: dict[str, list[float]], seed: int) -> None:
    """Write pictures if matplotlib is there, and say where."""
    try:
        import matplotlib
    except ImportError:
        print("\nNo pictures without matplotlib: pip install 'hscrf[plots]'")
        return
    matplotlib.use("agg")
    from hscrf import plots

    os.makedirs(folder, exist_ok=True)
    X, Y = test
    given = revealed(Y[0], 0.2, np.random.default_rng(seed))
    free, informed = model.predict(X[:1])[0], model.predict(X[:1], evidence=[given])[0]
    sure = model.predict_marginals(X[:1])[0], model.predict_marginals(X[:1], evidence=[given])[0]
    pictures = {
        "day.png": plots.plot_segments(Y[0], prediction=free, marginals=sure[0]),
        "day-with-labels.png": plots.plot_segments(Y[0], prediction=informed, marginals=sure[1], evidence=given),
        "topology.png": plots.plot_topology(model),
        "training.png": plots.plot_training(model),
        "confusion.png": plots.plot_confusion(Y, model.predict(X), "trajectory"),
        "known-labels.png": plots.plot_evidence_curve(FRACTIONS, curve),
    }
    pictures["known-labels.png"].set_ylabel("accuracy of the steps not given")
    for name, axes in pictures.items():
        save_figure(axes, os.path.join(folder, name))
    print(f"\nPictures are in {folder}/: {', '.join(pictures)}")
