"""
Author names
============

Lists of authors as they are printed above papers: persons, and the parts of their names. The data are the author names
of `GROBID <https://github.com/kermitt2/grobid>`_ (CC BY 4.0).
"""

import matplotlib.pyplot as plt

from hscrf import HSCRF, datasets, metrics
from hscrf.io import TokenFeatures

train, test = (datasets.fetch_author_names(split) for split in ("train", "test"))
features = TokenFeatures().fit(train.tokens)
model = HSCRF().fit(features.transform(train.tokens[:400]), train.Y[:400])
X = features.transform(test.tokens)
found = model.predict(X, confidence=True)
for level in ("person", "part"):
    print(f"{level}: segment F1 {metrics.segment_scores(test.Y, found, level).f1:.3f}")
print(f"lists that are right as a whole: {metrics.exact_match(test.Y, found):.0%}")

# %%
# One list of the test data. The opacity of a segment is its posterior probability.

n = max(range(len(test.tokens)), key=lambda n: (len(test.tokens[n]) <= 16) * len(test.Y[n].segments("person")))
words, labels = test.tokens[n], found[n]
names = sorted({state for _, _, state in labels.segments("part")} - {"O"})
colors = dict(zip(names, plt.colormaps["Dark2"].colors, strict=False))
figure, ax = plt.subplots(figsize=(10, 2.6), layout="constrained")
for y, level in enumerate(["part", "person"], start=1):
    for segment in labels.confidence(level):
        if segment.state == "O":
            continue
        color = colors.get(segment.state, "#2a6f97")
        span = (segment.start + 0.04, segment.stop - segment.start - 0.08)
        ax.broken_barh([span], (y + 0.1, 0.8), facecolor=color, alpha=max(0.15, segment.probability))
        middle = (segment.start + segment.stop) / 2
        narrow = len(segment.state) > 7 * (segment.stop - segment.start)
        ax.text(middle, y + 0.5, segment.state[:4] if narrow else segment.state, ha="center", va="center", fontsize=8)
for t, word in enumerate(words):
    ax.text(t + 0.5, 0.5, word, ha="center", va="center", fontsize=9, rotation=20 if len(word) > 8 else 0)
ax.set(xlim=(0, len(words)), ylim=(0, 3), xticks=[], title=f"{test.names[n]}: two levels over one list of authors")
ax.set_yticks([0.5, 1.5, 2.5], ["word", "part", "person"])
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
plt.show()
