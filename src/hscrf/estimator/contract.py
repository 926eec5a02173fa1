"""The contract of models: the public methods that stores, shards and other rooms use.

A :class:`Labeller` labels sequences. A :class:`Model` of this room also labels packed sequences, by weights in blocks.
A :class:`Learner` also gives the frame that learns from data. Names with an underscore belong to the class and its
families alone: families override them (``_statistics``, ``_narrowed``, ``_default_features``, ``_feature_statistics``,
``_adopt``), other rooms never use them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.features.blocks import Block
from hscrf.features.specifications import Specification
from hscrf.inference import Marginals, Posterior
from hscrf.labels.columns import Scheme
from hscrf.labels.labels import Labels
from hscrf.observations.encoder import ObservationEncoder
from hscrf.observations.packed import Observations
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator.frame import Frame, Part
    from hscrf.objective.margin import Costs
    from hscrf.objective.scorer import Scorer
    from hscrf.objective.sharded import ShardedLoss
    from hscrf.objective.workers import Workers


class Labeller(Protocol):
    """A trained model that labels sequences: of any family, stacked, or neural."""

    @property
    def topology_(self) -> Topology:
        """Levels, states and rules."""

    def predict(
        self, X: Any, evidence: Any = None, loss: str = "sequence", *, confidence: bool = False
    ) -> list[Labels]:
        """The best labels of each sequence."""

    def predict_marginals(self, X: Any, evidence: Any = None) -> list[Marginals]:
        """The posterior probabilities of each sequence."""

    def posterior(self, X: Any, evidence: Any = None) -> list[Posterior]:
        """The posterior of each sequence."""


class Trained(Protocol):
    """The attributes that describe the training of a model."""

    loss_: float
    converged_: bool
    n_iter_: int
    stop_reason_: str
    history_: list[dict[str, Any]]


class Model(Labeller, Trained, Protocol):
    """A trained model; :class:`hscrf.estimator.predictor.Predictor` is one."""

    n_jobs: int
    verbose: int
    topology_: Topology
    encoder_: ObservationEncoder
    coef_: Floats

    def check_fitted(self) -> None:
        """Raise unless the model is trained."""

    def found_scheme(self) -> Scheme:
        """The scheme of label columns, by level: the given one, or the one found in training."""

    def pack_to_score(self, X: Sequence[Any], Y: Sequence[Any]) -> tuple[Observations, list[Labels]]:
        """Packed observations, and labels that may break the topology's rules and have other states."""

    def label(self, observations: Observations, weights: Floats, loss: str = "sequence") -> list[Labels]:
        """The best labels of packed sequences at some weights."""

    def weighted_blocks(self) -> list[tuple[Block, Floats]]:
        """Each block of features with its weights."""

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The content of a model file: a header for JSON, and arrays."""


class Learner(Model, Protocol):
    """A model that learns from stores of data; :class:`hscrf.HSCRF` is one."""

    topology: Topology | None
    scheme: Scheme
    min_count: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor by name."""

    def asked_features(self) -> list[Specification]:
        """The specifications that the caller gave, without the default ones."""

    def new_frame(self, scheme: Scheme) -> Frame:
        """A frame that learns names, scales, states and rules from data whose columns are written in that scheme."""


# -- data that models learn from


class Packed(Protocol):
    """Data in the final form of a model's frame."""

    frame: Frame  # settled
    lengths: Ints  # steps of each sequence

    def parts(self) -> Iterator[Part]:
        """The data part by part, to see which features meet which states."""

    def labelled_levels(self) -> NDArray[np.bool_]:
        """Whether any label of each level (D,) is known."""

    def objective(self, scorer: Scorer, sample_weight: Any, workers: Workers, costs: Costs | None) -> ShardedLoss:
        """The loss over all data."""


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
