"""The frame, which ``fit`` learns before any weight: names, scales, states and rules.

Lists are packed here, in the frame that is learned from them. Other stores pack themselves
(:class:`hscrf.estimator.contract.Store`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import InfeasibleError, a_type
from hscrf.estimator.checks import (
    check_lengths,
    check_steps,
    count_states,
    packed_lengths,
    warn_of_tags,
    warn_of_typos,
)
from hscrf.estimator.contract import Learner, Store
from hscrf.features.blocks import Block
from hscrf.features.occurrences import Occurrences, SegmentSizes
from hscrf.features.specifications import BY_SIZE, SCORES, Specification
from hscrf.labels.columns import Scheme
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.packed import FillerNeighbours, SegmentLengths, pack_labels, pack_possible
from hscrf.labels.schemes import schemes_in
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.margin import Costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import CUTS, Cuts, Workers
from hscrf.observations.encoder import Numbers, ObservationEncoder
from hscrf.observations.packed import Observations
from hscrf.observations.readers import cut_apart
from hscrf.progress import waiting
from hscrf.topology import Topology

Rules = Callable[[Topology, int, FillerNeighbours], Topology]


class Part(NamedTuple):
    """Some sequences of the training data, packed, and their labels."""

    observations: Observations
    labels: list[Labels]
    offset: int = 0  # number of the first sequence


class Statistics(Protocol):
    """The statistics that a topology is learned from; :class:`hscrf.labels.induction.LabelStatistics` is one."""

    def update(self, Y: Sequence[Any], lengths: Sequence[int], offset: int = 0) -> list[Labels]:
        """Add the labels of a part of the data, and return them as Labels."""

    def merge(self, other: Any) -> Any:
        """Add the statistics of another object."""

    def topology(self) -> Topology:
        """The topology of all labels so far."""

    def over(self, labels: Sequence[Labels], topology: Topology) -> list[Labels]:
        """Labels that ``update`` returned, over that topology."""

    def memory(self) -> dict[str, Any]:
        """The learned statistics as JSON."""

    def recall(self, memory: Any) -> None:
        """Restore statistics from :meth:`memory`."""


class Frame:
    """Everything of a model but its weights, learned from data in one piece or in parts.

    Parameters
    ----------
    encoder : ObservationEncoder
        Learns names and scales of observations.
    statistics : Statistics
        Learns states and rules from the labels.
    scheme : str or mapping
        How label columns are written, by level; never "auto".
    rules : callable (learned topology, longest sequence, neighbours of fillers) -> Topology, or None
        Adds the rules of the model to the learned topology. It is not pickled: a frame that comes from another process
        is merged into one that has it.

    Notes
    -----
    The first pass (``update``) learns feature names and counts, means and variances of columns, the mean lengths of
    segments (``lengths``), and what comes before and after fillers (``neighbours``). From labels it learns states,
    children, successors and longest durations. ``settle`` fixes them as ``encoder`` and ``topology``. The second pass
    finds which features occur with which states, see :class:`FeatureStatistics`.

    A part may be given to this frame or to another one, perhaps in another process. ``merge`` then adds what the other
    frame learned from later parts. However the data are divided, the result is that of one pass over all of them; means
    and variances agree up to rounding.
    """

    def __init__(
        self, encoder: ObservationEncoder, statistics: Statistics, scheme: Scheme = "plain", rules: Rules | None = None
    ) -> None:
        self.encoder = encoder
        self.statistics = statistics
        self.scheme = scheme
        self.rules = rules
        self.lengths = SegmentLengths()
        self.neighbours = FillerNeighbours()
        self.topology: Topology | None = None  # until settled
        self.narrowed = False  # whether the model adds rules to the learned ones

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "rules": None}

    def update(self, X: Sequence[Any], Y: Sequence[Any], offset: int = 0) -> Part:
        """Learn from one more part, whose first sequence has the number ``offset``; return it packed."""
        observations = self.encoder.update(X)
        labels = self.statistics.update(Y, packed_lengths(observations), offset)
        check_steps(observations, labels, offset=offset)
        self.lengths.update(labels)
        self.neighbours.update(labels)
        return Part(observations, labels, offset)

    def merge(self, other: Frame) -> Numbers:
        """Merge another frame, which has learned from later parts.

        Returns the numbers (names,) that the names of the other frame have in this one.
        """
        numbers = self.encoder.merge(other.encoder)
        self.statistics.merge(other.statistics)
        self.lengths.merge(other.lengths)
        self.neighbours.merge(other.neighbours)
        return numbers

    def settle(self, longest: int, *parts: Part) -> list[Part]:
        """End the first pass; ``longest`` is the number of steps of the longest sequence.

        Parts that ``update`` of this frame packed come back in their final form.
        """
        learned = self.statistics.topology()
        self.topology = learned if self.rules is None else self.rules(learned, longest, self.neighbours)
        self.narrowed = self.topology.remembering({}) != learned.remembering({})
        self.encoder.settle()
        return [self.final(part) for part in parts]

    def final(self, part: Part, numbers: Numbers | None = None) -> Part:
        """Return a part in its final form, once the frame is settled; ``update`` of this frame has packed it.

        If a frame that was merged into this one packed it, ``numbers`` are the final ones of that frame's names.
        """
        assert self.topology is not None
        labels = self.statistics.over(part.labels, self.topology)
        if self.narrowed:
            check_rules(labels, part.offset)
        return Part(self.encoder.final(part.observations, numbers), labels, part.offset)


def check_rules(labels: Sequence[Labels], offset: int) -> None:
    """Raise for the first labels that break a rule of their topology."""
    for n, y in enumerate(labels, start=offset):
        try:
            y.check()
        except InfeasibleError as error:
            raise error.of_sequence(n) from None


# -- the second pass


class FeatureStatistics(Protocol):
    """The second pass over training data: which features occur with which states. It makes the blocks of weights."""

    def update(self, observations: Observations, labels: Sequence[Labels]) -> None:
        """Add one more part of the data."""

    def blocks(self) -> list[Block]:
        """A block for each specification."""

    def sizes(self) -> dict[str, float]:
        """The size of segments, by level: of levels whose penalties follow that size."""


class NestedFeatures:
    """The feature statistics of models whose levels nest; see :class:`FeatureStatistics`."""

    def __init__(
        self,
        specifications: Sequence[Specification],
        topology: Topology,
        encoder: ObservationEncoder,
        pairs: str = "seen",
        transitions: str = "all",
    ) -> None:
        self.specifications = specifications
        self.occurrences = Occurrences(topology, encoder, specifications, pairs, transitions)
        sized = {topology.level(spec.level) for spec in specifications if spec.penalty == BY_SIZE}
        self.segments = SegmentSizes(topology, sorted(sized), encoder.names, SCORES)

    def update(self, observations: Observations, labels: Sequence[Labels]) -> None:
        """Add one more part of the data."""
        known = pack_possible(labels)
        self.occurrences.update(observations, known)
        self.segments.update(observations, known)

    def blocks(self) -> list[Block]:
        """A block for each specification."""
        return [spec.fit(self.occurrences) for spec in self.specifications]

    def sizes(self) -> dict[str, float]:
        """The size of segments, by level: of levels whose penalties follow that size."""
        return self.segments.factors()


# -- data in memory


class Lists:
    """Sequences X and their labels Y in memory."""

    def __init__(self, X: Sequence[Any], Y: Any, cuts: Cuts = CUTS) -> None:
        self.X, self.Y, self.cuts = X, Y, cuts

    def packed_for(self, model: Learner) -> PackedLists:
        """Learn the model's frame from the lists and pack them in it."""
        Y = given_labels(self.Y, () if model.topology is None else model.topology.levels[1:])
        check_lengths(self.X, Y)
        scheme = schemes_in(Y, model.scheme, model.topology)
        warn_of_tags(Y, scheme, model)
        frame = model.new_frame(scheme)
        frame.encoder.shard = self.cuts.shard
        with waiting("packing", model.verbose):
            part = frame.update(self.X, Y)
        (part,) = frame.settle(max(packed_lengths(part.observations)), part)
        topology = part.labels[0].topology
        if model.topology is None and not isinstance(Y[0], Labels):
            warn_of_typos(topology, count_states(topology, part.labels))
        return PackedLists(frame, part, self.cuts)


class PackedLists:
    """Lists in the final form of a model's frame: one part."""

    def __init__(self, frame: Frame, part: Part, cuts: Cuts) -> None:
        self.frame, self.part, self.cuts = frame, part, cuts
        self.lengths = np.diff(part.observations.offsets)

    def parts(self) -> Iterator[Part]:
        """Yield the only part."""
        yield self.part

    def labelled_levels(self) -> NDArray[np.bool_]:
        """Return whether any state of each level (D,) is known."""
        known: NDArray[np.bool_] = np.any(pack_labels(self.part.labels).states >= 0, axis=1)
        return known

    def objective(self, scorer: Scorer, sample_weight: Any, workers: Workers, costs: Costs | None) -> Likelihood:
        """Return the loss over all sequences."""
        observations, labels = self.part.observations, self.part.labels
        return Likelihood(scorer, observations, labels, sample_weight, workers, costs, self.cuts)


def data_of(X: Any, Y: Any, lengths: Any = None, client: Any = None) -> Store | Lists:
    """The data that ``fit`` was given: a store, evaluated by the client's workers if there is one, or lists."""
    if isinstance(X, Store):
        if Y is not None or lengths is not None:
            raise ValueError(f"X is {type(X).__name__}, which have labels and lengths of their own: expected no other")
        return X.on_cluster(client)
    if client is not None:
        raise ValueError(f"client is given, but X is {a_type(X)}: a cluster works on hscrf.scale.Shards")
    if Y is None:
        raise ValueError("Y is None, expected labels of each sequence")
    return Lists(*cut_apart(lengths, ("X", X), ("Y", Y)))
