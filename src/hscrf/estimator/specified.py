"""The specifications of a model's weights, given or by default, and the penalty of each weight."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hscrf import solvers
from hscrf.arrays import Floats
from hscrf.features.blocks import Block
from hscrf.features.specifications import (
    BY_LENGTH,
    BY_SIZE,
    SCORES,
    CellSpecification,
    Duration,
    End,
    Init,
    Score,
    Specification,
    Start,
    Stop,
    Token,
    Trans,
    with_tails,
)
from hscrf.objective.sharded import ShardedLoss
from hscrf.solvers.penalties import TRANSITIONS, Search, Weighting, chosen
from hscrf.topology import UNLIMITED, Topology

NESTED_TRANSITIONS = 0.1  # penalty of transitions in nested models, relative to that of features


class Specified:
    """A model with features and penalties as arguments; subclasses learn the weights."""

    features: Sequence[Any] | None
    durations: Mapping[str, str] | None
    c1: float
    c2: float | str
    random_state: Any
    verbose: int

    topology_: Topology
    blocks_: list[Block]
    mean_lengths_: dict[str, float]
    sizes_: dict[str, float]
    c2_: float
    factors_: dict[str, float]  # by level, and of transitions
    penalties_: list[dict[str, Any]]
    penalty_reason_: str

    _plain_c2 = 0.1  # c2="auto" keeps this value unless another is significantly better

    if TYPE_CHECKING:  # what a predictor has

        def _shown_levels(self) -> Topology: ...

    def asked_features(self) -> list[Specification]:
        """Return the specifications in ``features``, without the word "default"; part of the contract of models.

        Returns
        -------
        list of specifications
        """
        return [spec for spec in self.features or () if not isinstance(spec, str)]

    def specifications(self) -> Sequence[Specification]:
        """Return the specifications of all weights: those in ``features``, default ones, and durations.

        Returns
        -------
        list of specifications
        """
        wanted = ["default"] if self.features is None else self.features
        added: list[Specification] = [Duration(level, kind) for level, kind in (self.durations or {}).items()]
        mine = {self._identity(spec) for spec in [*wanted, *added] if not isinstance(spec, str)}
        usual = list(self._default_features())
        if any(isinstance(spec, Score) for spec in wanted):
            usual = [without_scores(spec) for spec in usual]
        found: list[Specification] = []
        for spec in wanted:
            if isinstance(spec, str):
                found += [default for default in usual if self._identity(default) not in mine]
            else:
                found.append(spec)
        return with_tails(found + added, self._shown_levels())

    def _identity(self, spec: Specification) -> Hashable:
        """A key that is equal for specifications of the same weights; penalties and kinds of durations do not count."""
        level = self._shown_levels().level(spec.level)
        return ("duration", level) if isinstance(spec, Duration) else replace(spec, level=str(level), penalty=1.0)

    def _default_features(self) -> Sequence[Specification]:
        return default_specifications(self.topology_)

    def _penalties(self) -> tuple[solvers.Penalty, solvers.Penalty]:
        """c1 and c2: numbers, or arrays where features or levels have different penalties."""
        weighting = self._weighting()
        return weighting.each(self.c1, {}), weighting.each(self.c2_, self.factors_)

    def _weighting(self) -> Weighting:
        """The groups of weights with a common penalty: features of each level, and transitions of all levels."""
        specifications, levels = self.specifications(), self._shown_levels()
        groups = [
            TRANSITIONS if isinstance(spec, CellSpecification) else levels.levels[levels.level(spec.level)]
            for spec in specifications
        ]
        return Weighting(groups, [block.size for block in self.blocks_], self._penalty_factors())

    def _penalty_factors(self) -> list[float]:
        """The factor of the penalty of each specification."""
        levels = self._shown_levels()
        known = levels, self.mean_lengths_, self.sizes_
        return [float(spec.penalty_factor(*known)) for spec in self.specifications()]

    def _choose_penalties(self, objective: ShardedLoss, weights: Floats, groups: Sequence[Any] | None = None) -> Floats:
        """Set c2_ and factors_; with "auto" by a search, which also gives the starting weights."""
        if not isinstance(self.c2, str):
            self.c2_, self.factors_, self.penalties_, self.penalty_reason_ = self.c2, {}, [], ""
            return weights
        weighting, options = self._weighting(), (self.random_state, self.verbose, self._plain_c2, groups)
        search = Search(objective, weighting, self.c1, weights, *options)
        search.run()
        if not search.path:
            raise KeyboardInterrupt
        self.penalties_ = search.path
        self.c2_, self.factors_ = chosen(search.path)
        self.penalty_reason_ = search.reason
        return search.first_weights()


def default_specifications(topology: Topology) -> list[Specification]:
    """Return the features of a model without ``features``.

    Every level with more than one state has token features. Levels whose segments may last longer than a step also have
    features of first and last steps. The evidence of a segment is a sum over its steps, so the penalty of all these is
    ``"length"``; at the bottom of a nested model ``"size"``, which follows that sum. All levels have weights for first,
    neighbouring and last children, which nested models penalise less: they occur at far more steps than any feature. A
    linear chain has the penalties of CRFsuite.
    """
    nested = topology.depth > 2
    penalty = NESTED_TRANSITIONS if nested else 1.0
    specifications: list[Specification] = []
    for d, level in enumerate(topology.levels):
        lasts = d < topology.depth - 1 or not topology.unit_bottom
        if topology.n_states[d] > 1:
            own = (Token, Start, Stop) if lasts and d > 0 else (Token,)
            strength = BY_SIZE if nested and d == topology.depth - 1 else BY_LENGTH if lasts else 1.0
            specifications += [block(level, penalty=strength) for block in own]
        if topology.has_limits(d) and topology.max_duration[d].max() < UNLIMITED:
            specifications.append(Duration(level))
        if d + 1 < topology.depth and topology.n_states[d + 1] > 1:
            specifications += [block(level, penalty=penalty) for block in (Init, Trans, End)]
    return specifications


def without_scores(spec: Specification) -> Specification:
    """Return a default specification without features that are scores of states."""
    return replace(spec, without=SCORES) if isinstance(spec, Token | Start | Stop) else spec
