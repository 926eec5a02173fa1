"""
What a few known labels are worth
=================================

A model that learned from few days is given the labels at random steps of days it has not seen. It keeps them and
predicts the rest consistently.
"""

import matplotlib.pyplot as plt
import numpy as np

from hscrf import HSCRF, Labels, metrics, plots
from hscrf.datasets import make_activities

X, Y = make_activities(60, noise=1.0, random_state=3)
model = HSCRF().fit(X[:20], Y[:20])
days, truth = X[20:], Y[20:]


def some(labels, fraction, rng):
    """The states of a random share of the steps, at every level; nothing of the ends."""
    states = np.where(rng.random(labels.length) < fraction, labels.states, -1)
    return Labels(labels.topology, states, np.full_like(labels.ends, -1))


# %%
# Accuracy over all steps, known or not, as more labels are known:

rng = np.random.default_rng(0)
fractions = [0.0, 0.05, 0.1, 0.2, 0.4]
curve = {"activity": [], "trajectory": []}
for fraction in fractions:
    repeats = [
        metrics.accuracy(truth, model.predict(days, evidence=[some(y, fraction, rng) for y in truth])) for _ in range(3)
    ]
    for level, values in curve.items():
        values.append([repeat[level] for repeat in repeats])
    print(f"{fraction:4.0%} known:", *(f"{level} {np.mean(v[-1]):.0%}" for level, v in curve.items()))
plots.plot_evidence_curve(fractions, curve)

# %%
# One day with a tenth of its labels known. Dots mark the evidence:

known = some(truth[0], 0.1, rng)
(guess,), (posterior,) = (f(days[:1], evidence=[known]) for f in (model.predict, model.predict_marginals))
plots.plot_segments(truth[0], guess, posterior, known)
plt.show()
