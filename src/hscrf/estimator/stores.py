"""The data of ``fit``: lists in memory, or a store that packs itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.estimator.checks import check_lengths, count_states, packed_lengths, warn_of_tags, warn_of_typos
from hscrf.estimator.contract import Learner, Model
from hscrf.estimator.frame import Frame, Part
from hscrf.labels.given import given_labels
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.labels.schemes import schemes_in
from hscrf.objective.likelihood import Likelihood
from hscrf.objective.margin import Costs
from hscrf.objective.scorer import Scorer
from hscrf.objective.workers import Workers
from hscrf.observations.readers import cut_apart
from hscrf.progress import waiting


class Packed(Protocol):
    """Data in the final form of a model's frame."""

    frame: Frame  # settled
    lengths: Ints  # steps of each sequence

    def parts(self) -> Iterator[Part]:
        """The data part by part, to see which features meet which states."""

    def labelled_levels(self) -> NDArray[np.bool_]:
        """Whether any label of each level (D,) is known."""

    def objective(self, scorer: Scorer, sample_weight: Any, workers: Workers, costs: Costs | None) -> Any:
        """The loss over all data: a :class:`hscrf.objective.sharded.ShardedLoss`."""


@runtime_checkable
class Store(Protocol):
    """Data that are not in memory: what ``fit``, ``predict`` and ``score`` take in the place of X and Y.

    ``hscrf.scale.Shards`` is one. A model does not depend on where the data are and which process evaluates them.
    """

    def on_cluster(self, client: Any) -> Store:
        """The same data, evaluated by the workers of a Dask client; by this process if it is None."""

    def packed_for(self, model: Learner) -> Packed:
        """Learn the model's frame from the data and pack them in it."""

    def scorer_for(self, model: Model) -> Callable[[Floats], float]:
        """The accuracy on these data as a function of the weights, as ``model.score`` counts it."""

    def predict_by(self, model: Model, folder: Any, loss: str) -> list[str]:
        """Write the best labels to files in a folder, and return their names."""


class Lists:
    """Sequences X and their labels Y in memory."""

    def __init__(self, X: Sequence[Any], Y: Any) -> None:
        self.X, self.Y = X, Y

    def packed_for(self, model: Learner) -> PackedLists:
        """Learn the model's frame from the lists and pack them in it."""
        Y = given_labels(self.Y, () if model.topology is None else model.topology.levels[1:])
        check_lengths(self.X, Y)
        scheme = schemes_in(Y, model.scheme, model.topology)
        warn_of_tags(Y, scheme, model)
        frame = model.new_frame(scheme)
        with waiting("packing", model.verbose):
            part = frame.update(self.X, Y)
        (part,) = frame.settle(max(packed_lengths(part.observations)), part)
        topology = part.labels[0].topology
        if model.topology is None and not isinstance(Y[0], Labels):
            warn_of_typos(topology, count_states(topology, part.labels))
        return PackedLists(frame, part)


class PackedLists:
    """Lists in the final form of a model's frame: one part."""

    def __init__(self, frame: Frame, part: Part) -> None:
        self.frame, self.part = frame, part
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
        return Likelihood(scorer, self.part.observations, self.part.labels, sample_weight, workers, costs)


def data_of(X: Any, Y: Any, lengths: Any = None, client: Any = None) -> Store | Lists:
    """The data that ``fit`` was given: a store, evaluated by the client's workers if there is one, or lists."""
    if isinstance(X, Store):
        if Y is not None or lengths is not None:
            raise ValueError(f"X is {type(X).__name__}, which have labels and lengths of their own: expected no other")
        return X.on_cluster(client)
    if client is not None:
        raise ValueError(f"client is given, but X is a {type(X).__name__}: a cluster works on hscrf.scale.Shards")
    if Y is None:
        raise ValueError("Y is None, expected labels of each sequence")
    return Lists(*cut_apart(lengths, ("X", X), ("Y", Y)))
