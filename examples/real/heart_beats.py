"""
Beats and waves of an electrocardiogram
=======================================

Twelve leads, 50 steps a second: beats at the upper level, the waves P, QRS and T with the pauses between them at the
lower. A classifier looks at windows of the signal, a nested CRF makes a consistent labelling of its scores. The data
are those of the `Lobachevsky University database <https://physionet.org/content/ludb/1.0.1/>`_ (ODC-By 1.0).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

from hscrf import HSCRF, datasets, metrics
from hscrf.stacking import StackedCRF

train, test = (datasets.fetch_ecg(split) for split in ("train", "test"))


def labelled(records, n):
    """The labelled part of the first n records: arrays and dicts of columns."""
    X, Y = [], []
    for x, beat, wave in zip(records.tokens[:n], records.columns["beat"], records.columns["wave"], strict=False):
        known = [t for t, tag in enumerate(wave) if tag != "?"]
        part = slice(known[0], known[-1] + 1)
        X.append(x[part])
        Y.append({"beat": beat[part], "wave": wave[part]})
    return X, Y


X, Y = labelled(train, 20)
new, truth = labelled(test, 20)
trees = ExtraTreesClassifier(20, min_samples_leaf=3, random_state=0)
model = StackedCRF(HSCRF(), trees, window=8, cv=2).fit(X, Y)
found = model.predict(new)
for level, share in metrics.accuracy(truth, found).items():
    print(f"{level}: {share:.1%} of the steps are right")

# %%
# Four seconds of a record that was not in training. The upper bands are the true waves, the lower ones the predicted:

record, seconds = 4, slice(60, 260)
signal = new[record][seconds, 1] / 1000
true = [tag[2:] for tag in truth[record]["wave"]]
colors = {"P": "#1b9e77", "QRS": "#d95f02", "T": "#7570b3"}
time = np.arange(seconds.start, seconds.stop) / 50
figure, ax = plt.subplots(figsize=(10, 4), layout="constrained")
ax.plot(time, signal, color="0.2", linewidth=1)
low, high = signal.min() - 0.9, signal.max() + 0.1
for row, column in enumerate([found[record].column("wave"), true]):
    for t in range(seconds.start, seconds.stop):
        if column[t] in colors:
            ax.broken_barh([(t / 50, 1 / 50)], (low + 0.1 + 0.35 * row, 0.3), facecolor=colors[column[t]])
for name, color in colors.items():
    ax.plot([], [], color=color, linewidth=6, label=name)
volts = np.arange(np.ceil(5 * signal.min()) / 5, signal.max(), 0.2)
ax.set_yticks([low + 0.25, low + 0.6, *volts], ["predicted", "true", *(f"{volt:.1f}" for volt in volts)])
ax.set(xlim=(time[0], time[-1]), ylim=(low, high), xlabel="seconds", ylabel="lead II in mV")
ax.set_title(f"record {test.names[record]}: waves found in a signal that was not in training")
ax.legend(loc="upper right", ncols=3)
plt.show()
