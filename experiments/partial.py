"""Partial labels: complete labels for a few sequences, the top level for the rest.

Fine labels are expensive and coarse ones often exist already. A share of the training sequences has all levels, all
others have only the top level. One nested model learns from all of it: what is not known stays open. A pipeline can
use the rest for its top chain only: *cascade* learns the top level from everything and each lower level, given the one
above, from the complete sequences. *Product labels* and *nested, complete only* know nothing of the rest. The chains
have the loss of CRFsuite; their penalty is the best of a grid on a fifth of the complete sequences that is held out.
The nested model is the plain call. Words are described alike for all, by the default template. Which sequences are
complete is drawn anew for each repetition. Test sequences wholly right, at all levels and with all borders.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import sets
from hscrf import HSCRF
from nested import Columns, all_right, columns_of
from pipelines import Chain, Product, with_column
from runner import Study, main

NESTED, ALONE, CASCADE, PRODUCT = "nested", "nested, complete only", "cascade", "product labels"
GRID = (0.03, 0.1, 0.3, 1.0, 3.0)


def samples(study: Study) -> list[sets.Set]:
    if study.variant == "smallest":
        made = sets.imitation()[0]
        return [replace(made, train=described(made.train), test=described(made.test))]
    sizes = study.pick({}, {"author names": 400, "citations": 300}, {"author names": None, "citations": None})
    return [sets.LOADERS[name](study.data, most)[0] for name, most in sizes.items()]


def described(data: sets.Data) -> sets.Data:
    """Bare words described as those of the other sets are."""
    return replace(data, X=sets.words([[item[0] for item in x] for x in data.X]))


def run(study: Study) -> None:
    right: dict[tuple[str, str, str], list[bool]] = {}
    for data in samples(study):
        for share in study.pick((0.5,), (0.1,), (0.1, 0.25)):
            for seed in range(study.pick(1, 1, 2)):
                for name, found in systems(study, data, share, seed):
                    keys = {"data": data.name, "complete": f"{share:.0%}", "system": name, "seed": seed}
                    for measure, value in sets.measures(data, found).items():
                        study.record("score", value, measure=measure, **keys)
                    whole = [bool(some.all()) for some in all_right(data.test.columns, found)]
                    right.setdefault((data.name, keys["complete"], name), []).extend(whole)
                study.write(finished=False)
    write_tables(study, right)


def systems(study: Study, data: sets.Set, share: float, seed: int) -> Any:
    """Each system by name, with what it predicts for the test sequences."""
    n = len(data.train)
    few = np.sort(np.random.default_rng([seed, n]).permutation(n)[: round(share * n)]).tolist()
    complete = data.train.take(few)
    keys = {"data": data.name, "complete": f"{share:.0%}", "seed": seed}
    max_iter = study.pick(5, 200, 500)
    model = HSCRF()
    with study.timed(system=NESTED, **keys):
        model.fit(data.train.X, partly(data, set(few)))
    study.record("iterations", model.n_iter_, system=NESTED, **keys)
    yield NESTED, columns_of(model.predict(data.test.X))
    with study.timed(system=ALONE, **keys):
        model.fit(complete.X, complete.rows)
    yield ALONE, columns_of(model.predict(data.test.X))
    with study.timed(system=CASCADE, **keys):
        found = cascade(data, complete, max_iter)
    yield CASCADE, found
    with study.timed(system=PRODUCT, **keys):
        c2 = best_penalty(lambda c2: Product(max_iter, c2=c2), complete)
        product = Product(max_iter, c2=c2).fit(complete.X, complete.columns)
    yield PRODUCT, product.predict(data.test.X)


def partly(data: sets.Set, complete: set[int]) -> list[dict[str, list[str]]]:
    """The labels of all training sequences: all levels of the complete ones, the top level of the others."""
    top, *lower = data.levels
    return [
        row if n in complete else {top: row[top], **{level: ["?"] * len(row[top]) for level in lower}}
        for n, row in enumerate(data.train.rows)
    ]


def cascade(data: sets.Set, complete: sets.Data, max_iter: int) -> Columns:
    """A chain for each level, top first, that sees the labels above it; the top chain learns from everything."""
    learn, test, found = complete.X, data.test.X, {}  # type: Any, Any, Columns
    for d, level in enumerate(data.levels):
        X, Y = (data.train.X, data.train.columns[level]) if d == 0 else (learn, complete.columns[level])
        few = sets.Data(learn, {level: complete.columns[level]}, complete.groups)
        c2 = best_penalty(lambda c2: Product(max_iter, c2=c2), few)
        found[level] = Chain(max_iter, c2=c2).fit(X, Y).predict(test)
        learn = with_column(learn, complete.columns[level], level)
        test = with_column(test, found[level], level)
    return found


def best_penalty(make: Any, complete: sets.Data) -> float:
    """The penalty with the most right steps at all levels in a fifth of the complete sequences."""
    n = len(complete)
    held = list(range(0, n, 5))
    kept = [k for k in range(n) if k % 5]
    learn, judge = complete.take(kept), complete.take(held)
    right = []
    for c2 in GRID:
        found = make(c2).fit(learn.X, learn.columns).predict(judge.X)
        right.append(np.concatenate(all_right(judge.columns, found)).mean())
    return GRID[int(np.argmax(right))]


def write_tables(study: Study, right: dict[tuple[str, str, str], list[bool]]) -> None:
    from scipy import stats

    for name in dict.fromkeys(data for data, _, _ in right):
        study.heading(name)
        chosen = {"percent": True, "data": name}
        caption = f"{name}: test sequences wholly right, in %, by the share of complete training sequences."
        study.table("score", rows="system", columns="complete", measure="whole", caption=caption, **chosen)
        caption = f"{name}: all measures, means over shares."
        study.table("score", rows="system", columns="measure", caption=caption, **chosen)
        caption = f"{name}: seconds of a core to train, with the search for penalties."
        study.table("seconds", rows="system", columns="complete", data=name, caption=caption)
        for share in dict.fromkeys(share for data, share, _ in right if data == name):
            for other in (CASCADE, PRODUCT, ALONE):
                one, two = (np.array(right[name, share, system]) for system in (NESTED, other))
                first, second = int((one & ~two).sum()), int((two & ~one).sum())
                p = float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0
                study.say(
                    f"{name}, {share} complete, against {other}: {first} test sequences only with the nested model, "
                    f"{second} only with the other (McNemar, p = {p:.3g}; test sequences of all repetitions)."
                )


if __name__ == "__main__":
    main(run, __file__, __doc__)
