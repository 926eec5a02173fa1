"""
Labels while the data arrive
============================

A stream labels each step ``lag`` steps after it was seen. A longer lag lets the answer use more of what comes later.
"""

import matplotlib.pyplot as plt
import numpy as np

from hscrf import HSCRF, Labels, Topology, plots
from hscrf.datasets import make_activities

X, Y = make_activities(50, noise=0.8, random_state=1)
model = HSCRF().fit(X[:30], Y[:30])
days, truth = X[30:], Y[30:]


def right(lag):
    """Share of the steps whose activity and walk are right."""
    hits = []
    for x, y in zip(days, truth, strict=True):
        steps = model.stream(lag=lag).run(x)
        columns = {level: y.column(level) for level in ("activity", "trajectory")}
        hits += [[step.labels[level] == columns[level][t] for level in columns] for t, step in enumerate(steps)]
    return np.mean(hits, axis=0)


lags = [0, 1, 2, 5, 10, 20, 40]
shares = np.array([right(lag) for lag in lags])
for lag, share in zip(lags, shares, strict=True):
    print(f"lag {lag:2d}: activity {share[0]:.0%}, trajectory {share[1]:.0%}")

# %%
# The dashed lines are ``predict``, which sees the whole day.

whole = [[y.column(level) for y in model.predict(days)] for level in ("activity", "trajectory")]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for k, (level, color) in enumerate({"activity": "#2a6f97", "trajectory": "#d95f02"}.items()):
    ax.plot(lags, shares[:, k], marker="o", color=color, label=level)
    hits = [np.array(y.column(level)) == np.array(found) for y, found in zip(truth, whole[k], strict=True)]
    ax.axhline(np.mean(np.concatenate(hits)), color=color, linestyle="--", linewidth=1)
ax.set(xlabel="lag in steps", ylabel="steps that are right", title="What a longer lag is worth")
ax.legend()

# %%
# One day without a lag and with a lag of 20 steps, both below the truth:

activities = Topology({"activity": truth[0].topology.states[1]}, max_duration={"activity": None})
shown = Labels.from_columns(activities, {"activity": truth[0].column("activity")})
figure, axes = plt.subplots(2, 1, figsize=(9, 3.4), layout="constrained")
for ax, lag in zip(axes, (0, 20), strict=True):
    column = [step.labels["activity"] for step in model.stream(lag=lag).run(days[0])]
    plots.plot_segments(shown, Labels.from_columns(activities, {"activity": column}), ax=ax)
    ax.set_title(f"lag {lag}")
plt.show()
