"""
Can the probabilities be believed?
==================================

Chunks of sentences (CoNLL-2000, Wall Street Journal). The model reports a probability for each step. A model of few
sentences is often too sure of itself; ``calibrate`` fits one temperature a level to sentences it has not seen.
"""

import matplotlib.pyplot as plt

from hscrf import HSCRF, LBFGS, datasets, metrics, plots
from hscrf.io import TokenFeatures

train, test = (datasets.fetch_conll2000(split) for split in ("train", "test"))
features = TokenFeatures().fit(train.tokens[:200])
X, Y = features.transform(train.tokens[:200]), train.Y[:200]
model = HSCRF(c2=0.01, solver=LBFGS(max_iter=60)).fit(X[:140], Y[:140])
new, truth = features.transform(test.tokens[:300]), test.Y[:300]
found = model.predict(new)
print(f"tags that are right: {metrics.accuracy(truth, found, 'pos'):.1%}")

# %%
# How often is a step right, for each reported probability? On the diagonal the probabilities mean what they say.

before = metrics.calibration(truth, model.predict_marginals(new), "pos")
model.calibrate(X[140:], Y[140:])
after = metrics.calibration(truth, model.predict_marginals(new), "pos")
for name, curve in {"before": before, "after": after}.items():
    print(f"{name}: expected calibration error {curve.error:.3f}")
plots.plot_calibration({"before": before, "after": after})
plt.show()
