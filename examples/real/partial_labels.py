"""
Learning from part of the labels
================================

Only some segments of each list of authors are labelled, drawn at random; nothing else is known. The model learns from
what there is, summed over the rest. A second model learns from as many labels in complete lists.
"""

import matplotlib.pyplot as plt
import numpy as np

from hscrf import HSCRF, LBFGS, Labels, datasets, metrics
from hscrf.io import TokenFeatures

train, test = (datasets.fetch_author_names(split) for split in ("train", "test"))
features = TokenFeatures().fit(train.tokens)
X, Y = features.transform(train.tokens[:150]), train.Y[:150]
new, truth = features.transform(test.tokens[:100]), test.Y[:100]
rng = np.random.default_rng(0)


def keep(labels, fraction):
    """Each segment with this probability, with its borders; everything else is unknown."""
    kept = {
        level: [segment for segment in labels.segments(level) if rng.random() < fraction]
        for level in ("person", "part")
    }
    return Labels.from_segments(labels.topology, kept, length=labels.length)


def whole(Y, X):
    """Share of the test lists that are right as a whole."""
    model = HSCRF(solver=LBFGS(max_iter=30)).fit(X, Y)
    return metrics.exact_match(truth, model.predict(new))


fractions = [0.1, 0.25, 0.5, 1.0]
curves = {"some segments of every list": [], "all segments of some lists": []}
for fraction in fractions:
    curves["some segments of every list"].append(whole([keep(y, fraction) for y in Y], X))
    n = round(fraction * len(Y))
    curves["all segments of some lists"].append(whole(Y[:n], X[:n]))
    print(f"{fraction:4.0%} of the labels:", *(f"{name} {values[-1]:.0%}" for name, values in curves.items()))

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), color in zip(curves.items(), ("#2a6f97", "#d95f02"), strict=True):
    ax.plot(fractions, values, marker="o", color=color, label=name)
ax.set(xlabel="share of 150 lists that is labelled", ylabel="test lists right as a whole", ylim=(0, None))
ax.set_title("Author names: which labels to collect")
ax.legend()
plt.show()
