"""Feature specifications: the weights of a level, and the observations that they meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.features.blocks import (
    AverageBlock,
    Block,
    ConstantBlock,
    DenseBlock,
    DurationBlock,
    MixedBlock,
    PairBlock,
    SegmentBlock,
    TailBlock,
)
from hscrf.features.occurrences import ConstantCells, FeatureCells, OccurrenceRecord, Occurrences, SegmentValues
from hscrf.features.segments import SegmentFunction
from hscrf.labels.events import family_cells
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.readers import KINDS
from hscrf.potentials import Key
from hscrf.topology import UNLIMITED, Topology

BY_LENGTH, BY_SIZE = "length", "size"  # penalties that follow the level's segments


@dataclass(frozen=True, repr=False)
class Specification:
    """Weights for one part of a level; ``penalty`` is a factor of their c1 and c2.

    ``penalty="length"`` is the mean length of the level's training segments, ``"size"`` the mean squared size of their
    summed features; both are multiplied by the square root of the mean length for first and last steps, which are few.
    """

    level: str
    penalty: float | str = field(default=1.0, kw_only=True)
    part: ClassVar[str]
    needs_limit: ClassVar[bool] = False  # a longest duration of the level

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels whose states the weights depend on, with the given names."""
        return (self.level,)

    def key(self, topology: Topology) -> Key:
        """Return the part that the weights score, and the index of its level."""
        return self.part, topology.level(self.level)

    def penalty_factor(self, topology: Topology, lengths: Mapping[str, float], sizes: Mapping[str, float]) -> float:
        """Return the penalty as a number, given mean lengths and sizes by level; older files have no sizes."""
        if not isinstance(self.penalty, str):
            return self.penalty
        level = topology.levels[topology.level(self.level)]
        known = {**lengths, **sizes} if self.penalty == BY_SIZE else lengths
        return known[level] * (lengths[level] ** 0.5 if self.part in ("start", "stop") else 1.0)

    def record(self, frame: Occurrences) -> OccurrenceRecord | None:
        """Return a record of the training data that ``fit`` needs, or None.

        Parameters
        ----------
        frame : Occurrences
            Topology, encoder and options of the model.

        Returns
        -------
        OccurrenceRecord or None
            An object that collects what occurs in the training data.
        """
        return None

    def fit(self, frame: Occurrences) -> Block:
        """Return the block of weights for what occurs in the training data.

        Parameters
        ----------
        frame : Occurrences
            Topology, encoder and completed records of the model.

        Returns
        -------
        Block
            The linear map from weights to potentials.
        """
        raise NotImplementedError

    def longest(self, topology: Topology) -> int:
        """Return the longest duration of the level, the size of its segment tables."""
        d = topology.level(self.level)
        if topology.unit_bottom and d == topology.depth - 1:
            return 1
        longest, level = int(topology.max_duration[d].max()), topology.levels[d]
        if longest == UNLIMITED:
            raise ValueError(f"{self!r} needs a longest duration, but level {level!r} has none: give max_duration")
        return longest

    def __repr__(self) -> str:
        """The call that makes this object, without arguments that have their default."""
        values = [(item, getattr(self, item.name)) for item in fields(self)]
        given = [repr(value) for item, value in values if item.default is MISSING]
        given += [f"{item.name}={value!r}" for item, value in values if item.default not in (MISSING, value)]
        return f"{type(self).__name__}({', '.join(given)})"


@dataclass(frozen=True, repr=False)
class FeatureSpecification(Specification):
    """Weights for the features of steps; ``only`` and ``without`` select named features by prefix."""

    only: str = field(default="", kw_only=True)
    without: str = field(default="", kw_only=True)

    def table(self, topology: Topology) -> tuple[Ints, tuple[int, ...]]:
        """Return the cells of the part that may have weights, and the shape that they index."""
        states = topology.n_states[topology.level(self.level)]
        return np.arange(states), (states,)

    def chosen(self, encoder: ObservationEncoder) -> NDArray[np.bool_]:
        """Return which of the encoder's named features are selected, (F,)."""
        if not self.only and not self.without:
            return np.ones(len(encoder.names), dtype=bool)
        if not encoder.has_names:
            raise ValueError(f"{self!r} chooses among named features, but X holds {KINDS['dense']}")
        taken = [name.startswith(self.only) for name in encoder.names]
        left_out = [bool(self.without) and name.startswith(self.without) for name in encoder.names]
        return np.array(taken, dtype=bool) & ~np.array(left_out, dtype=bool)

    def record(self, frame: Occurrences) -> OccurrenceRecord | None:
        if not frame.encoder.has_names or frame.pairs == "all":
            return None
        cells, shape = self.table(frame.topology)
        key, width = self.key(frame.topology), int(np.prod(shape))
        return FeatureCells(frame.topology, key, cells, width, self.chosen(frame.encoder))

    def fit(self, frame: Occurrences) -> Block:
        return self.feature_block(frame)

    def feature_block(self, frame: Occurrences) -> PairBlock | DenseBlock | MixedBlock:
        """Return weights for all numeric columns, for pairs of a named feature and a cell, or for both.

        ``only`` excludes the numeric columns of a table that also has text.
        """
        key, encoder = self.key(frame.topology), frame.encoder
        cells, shape = self.table(frame.topology)
        dense = DenseBlock(key, shape, cells, len(encoder.columns))
        if not encoder.has_names:
            self.chosen(encoder)
            return dense
        pairs = self._pair_block(frame)
        return MixedBlock(pairs, dense) if encoder.has_columns and not self.only else pairs

    def _pair_block(self, frame: Occurrences) -> PairBlock:
        key, chosen = self.key(frame.topology), self.chosen(frame.encoder)
        cells, shape = self.table(frame.topology)
        if frame.pairs == "all":
            pair_at = np.concatenate([[0], np.cumsum(chosen * cells.size)])
            return PairBlock(key, shape, pair_at, np.tile(cells, chosen.sum()).astype(np.int32))
        return PairBlock(key, shape, *frame.records[self].pairs())


@dataclass(frozen=True, repr=False)
class Token(FeatureSpecification):
    """Features of every step of a segment, summed or averaged over the segment.

    Parameters
    ----------
    level : str
        Level of the segments.
    average : bool
        Whether to average over the segment. The level then needs a longest duration.
    penalty : float, "length" or "size"
        Factor of the penalties of these weights, see :class:`Specification`.
    only, without : str
        Take only, or leave out, the named features whose names begin with this prefix.
    """

    average: bool = False
    part: ClassVar[str] = "token"

    @property
    def needs_limit(self) -> bool:  # type: ignore[override]
        return self.average

    def fit(self, frame: Occurrences) -> Block:
        tokens = self.feature_block(frame)
        return AverageBlock(tokens, self.longest(frame.topology)) if self.average else tokens


@dataclass(frozen=True, repr=False)
class Start(FeatureSpecification):
    """Features of the first step of a segment.

    Parameters
    ----------
    level, penalty, only, without
        As in :class:`Token`.
    """

    part: ClassVar[str] = "start"


@dataclass(frozen=True, repr=False)
class Stop(FeatureSpecification):
    """Features of the last step of a segment.

    Parameters
    ----------
    level, penalty, only, without
        As in :class:`Token`.
    """

    part: ClassVar[str] = "stop"


@dataclass(frozen=True, repr=False)
class Duration(Specification):
    """Weights for the length l of a segment. The level needs a longest duration.

    If that is open, longer segments have the weight of the longest one, and a :class:`Tail` for the steps beyond.

    Parameters
    ----------
    kind : {"gamma", "bins", "each"}
        ``"gamma"``: weights for log l and l, the sufficient statistics of a gamma density. ``"bins"``: one weight for
        lengths 1, 2, 3-4, 5-8, 9-16 and so on. ``"each"``: one weight for every length.
    level, penalty
        As in :class:`Token`.
    """

    kind: str = "gamma"
    part: ClassVar[str] = "duration"
    needs_limit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in ("gamma", "bins", "each"):
            raise ValueError(f"Duration kind is {self.kind!r}, expected 'gamma', 'bins' or 'each'")

    def fit(self, frame: Occurrences) -> Block:
        key, topology = self.key(frame.topology), frame.topology
        return DurationBlock(key, self.kind, self.longest(topology), topology.n_states[key[1]])


@dataclass(frozen=True, repr=False)
class Tail(Specification):
    """A weight for each step of a segment beyond the longest explicit duration, where ``open_duration`` names it.

    ``Duration`` of such a level adds it automatically.
    """

    part: ClassVar[str] = "tail"
    needs_limit: ClassVar[bool] = True

    def fit(self, frame: Occurrences) -> Block:
        key, topology = self.key(frame.topology), frame.topology
        if key[1] not in topology.open_levels:
            raise ValueError(f"{self!r} needs open durations, but open_duration does not name level {self.level!r}")
        return TailBlock(key, self.longest(topology), topology.n_states[key[1]])


def with_tails(specifications: Sequence[Specification], topology: Topology) -> list[Specification]:
    """Return the specifications, with a :class:`Tail` after the durations of each open level."""
    named = {topology.level(spec.level) for spec in specifications if isinstance(spec, Tail)}
    found: list[Specification] = []
    for spec in specifications:
        found.append(spec)
        if isinstance(spec, Duration) and topology.level(spec.level) in {*topology.open_levels} - named:
            found.append(Tail(spec.level, penalty=spec.penalty))
    return found


@dataclass(frozen=True, repr=False)
class Segment(Specification):
    """Features of a whole segment, computed by a function. The level needs a longest duration.

    Parameters
    ----------
    function : callable
        ``function(z, start, stop)`` returns a vector for the half-open segment of the observations z of a sequence.
    level, penalty
        As in :class:`Token`.
    """

    function: SegmentFunction
    part: ClassVar[str] = "segment"
    needs_limit: ClassVar[bool] = True

    def record(self, frame: Occurrences) -> OccurrenceRecord:
        return SegmentValues(self.function)

    def fit(self, frame: Occurrences) -> Block:
        key, topology, size = self.key(frame.topology), frame.topology, frame.records[self].size
        return SegmentBlock(key, self.function, size, self.longest(topology), topology.n_states[key[1]])


class CellSpecification(FeatureSpecification):
    """Weights for cells of a part: constant, or with the features of the step if ``observed``."""

    observed: bool  # a field of the classes below, each of which has its own order of arguments

    def __post_init__(self) -> None:
        if not self.observed and (self.only or self.without):
            raise ValueError(f"{self!r} has no features to choose from, expected observed=True")

    def record(self, frame: Occurrences) -> OccurrenceRecord | None:
        if self.observed:
            return super().record(frame)
        return ConstantCells(frame.topology, self.key(frame.topology)) if frame.transitions == "seen" else None

    def fit(self, frame: Occurrences) -> Block:
        if self.observed:
            return self.feature_block(frame)
        cells, shape = self.table(frame.topology)
        if frame.transitions == "seen":
            cells = frame.records[self].among(cells)
        return ConstantBlock(self.key(frame.topology), (1, *shape), cells)


@dataclass(frozen=True, repr=False)
class FamilySpecification(CellSpecification):
    """Weights for a parent and its children; ``level`` is that of the parent."""

    observed: bool = False

    def key(self, topology: Topology) -> Key:
        part, d = super().key(topology)
        if d == topology.depth - 1:
            raise ValueError(f"{type(self).__name__}({self.level!r}) names the bottom, expected a parent's level")
        return part, d

    def table(self, topology: Topology) -> tuple[Ints, tuple[int, ...]]:
        return family_cells(topology, self.key(topology))


@dataclass(frozen=True, repr=False)
class Init(FamilySpecification):
    """A parent and its first child.

    Parameters
    ----------
    level : str
        Level of the parent.
    observed : bool
        Whether the weights are for the features of the first step, instead of a constant.
    penalty, only, without
        As in :class:`Token`.
    """

    part: ClassVar[str] = "init"


@dataclass(frozen=True, repr=False)
class Trans(FamilySpecification):
    """Two neighbouring children of a parent; ``observed`` uses the features of the last step of the first child.

    Parameters
    ----------
    level, observed, penalty, only, without
        As in :class:`Init`.
    """

    part: ClassVar[str] = "trans"


@dataclass(frozen=True, repr=False)
class End(FamilySpecification):
    """A parent and its last child; ``observed`` uses the features of the last step.

    Parameters
    ----------
    level, observed, penalty, only, without
        As in :class:`Init`.
    """

    part: ClassVar[str] = "end"


SCORES, BEGINS = "score:", "score:begin:"  # prefixes of named features that are scores of states


@dataclass(frozen=True, repr=False)
class Score(Specification):
    """Observed scores of states, such as log-probabilities of a classifier: one weight for each state.

    The score of a state is the named feature ``"score:LEVEL=STATE"`` of each step, summed over a segment. It has a
    weight for that state only. If ``Score`` is among the features, the default ones leave all scores out.
    """

    part: ClassVar[str] = "token"
    prefix: ClassVar[str] = SCORES

    def fit(self, frame: Occurrences) -> Block:
        key, topology = self.key(frame.topology), frame.topology
        if frame.encoder.kind == "dense":
            raise ValueError(f"{self!r} needs named features, but X holds {KINDS['dense']}")
        level, states = topology.levels[key[1]], topology.states[key[1]]
        wanted = {f"{self.prefix}{level}={name}": s for s, name in enumerate(states)}
        found = np.array([wanted.get(name, -1) for name in frame.encoder.names], dtype=np.int64)
        pair_at = np.concatenate([[0], np.cumsum(found >= 0)])
        return PairBlock(key, (len(states),), pair_at, found[found >= 0].astype(np.int32))


@dataclass(frozen=True, repr=False)
class StartScore(Score):
    """Scores of the first step of a segment of a state: the feature ``"score:begin:LEVEL=STATE"`` of that step."""

    part: ClassVar[str] = "start"
    prefix: ClassVar[str] = BEGINS


SPECIFICATIONS: tuple[type[Specification], ...]
SPECIFICATIONS = (Token, Start, Stop, Duration, Segment, Init, Trans, End, Score, StartScore)
