"""
One correction, three levels
============================

References of papers have fields (authors, title, date), parts of fields and names within parts. The model predicts all
three levels at once. A person corrects one word, and the model predicts the rest of the reference again under this
evidence. The data are the `UMass citations <https://github.com/mmcmahon13/umass-citation>`_.
"""

import matplotlib.pyplot as plt
import numpy as np

from hscrf import HSCRF, LBFGS, Labels, datasets, metrics
from hscrf.io import TokenFeatures


def columns(data, n):
    """The BIO columns of the first n references, a dict of levels for each."""
    return [{level: data.columns[level][k] for level in ("field", "part", "name")} for k in range(n)]


train, test = (datasets.fetch_citations(split) for split in ("train", "test"))
features = TokenFeatures().fit(train.tokens)
model = HSCRF(solver=LBFGS(max_iter=40)).fit(features.transform(train.tokens[:150]), columns(train, 150))
X = features.transform(test.tokens[:150])
truth, found = test.Y[:150], model.predict(X)
before = metrics.joint_accuracy(columns(test, 150), found)

# %%
# In each reference with a mistake, the field of the first wrong word is given as evidence:


def first_mistake(y, z):
    """Evidence: the true field of the first word whose field is wrong; None if all fields are right."""
    fields = y.column("field")
    wrong = np.flatnonzero(np.array(fields) != np.array(z.column("field")))
    if not len(wrong) or fields[wrong[0]] not in model.topology_.states[1]:
        return None
    column = [fields[t] if t == wrong[0] else "?" for t in range(y.length)]
    return Labels.from_columns(model.topology_, {"field": column})


evidence = [first_mistake(y, z) for y, z in zip(truth, found, strict=True)]
corrected = model.predict(X, evidence=evidence)
count = sum(known is not None for known in evidence)
print(f"{count} of {len(truth)} references get one corrected word")
print(
    f"steps right at all levels: {before:.1%} before, {metrics.joint_accuracy(columns(test, 150), corrected):.1%} after"
)

# %%
# The reference that gains most. Each row of a level is one labelling of the same words:


def gain(n):
    """Words whose field is right now and was wrong before."""
    columns = (np.array(labels[n].column("field")) for labels in (truth, found, corrected))
    y, z, w = columns
    return int((y == w).sum() - (y == z).sum()) if len(y) <= 60 else 0


n = max(range(len(truth)), key=gain)
rows = {"predicted": found[n], "corrected": corrected[n], "true": truth[n]}
states = sorted({state for labels in rows.values() for _, _, state in labels.segments("field")})
colors = dict(zip(states, plt.colormaps["tab20"].colors, strict=False))
figure, axes = plt.subplots(3, 1, figsize=(10, 3.4), sharex=True, layout="constrained")
for ax, (name, labels) in zip(axes, rows.items(), strict=True):
    for start, stop, state in labels.segments("field"):
        ax.broken_barh([(start + 0.05, stop - start - 0.1)], (0, 1), facecolor=colors[state])
        if 2.2 * (stop - start) > len(state) * 60 / 75:
            ax.text((start + stop) / 2, 0.5, state, ha="center", va="center", fontsize=8)
    ax.set_yticks([0.5], [name])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
given = next(t for t, state in enumerate(evidence[n].column("field")) if state != "?")
axes[1].plot(given + 0.5, 0.12, marker="^", color="black")
axes[0].set_title(f"fields of '{' '.join(test.tokens[n])[:70]}...'", fontsize=9)
axes[-1].set_xlabel("word; the triangle is the one word that was corrected")
for state, color in colors.items():
    axes[-1].plot([], [], color=color, linewidth=6, label=state)
figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=8)
plt.show()
