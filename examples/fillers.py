"""
Where a filler ends
===================

A run of ``O`` says that no named segment is here. It does not say where the segment above it ends. The true names of a
line are evidence here, and its parts are unknown. Two readings of the same evidence give two predictions.
"""

import matplotlib.pyplot as plt

from hscrf import HSCRF, Labels

words = ["a", "b", "x", "y", "a", "b"]
parts = ["B-P", "I-P", "B-Q", "I-Q", "B-P", "I-P"]
names = ["B-n", "O", "O", "O", "O", "B-n"]
X = [[[f"w={word}"] for word in words]] * 6
model = HSCRF(scheme="bio").fit(X, [{"part": parts, "name": names}] * 6)

# %%
# Read as one segment (``boundaries="fixed"``), the run of ``O`` lets no part end inside it. Left open, it ends where
# the parts do. Dotted lines are open ends.

colors = {"P": "#4c78a8", "Q": "#f58518", "n": "#54a24b", "O": "#d9d9d9"}


def draw(ax, y, segments, doubts=()):
    """Segments as boxes, open ends as dotted lines."""
    for start, stop, state in segments:
        ax.broken_barh([(start, stop - start)], (y, 0.8), facecolor=colors[state], edgecolor="white", linewidth=2)
        ax.text(start + 0.5, y + 0.4, state, ha="center", va="center")
    for t in doubts:
        ax.plot([t, t], [y, y + 0.8], color="black", linestyle=":")


_, axes = plt.subplots(1, 2, figsize=(9, 2.4), sharey=True, layout="constrained")
titles = {"fixed": "a run of O is one segment", "runs": "a run of O ends where its parent ends"}
for ax, (boundaries, title) in zip(axes, titles.items(), strict=True):
    known = Labels.from_columns(model.topology_, {"name": names}, "bio", boundaries)
    (guess,) = model.predict(X[:1], evidence=[known])
    print(f"{title}: parts {guess.segments('part')}")
    doubts = [t + 1 for t, end in enumerate(known.ends[2].tolist()) if end == -2]
    draw(ax, 2, [(0, 1, "n"), (1, 5, "O"), (5, 6, "n")], doubts=doubts)
    draw(ax, 1, guess.segments("part"))
    draw(ax, 0, guess.segments("name"))
    ax.set(title=title, xticks=range(len(words) + 1), xlim=(0, len(words)))
    ax.set_yticks([0.4, 1.4, 2.4], ["name, predicted", "part, predicted", "name, evidence"])
    ax.spines[["left", "right", "top"]].set_visible(False)
plt.show()
