"""Tags and chunks of a sentence at once.

CoNLL-2000 without reductions: all 44 part-of-speech tags and all 11 chunk types from the words alone. The nested model
(D = 3: root > chunk > tag) against what one would build today from chains: one for each level, a cascade from tags to
chunks, a cascade from chunks to tags, and one chain of product labels. Every model, each chain too, finds its penalties
by `c2="auto"` among the first 500 of its training sentences and then learns from all of them, with 100 iterations at
most. The nested model, the chains and the cascades also learn without a search, with *c2 = 0.1*, the default of nested
models; this was added after a first run, in which the search had found much weaker ones. Product labels are many, so
they learn from the first 1,000 sentences only, and a nested model of the *same part* stands beside them. All systems
see the same features of the words: a window of five, pairs of neighbours, affixes, shape, and the usual tags, in
training, of the word and those around it. The nested model cannot see tag pairs across the border of two chunks, and
usual tags were added for its sake; they help every system. They and its blocks (tokens, starts, stops) were chosen
among a few on held-out training sentences; the pipelines' features are as first written. A cascade adds windows of the
labels that it has already found; it learns from the true ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from automatic import penalty_table, record_penalties
from hscrf import End, Init, Start, Stop, Token, Trans, datasets
from nested import Nested, compare_sequences, judge, made_up
from pipelines import Cascade, Columns, Independent, Lexicon, Product, joined, word_features
from runner import Study, main, take

OURS, TAGS_FIRST, PRODUCT, PART = "HSCRF", "cascade, tags first", "product labels", "HSCRF, same part"
FEATURES = [
    *(Token("pos"), Token("chunk"), Start("chunk"), Stop("chunk")),
    *(block(level) for level in ("root", "chunk") for block in (Init, Trans, End)),
]
MOST = 500  # sentences among which penalties are searched
GIVEN = (0.1,)  # penalties of the same systems without a search
Data = tuple[list[Any], Columns]  # words, or the features of each, and labels


def systems(max_iter: int, c2: float | str = "auto") -> dict[str, Any]:
    """What learns from all sentences, by name."""
    return {
        OURS: Nested(FEATURES, max_iter, MOST, ("pos",), c2),
        "independent": Independent(max_iter, MOST, c2),
        TAGS_FIRST: Cascade(("pos", "chunk"), max_iter, MOST, c2),
        "cascade, chunks first": Cascade(("chunk", "pos"), max_iter, MOST, c2),
    }


def tail(c2: float | str) -> str:
    """What the names of systems with a given penalty end with."""
    return "" if c2 == "auto" else f", c2 = {c2:g}"


# -- data ------------------------------------------------------------------------------------------------------------


def load(study: Study) -> tuple[Data, Data]:
    """Training and test data; generated for the smallest variant."""
    if study.variant == "smallest":
        made = generated(12)
        return part(made, range(6)), part(made, range(6, 12))
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
    found = {}
    for c2 in ("auto", *GIVEN):
        for name, system in systems(study.pick(3, 40, 100), c2).items():
            shown = name + tail(c2)
            found[shown] = measure(study, shown, system, train, test)
            if name in (OURS, TAGS_FIRST):
                with_tags(study, shown, system, train, test)
    product_labels(study, (words, others), train, found)
    write_tables(study, test[1], found)


def both_right(truth: Columns, found: Columns) -> float:
    pairs = [a == b for x, y in zip(joined(truth), joined(found), strict=True) for a, b in zip(x, y, strict=True)]
    return sum(pairs) / len(pairs)


def measure(study: Study, name: str, system: Any, train: Data, test: Data) -> Columns:
    """Fit and judge one system; time both."""
    with study.timed("cost", system=name, measure="seconds to train"):
        system.fit(*train)
    for part_, chosen in system.models.items():
        if chosen.c2 == "auto":
            record_penalties(study, chosen, system=f"{name}, {part_}")
    begin = time.process_time()
    found = system.predict(test[0])
    speed = sum(map(len, test[0])) / (time.process_time() - begin)
    study.record("cost", speed, system=name, measure="tokens per second")
    judge(study, test[1], found, train[1], plain=("pos",), system=name)
    return found


def with_tags(study: Study, name: str, system: Any, train: Data, test: Data) -> None:
    """The true tags are known: evidence for the nested model, features for the cascade."""
    known = {tag for column in train[1]["pos"] for tag in column}
    given = {"pos": [[tag if tag in known else "?" for tag in column] for column in test[1]["pos"]]}
    found = system.predict(test[0], given)
    judge(study, test[1], found, train[1], plain=("pos",), system=f"{name}, tags given")


def product_labels(study: Study, words: tuple[Data, Data], train: Data, found: dict[str, Any]) -> None:
    """Train the product labels on a part of the data, and a nested model beside them."""
    few, test = described(part(words[0], range(min(len(train[0]), study.pick(6, 200, 1000)))), words[1])
    max_iter = study.pick(5, 30, 100)
    ours = Nested(FEATURES, max_iter, MOST, plain=("pos",))
    for name, system in ((PRODUCT, Product(max_iter, MOST)), (PART, ours)):
        found[name] = measure(study, name, system, few, test)
    study.record("labels", len({label for some in joined(train[1]) for label in some}), system=PRODUCT)


# -- the page --------------------------------------------------------------------------------------------------------


def write_tables(study: Study, truth: Columns, found: Mapping[str, Columns]) -> None:
    study.heading("Words alone, and with the tags given")
    study.table("accuracy", rows="system", columns="measure", percent=True, digits=2, caption="Test sentences, in %.")
    study.table("cost", rows="system", columns="measure", caption="Time on one core, with the search.")
    penalty_table(study)
    study.table("violations", rows="system", columns="name", digits=0, caption="Steps with a tag never seen there.")
    for c2 in ("auto", *GIVEN):
        ours, *others = (name + tail(c2) for name in systems(1))
        for name in [*others, *([OURS] if c2 != "auto" else [])]:
            study.say(
                verdict(truth, found[ours], found[name], ours, name + (' with `c2="auto"`' if name == OURS else ""))
            )
    study.say(verdict(truth, found[PART], found[PRODUCT], OURS, f"{PRODUCT} from the same part"))
    labels = study.mean("labels", system=PRODUCT)
    study.say(
        f"All training sentences have {labels:.0f} product labels; `python benchmarks/learning.py product` times them."
    )
    draw(study)


def verdict(truth: Columns, one: Columns, other: Columns, ours: str, theirs: str) -> str:
    first, second, p = compare_sequences(truth, one, other)
    return (
        f"Against {theirs}: both levels right {both_right(truth, one):.2%} against {both_right(truth, other):.2%}; "
        f"whole sentences only {ours} has right {first}, only the other {second} (McNemar, p = {p:.3g})."
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
