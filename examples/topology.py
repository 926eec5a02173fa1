"""The hierarchy that a model has learned, as the paper draws it.

Nothing is said beforehand about which walk belongs to which activity: every pair has a weight.
Positive weights of first, neighbouring and last children speak for a pair; negative ones are left out of the pictures.
The second picture shows which walk follows which, for each activity by itself.
"""

import sys
from pathlib import Path

from hscrf import HSCRF, Labels, Topology, plots
from hscrf.datasets.activities import make_activities


def main(folder):
    X, Y = make_activities(90, n_activities=1, noise=0.3, random_state=0)
    true = Y[0].topology
    free = Topology({"activity": true.states[1], "trajectory": true.states[2]})
    model = HSCRF(free, c2=0.1).fit(X, [Labels(free, y.states, y.ends) for y in Y])
    learned = model.learned_topology()
    missing, extra = (true.children[1] & ~learned.children[1]).sum(), (learned.children[1] & ~true.children[1]).sum()
    print(f"{true.children[1].sum()} true pairs of activity and walk: {missing} not found, {extra} found that are none")
    plots.plot_topology(model).figure.savefig(Path(folder) / "topology.png", dpi=100)
    plots.plot_transitions(model, "trajectory").figure.savefig(Path(folder) / "transitions.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
