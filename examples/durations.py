"""
Durations that matter
=====================

Two kinds of pulse have the same height and the same noise. One lasts about 4 steps, the other about 12. Only a model
with weights for durations can tell them apart.
"""

import matplotlib.pyplot as plt
import numpy as np

from hscrf import HSCRF, Duration, Init, Labels, Token, Topology, Trans, metrics, plots

turns = {"rest": ["short", "long"], "short": ["rest"], "long": ["rest"]}
topology = Topology({"pulse": list(turns)}, successors={"pulse": turns}, max_duration={"pulse": 25})


def pulses(n, rng):
    """Sequences of pulses with rests between them: observations (T, 1) and labels."""
    X, Y = [], []
    for _ in range(n):
        segments, t = [], 0
        for _ in range(8):
            for name in ("rest", str(rng.choice(["short", "long"]))):
                length = max(1, round(rng.gamma(16, {"rest": 6, "short": 4, "long": 12}[name] / 16)))
                segments.append((t, t + length, name))
                t += length
        labels = Labels.from_segments(topology, {"pulse": segments})
        Y.append(labels)
        X.append((labels.states[1] > 0)[:, None] + 0.5 * rng.standard_normal((labels.length, 1)))
    return X, Y


X, Y = pulses(40, np.random.default_rng(0))
plain = [Token("pulse"), Init("root"), Trans("root")]
models = {}
for name, blocks in {"without durations": plain, "with durations": [*plain, Duration("pulse")]}.items():
    models[name] = HSCRF(topology, features=blocks, c2=0.1).fit(X[:20], Y[:20], development=(X[20:30], Y[20:30]))
    guess = models[name].predict(X[30:])
    print(f"{name}: {metrics.accuracy(Y[30:], guess, 'pulse'):.0%} of the steps are right")

# %%
# One sequence with both predictions:

figure, axes = plt.subplots(3, 1, figsize=(9, 5), layout="constrained", height_ratios=[2, 1, 1])
axes[0].plot(X[30][:, 0], drawstyle="steps-post", color="#2a6f97")
axes[0].set(xlim=(0, len(X[30])), title="observations")
for ax, (name, model) in zip(axes[1:], models.items(), strict=True):
    plots.plot_segments(Y[30], model.predict(X[30:31])[0], ax=ax)
    ax.set(title=name, xlabel="")

# %%
# The lengths that the model expects in sequences it has not seen:

plots.plot_durations(models["with durations"], "pulse", X=X[30:])

# %%
# Training keeps the weights with the best score on development data:

plots.plot_training(models["with durations"])
plt.show()
