"""Learning from partial labels: one sequence in four has all of its labels, the others have their top level only.

python examples/neural/partial.py
"""

import numpy as np

from hscrf import datasets, metrics
from hscrf.torch import Tagger


def main(n: int = 60, epochs: int = 20) -> dict[str, float]:
    """Train with few labels, with the top level of the others, and with all; return the accuracy of each."""
    _, Y = datasets.make_nested(n + 20, sizes=(2, 4), length=(8, 14), durations=(5, 1), random_state=0)
    rng = np.random.default_rng(1)
    top, bottom = Y[0].topology.levels[1:]
    noisy = [[w if rng.random() < 0.8 else str(rng.choice(y.topology.states[-1])) for w in y.column(bottom)] for y in Y]
    X, test = noisy[:n], noisy[n:]
    columns = [{level: y.column(level) for level in (top, bottom)} for y in Y]
    partial = [y if k % 4 == 0 else {top: y[top], bottom: ["?"] * len(y[bottom])} for k, y in enumerate(columns[:n])]
    options = {"topology": Y[0].topology, "hidden": 16, "epochs": epochs, "learning_rate": 0.02, "random_state": 0}
    found = {}
    for name, which, labels in (
        ("a quarter", range(0, n, 4), columns[:n]),
        ("a quarter, and the top level of the others", range(n), partial),
        ("all", range(n), columns[:n]),
    ):
        model = Tagger(**options).fit([X[k] for k in which], [labels[k] for k in which])
        found[name] = float(metrics.joint_accuracy(Y[n:], model.predict(test)))
    return found


if __name__ == "__main__":
    for name, accuracy in main().items():
        print(f"{100 * accuracy:5.1f} % of the steps right with the labels of {name}")
