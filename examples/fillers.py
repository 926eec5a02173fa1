"""Where a filler ends: what a run of O says about the level above it, and what it does not.

The true names of a line are evidence, its parts are unknown. Read as one segment, the run of O does not let a part end
inside it. Left open, it ends where the parts do. The picture shows both readings: the names as they are told, with open
ends dotted, and what the model then finds.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from hscrf import HSCRF, Labels

WORDS = ["a", "b", "x", "y", "a", "b"]
PARTS = ["B-P", "I-P", "B-Q", "I-Q", "B-P", "I-P"]
NAMES = ["B-n", "O", "O", "O", "O", "B-n"]
COLORS = {"P": "#4c78a8", "Q": "#f58518", "n": "#54a24b", "O": "#d9d9d9"}


def draw(ax, y, segments, doubts=()):
    """Segments as boxes, open ends as dotted lines."""
    for start, stop, state in segments:
        ax.broken_barh([(start, stop - start)], (y, 0.8), facecolor=COLORS[state], edgecolor="white", linewidth=2)
        ax.text(start + 0.5, y + 0.4, state, ha="center", va="center")
    for t in doubts:
        ax.plot([t, t], [y, y + 0.8], color="black", linestyle=":")


def runs(column):
    """Equal neighbours of a BIO column, as they are written."""
    starts = [t for t, tag in enumerate(column) if t == 0 or tag[0] == "B" or tag != column[t - 1]]
    return [(i, j, column[i][-1]) for i, j in zip(starts, [*starts[1:], len(column)], strict=True)]


def main(folder):
    X = [[[f"w={word}"] for word in WORDS]] * 6
    Y = [{"part": PARTS, "name": NAMES}] * 6
    model = HSCRF(scheme="bio").fit(X, Y)
    _, axes = plt.subplots(1, 2, figsize=(9, 2.4), sharey=True)
    titles = {"fixed": "a run of O is one segment", "runs": "a run of O ends where its parent ends"}
    for ax, (boundaries, title) in zip(axes, titles.items(), strict=True):
        told = Labels.from_columns(model.topology_, {"name": NAMES}, "bio", boundaries)
        (guess,) = model.predict(X[:1], evidence=[told])
        print(f"{title}: parts {guess.segments('part')}")
        doubts = [t + 1 for t, end in enumerate(told.ends[2].tolist()) if end == -2]
        draw(ax, 2, runs(NAMES), doubts=doubts)
        draw(ax, 1, guess.segments("part"))
        draw(ax, 0, guess.segments("name"))
        ax.set(title=title, xticks=range(len(WORDS) + 1), xlim=(0, len(WORDS)))
        ax.set_yticks([2.4, 1.4, 0.4], ["names told", "parts found", "names found"])
        ax.spines[:].set_visible(False)
    plt.tight_layout()
    plt.savefig(Path(folder) / "fillers.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
