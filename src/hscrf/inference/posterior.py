"""The posterior of one sequence: potentials and evidence prepared once for several computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, Random, generator, whole_number
from hscrf.engine import Batch, Evidence, Expectations
from hscrf.errors import InfeasibleError, a_type, several
from hscrf.fillers import masked, shown, summed
from hscrf.inference.conflicts import infeasible
from hscrf.labels.labels import Labels
from hscrf.labels.shown import level_or_only
from hscrf.potentials import Arrays, Key, Potentials
from hscrf.topology import Topology

Made = TypeVar("Made")


class Posterior:
    """The distribution over all configurations of one sequence that agree with the evidence.

    Labels are closed and the engine's plan is made once for all computations. The functions ``log_partition``,
    ``marginals``, ``decode``, ``k_best``, ``sample`` and ``entropy`` of :mod:`hscrf` are its methods.
    ``HSCRF.posterior`` returns the posteriors of a model.

    Parameters
    ----------
    potentials : Potentials
        Log-potentials of the sequence.
    evidence : Labels, optional
        Known states and ends. None means that nothing is known.

    Attributes
    ----------
    potentials : Potentials
    evidence : Labels or None
    log_partition : float
    marginals : Marginals
    counts : Potentials

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"tag": ["N", "V"]})
    >>> potentials = Potentials(topology, 3, token={"tag": [[1, 0], [0, 2], [0, 0.5]]})
    >>> posterior = Posterior(potentials, Labels.from_columns(topology, {"tag": ["?", "N", "?"]}))
    >>> posterior.decode().column("tag"), round(posterior.entropy(), 4)
    (['N', 'N', 'V'], 1.2451)
    """

    def __init__(self, potentials: Potentials, evidence: Labels | None = None) -> None:
        if not isinstance(potentials, Potentials):
            raise ValueError(f"potentials is {a_type(potentials)}, expected Potentials")
        if evidence is not None:
            check_fit(potentials, evidence, "evidence")
        self.topology, self.length = potentials.topology, potentials.length
        self.evidence = evidence
        self.values = masked(potentials.topology, values_of(potentials))
        self._made: dict[str, Any] = {"potentials": potentials}

    @classmethod
    def of_values(cls, topology: Topology, length: int, values: Arrays, evidence: Labels | None = None) -> Posterior:
        """Return the posterior of arrays in the engine's layout, which a model computed; they are not checked.

        Parameters
        ----------
        topology : Topology
        length : int
            The number of time steps.
        values : mapping from (part, index of the level) to array
            Log-potentials, with -inf where a state that remembers cannot be.
        evidence : Labels, optional
            As in the class.

        Returns
        -------
        Posterior
        """
        found = cls.__new__(cls)
        found.topology, found.length, found.evidence = topology, length, evidence
        found.values, found._made = dict(values), {}
        return found

    @property
    def potentials(self) -> Potentials:
        """Log-potentials of the sequence."""
        return self._once("potentials", lambda: Potentials.from_arrays(self.topology, self.length, self.values))

    def __repr__(self) -> str:
        known = "" if self.evidence is None else ", with evidence"
        return f"Posterior({several(self.length, 'step')}, {' > '.join(self.topology.levels)}{known})"

    def _once(self, name: str, make: Callable[[], Made]) -> Made:
        """Compute a value once. Before Python 3.12, ``cached_property`` has one lock for all posteriors."""
        if name not in self._made:
            self._made[name] = make()
        found: Made = self._made[name]
        return found

    @property
    def batch(self) -> Batch:
        """The sequence as the engine takes it: a batch of one."""
        return self._once("batch", self._new_batch)

    @property
    def offsets(self) -> Ints:
        """Where the sequence of the batch begins and ends (2,)."""
        return np.array([0, self.length])

    def _new_batch(self) -> Batch:
        closed = None if self.evidence is None else Evidence.of([self.evidence.closed()])
        return Batch(self.topology, self.offsets, closed)

    @property
    def log_partition(self) -> float:
        """Log of the total mass of all configurations."""
        log_z = self._once("log_partition", lambda: float(self.batch.log_partition(self.values)[0]))
        return self._feasible(log_z)

    @property
    def marginals(self) -> Marginals:
        """Posterior probabilities of states, ends and segments, and the expected counts.

        Marginals refer to their posterior. The posterior keeps only the numbers, so there is no reference cycle.
        """
        topology, found = self.topology, self._expectations
        state = {level: summed(topology, d, found.state[d]) for d, level in enumerate(topology.levels)}
        ending = dict(zip(topology.levels, found.ending, strict=True))
        return Marginals(float(found.log_z[0]), state, ending, self)

    @property
    def counts(self) -> Potentials:
        """Expected counts, shaped like the potentials: the gradient of log Z."""
        return self._once("counts", self._counts)

    def _counts(self) -> Potentials:
        found = self._expectations.counts
        own = {key: found[key] for key in values_of(self.potentials)}
        return Potentials.from_arrays(self.topology, self.length, own)

    @property
    def _expectations(self) -> Expectations:
        return self._once("expectations", self._expect)

    def _expect(self) -> Expectations:
        found = self.batch.expectations(self.values)
        self._feasible(float(found.log_z[0]))
        return found

    def segment(self, level: str) -> Floats:
        """Return the posterior probability of every segment of a level, by start and length.

        Parameters
        ----------
        level : str
            The name of the level.

        Returns
        -------
        ndarray of shape (T, L, S)
            Entry ``[t, l, s]`` is the probability that a segment of state s starts at t and has length l + 1.
        """
        topology = self.topology
        d = topology.level(level)
        return summed(topology, d, self.batch.expectations(self.values, explicit=(d,)).segments[d])

    def decode(self) -> Labels:
        """Return the best configuration; its log score is ``.score``.

        Returns
        -------
        Labels

        Raises
        ------
        InfeasibleError
            If no configuration agrees with the evidence.
        """
        states, ends, best = self.batch.best(self.values)
        return self._labels(states, ends, self._feasible(float(best[0])))

    def k_best(self, k: int) -> list[Labels]:
        """Return the k best configurations, the best first; fewer if there are fewer.

        Parameters
        ----------
        k : int
            The number of configurations.

        Returns
        -------
        list of Labels

        Raises
        ------
        InfeasibleError
            If no configuration agrees with the evidence.
        """
        found = self.batch.k_best(self.values, whole_number(k, "k", least=1))
        best = [self._labels(states, ends, score) for score, states, ends in found]
        if not best:
            self._feasible(-np.inf)
        return best

    def sample(self, n: int = 1, random_state: Random = None) -> list[Labels]:
        """Draw n exact and independent samples.

        Parameters
        ----------
        n : int
            The number of samples.
        random_state : int, numpy Generator or None
            A seed or a generator.

        Returns
        -------
        list of Labels

        Raises
        ------
        InfeasibleError
            If no configuration agrees with the evidence.
        """
        states, ends, log_z = self.batch.draw(self.values, whole_number(n, "n", least=0), generator(random_state))
        self._feasible(float(log_z[0]))
        return [self._labels(x, e) for x, e in zip(states, ends, strict=True)]

    def _labels(self, states: NDArray[np.int32], ends: NDArray[np.int8], score: float | None = None) -> Labels:
        """Labels from what the engine found."""
        topology = self.topology
        return Labels(topology, shown(topology, states), ends, score=score)

    def entropy(self) -> float:
        """Return the entropy in nats: log Z minus the expected score.

        Returns
        -------
        float
        """
        found, expected = self.marginals, 0.0
        for part, level, values in self.potentials.parts():
            counts = found.counts[part][level]
            expected += float((counts[counts > 0] * values[counts > 0]).sum())
        return found.log_partition - expected

    def _feasible(self, value: float) -> float:
        """Return a log mass; raise an error that names the contradicting labels if it is -inf."""
        if value == -np.inf:
            raise self.infeasible()
        return value

    def infeasible(self) -> InfeasibleError:
        """Return the error for a sequence without any configuration; it names the labels that contradict each other.

        Returns
        -------
        InfeasibleError
        """
        return infeasible(self.length, self.evidence, self._allows)

    def _allows(self, evidence: Labels | None) -> bool:
        """Whether any configuration agrees with some evidence."""
        other = Posterior(self.potentials, evidence)
        try:
            return bool(other.batch.log_partition(other.values)[0] > -np.inf)
        except InfeasibleError:
            return False


@dataclass(frozen=True)
class Marginals:
    """Posterior probabilities of one sequence of T steps.

    Attributes
    ----------
    log_partition : float
        log Z of the configurations that agree with the evidence.
    state : dict of str to ndarray (T, S)
        By level: the probability that the level is in state s at t.
    ending : dict of str to ndarray (T,)
        By level: the probability that a segment of the level has its last step at t.
    posterior : Posterior
        The posterior that these probabilities come from.
    names : dict of str to tuple
        State names of levels that the topology of the posterior does not have; empty otherwise.
    counts : Potentials
        Expected counts.
    """

    log_partition: float
    state: dict[str, Floats]  # level -> (T, S): the level is in state s at t
    ending: dict[str, Floats]  # level -> (T,): a segment of the level has its last step at t
    posterior: Posterior
    names: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # of states, where not the topology's

    def __repr__(self) -> str:
        steps = several(self.posterior.length, "step")
        return f"Marginals({steps}, {' > '.join(self.state)}, log_partition {self.log_partition:.6g})"

    @property
    def counts(self) -> Potentials:
        """Expected counts, shaped like the potentials: the gradient of log Z."""
        return self.posterior.counts

    def to_dicts(self, level: str | None = None) -> list[dict[Any, float]]:
        """Return the probability of each state by its name, one dict for each step.

        Parameters
        ----------
        level : str, optional
            The level. None means the only one.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> from hscrf import Topology
        >>> Posterior(Potentials(Topology({"tag": ["N", "V"]}), 1)).marginals.to_dicts()
        [{'N': 0.5, 'V': 0.5}]
        """
        topology = self.posterior.topology
        if level is None and not self.names:
            level = topology.levels[level_or_only(topology, None)]
        states = self.names.get(str(level)) or topology.states[topology.level(level)]  # type: ignore[arg-type]
        return [dict(zip(states, row, strict=True)) for row in self.state[str(level)].tolist()]

    def segment(self, level: str) -> Floats:
        """Return the posterior probability of every segment of a level, by start and length.

        The table of a level without durations is computed on demand, in O(T^2 S).

        Parameters
        ----------
        level : str
            The name of the level.

        Returns
        -------
        ndarray of shape (T, L, S)
            Entry ``[t, l, s]`` is the probability that a segment of state s starts at t and has length l + 1. L is the
            longest legal length.
        """
        return self.posterior.segment(level)


def values_of(potentials: Potentials) -> dict[Key, Floats]:
    """The arrays by part and level index, as the engine takes them."""
    return {(part, potentials.topology.level(level)): values for part, level, values in potentials.parts()}


def check_fit(potentials: Potentials, labels: Labels, what: str) -> None:
    """Raise unless labels are of the same topology and length as the potentials."""
    if not isinstance(labels, Labels):
        raise ValueError(f"{what} is {a_type(labels)}, expected Labels")
    if labels.topology != potentials.topology:
        raise ValueError(f"{what} has {labels.topology}, but the potentials have {potentials.topology}")
    if labels.length != potentials.length:
        raise ValueError(f"{what} has {labels.length} steps, but the potentials have {potentials.length}")
