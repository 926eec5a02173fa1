"""What a few known labels are worth: decoding that keeps them and fills in the rest.

A model learned from few days is told the activity, or the walk, at random time steps of days it has not seen. Counted
are all steps, told or not. The first picture shows one day with a tenth of its labels told; the second the accuracy as
more of them are.
"""

import sys
from pathlib import Path

import numpy as np

from hscrf import HSCRF, Labels, metrics, plots
from hscrf.datasets.activities import make_activities

FRACTIONS = [0.0, 0.05, 0.1, 0.2, 0.4]


def told(labels, fraction, rng):
    """The states of a random share of the steps, at every level; nothing of the ends."""
    states = np.where(rng.random(labels.length) < fraction, labels.states, -1)
    return Labels(labels.topology, states, np.full_like(labels.ends, -1))


def main(folder):
    X, Y = make_activities(60, noise=1.0, random_state=3)
    model = HSCRF().fit(X[:20], Y[:20])
    days, truth = X[20:], Y[20:]
    rng = np.random.default_rng(0)
    curve = {"activity": [], "trajectory": []}
    for fraction in FRACTIONS:
        repeats = []
        for _ in range(3):
            guess = model.predict(days, evidence=[told(y, fraction, rng) for y in truth])
            repeats.append(metrics.accuracy(truth, guess))
        for level, values in curve.items():
            values.append([repeat[level] for repeat in repeats])
        print(f"{fraction:4.0%} told:", *(f"{level} {np.mean(v[-1]):.0%}" for level, v in curve.items()))
    ax = plots.plot_evidence_curve(FRACTIONS, curve)
    ax.figure.savefig(Path(folder) / "curve.png", dpi=100)

    known = told(truth[0], 0.1, rng)
    (guess,), (posterior,) = (f(days[:1], evidence=[known]) for f in (model.predict, model.predict_marginals))
    ax = plots.plot_segments(truth[0], guess, posterior, known)
    ax.figure.savefig(Path(folder) / "day.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
