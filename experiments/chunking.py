"""Parts of speech and noun phrases

The paper's second experiment: noun phrases of CoNLL-2000 (8,936 sentences to learn from, 2,012 to test), with the
paper's reductions. Tags are 5 groups (noun, verb, adjective, adverb, other), phrases are NP or O; features are words
and pairs of neighbouring words in a window of five that occur more than 3 times in the training sentences at hand.

**SCRF** is a chain of B, I and O and **SemiCRF** a model of segments; both read the tags, in a window of five, as
features. **DCRF** labels phrases (B, I, O) and tags by step. **HSCRF** has three levels: root, NP or O, tag; its
durations are geometric, as in the paper, which makes it linear in time. DCRF and HSCRF see words only and learn the
tags as labels; **+POS** gives them the tags as evidence when they predict. A run of words outside noun phrases is one
segment O, or (*each O*) each word is one. F1 is conlleval's, on the test sentences; seeds draw training sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hscrf import HSCRF, ChainCRF, DynamicCRF, End, Init, Labels, SemiCRF, Start, Token, Topology, Trans
from hscrf.datasets import load_conll2000
from hscrf.metrics import conlleval

GROUPS = {"N": "noun", "V": "verb", "M": "verb", "J": "adjective", "RB": "adverb"}
MIN_COUNT = 4


@dataclass(frozen=True)
class Sentence:
    words: list[str]
    tags: list[str]  # groups of parts of speech
    phrases: list[str]  # B-NP, I-NP, O


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


def word_features(sentence: Sentence) -> list[list[str]]:
    return window(sentence.words, "w")


def all_features(sentence: Sentence) -> list[list[str]]:
    """Words, and tags with their pairs and triples."""
    tags = padded(sentence.tags)
    triples = [
        [f"p{k}|{k + 1}|{k + 2}=" + "|".join(tags[t + k : t + k + 3]) for k in (-2, -1, 0)] for t in places(tags)
    ]
    parts = (window(sentence.words, "w"), window(sentence.tags, "p"), triples)
    return [words + pairs + three for words, pairs, three in zip(*parts, strict=True)]


def window(values: Sequence[str], name: str) -> list[list[str]]:
    """Each value with two neighbours on both sides, one by one and in pairs."""
    near = padded(values)
    return [
        [f"{name}{k}={near[t + k]}" for k in range(-2, 3)]
        + [f"{name}{k}|{k + 1}={near[t + k]}|{near[t + k + 1]}" for k in range(-2, 2)]
        for t in places(near)
    ]


def padded(values: Sequence[str]) -> list[str]:
    return ["_", "_", *values, "_", "_"]


def places(near: Sequence[str]) -> range:
    return range(2, len(near) - 2)


# -- systems -------------------------------------------------------------------------------------------------------

Predict = Callable[[Sequence[Sentence]], dict[str, list[list[str]]]]  # by name of the row in the tables
PARENTS = ("root", "chunk")


def fit_chain(train: Sequence[Sentence], **options: Any) -> Predict:
    model = ChainCRF(edges=True, min_count=MIN_COUNT, **options)
    model.fit(list(map(all_features, train)), [s.phrases for s in train])
    return lambda test: {"SCRF": [y.column("label") for y in model.predict(list(map(all_features, test)))]}


def fit_semi(train: Sequence[Sentence], **options: Any) -> Predict:
    features = [Token("label"), Start("label"), Init("root"), Trans("root"), End("root")]
    model = SemiCRF(features=features, min_count=MIN_COUNT, **options)
    model.fit(list(map(all_features, train)), [s.phrases for s in train])
    return lambda test: {
        "SemiCRF": [y.column("label", scheme="bio") for y in model.predict(list(map(all_features, test)))]
    }


def fit_dynamic(train: Sequence[Sentence], **options: Any) -> Predict:
    model = DynamicCRF(min_count=MIN_COUNT, **options)
    model.fit(list(map(word_features, train)), [{"chunk": s.phrases, "pos": s.tags} for s in train])

    def predict(test: Sequence[Sentence]) -> dict[str, list[list[str]]]:
        X = list(map(word_features, test))
        free, told = model.predict(X), model.predict(X, evidence=[{"pos": s.tags} for s in test])
        return {"DCRF": [y.column("chunk") for y in free], "DCRF+POS": [y.column("chunk") for y in told]}

    return predict


def fit_hierarchical(train: Sequence[Sentence], each: bool = False, **options: Any) -> Predict:
    topology = topology_of(each)
    features = [Token("chunk"), Start("chunk"), Token("pos"), *(e(p) for p in PARENTS for e in (Init, Trans, End))]
    model = HSCRF(topology, features=features, min_count=MIN_COUNT, **options)
    model.fit(list(map(word_features, train)), [nested(topology, s, each) for s in train])
    name = "HSCRF, each O" if each else "HSCRF"

    def predict(test: Sequence[Sentence]) -> dict[str, list[list[str]]]:
        X = list(map(word_features, test))
        tags = [Labels.from_columns(topology, {"pos": s.tags}) for s in test]
        found = {name: model.predict(X), name.replace("HSCRF", "HSCRF+POS"): model.predict(X, evidence=tags)}
        return {key: [y.column("chunk", scheme="bio") for y in labels] for key, labels in found.items()}

    return predict


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


SYSTEMS: dict[str, Callable[..., Predict]] = {
    "SCRF": fit_chain,
    "SemiCRF": fit_semi,
    "DCRF": fit_dynamic,
    "HSCRF": fit_hierarchical,
    "HSCRF, each O": partial(fit_hierarchical, each=True),
}


def f1(test: Sequence[Sentence], found: Sequence[Sequence[str]]) -> float:
    return conlleval([s.phrases for s in test], found).f1
