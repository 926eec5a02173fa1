"""
Questions to the engine
=======================

Nothing is learned here: the scores of a day of 24 hours are given as :class:`hscrf.Potentials`. The engine answers with
the best labelling, posterior probabilities, the k best labellings, samples and the entropy, all exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

import hscrf
from hscrf import plots

actions = {
    "sleep": ["rest", "wash"],
    "work": ["walk", "desk", "talk"],
    "home": ["cook", "eat", "rest", "talk"],
}
topology = hscrf.Topology(
    {"activity": list(actions), "action": list(dict.fromkeys(a for some in actions.values() for a in some))},
    children={"activity": actions},
    successors={"activity": {s: [t for t in actions if t != s] for s in actions}},
    min_duration={"activity": 3},
    max_duration={"activity": 12},
)
truth = hscrf.Labels.from_tree(
    topology,
    [
        ("sleep", ["rest"] * 6 + ["wash"]),
        ("work", ["walk", "desk", "desk", "desk", "talk", "desk", "desk", "talk", "walk"]),
        ("home", ["cook", "eat", "talk", "rest"]),
        ("sleep", ["wash", "rest", "rest", "rest"]),
    ],
)

# %%
# A noisy sensor scores the true action higher by two. Actions tend to go on, and each activity has a usual length.

rng = np.random.default_rng(24)
size = topology.n_states[2]
potentials = hscrf.Potentials(
    topology,
    truth.length,
    token={"action": 2 * np.eye(size)[truth.states[2]] + 1.2 * rng.standard_normal((truth.length, size))},
    trans={"activity": np.tile(0.8 * np.eye(size), (1, topology.n_states[1], 1, 1))},
    duration={"activity": -np.abs(np.arange(1, 13)[:, None] - [7, 9, 4]) / 2},  # sleep, work, home
)
best = hscrf.decode(potentials)
posterior = hscrf.marginals(potentials)
print(f"log Z {posterior.log_partition:.2f}, score of the best labelling {best.score:.2f}")
plots.plot_segments(truth, best, posterior)

# %%
# The posterior probability of each activity at each hour. The line is the probability that an activity ends there.

figure, ax = plt.subplots(figsize=(9, 2.6), layout="constrained")
picture = ax.imshow(posterior.state["activity"].T, aspect="auto", cmap="Blues", vmin=0, vmax=1)
ax.plot(2.5 - 3 * posterior.ending["activity"], color="#d95f02")
ax.set_yticks(range(3), actions)
ax.set(xlabel="hour", title="posterior of activities")
figure.colorbar(picture, label="probability")

# %%
# Evidence: work lasted from 7 to 16. How probable was that before, and what changes?

known = hscrf.Labels.from_segments(topology, {"activity": [(7, 16, "work")]}, length=potentials.length)
share = np.exp(hscrf.log_partition(potentials, known) - posterior.log_partition)
print(f"probability of the evidence {share:.1%}")
print(f"entropy {hscrf.entropy(potentials):.1f} nats before, {hscrf.entropy(potentials, known):.1f} after")
for labels in hscrf.k_best(potentials, 3, known):
    print(
        f"score {labels.score:.2f}:", *(f"{name} {start}-{stop}" for start, stop, name in labels.segments("activity"))
    )

# %%
# Six days drawn from what is still possible:

days = hscrf.sample(potentials, 6, random_state=1, evidence=known)
plots.plot_segments(days).set_xlabel("hour")
plt.show()
