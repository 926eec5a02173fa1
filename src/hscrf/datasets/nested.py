"""Generated sequences with nested labels of any depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hscrf.arrays import Floats, Random, generator, whole_number
from hscrf.datasets.draws import draw_duration, draw_number
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


def make_nested(
    n_sequences: int = 20,
    sizes: Sequence[int] = (3, 4),
    *,
    length: int | tuple[int, int] = (30, 60),
    n_features: int = 4,
    separation: float = 1.0,
    durations: Sequence[float] | None = None,
    random_state: Random = None,
) -> tuple[list[Floats], list[Labels]]:
    """Generate sequences with nested labels and numeric observations.

    Every state has its own mean duration, and every parent its own transitions between children. An observation is
    normal with standard deviation 1. Its mean is the sum of the means of its states.

    Parameters
    ----------
    n_sequences : int
        Number of sequences.
    sizes : sequence of int
        Number of states of each level, from top to bottom.
    length : int or (int, int)
        Number of steps of a sequence, or a range.
    n_features : int
        Number of numeric columns.
    separation : float
        Standard deviation of the means of states.
    durations : sequence of float, optional
        Mean lengths of the segments of each level. The default is 1 at the bottom, and six times that of the level
        below. Bottom segments of mean 1 have unit length; others last.
    random_state : int, Generator or None
        Seed or generator.

    Returns
    -------
    X : list of ndarray (T, n_features)
        Observations.
    Y : list of Labels
        Complete labels.

    Examples
    --------
    >>> X, Y = make_nested(2, sizes=(2, 3), length=20, random_state=0)
    >>> X[0].shape, Y[0].topology
    ((20, 4), Topology(root 1 > level1 2 > level2 3))
    >>> Y[0].segments("level1")
    [(0, 10, 'a1'), (10, 14, 'a0'), (14, 20, 'a1')]
    """
    whole_number(n_sequences, "n_sequences", least=1)
    whole_number(n_features, "n_features", least=1)
    random = generator(random_state)
    process = _nested_process(random, sizes, durations)
    means = [separation * random.normal(size=(size, n_features)) for size in sizes]
    X, Y = [], []
    for _ in range(n_sequences):
        labels = process.sample(random, draw_number(random, "length", length))
        centre = sum(mean[states] for mean, states in zip(means, labels.states[1:], strict=True))
        X.append(centre + random.normal(size=(labels.length, n_features)))
        Y.append(labels)
    return X, Y


@dataclass(frozen=True)
class _NestedProcess:
    """Semi-Markov chains within the segments of semi-Markov chains."""

    topology: Topology
    means: list[Floats]  # mean durations (S_d,) of each level below the root
    init: list[Floats]  # (S_{d-1}, S_d)
    trans: list[Floats]  # (S_{d-1}, S_d, S_d)

    def sample(self, random: np.random.Generator, length: int) -> Labels:
        """Draw labels from the top down; the last child of a segment is cut at its end."""
        segments: dict[str, list[tuple[int, int, str]]] = {}
        parents = [(0, length, 0)]
        for d, level in enumerate(self.topology.levels[1:], start=1):
            parents = [child for parent in parents for child in self._tile(random, d - 1, *parent)]
            names = self.topology.states[d]
            segments[level] = [(start, stop, names[state]) for start, stop, state in parents]
        return Labels.from_segments(self.topology, segments)

    def _tile(
        self, random: np.random.Generator, k: int, start: int, stop: int, parent: int
    ) -> Iterator[tuple[int, int, int]]:
        """Children (start, stop, state) of one segment."""
        weights = self.init[k][parent]
        while start < stop:
            state = int(random.choice(len(weights), p=weights))
            mean = self.means[k][state]
            end = min(stop, start + (1 if mean == 1 else draw_duration(random, mean)))
            yield start, end, state
            start, weights = end, self.trans[k][parent, state]


def _nested_process(
    random: np.random.Generator, sizes: Sequence[int], durations: Sequence[float] | None
) -> _NestedProcess:
    """A random process; a state that lasts does not follow itself unless it is the only one."""
    lengths = [6.0 ** (len(sizes) - 1 - k) for k in range(len(sizes))] if durations is None else durations
    _check_nested(sizes, lengths)
    means = [
        mean * (np.linspace(0.6, 1.4, size) if mean > 1 else np.ones(size))
        for mean, size in zip(lengths, sizes, strict=True)
    ]
    above = (1, *sizes)
    init = [random.dirichlet(np.ones(size), size=above[k]) for k, size in enumerate(sizes)]
    trans = [
        _habits(random, above[k], size, stay=mean == 1 or size == 1)
        for k, (size, mean) in enumerate(zip(sizes, lengths, strict=True))
    ]
    return _NestedProcess(_nested_topology(sizes, lengths[-1] > 1), means, init, trans)


def _nested_topology(sizes: Sequence[int], persisting: bool) -> Topology:
    names = {
        f"level{d}": [f"{'abcdefghijklmnopqrstuvwxyz'[d - 1]}{s}" for s in range(size)]
        for d, size in enumerate(sizes, start=1)
    }
    limits: dict[str, None] = {f"level{len(sizes)}": None} if persisting else {}
    return Topology(names, max_duration=limits)


def _habits(random: np.random.Generator, parents: int, size: int, stay: bool) -> Floats:
    """Transition probabilities (parents, size, size); each parent prefers a few."""
    table = random.gamma(0.5, size=(parents, size, size)) + 1e-3
    if not stay:
        table[:, np.arange(size), np.arange(size)] = 0
    normalised: Floats = table / table.sum(axis=-1, keepdims=True)
    return normalised


def _check_nested(sizes: Sequence[int], durations: Sequence[float]) -> None:
    if not 1 <= len(sizes) <= 26:
        raise ValueError(f"sizes is {sizes!r}; expected 1 to 26 numbers of states, from top to bottom")
    if len(durations) != len(sizes):
        raise ValueError(f"durations has {len(durations)} levels but sizes has {len(sizes)}")
    for k, (size, mean) in enumerate(zip(sizes, durations, strict=True)):
        whole_number(size, f"sizes[{k}]", least=1)
        if not mean >= 1:
            raise ValueError(f"durations[{k}] is {mean}; expected a mean of at least 1 step")
