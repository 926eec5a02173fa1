"""A nested segmentation: truth above prediction, and how sure the model is.

A person walks about a kitchen; positions are seen with noise. The model learns from 45 days and labels another. Colours
fade where the model is unsure. The picture in the README is this one: ``python examples/segments.py docs/images``.
"""

import sys
from pathlib import Path

from hscrf import HSCRF, plots
from hscrf.datasets import make_activities


def main(folder):
    X, Y = make_activities(46, random_state=7)
    model = HSCRF(c2=0.5).fit(X[:45], Y[:45])
    day, truth = X[45:], Y[45]
    (guess,) = model.predict(day)
    (posterior,) = model.predict_marginals(day)
    for level in ("activity", "trajectory"):
        pairs = list(zip(guess.column(level), truth.column(level), strict=True))
        print(f"{level}: {sum(a == b for a, b in pairs)} of {len(pairs)} steps are right")
    ax = plots.plot_segments(truth, guess, posterior)
    ax.figure.savefig(Path(folder) / "segments.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
