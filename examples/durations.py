"""Durations that matter: states that sound alike and differ in how long they last.

Two kinds of pulse have the same mean and the same noise; one lasts about 4 steps, the other about 12. With weights for
durations a semi-Markov level tells them apart; without them it has to guess. The first picture shows the lengths that
the model expects in sequences it has not seen.
"""

import sys
from pathlib import Path

import numpy as np

from hscrf import HSCRF, Duration, Init, Labels, Token, Topology, Trans, metrics, plots


def pulses(topology, n, rng):
    """Sequences of pulses with rests between them: observations (T, 1) and labels."""
    X, Y = [], []
    for _ in range(n):
        segments, t = [], 0
        for _ in range(8):
            for name, mean in (("rest", 6), (rng.choice(["short", "long"]), None)):
                length = max(1, round(rng.gamma(16, (mean or {"short": 4, "long": 12}[name]) / 16)))
                segments.append((t, t + length, str(name)))
                t += length
        labels = Labels.from_segments(topology, {"pulse": segments})
        Y.append(labels)
        X.append((labels.states[1] > 0)[:, None] + 0.5 * rng.standard_normal((labels.length, 1)))
    return X, Y


def main(folder):
    turns = {"rest": ["short", "long"], "short": ["rest"], "long": ["rest"]}
    states = {"pulse": list(turns)}
    topology = Topology(states, successors={"pulse": turns}, max_duration={"pulse": 25})
    X, Y = pulses(topology, 40, np.random.default_rng(0))
    plain = [Token("pulse"), Init("root"), Trans("root")]
    models = {}
    for name, blocks in {"without durations": plain, "with durations": [*plain, Duration("pulse")]}.items():
        models[name] = HSCRF(topology, features=blocks, c2=0.1).fit(X[:20], Y[:20], development=(X[20:30], Y[20:30]))
        guess = models[name].predict(X[30:])
        print(f"{name}: {metrics.accuracy(Y[30:], guess, 'pulse'):.0%} of the steps are right")
    model = models["with durations"]
    plots.plot_durations(model, "pulse", X=X[30:]).figure.savefig(Path(folder) / "durations.png", dpi=100)
    plots.plot_confusion(Y[30:], guess, "pulse").figure.savefig(Path(folder) / "confusion.png", dpi=100)
    plots.plot_training(model).figure.savefig(Path(folder) / "training.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
