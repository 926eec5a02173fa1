"""Tags and chunks of a sentence at once.

CoNLL-2000 without reductions: all 44 part-of-speech tags and all 11 chunk types from the words alone. The nested
model (D = 3: root > chunk > tag) against what one would build today from CRFsuite's chains: one for each level, a
cascade from tags to chunks, a cascade from chunks to tags, and one chain of product labels. All systems see the same
features of the words: a window of five, pairs of neighbours, affixes, shape, and the usual tags, in training, of the
word and those around it. The nested model cannot see tag pairs across the border of two chunks, and usual tags were
added for its sake; they help every system. They and its blocks (tokens, starts, stops) were chosen among a few on
held-out training sentences; the pipelines' features are as first written. A cascade adds windows of the labels that
it has already found; it learns from the true ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from crfsuite import Cascade, Columns, Independent, Lexicon, Product, joined, word_features
from hscrf import End, Init, Start, Stop, Token, Trans, datasets
from nested import Nested, compare_sequences, judge, made_up
from runner import Study, choose, main, take

OURS, TAGS_FIRST, PRODUCT = "HSCRF", "cascade, tags first", "product labels"
FEATURES = [
    *(Token("pos"), Token("chunk"), Start("chunk"), Stop("chunk")),
    *(block(level) for level in ("root", "chunk") for block in (Init, Trans, End)),
]
Data = tuple[list[Any], Columns]  # words, or the features of each, and labels


def systems(max_iter: int) -> dict[str, Callable[[float], Any]]:
    """From a penalty to a system, by name."""
    return {
        OURS: lambda c2: Nested(c2, FEATURES, max_iter, plain=("pos",)),
        "independent": lambda c2: Independent(c2, max_iter),
        TAGS_FIRST: lambda c2: Cascade(c2, ("pos", "chunk"), max_iter),
        "cascade, chunks first": lambda c2: Cascade(c2, ("chunk", "pos"), max_iter),
        PRODUCT: lambda c2: Product(c2, max_iter),
    }


# -- data ------------------------------------------------------------------------------------------------------------


def load(study: Study) -> tuple[Data, Data]:
    """Training and test data; generated for the smallest variant."""
    if study.variant == "smallest":
        made = generated(60)
        return part(made, range(40)), part(made, range(40, 60))
    sizes = {"train": study.pick(0, 600, None), "test": study.pick(0, 300, None)}
    return read(study, "train", sizes["train"]), read(study, "test", sizes["test"])


def read(study: Study, split: str, n: int | None) -> Data:
    """The first n sentences of a split."""
    found = datasets.load_conll2000(study.data, split)
    return found.tokens[:n], {k: found.columns[k][:n] for k in ("chunk", "pos")}


def generated(n: int) -> Data:
    words, columns = made_up(n, (2, 3), (3, 1), 0)
    return words, dict(zip(("chunk", "pos"), columns.values(), strict=True))


def described(train: Data, test: Data) -> tuple[Data, Data]:
    """Features instead of words; the usual tags of words come from the training data."""
    (words, columns), (others, truth) = train, test
    lexicon = Lexicon(words, columns["pos"])
    X = [together(w, lexicon.features(w, tags)) for w, tags in zip(words, columns["pos"], strict=True)]
    return (X, columns), ([together(w, lexicon.features(w)) for w in others], truth)


def together(words: list[str], more: list[list[str]]) -> list[list[str]]:
    return [[*one, *other] for one, other in zip(word_features(words), more, strict=True)]


def part(data: Data, which: range) -> Data:
    X, columns = data
    return take(X, which), {level: take(column, which) for level, column in columns.items()}


# -- the study -------------------------------------------------------------------------------------------------------


def run(study: Study) -> None:
    words, others = load(study)
    train, test = described(words, others)
    max_iter = study.pick(10, 40, 150)
    found = {}
    penalties = {
        name: penalty(study, name, make, words)
        for name, make in systems(study.pick(5, 20, 80)).items()
        if name != PRODUCT
    }
    penalties[PRODUCT] = penalties["independent"]  # too slow to be tuned
    for name, make in systems(max_iter).items():
        if name != PRODUCT:
            system, found[name] = measure(study, name, make(penalties[name]), train, test)
            if name in (OURS, TAGS_FIRST):
                with_tags(study, name, system, train, test)
    product_labels(study, penalties, (words, others), train, found)
    write_tables(study, test[1], found)


def penalty(study: Study, name: str, make: Callable[[float], Any], words: Data) -> float:
    """The penalty that gets most steps right at all levels on held-out training sentences."""
    n = min(len(words[0]), study.pick(40, 300, 2000))
    inner, held = described(part(words, range(n * 4 // 5)), part(words, range(n * 4 // 5, n)))

    def score(c2: float) -> float:
        found = make(c2).fit(*inner).predict(held[0])
        return both_right(held[1], found)

    return choose(study, score, study.pick((0.3, 1), (0.03, 0.1), (0.1, 0.3, 0.9)), system=name)


def both_right(truth: Columns, found: Columns) -> float:
    pairs = [a == b for x, y in zip(joined(truth), joined(found), strict=True) for a, b in zip(x, y, strict=True)]
    return sum(pairs) / len(pairs)


def measure(study: Study, name: str, system: Any, train: Data, test: Data) -> tuple[Any, Columns]:
    """Fit and judge one system; time both."""
    with study.timed("cost", system=name, measure="seconds to train"):
        system.fit(*train)
    begin = time.process_time()
    found = system.predict(test[0])
    speed = sum(map(len, test[0])) / (time.process_time() - begin)
    study.record("cost", speed, system=name, measure="tokens per second")
    judge(study, test[1], found, train[1], plain=("pos",), system=name)
    return system, found


def with_tags(study: Study, name: str, system: Any, train: Data, test: Data) -> None:
    """The true tags are known: evidence for the nested model, features for the cascade."""
    known = {tag for column in train[1]["pos"] for tag in column}
    given = {"pos": [[tag if tag in known else "?" for tag in column] for column in test[1]["pos"]]}
    found = system.predict(test[0], given)
    judge(study, test[1], found, train[1], plain=("pos",), system=f"{name}, tags given")


def product_labels(
    study: Study, penalties: Mapping[str, float], words: tuple[Data, Data], train: Data, found: dict[str, Any]
) -> None:
    """Train the product labels on a part of the data and time a few iterations on all of it."""
    few, test = described(part(words[0], range(min(len(train[0]), study.pick(20, 200, 1000)))), words[1])
    _, found[PRODUCT] = measure(study, PRODUCT, Product(penalties[PRODUCT], study.pick(5, 30, 100)), few, test)
    ours = Nested(penalties[OURS], FEATURES, study.pick(5, 30, 100), plain=("pos",))
    _, found["HSCRF, same part"] = measure(study, "HSCRF, same part", ours, few, test)
    study.record("labels", len({label for some in joined(train[1]) for label in some}), system=PRODUCT)
    for name, system, iteration in timed_systems(penalties, study.pick(2, 3, 4)):
        system.fit(*(train if study.variant != "quick" else few))
        study.record("cost", iteration(system), system=name, measure="seconds per iteration")


def timed_systems(penalties: Mapping[str, float], n: int) -> list[tuple[str, Any, Callable[[Any], float]]]:
    """Systems limited to n iterations, and where to read the seconds of one."""
    return [
        (PRODUCT, Product(penalties[PRODUCT], n), lambda system: system.chain.iteration),
        (OURS, Nested(penalties[OURS], FEATURES, n, plain=("pos",)), lambda system: system.iteration),
    ]


# -- the page --------------------------------------------------------------------------------------------------------


def write_tables(study: Study, truth: Columns, found: Mapping[str, Columns]) -> None:
    study.heading("Words alone, and with the tags given")
    study.table("accuracy", rows="system", columns="measure", percent=True, digits=2, caption="Test sentences, in %.")
    study.table("cost", rows="system", columns="measure", caption="Time on one core.")
    study.table("violations", rows="system", columns="name", digits=0, caption="Steps with a tag never seen there.")
    for name in found:
        if name not in (OURS, "HSCRF, same part", PRODUCT):
            study.say(verdict(truth, found[OURS], found[name], OURS, name))
    study.say(verdict(truth, found["HSCRF, same part"], found[PRODUCT], OURS, f"{PRODUCT} from the same part"))
    study.say(slowness(study))
    draw(study)


def verdict(truth: Columns, one: Columns, other: Columns, ours: str, theirs: str) -> str:
    first, second, p = compare_sequences(truth, one, other)
    return (
        f"Against {theirs}: both levels right {both_right(truth, one):.2%} against {both_right(truth, other):.2%}; "
        f"whole sentences only {ours} has right {first}, only the other {second} (McNemar, p = {p:.3g})."
    )


def slowness(study: Study) -> str:
    """How the product labels' time per iteration compares; few iterations only, and so it is said."""
    theirs, ours = (study.mean("cost", system=name, measure="seconds per iteration") for name in (PRODUCT, OURS))
    labels = study.mean("labels", system=PRODUCT)
    return (
        f"The chain of {labels:.0f} product labels takes {theirs:.2f} s an iteration, the nested model {ours:.2f} s, "
        f"a ratio of {theirs / ours:.1f}: a few iterations timed, not a whole training. Its scores above come from a "
        "model of a part of the training sentences, beside a nested model of the same part; its penalty is that of the "
        "independent chains, because it is too slow to be tuned."
    )


def draw(study: Study) -> None:
    """Both levels right against the time to train."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(5, 3))
    for record in study.select("accuracy", measure="all levels right"):
        seconds = study.values("cost", system=record["system"], measure="seconds to train")
        if seconds:
            axes.scatter(seconds, [100 * record["value"]], label=record["system"])
    axes.set(xlabel="seconds to train", ylabel="both levels right, %", xscale="log")
    axes.legend(fontsize=7)
    study.figure("joint-time", axes, "Steps with both levels right against the time to train.")


if __name__ == "__main__":
    raise SystemExit(main(run, __file__, __doc__))
