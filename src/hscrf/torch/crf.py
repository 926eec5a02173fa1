"""The layer: an exact loss over nested segmentations, and decoding, on top of any encoder."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from hscrf.arrays import Floats, generator
from hscrf.errors import InfeasibleError
from hscrf.fillers import expanded, shown, summed
from hscrf.inference import Posterior
from hscrf.labels.labels import Labels
from hscrf.objective.margin import costs_of_steps, equal_costs, hidden_costs
from hscrf.torch.autograd import result_dtype
from hscrf.torch.checks import check_count, checked_batch_weights, checked_margin
from hscrf.torch.copies import summed_states
from hscrf.torch.entropy import Entropy
from hscrf.torch.layer import CRFLayer, outside_graphs
from hscrf.torch.layout import Scores
from hscrf.torch.targets import Target, read_target
from hscrf.torch.terms import Partition, Ratio

REDUCTIONS = ("mean", "sum", "token_mean", "none")


class TensorMarginals(NamedTuple):
    """Posterior probabilities of a padded batch, zero where there are no steps."""

    log_partition: Any  # (B,)
    state: dict[str, Any]  # level -> (B, T, S): the level is in state s at t
    ending: dict[str, Any]  # level -> (B, T): a segment of the level has its last step at t


class CRF(CRFLayer):
    """Hierarchical semi-Markov CRF as the last layer of a network.

    From the scores of an encoder, the layer computes the exact negative log-likelihood of nested labels, complete or
    partial, and the best labels. Every level with children has learnable tables ``init``, ``trans`` and ``end``.
    Tables of durations are optional. A level with open durations has a table ``tail``, a score for each step of a
    segment beyond its longest explicit duration. All tables are zero at first.

    Parameters
    ----------
    topology : Topology
        Levels, states and rules.
    parts : sequence of str, or dict from part to levels, default ("token",)
        What the encoder scores: ``"token"`` (a segment of state s covers step t), ``"start"`` (it starts at t),
        ``"stop"`` (it has its last step at t). A sequence of parts means all levels for which they are useful:
        tokens of every level with more than one state, boundaries of levels whose segments may last.
    durations : dict from level to int, or list of levels, optional
        Levels with a learnable score for each duration, and the longest duration. In a list the longest duration is
        that of the topology. Longer segments are impossible.
    tables : sequence of str, default ("init", "trans", "end")
        Which learnable tables there are.
    n_jobs : int, default 1
        Threads for large batches. Results do not depend on it.

    Attributes
    ----------
    size : int
        Width of the tensor of scores: (B, T, size).
    columns : dict from (part, level name) to slice
        Which columns of the scores belong to which part and level.

    Notes
    -----
    In all methods ``scores`` is a tensor (B, T, size), or a dict like the arguments of :class:`hscrf.Potentials`:
    ``{"token": {"tag": (B, T, S)}, "segment": {"chunk": (B, T, L, S)}, "trans": {"chunk": (B, T, S, U, U)}}``.
    Its ``init``, ``trans`` and ``end`` are added to the tables. ``mask`` (B, T) selects any steps, also with gaps;
    ``lengths`` (B,) selects the first ones.

    Labels and evidence are a list with the labels of each sequence: :class:`hscrf.Labels`, columns, segments, or None.
    They may also be a dict from level to a tensor (B, T) of state indices, negative if unknown. A pair of such a tensor
    and one of ends (1 ends, 0 goes on) also fixes boundaries. Without ends, a run of equal states is one segment.

    The engine works in float64 on the CPU. Log masses have the precision of the scores, at least float32.

    Examples
    --------
    >>> from hscrf import Topology
    >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
    >>> crf = CRF(topology, parts=("token", "start"))
    >>> crf.size, crf.columns["start", "phrase"]
    (7, slice(2, 4, None))
    >>> scores = torch.zeros(1, 3, 7, requires_grad=True)
    >>> loss = crf(scores, {"phrase": torch.tensor([[0, 0, 1]]), "tag": torch.tensor([[0, -1, 2]])})
    >>> round(loss.item(), 4)
    5.0876
    >>> len(crf.decode(scores)[0].column("tag"))
    3
    """

    # -- learning

    @outside_graphs
    def forward(
        self,
        scores: Any,
        labels: Any,
        mask: Any = None,
        lengths: Any = None,
        reduction: str = "mean",
        sample_weight: Any = None,
        margin: float | Mapping[str, float] = 0.0,
    ) -> torch.Tensor:
        """Return the loss: log Z minus the log mass of all configurations that agree with the labels.

        Parameters
        ----------
        scores : tensor (B, T, size) or dict
        labels : list, or dict of tensors (B, T)
            Complete or partial labels, see the class.
        mask : bool tensor (B, T), optional
        lengths : integers (B,), optional
        reduction : {"mean", "sum", "token_mean", "none"}
            The mean over sequences (weighted, if there are weights), their sum, the sum divided by the number of
            steps, or the loss of each sequence (B,).
        sample_weight : (B,) finite numbers, optional
        margin : float or dict from level to float
            Cost of each wrong state, by level; added to the scores of wrong states (softmax-margin).

        Returns
        -------
        tensor
            A number of at least zero without margin, or (B,).

        Raises
        ------
        InfeasibleError
            No configuration agrees with the labels of a sequence.
        ValueError
            Something does not fit, or a score is NaN or +inf.
        """
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; expected one of {', '.join(map(repr, REDUCTIONS))}")
        read = self._read(scores, mask, lengths)
        weights = checked_batch_weights(sample_weight, read.frame.rows)
        target = read_target(self._kept, self.topology, read.frame, labels)
        ratio = self._ratio(read, target, margin)
        losses = self._mass(read, ratio, target, "labels", None if reduction == "none" else weights)
        if weights is None and reduction == "mean":
            return losses.mean()
        if weights is not None:
            losses = losses * torch.from_numpy(weights).to(losses)
        if reduction == "none":
            return losses
        total = losses.sum()
        if reduction == "sum":
            return total
        each = read.frame.lengths if reduction == "token_mean" else np.ones(len(losses))
        share = float((each if weights is None else weights * each).sum())
        if share == 0.0:
            raise ValueError(f"the weights add up to 0; expected another sum for reduction={reduction!r}")
        return total / share

    def _ratio(self, read: Scores, target: Target, margin: Any) -> Ratio:
        offsets = read.frame.offsets
        costs = {}
        if checked_margin(margin) != 0.0:
            costs = {d: hidden_costs(self.topology, d, own) for d, own in equal_costs(self.topology, margin).items()}
        if target.is_complete:
            path = target.path
            free = Partition(self.topology, offsets, costs=costs_of_steps(costs, path.known), n_jobs=self.n_jobs)
            return Ratio(free, path)
        evidence = target.evidence("labels")
        free = Partition(self.topology, offsets, costs=costs_of_steps(costs, evidence), n_jobs=self.n_jobs)
        return Ratio(free, Partition(self.topology, offsets, evidence, n_jobs=self.n_jobs))

    # -- inference

    @outside_graphs
    def log_partition(self, scores: Any, mask: Any = None, lengths: Any = None, evidence: Any = None) -> torch.Tensor:
        """Return log Z (B,) of each sequence, of all configurations that agree with the evidence; differentiable.

        Parameters
        ----------
        scores, mask, lengths
            As in :meth:`forward`.
        evidence : list, or dict of tensors, optional
            What is known, in the forms of labels.

        Returns
        -------
        tensor (B,)

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> crf.log_partition(torch.zeros(1, 3, 2)).exp().round().tolist()
        [8.0]
        """
        read = self._read(scores, mask, lengths)
        target, partition = self._partition(read, evidence)
        return self._mass(read, Ratio(partition), target)

    @outside_graphs
    def marginals(
        self, scores: Any, mask: Any = None, lengths: Any = None, evidence: Any = None, differentiable: bool = False
    ) -> TensorMarginals:
        """Return posterior probabilities of states and endings.

        Parameters
        ----------
        scores, mask, lengths, evidence
            As in :meth:`log_partition`.
        differentiable : bool, default False
            Whether gradients flow through the probabilities (by differences of expected counts).

        Returns
        -------
        TensorMarginals
            ``log_partition`` (B,), ``state[level]`` (B, T, S), ``ending[level]`` (B, T).

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> crf.marginals(torch.tensor([[[0.0, 1.0]]])).state["tag"].round(decimals=3).tolist()
        [[[0.26899999380111694, 0.7310000061988831]]]
        """
        read = self._read(scores, mask, lengths)
        target, partition = self._partition(read, evidence)
        levels, like = self.topology.levels, read.tensors[0]
        dtype = result_dtype(read.tensors)
        if differentiable and torch.is_grad_enabled():
            return self._differentiable_marginals(read, target, partition)
        arrays = self._arrays(read)
        found = partition.expectations(arrays, None)
        self._require(read, arrays, target, found.log_z)

        def padded(array: Floats) -> torch.Tensor:
            return read.frame.pad(torch.from_numpy(np.ascontiguousarray(array)).to(like.device, dtype))

        state = {level: padded(summed(self.topology, d, found.state[d])) for d, level in enumerate(levels)}
        ending = {level: padded(row) for level, row in zip(levels, found.ending, strict=True)}
        return TensorMarginals(torch.from_numpy(found.log_z).to(like.device, dtype), state, ending)

    def _differentiable_marginals(self, read: Scores, target: Target | None, partition: Partition) -> TensorMarginals:
        """Marginals as the gradient of log Z: of tokens for states, of last steps for endings."""
        like, dtype = read.tensors[0], result_dtype(read.tensors)
        probes = {}
        for d, size in enumerate(expanded(self.topology).n_states):
            for part in ("token", "stop"):
                probes[part, d] = torch.zeros(read.frame.steps, size, device=like.device, dtype=dtype)
                probes[part, d].requires_grad_()
        values = {key: probe + read.values[key] if key in read.values else probe for key, probe in probes.items()}
        values |= {key: value for key, value in read.values.items() if key not in probes}
        log_z = self._mass(Scores(read.frame, values), Ratio(partition), target)
        found = torch.autograd.grad(log_z.sum(), list(probes.values()), create_graph=True)
        counts, levels = dict(zip(probes, found, strict=True)), self.topology.levels
        state = {
            level: read.frame.pad(summed_states(self.topology, d, counts["token", d])) for d, level in enumerate(levels)
        }
        ending = {level: read.frame.pad(counts["stop", d].sum(dim=1)) for d, level in enumerate(levels)}
        return TensorMarginals(log_z, state, ending)

    @outside_graphs
    def entropy(self, scores: Any, mask: Any = None, lengths: Any = None, evidence: Any = None) -> torch.Tensor:
        """Return the entropy (B,) in nats of each posterior; differentiable once.

        Parameters
        ----------
        scores, mask, lengths, evidence
            As in :meth:`log_partition`.

        Returns
        -------
        tensor (B,)

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> crf.entropy(torch.zeros(1, 3, 2)).round(decimals=3).tolist()
        [2.0789999961853027]
        """
        read = self._read(scores, mask, lengths)
        target, partition = self._partition(read, evidence)
        return self._mass(read, Ratio(partition), target, function=Entropy)

    @outside_graphs
    def decode(self, scores: Any, mask: Any = None, lengths: Any = None, evidence: Any = None) -> list[Labels]:
        """Return the best labels of each sequence; what the evidence fixes is kept.

        Parameters
        ----------
        scores, mask, lengths, evidence
            As in :meth:`log_partition`.

        Returns
        -------
        list of Labels
            Each as long as its sequence, with the log score as ``score``.

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> crf.decode(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]))[0].column("tag")
        ['V', 'N']
        """
        read = self._read(scores, mask, lengths)
        target, partition = self._partition(read, evidence)
        arrays = self._arrays(read)
        states, ends, best = partition.best(arrays)
        self._require(read, arrays, target, best)
        states = shown(self.topology, states)
        states.flags.writeable = ends.flags.writeable = False
        bounds = read.frame.offsets.tolist()
        return [
            Labels.unchecked(self.topology, states[:, a:b], ends[:, a:b], score)
            for a, b, score in zip(bounds[:-1], bounds[1:], best.tolist(), strict=True)
        ]

    @outside_graphs
    def k_best(
        self, scores: Any, k: int, mask: Any = None, lengths: Any = None, evidence: Any = None
    ) -> list[list[Labels]]:
        """Return the k best labellings of each sequence in order of their score, fewer if there are fewer.

        Parameters
        ----------
        scores, mask, lengths, evidence
            As in :meth:`log_partition`.
        k : int
            How many.

        Returns
        -------
        list of lists of Labels

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> [y.column("tag") for y in crf.k_best(torch.tensor([[[0.0, 1.0]]]), 2)[0]]
        [['V'], ['N']]
        """
        check_count("k", k)
        found = []
        for n, posterior in enumerate(self.posteriors(scores, mask, lengths, evidence)):
            try:
                found.append(posterior.k_best(k))
            except InfeasibleError as error:
                raise error.of_sequence(n, "scores" if evidence is None else "evidence") from None
        return found

    @outside_graphs
    def sample(
        self,
        scores: Any,
        n: int = 1,
        random_state: Any = None,
        mask: Any = None,
        lengths: Any = None,
        evidence: Any = None,
    ) -> list[list[Labels]]:
        """Draw n exact and independent labellings of each sequence from its posterior.

        Parameters
        ----------
        scores, mask, lengths, evidence
            As in :meth:`log_partition`.
        n : int, default 1
            Draws for each sequence.
        random_state : int, Generator of NumPy or PyTorch, or None
            Seed; None takes one from PyTorch's generator, so that ``torch.manual_seed`` reproduces the draws.

        Returns
        -------
        list of lists of Labels

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> [y.column("tag") for y in crf.sample(torch.tensor([[[99.0, 0.0]]]), 2)[0]]
        [['N'], ['N']]
        """
        check_count("n", n)
        if random_state is None or isinstance(random_state, torch.Generator):
            random_state = int(torch.randint(2**63 - 1, (), generator=random_state))
        read = self._read(scores, mask, lengths)
        target, partition = self._partition(read, evidence)
        arrays = self._arrays(read)
        states, ends, log_z = partition.draw(arrays, n, generator(random_state))
        self._require(read, arrays, target, log_z)
        states = shown(self.topology, states)
        states.flags.writeable = ends.flags.writeable = False
        bounds = read.frame.offsets.tolist()
        return [
            [Labels.unchecked(self.topology, states[k, :, a:b], ends[k, :, a:b]) for k in range(n)]
            for a, b in itertools.pairwise(bounds)
        ]

    @outside_graphs
    def posteriors(self, scores: Any, mask: Any = None, lengths: Any = None, evidence: Any = None) -> list[Posterior]:
        """Return the posterior of each sequence, for the questions that :mod:`hscrf` answers about one sequence.

        Parameters
        ----------
        scores, mask, lengths, evidence
            As in :meth:`log_partition`.

        Returns
        -------
        list of hscrf.inference.Posterior

        Examples
        --------
        >>> from hscrf import Topology
        >>> crf = CRF(Topology({"tag": ["N", "V"]}))
        >>> round(crf.posteriors(torch.zeros(1, 3, 2))[0].log_partition, 4)
        2.0794
        """
        read = self._read(scores, mask, lengths)
        arrays = self._arrays(read)
        target = None if evidence is None else read_target(self._kept, self.topology, read.frame, evidence, "evidence")
        return [self._posterior(read, arrays, target, n) for n in range(read.frame.rows)]
