"""Small data: `c2="auto"` against the plain penalty, on folds of training data.

The question is whether `c2="auto"` should be the default where there are few sequences. From the *training* data of six
sets a few sequences are learned and others are judged; test data have no part in it. `c2="auto"` is given the groups
(people) where there are any. A model is judged as in the study of the defaults: the mean of whole sequences, F1 of
segments and steps; where borders are never exact, of F1 and states.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

import sets
from hscrf import HSCRF
from nested import columns_of
from runner import Study, main, paired

PLAIN, AUTO = "c2 = 0.1", 'c2="auto"'
SIZES = {"CoNLL-2000": 100, "citations": 50, "author names": 50, "ECG": 15}  # sequences that are learned
JUDGED = 150  # sequences, at most


def samples(study: Study) -> list[sets.Set]:
    """Few sequences to learn from, others to judge by; both are training data of the set."""
    if study.variant == "smallest":
        return sets.imitation()[0].folds()
    folds = study.pick(1, 1, 2)
    found = []
    for name, size in SIZES.items():
        data = sets.LOADERS[name](study.data, folds * size + JUDGED)[0]
        judged = data.train.take(range(folds * size, min(len(data.train), folds * size + JUDGED)))
        for n in range(folds):
            learned = data.train.take(range(n * size, (n + 1) * size))
            found.append(replace(data, train=learned, test=judged, place=f"{n}"))
    found += sets.meals(range(2000, 2000 + study.pick(1, 2, 4)))
    return found + sets.videos(study.data)[0].folds(3)


def run(study: Study) -> None:
    for data in samples(study):
        for way, c2 in ((PLAIN, 0.1), (AUTO, "auto")):
            measure(study, data, way, c2)
        study.write(finished=False)
    write_tables(study)


def measure(study: Study, data: sets.Set, way: str, c2: Any) -> None:
    keys = {"data": data.name, "way": way, "place": data.place}
    if study.select("quality", **keys):
        return
    several = len(set(data.train.groups)) < len(data.train)
    options = {"groups": data.train.groups} if c2 == "auto" and several else {}
    begin = time.process_time()
    model = HSCRF(c2=c2).fit(data.train.X, data.train.rows, **options)
    study.record("seconds", time.process_time() - begin, **keys)
    study.record("chosen c2", model.c2_, **keys)
    scores = sets.measures(data, columns_of(model.predict(data.test.X), data.plain))
    study.record("quality", sets.quality(data, scores), **keys)


def write_tables(study: Study) -> None:
    study.heading("Quality")
    caption = "Held-out training sequences: mean of whole sequences, segment F1 and steps, in %."
    study.table("quality", "way", "data", caption, percent=True)
    names = list(dict.fromkeys(r["data"] for r in study.select("quality")))
    gains = [
        np.mean(study.values("quality", data=name, way=AUTO)) - np.mean(study.values("quality", data=name, way=PLAIN))
        for name in names
    ]
    every = paired(study.values("quality", way=AUTO), study.values("quality", way=PLAIN))
    study.say(
        f'With `c2="auto"` {sum(gain > 0 for gain in gains)} of {len(names)} sets are better and '
        f"{sum(gain < 0 for gain in gains)} worse; over all folds the difference is {every}, in brackets the folds "
        f"that it wins ({every.test}; {every.ties} are equal)."
    )
    study.table("chosen c2", "way", "data", "The overall penalty, mean.", digits=2, spread=False)
    study.table("seconds", "way", "data", "Seconds of one core to learn.", spread=False)


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
