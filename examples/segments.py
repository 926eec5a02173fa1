"""
A nested segmentation
=====================

A person walks about a kitchen, and a camera sees noisy positions. The model labels activities, and the walks that each
activity is made of. It learns from 45 days and labels 45 others. One of them is drawn, the truth above the prediction.
"""

import matplotlib.pyplot as plt

from hscrf import HSCRF, metrics, plots
from hscrf.datasets import make_activities

X, Y = make_activities(90, random_state=0)
model = HSCRF(c2=0.5).fit(X[:45], Y[:45])
for level, share in metrics.accuracy(Y[45:], model.predict(X[45:])).items():
    print(f"{level}: {share:.0%} of the steps are right")

# %%
# Colours fade where the model is unsure. Steps with a wrong prediction are underlined.

day = slice(71, 72)
plots.plot_segments(Y[day], model.predict(X[day]), model.predict_marginals(X[day]))

# %%
# Which activities are confused? Each row is a true activity, each column a predicted one.

plots.plot_confusion(Y[45:], model.predict(X[45:]), "activity")
plt.show()
