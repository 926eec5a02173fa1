"""
The hierarchy that a model has learned
======================================

The topology allows every walk under every activity. The weights say which of them belong together: positive weights of
first, neighbouring and last children speak for a pair.
"""

import matplotlib.pyplot as plt

from hscrf import HSCRF, Labels, Topology, plots
from hscrf.datasets import make_activities

X, Y = make_activities(90, n_activities=1, noise=0.3, random_state=0)
true = Y[0].topology
free = Topology({"activity": true.states[1], "trajectory": true.states[2]})
model = HSCRF(free, c2=0.1).fit(X, [Labels(free, y.states, y.ends) for y in Y])
learned = model.learned_topology()
missing = (true.children[1] & ~learned.children[1]).sum()
extra = (learned.children[1] & ~true.children[1]).sum()
print(f"{true.children[1].sum()} true pairs of activity and walk: {missing} not found, {extra} false ones")

# %%
# The picture draws pairs with positive weights, as the figures of the paper do.

plots.plot_topology(model)

# %%
# Which walk follows which, for each activity by itself:

plots.plot_transitions(model, "trajectory")
plt.show()
