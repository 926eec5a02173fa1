"""Data for tests of frames and shards: sentences with nested labels, and small shards."""

import json
from dataclasses import replace

import numpy as np

import hscrf
from hscrf.estimator.frame import Lists
from hscrf.objective.workers import Cuts
from hscrf.scale import Shards
from hscrf.scale.sizes import Sizes

TAGS = {"D": "the", "N": "cat", "V": "sees", "J": "red"}
PHRASES = [("NP", "DN"), ("NP", "DJN"), ("VP", "V"), ("PP", "JV")]
LEVELS = ["phrase", "tag"]
SMALL = Sizes(Cuts(shard=150, chunk=40))


def sentences(n, seed=0):
    """Feature strings and nested labels."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        picked = [PHRASES[k] for k in rng.integers(len(PHRASES), size=rng.integers(1, 6))]
        tags = [tag for _, kids in picked for tag in kids]
        X.append([[f"w={TAGS[tag]}", f"r={rng.integers(60)}", f"s={rng.integers(8)}"] for tag in tags])
        Y.append({"phrase": [name for name, kids in picked for _ in kids], "tag": tags})
    return X, Y


def partly(Y):
    def hide(column, n):
        return ["?" if (n + t) % 4 == 0 else tag for t, tag in enumerate(column)]

    return [y if n % 3 else {level: hide(column, n) for level, column in y.items()} for n, y in enumerate(Y)]


def numbers(X):
    rng = np.random.default_rng(1)
    return [rng.normal(size=(len(x), 3)) * [1.0, 1e3, 0.0] + [0.0, 1e6, 2.0] for x in X]


class InMemory(Lists):
    """Lists in small shards and chunks, so that little data has several of them; ``fit`` takes them as a store."""

    def __init__(self, X, Y):
        super().__init__(X, Y, SMALL.cuts)

    def on_cluster(self, client):
        assert client is None
        return self

    def scorer_for(self, model):
        raise NotImplementedError

    def predict_by(self, model, folder, loss):
        raise NotImplementedError


def small(shards, **sizes):
    """The same shards, packed in small pieces."""
    shards.sizes = replace(SMALL, **sizes)
    return shards


def from_parts(X, Y, **options):
    """Small shards of parts."""
    return small(Shards.from_parts(parts_of(X, Y), **options))


def parts_of(X, Y, size=17):
    """Functions that give the data piece by piece."""
    return [lambda a=a: (X[a : a + size], Y[a : a + size]) for a in range(0, len(X), size)]


def write_jsonl(path, X, Y):
    with open(path, "w", encoding="utf-8") as file:
        for x, y in zip(X, Y, strict=True):
            file.write(json.dumps({"tokens": x, "labels": y}) + "\n")


CASES = {
    "chain": (hscrf.ChainCRF(), lambda X, Y: (X, [y["tag"] for y in Y])),
    "nested": (hscrf.HSCRF(), lambda X, Y: (X, Y)),
    "segmental": (hscrf.HSCRF(durations={"phrase": "gamma"}), lambda X, Y: (X, Y)),
    "partial": (hscrf.HSCRF(), lambda X, Y: (X, partly(Y))),
    "semi": (hscrf.SemiCRF(scheme="plain"), lambda X, Y: (X, [y["phrase"] for y in Y])),
    "dynamic": (hscrf.DynamicCRF(), lambda X, Y: (X, Y)),
    "dynamic, partial": (hscrf.DynamicCRF(), lambda X, Y: (X, partly(Y))),
    "numbers": (hscrf.ChainCRF(), lambda X, Y: (numbers(X), [y["tag"] for y in Y])),
    "rare": (hscrf.ChainCRF(min_count=3), lambda X, Y: (X, [y["tag"] for y in Y])),
    "values": (hscrf.ChainCRF(), lambda X, Y: ([[{"w": s[0], "n": 2.5} for s in x] for x in X], [y["tag"] for y in Y])),
}
