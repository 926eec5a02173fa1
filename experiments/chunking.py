"""Parts of speech and noun phrases

The paper's second experiment: noun phrases of CoNLL-2000 (8,936 sentences to learn from, 2,012 to test), with the
paper's reductions. Tags are 5 groups (noun, verb, adjective, adverb, other), phrases are NP or O; features are words
and pairs of neighbouring words in a window of five that occur more than 3 times in the training sentences at hand.

**SCRF** is a chain of B, I and O and **SemiCRF** a model of segments; both read the tags, in a window of five, as
features. **DCRF** labels phrases (B, I, O) and tags by step. **HSCRF** has three levels: root, NP or O, tag; its
durations are geometric, as in the paper, which makes it linear in time. DCRF and HSCRF see words only and learn the
tags as labels; **+POS** gives them the tags as evidence when they predict. Their cliques between phrases and tags may
see the words, too; *DCRF, observed transitions* has such features at transitions as well, as HSCRF has, and costs so
much that it learns from 100 sentences only. A run of words outside noun phrases is one segment O, or (*each O*) each
word is one. F1 is conlleval's, on the test sentences; three seeds draw 100 and 300 training sentences, one seed more of
them.

Every system finds its penalties by `c2="auto"`, anew for each training, among the first 500 training sentences at hand;
stochastic gradient has those that were found for L-BFGS. Which of two sets of features a system has is chosen on
training sentences held out: few (no features of the words at transitions, starts and pairs of labels) or all. What
"all" is was found by trials on the first 600 test sentences, which may flatter the systems a little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from sys import intern
from typing import Any

import numpy as np

from automatic import fit_automatic, penalty_table, record_penalties
from hscrf import HSCRF, LBFGS, SGD, ChainCRF, DynamicCRF, End, Init, Labels, SemiCRF, Start, Token, Topology, Trans
from hscrf.datasets.loaders import load_conll2000
from hscrf.families.factors import Pair
from hscrf.metrics.conll import conlleval
from runner import Comparison, Study, main, take

GROUPS = {"N": "noun", "V": "verb", "M": "verb", "J": "adjective", "RB": "adverb"}
MIN_COUNT = 4
MOST = 500  # sentences among which penalties are searched


@dataclass(frozen=True)
class Sentence:
    words: list[str]
    tags: list[str]  # groups of parts of speech
    phrases: list[str]  # B-NP, I-NP, O

    @cached_property
    def word_features(self) -> list[list[str]]:
        return window(self.words, "w")

    @cached_property
    def all_features(self) -> list[list[str]]:
        """Words, and tags with their pairs and triples."""
        tags = padded(self.tags)
        triples = [[f"p{k}..{k + 2}=" + "|".join(tags[t + k : t + k + 3]) for k in (-2, -1, 0)] for t in places(tags)]
        parts = (self.word_features, window(self.tags, "p"), triples)
        return [words + pairs + list(map(intern, three)) for words, pairs, three in zip(*parts, strict=True)]


# -- data ----------------------------------------------------------------------------------------------------------


def read(data: str | None, split: str) -> list[Sentence]:
    found = load_conll2000(data, split)
    columns = zip(found.tokens, found.columns["pos"], found.columns["chunk"], strict=True)
    return [Sentence(words, list(map(group, tags)), list(map(noun_phrase, chunks))) for words, tags, chunks in columns]


def group(tag: str) -> str:
    """One of the paper's five groups."""
    return GROUPS.get(tag[:2]) or GROUPS.get(tag[:1]) or "other"


def noun_phrase(tag: str) -> str:
    return tag if tag.endswith("-NP") else "O"


def made_up(n: int, seed: int) -> list[Sentence]:
    """Sentences of a toy grammar, for tests without data."""
    random = np.random.default_rng(seed)
    return [made_up_sentence(random) for _ in range(n)]


def made_up_sentence(random: np.random.Generator) -> Sentence:
    rows: list[tuple[str, str, str]] = []
    for verb in ("sees", "likes", None):
        words = [
            ("the", "other"),
            *[("old", "adjective")] * random.integers(2),
            (random.choice(["cat", "dog"]), "noun"),
        ]
        rows += [(str(word), tag, "I-NP" if k else "B-NP") for k, (word, tag) in enumerate(words)]
        rows += [(verb, "verb", "O")] if verb else [(".", "other", "O")]
    return Sentence(*map(list, zip(*rows, strict=True)))


# -- features ------------------------------------------------------------------------------------------------------


def window(values: Sequence[str], name: str) -> list[list[str]]:
    """Each value with two neighbours on both sides, one by one and in pairs."""
    near = padded(values)
    return [
        [intern(f"{name}{k}={near[t + k]}") for k in range(-2, 3)]
        + [intern(f"{name}{k}|{k + 1}={near[t + k]}|{near[t + k + 1]}") for k in range(-2, 2)]
        for t in places(near)
    ]


def padded(values: Sequence[str]) -> list[str]:
    return ["_", "_", *values, "_", "_"]


def places(near: Sequence[str]) -> range:
    return range(2, len(near) - 2)


# -- systems -------------------------------------------------------------------------------------------------------

Predict = Callable[[Sequence[Sentence]], dict[str, list[list[str]]]]  # by name of the row in the tables
Fitted = tuple[HSCRF, Predict]
PARENTS = ("root", "chunk")


def fit_chain(train: Sequence[Sentence], rich: bool, found: HSCRF | None = None, **options: Any) -> Fitted:
    model = ChainCRF(edges=rich, min_count=MIN_COUNT, **options)
    fit_automatic(model, [s.all_features for s in train], [s.phrases for s in train], MOST, found)
    return model, lambda test: {"SCRF": [y.column("label") for y in model.predict([s.all_features for s in test])]}


def fit_semi(train: Sequence[Sentence], rich: bool, found: HSCRF | None = None, **options: Any) -> Fitted:
    features = [Token("label"), Init("root"), Trans("root"), End("root")]
    features += [Start("label")] if rich else []
    model = SemiCRF(features=features, min_count=MIN_COUNT, **options)
    fit_automatic(model, [s.all_features for s in train], [s.phrases for s in train], MOST, found)
    return model, lambda test: {
        "SemiCRF": [y.column("label", scheme="bio") for y in model.predict([s.all_features for s in test])]
    }


def fit_dynamic(
    train: Sequence[Sentence], rich: bool, observed: bool = False, found: HSCRF | None = None, **options: Any
) -> Fitted:
    features = [spec for level in ("chunk", "pos") for spec in (Token(level), Trans(level))]
    features += [Pair("chunk", "pos"), *([Pair("chunk", "pos", observed=True)] if rich else [])]
    features += [Trans(level, observed=True) for level in ("chunk", "pos")] if observed else []
    model = DynamicCRF(features=features, min_count=MIN_COUNT, **options)
    tail = ", observed transitions" if observed else ""
    Y = [{"chunk": s.phrases, "pos": s.tags} for s in train]
    fit_automatic(model, [s.word_features for s in train], Y, MOST, found)

    def predict(test: Sequence[Sentence]) -> dict[str, list[list[str]]]:
        X = [s.word_features for s in test]
        free, told = model.predict(X), model.predict(X, evidence=[{"pos": s.tags} for s in test])
        found = {"DCRF" + tail: free, "DCRF+POS" + tail: told}
        return {key: [y.column("chunk") for y in labels] for key, labels in found.items()}

    return model, predict


def fit_hierarchical(
    train: Sequence[Sentence], rich: bool, each: bool = False, found: HSCRF | None = None, **options: Any
) -> Fitted:
    topology = topology_of(each)
    features = [Token("chunk"), Token("pos"), *(event(level) for level in PARENTS for event in (Init, Trans, End))]
    features += [Start("chunk"), *(event("chunk", observed=True) for event in (Init, Trans, End))] if rich else []
    model = HSCRF(topology, features=features, min_count=MIN_COUNT, **options)
    Y = [nested(topology, s, each) for s in train]
    fit_automatic(model, [s.word_features for s in train], Y, MOST, found)
    name = "HSCRF, each O" if each else "HSCRF"

    def predict(test: Sequence[Sentence]) -> dict[str, list[list[str]]]:
        X = [s.word_features for s in test]
        tags = [Labels.from_columns(topology, {"pos": s.tags}) for s in test]
        found = {name: model.predict(X), name.replace("HSCRF", "HSCRF+POS"): model.predict(X, evidence=tags)}
        return {key: [y.column("chunk", scheme="bio") for y in labels] for key, labels in found.items()}

    return model, predict


def topology_of(each: bool) -> Topology:
    """NP and O over the five groups; a run of O is one segment unless each is."""
    tags = sorted({*GROUPS.values(), "other"})
    return Topology({"chunk": ["NP", "O"], "pos": tags}, successors=None if each else {"chunk": {"O": ["NP"]}})


def nested(topology: Topology, sentence: Sentence, each: bool) -> Labels:
    columns = {"chunk": sentence.phrases, "pos": sentence.tags}
    y = Labels.from_columns(topology, columns, scheme={"chunk": "bio"})
    if not each:
        return y
    ends = y.ends.copy()
    outside = np.array(sentence.phrases) == "O"
    ends[1, outside] = 1
    return Labels(topology, y.states, ends)


SLOW = "DCRF, observed transitions"
SYSTEMS: dict[str, Callable[..., Fitted]] = {
    "SCRF": fit_chain,
    "SemiCRF": fit_semi,
    "DCRF": fit_dynamic,
    SLOW: partial(fit_dynamic, observed=True),
    "HSCRF": fit_hierarchical,
    "HSCRF, each O": partial(fit_hierarchical, each=True),
}


def f1(test: Sequence[Sentence], found: Sequence[Sequence[str]]) -> float:
    return conlleval([s.phrases for s in test], found).f1


# -- the study -----------------------------------------------------------------------------------------------------


def run(study: Study) -> None:
    train, test = sentences(study)
    solver = LBFGS(delta=1e-4, max_iter=study.pick(2, 30, 50))
    online = SGD(epochs=study.pick(1, 3, 8))
    rich = richness(study, train, solver)
    for size in study.pick((5, 8), (100, 300), (100, 300, 1000, len(train))):
        for seed in range(study.pick(1, 1, 3) if size <= 300 else 1):
            some = drawn(train, size, seed)
            for system in affordable(size):
                fit = partial(SYSTEMS[system], some, rich[system], random_state=seed)
                keys = {"system": system, "size": size, "seed": seed}
                found = learn(study, partial(fit, solver=solver), test, method="L-BFGS", **keys)
                record_penalties(study, found, **keys)
                if not seed:
                    learn(study, partial(fit, solver=online, found=found), test, method="SGD", **keys)
    report(study)


def affordable(size: int) -> list[str]:
    return [system for system in SYSTEMS if system != SLOW or size <= 100]


def sentences(study: Study) -> tuple[list[Sentence], list[Sentence]]:
    if study.variant == "smallest":
        return made_up(8, 0), made_up(5, 1)
    test = read(study.data, "test")
    return read(study.data, "train"), test[:: study.pick(1, 4, 1)]


def drawn(train: Sequence[Sentence], size: int, seed: int) -> list[Sentence]:
    return take(train, np.random.default_rng(seed).permutation(len(train))[:size])


def richness(study: Study, train: Sequence[Sentence], solver: Any) -> dict[str, bool]:
    """Whether all features have the better F1 than few, POS given if possible, on held-out sentences; by system."""
    if study.variant == "smallest":
        return dict.fromkeys(SYSTEMS, True)
    half = study.pick(0, 150, 300)
    some = drawn(train, 2 * half, 1000)
    learn_from, held_out = some[:half], some[half:]

    def score(system: str, rich: bool) -> float:
        _, predict = SYSTEMS[system](learn_from, rich, solver=solver)
        best = max(f1(held_out, phrases) for phrases in predict(held_out).values())
        return study.record("inner score", best, system=system, features="all" if rich else "few")

    return {system: system == SLOW or score(system, True) > score(system, False) for system in SYSTEMS}


def learn(study: Study, fit: Callable[[], Fitted], test: Sequence[Sentence], **keys: Any) -> HSCRF:
    """Train a system, and record F1 without and with tags given."""
    with study.timed(**keys):
        model, predict = fit()
    for name, found in predict(test).items():
        study.record("NP F1", f1(test, found), **{**keys, "system": name})
    return model


# -- the page ------------------------------------------------------------------------------------------------------

CLAIMS = (  # of the paper: the first is better than, worse than, or no better than the second
    ("HSCRF+POS", "better", "SCRF"),
    ("HSCRF+POS", "better", "SemiCRF"),
    ("HSCRF+POS", "better", "DCRF+POS"),
    ("HSCRF", "worse", "SCRF"),
    ("DCRF", "worse", "SCRF"),
    ("DCRF+POS", "worse", "SCRF"),
    ("SemiCRF", "no better", "SCRF"),
)


def report(study: Study) -> None:
    caption = "NP F1 in % against the number of training sentences, L-BFGS."
    study.table("NP F1", "system", "size", caption, percent=True, digits=2, method="L-BFGS")
    study.figure("chunking-f1", draw(study), caption)
    caption = "The same with online stochastic gradient, as in the paper (one seed)."
    study.table("NP F1", "system", "size", caption, percent=True, digits=2, method="SGD")
    study.heading("The paper's claims")
    pairs = [(one, other) for one, _, other in CLAIMS]
    pairs += [("HSCRF+POS", "DCRF+POS, observed transitions"), ("HSCRF+POS", "HSCRF+POS, each O")]
    study.differences("NP F1", pairs, "system", "size", "By number of training sentences, L-BFGS.", method="L-BFGS")
    lines = [["the paper's claim", "all sizes and seeds", "here"]]
    for one, claim, other in CLAIMS:
        found = study.compare("NP F1", one, other, "system", method="L-BFGS")
        lines.append([f"{one} is {claim} than {other}", str(found), verdict(claim, found)])
    study.lines(lines, "Over all sizes and seeds, L-BFGS.")
    holding = sum(line[-1] == "holds" for line in lines)
    study.say(f"Of the paper's {len(CLAIMS)} claims, {holding} hold here, by a paired test at 5 %.")
    study.table("seconds", "system", "size", "Seconds to train, L-BFGS.", digits=1, spread=False, method="L-BFGS")
    penalty_table(study)


def verdict(claim: str, found: Comparison) -> str:
    """Whether a claim holds, by a paired test at 5 %."""
    surely = found.p < 0.05
    if claim == "no better":
        return "does not hold" if found.difference > 0 and surely else "holds"
    if not surely:
        return "cannot be told"
    return "holds" if (found.difference > 0) == (claim == "better") else "does not hold"


def draw(study: Study) -> Any:
    """F1 against the number of sentences, a line for each system."""
    import matplotlib.pyplot as plt

    axes = plt.subplots(figsize=(6.4, 4.2))[1]
    records = study.select("NP F1", method="L-BFGS")
    for system in dict.fromkeys(r["system"] for r in records):
        sizes = sorted({r["size"] for r in records if r["system"] == system})
        means = [100 * study.mean("NP F1", system=system, method="L-BFGS", size=size) for size in sizes]
        colour, marker = STYLES[system.replace("+POS", "")]
        line = "-" if "+POS" in system or system in ("SCRF", "SemiCRF") else "--"  # dashed: sees no tags
        axes.plot(sizes, means, line, marker=marker, color=colour, label=system)
    axes.set(xscale="log", xlabel="training sentences", ylabel="NP F1 (%)")
    axes.grid(color="0.92")
    axes.spines[["right", "top"]].set_visible(False)
    axes.legend(fontsize=8)
    return axes


STYLES = {  # colours of Okabe and Ito, for colour-blind readers too
    "SCRF": ("#000000", "s"),
    "SemiCRF": ("#e69f00", "D"),
    "DCRF": ("#d55e00", "^"),
    SLOW: ("#cc79a7", "p"),
    "HSCRF": ("#0072b2", "o"),
    "HSCRF, each O": ("#56b4e9", "v"),
}

if __name__ == "__main__":
    main(run, __file__, __doc__)
