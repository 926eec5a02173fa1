"""A toy grammar of phrases and tags, small models of drawn data, and labels with gaps."""

import numpy as np

from hscrf import (
    HSCRF,
    Labels,
    Topology,
)
from hscrf.datasets.nested import make_nested

SENTENCES = [
    "the old cat sees the dog",
    "the dog sleeps",
    "a dog sees old cat",
    "cat sleeps",
    "the cat sees a cat",
    "old dog sleeps",
]
TAGS = {"the": "D", "a": "D", "old": "J", "cat": "N", "dog": "N", "sees": "V", "sleeps": "V"}


def read(sentence):
    """Words as features, and their phrases and tags."""
    tags = [TAGS[word] for word in sentence.split()]
    return [[f"w={word}"] for word in sentence.split()], {
        "phrase": ["VP" if t == "V" else "NP" for t in tags],
        "tag": tags,
    }


X, Y = map(list, zip(*map(read, SENTENCES), strict=True))


def small_model(seed=0, features=None, length=5, **limits):
    """A fitted model whose posterior is far from certain, and new observations for it."""
    inputs, labels = make_nested(8, (2, 3), length=(4, 7), separation=0.3, n_features=2, random_state=seed)
    names = labels[0].topology.to_dict()["levels"]
    topology = Topology(names, **limits)
    labels = [Labels(topology, y.states, y.ends) for y in labels] if limits else labels
    fitted = HSCRF(features=features, random_state=0).fit(inputs, labels)
    return fitted, [x[:length] for x in inputs if len(x) >= length][:2]


def with_topology():
    topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "J", "N", "V"]})
    return [(y, topology) for y in Y]


def hidden(labels, share=0.0, level=None, seed=0):
    """Labels with cells forgotten at random, or everything of one level."""
    rng = np.random.default_rng(seed)
    forgotten = []
    for y in labels:
        states, ends = y.states.copy(), y.ends.copy()
        states[rng.random(states.shape) < share] = -1
        ends[rng.random(ends.shape) < share] = -1
        if level is not None:
            states[level] = ends[level] = -1
        forgotten.append(Labels(y.topology, states, ends))
    return forgotten


def small_data():
    return make_nested(8, (2, 3), length=(4, 7), separation=0.3, n_features=2, random_state=0)


def tag_length(z, start, stop):
    return [stop - start, len(z[start][0])]


def other_length(z, start, stop):
    return [float(stop - start > 1)]


NUMBERS = [np.array([[len(step[0]), ord(step[0][2])] for step in x], dtype=float) for x in X]
