"""A nested segmentation: truth above prediction, and how sure the model is.

A person walks about a kitchen; positions are seen with noise. The model learns from 45 days and labels 45 others, of
which one is drawn. Colours fade where the model is unsure. The picture in the README is this one:
``python examples/segments.py docs/images``.
"""

import sys
from pathlib import Path

from hscrf import HSCRF, metrics, plots
from hscrf.datasets.activities import make_activities


def main(folder):
    X, Y = make_activities(90, random_state=0)
    model = HSCRF(c2=0.5).fit(X[:45], Y[:45])
    for level, share in metrics.accuracy(Y[45:], model.predict(X[45:])).items():
        print(f"{level}: {share:.0%} of the steps are right")
    day = slice(71, 72)
    ax = plots.plot_segments(Y[day], model.predict(X[day]), model.predict_marginals(X[day]))
    ax.figure.savefig(Path(folder) / "segments.png", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
