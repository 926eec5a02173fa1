"""
Choosing the penalty
====================

``c2="auto"`` holds out parts of the training data and compares penalties by the errors there. The picture is the path
that it took.
"""

import matplotlib.pyplot as plt

from hscrf import HSCRF, metrics, plots
from hscrf.datasets import make_activities

X, Y = make_activities(60, noise=1.0, random_state=5)
model = HSCRF(c2="auto", random_state=0).fit(X[:20], Y[:20])
print(model.penalty_reason_)
print(f"c2_ = {model.c2_:g}")

# %%
# Errors in what was held out, for each penalty that was tried:

plots.plot_penalties(model)

# %%
# The same days with the default penalty and with the chosen one:

for name, found in {"default": HSCRF().fit(X[:20], Y[:20]), "auto": model}.items():
    shares = metrics.accuracy(Y[20:], found.predict(X[20:]))
    print(f"{name}:", ", ".join(f"{level} {share:.1%}" for level, share in shares.items()))
plt.show()
