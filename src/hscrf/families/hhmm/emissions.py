"""Emissions of the states of the bottom level, symbols or rows of numbers, and new sequences of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.features.blocks import Block, PairBlock
from hscrf.features.bounds import check_key, check_same, table_shape
from hscrf.labels.labels import Labels
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations, Sparse, of_columns
from hscrf.observations.readers import offsets_of
from hscrf.potentials import Key
from hscrf.topology import Topology


@dataclass(frozen=True)
class Categorical:
    """Emission of one of some symbols."""

    symbols: tuple[Any, ...]
    probability: Floats  # (S, symbols)


@dataclass(frozen=True)
class Gaussian:
    """Emission of a row of numbers, independent and normal given the state."""

    mean: Floats  # (S, F)
    variance: Floats  # (S, F)


@dataclass(frozen=True)
class MomentBlock(Block):
    """Weights (2 F + 1, S) for numeric columns, their squares and a constant: log-densities of diagonal Gaussians."""

    key: Key
    shape: tuple[int, ...]  # (S,)
    features: int
    timed = True

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of weights."""
        return (2 * self.features + 1) * self.shape[0]

    def add(self, weights: Floats, observations: Observations, out: Floats, factor: float = 1.0) -> None:
        """Add the log densities of the observations."""
        z = of_columns(observations)
        linear, square, constant = self.split(weights)
        out += factor * (z @ linear + z**2 @ square + constant)

    def pull(self, counts: Floats, observations: Observations, gradient: Floats, factor: float = 1.0) -> None:
        """Add the expected sums, sums of squares and counts of each state."""
        z, counts = of_columns(observations), factor * counts
        linear, square, constant = self.split(gradient)
        linear += z.T @ counts
        square += (z**2).T @ counts
        constant += counts.sum(axis=0)

    def split(self, flat: Floats) -> tuple[Floats, Floats, Floats]:
        """Views (F, S), (F, S) and (S,): of columns, of squares, constant."""
        table = flat.reshape(-1, *self.shape)
        return table[: self.features], table[self.features : -1], table[-1]

    def check(self, topology: Topology, names: int | None, columns: int | None) -> None:
        """Raise a ``ValueError`` unless the block fits the topology and the columns."""
        check_key(self.key, topology, ["token"])
        check_same("shape", self.shape, table_shape(topology, self.key))
        check_same("features", self.features, columns)

    def describe(self, encoder: ObservationEncoder) -> list[tuple[str, tuple[int, ...]]]:
        """Return for each weight the name of its column or square, and the state."""
        names = [*encoder.columns, *(f"{name} squared" for name in encoder.columns), "constant"]
        return [(name, (s,)) for name in names for s in range(self.shape[0])]


class EmissionEncoder(ObservationEncoder):
    """Packs what the states emit: one symbol for each step, or a row of numbers."""

    names: dict[Any, int]

    def __init__(self, min_count: int = 1, standardize: bool = True, missing: str = "refuse") -> None:
        super().__init__(min_count, standardize, missing)

    def fit_pack(self, X: Sequence[Any], emission: str | None = None) -> Observations:
        """Learn the symbols or columns of X, and pack it."""
        if emission not in (None, "categorical", "gaussian"):
            raise ValueError(f"emission is {emission!r}, expected 'categorical', 'gaussian' or None")
        if emission == "gaussian" or (emission is None and not holds_symbols(X)):
            observations = super().fit_pack(X)
            if observations.dense is None or observations.sparse is not None:
                raise ValueError("X holds lists of features; expected one symbol or a row of numbers for each step")
            return observations
        self.kind, self.settled = "symbols", True
        symbols = flat_symbols(X)
        found = np.unique(symbols).tolist() if isinstance(symbols, np.ndarray) else dict.fromkeys(symbols)
        self.names = {symbol: k for k, symbol in enumerate(found)}
        return self.pack(X)

    def pack(self, X: Sequence[Any]) -> Observations:
        """Pack new observations; a symbol that was not seen in training is a step without observation."""
        if self.kind != "symbols":
            return super().pack(X)
        symbols = flat_symbols(X)
        if isinstance(symbols, np.ndarray):
            codes = self._codes(symbols)
        else:
            codes = np.array([self.names.get(symbol, -1) for symbol in symbols], dtype=np.int32)
        indptr = np.concatenate([[0], np.cumsum(codes >= 0)]).astype(np.int64)
        return Observations(offsets_of(X), Sparse(indptr, codes[codes >= 0], np.empty(0), len(self.names)), None, X)

    def _codes(self, symbols: NDArray[Any]) -> NDArray[np.int32]:
        """Numbers (N,) of integer symbols, -1 for unknown ones."""
        known = {symbol: k for symbol, k in self.names.items() if not isinstance(symbol, str)}
        if not known:
            return np.full(symbols.size, -1, dtype=np.int32)
        names, codes = np.array(list(known)), np.array(list(known.values()), dtype=np.int32)
        lowest, highest = int(names.min()), int(names.max())
        few = lowest > -(2**63) and highest < 2**63 - 1 and highest - lowest < 4 * symbols.size
        if few and np.can_cast(symbols.dtype, np.int64):
            table = np.full(highest - lowest + 3, -1, dtype=np.int32)  # with room for numbers below and above the range
            table[names - lowest + 1] = codes
            return table[np.clip(symbols.astype(np.int64), lowest - 1, highest + 1) - (lowest - 1)]
        order = np.argsort(names)
        at = order[np.minimum(np.searchsorted(names, symbols, sorter=order), names.size - 1)]
        return np.where(names[at] == symbols, codes[at], np.int32(-1))


def holds_symbols(X: Sequence[Any]) -> bool:
    """Whether X holds sequences of strings or integers, not of rows of numbers."""
    if len(X) == 0:
        raise ValueError("X is empty, expected at least one sequence")
    first = X[0]
    if isinstance(first, np.ndarray):
        return first.ndim == 1 and first.dtype.kind in "iuU"
    if hasattr(first, "tocsr") or hasattr(first, "iloc") or len(first) == 0:
        return False
    item = first[0]
    return isinstance(item, (str, int, np.integer)) or (
        isinstance(item, Sequence) and len(item) == 1 and isinstance(item[0], str)
    )


def flat_symbols(X: Sequence[Any]) -> NDArray[Any] | list[Any]:
    """The symbols of all sequences: an array if all are arrays of integers, else a list of strings and integers."""
    for n, x in enumerate(X):
        if len(x) == 0:
            raise ValueError(f"X[{n}] is empty, expected at least one time step")
    if all(isinstance(x, np.ndarray) and x.dtype.kind in "iu" and x.size == len(x) for x in X):
        return np.concatenate([x.ravel() for x in X])
    return [symbol_of(item, n, t) for n, x in enumerate(X) for t, item in enumerate(x)]


def symbol_of(item: Any, n: int, t: int) -> str | int:
    """One symbol, alone or in a list of one."""
    if isinstance(item, (list, tuple, np.ndarray)) and len(item) == 1:
        item = item[0]
    if isinstance(item, str):
        return str(item)
    if isinstance(item, (int, np.integer)):
        return int(item)
    raise ValueError(f"X[{n}][{t}] is {item!r}, expected one symbol: a string or an integer")


def emission_encoder(emission: Categorical | Gaussian) -> EmissionEncoder:
    """An encoder for given parameters; numbers are centred and scaled, which keeps densities precise."""
    encoder = EmissionEncoder()
    encoder.settled = True
    if isinstance(emission, Categorical):
        encoder.kind = "symbols"
        encoder.names = {symbol: k for k, symbol in enumerate(emission.symbols)}
        return encoder
    mean, variance = np.asarray(emission.mean, dtype=np.float64), np.asarray(emission.variance, dtype=np.float64)
    encoder.kind = "dense"
    encoder.mean = mean.mean(axis=0)
    encoder.scale = np.sqrt(variance.mean(axis=0) + mean.var(axis=0))
    encoder.columns = encoder.given = [f"x{k}" for k in range(encoder.mean.size)]
    encoder.holes = np.zeros(encoder.mean.size, dtype=np.int64)
    return encoder


def emission_block(encoder: ObservationEncoder, topology: Topology) -> Block:
    """Weights for every symbol in every state of the bottom level, or for the moments of every column."""
    states = topology.n_states[-1]
    key = ("token", topology.depth - 1)
    if encoder.kind != "symbols":
        return MomentBlock(key, (states,), len(encoder.columns))
    symbols = len(encoder.names)
    every = np.tile(np.arange(states, dtype=np.int32), symbols)
    return PairBlock(key, (states,), np.arange(symbols + 1) * states, every)


def emission_weights(encoder: ObservationEncoder, topology: Topology, emission: Categorical | Gaussian) -> Floats:
    """The weights of the emission's block from its parameters."""
    states = topology.n_states[-1]
    tables = (emission.probability,) if isinstance(emission, Categorical) else (emission.mean, emission.variance)
    arrays = [np.asarray(table, dtype=np.float64) for table in tables]
    width = len(encoder.names) if isinstance(emission, Categorical) else len(encoder.columns)
    for array in arrays:
        if array.shape != (states, width):
            raise ValueError(f"the emission has a table of shape {array.shape}, expected {(states, width)}")
    if isinstance(emission, Categorical):
        return log(arrays[0]).T.ravel()
    return natural_parameters(encoder, (arrays[0] - encoder.mean).T, arrays[1].T).ravel()


def natural_parameters(encoder: ObservationEncoder, mean: Floats, variance: Floats) -> Floats:
    """Weights (2 F + 1, S) for encoded columns from means and variances (F, S) of the data less the encoder's mean."""
    scale = encoder.scale[:, None]
    constant = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance).sum(axis=0)
    return np.concatenate([mean * scale / variance, -0.5 * scale**2 / variance, constant[None]])


def fit_gaussians(
    block: MomentBlock, moments: Floats, weights: Floats, encoder: EmissionEncoder, min_variance: float
) -> None:
    """Overwrite the weights by mean and variance of each state with observations; other states keep theirs."""
    linear, square, count = block.split(moments)
    met = count > 0
    mean = linear[:, met] / count[met]
    scale = encoder.scale[:, None]
    variance = np.maximum((square[:, met] / count[met] - mean**2) * scale**2, min_variance)
    weights.reshape(-1, count.size)[:, met] = natural_parameters(encoder, mean * scale, variance)


def emission_of(block: Block, weights: Floats, encoder: EmissionEncoder) -> Categorical | Gaussian:
    """Return the distributions that the weights of an emission block encode."""
    if isinstance(block, MomentBlock):
        linear, square, _ = block.split(weights)
        variance, scale = -0.5 / square, encoder.scale
        return Gaussian((linear * variance).T * scale + encoder.mean, variance.T * scale**2)
    names = tuple(encoder.names)
    return Categorical(names, np.exp(weights.reshape(len(names), -1)).T)


def scattered_moments(z: Floats, states: int, rng: np.random.Generator) -> Floats:
    """Moments of one made-up observation for each state, far from the others, with the variance of all data."""
    from sklearn.cluster import kmeans_plusplus

    if len(z) < states:
        centres = rng.normal(size=(states, z.shape[1]))
    else:
        centres = kmeans_plusplus(z, states, random_state=int(rng.integers(2**31)))[0]
    return np.concatenate([centres.T, centres.T**2 + 1, np.ones((1, states))]).ravel()


def emit(rng: np.random.Generator, emission: Categorical | Gaussian, states: NDArray[np.int32]) -> Floats | list[Any]:
    """Draw an observation for each state."""
    if isinstance(emission, Gaussian):
        drawn: Floats = rng.normal(emission.mean[states], np.sqrt(emission.variance[states]))
        return drawn
    return [emission.symbols[pick(rng, emission.probability[s])] for s in states.tolist()]


def pick(rng: np.random.Generator, probabilities: Floats) -> int:
    """Draw an index."""
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def walk(
    topology: Topology,
    rng: np.random.Generator,
    length: int | None,
    root: Floats,
    init: Sequence[Floats],
    events: Sequence[Floats],
) -> Labels:
    """Labels of one new sequence, from left to right."""
    depth = topology.depth
    stack = [pick(rng, root)] + [0] * (depth - 1)
    states: list[list[int]] = []
    ends: list[list[int]] = []
    d = 0  # the levels below this one start
    while True:
        for parent in range(d, depth - 1):
            stack[parent + 1] = pick(rng, init[parent][stack[parent]])
        states.append(stack.copy())
        d = depth - 1  # the segment of this level ends here: does its parent continue?
        while d > 0:
            over = d == 1 and length is not None and len(states) >= length
            child = topology.n_states[d] if over else pick(rng, events[d - 1][stack[d - 1], stack[d]])
            if child < topology.n_states[d]:
                stack[d] = child
                break
            d -= 1
        ends.append([int(level >= d) for level in range(depth)])
        if d == 0:
            return Labels(topology, np.array(states).T, np.array(ends).T)


def next_events(trans: Mapping[str, Floats], end: Mapping[str, Floats]) -> list[Floats]:
    """For the level of each parent, probabilities (S, U, U + 1) of what follows a child: a sibling, or the end."""
    return [
        np.concatenate([table, end.get(level, 1 - table.sum(axis=-1))[..., None]], axis=-1)
        for level, table in trans.items()
    ]


def log(values: Floats) -> Floats:
    """Return logarithms; -inf for zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(values)
