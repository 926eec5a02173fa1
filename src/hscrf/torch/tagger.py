"""A ready tagger: an encoder for words or numbers, the nested layer on top, fit and predict."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from sklearn.base import BaseEstimator

from hscrf import metrics
from hscrf.arrays import Floats, generator
from hscrf.labels.given import given_labels
from hscrf.labels.induction import LabelStatistics
from hscrf.labels.labels import Labels
from hscrf.labels.packed import FillerNeighbours
from hscrf.labels.reading import over
from hscrf.labels.schemes import schemes_in
from hscrf.observations.readers import length_of
from hscrf.topology import Topology
from hscrf.torch.crf import CRF
from hscrf.torch.inputs import Inputs
from hscrf.torch.options import Design, check_data, check_development, check_tagger_options, design_of, network_for
from hscrf.torch.predicting import NeuralPredictor, numbered
from hscrf.torch.training import HIDDEN, Schedule, Trainer

Self = TypeVar("Self", bound="Tagger")


class Tagger(BaseEstimator, NeuralPredictor):
    """A neural tagger of nested labels: encoder, linear map, :class:`CRF`; in the manner of scikit-learn.

    Words are read by embeddings, a convolution over their characters and a BiLSTM; numbers by a temporal convolution
    and a BiLSTM behind it. The BiLSTM of words also sees what each word begins and ends with, and its shape. The
    features that linear models have by default add scores of their own (:class:`FeatureScores`). Training is by Adam on
    batches of sequences, at a learning rate that falls to zero. It leaves out parts of what it reads, and scales each
    column of numbers at random (:class:`ColumnEmbedding`), so that small data are not learned by heart.

    Parameters
    ----------
    encoder : {"auto", "bilstm", "tcn"}
        What reads a sequence: a BiLSTM, or a temporal convolution with a BiLSTM behind it. "auto" takes the convolution
        if there are only numbers.
    topology : Topology, optional
        Levels, states and rules; learned from the labels if not given.
    parts : sequence of str, or dict, default ("token", "start", "stop")
        What the encoder scores, see :class:`CRF`.
    durations : dict from level to int, or list of levels, optional
        Levels with a score for each duration, see :class:`CRF`.
    max_duration : dict from level to int, optional
        Longest segments of some levels.
    fillers : "auto" (default), None, or dict from level to states
        States that remember the last other state before them (:mod:`hscrf.fillers`). "auto" takes states named "O" if
        the training labels show that memory pays; it makes the layer slower.
    scheme : str or dict, default "auto"
        How label columns are written: "plain", "bio" or "bioes".
    children : {"auto", "seen", "all"}
        Which children a parent may have: those that training shows, or all.
    hidden : int, optional
        Units of each direction of the BiLSTM (default 100), or channels of the convolution (default 64); the BiLSTM
        behind it has twice as many units.
    layers : int, optional
        Layers of the BiLSTM (default 1) or blocks of the convolution (default 5).
    word_size, character_size : int
        Widths of the embeddings of words and of characters.
    dropout : float, optional
        Default 0.4; the same components in all steps of a sequence.
    min_count : int, default 1
        Words that occur less often are unknown.
    margin : float or dict from level to float
        Cost of wrong states in training, see :meth:`CRF.forward`.
    learning_rate : float, default 0.002
        The rate at the beginning.
    batch_size : int, default 16
        Sequences in a step of training.
    epochs : int, optional
        Passes over the training data: by default 20, or more if they make fewer than 500 steps.
    patience : int, default 10
        Epochs without a better development score before training stops.
    device : str, default "cpu"
        Where the encoder works.
    n_jobs : int, default 1
        Threads of the layer. PyTorch has a setting of its own: ``torch.set_num_threads``.
    random_state : int, Generator or None
        Seed. The same seed gives the same model on the same CPU with the same number of threads.
    verbose : int, default 0
        1 prints a line for each epoch.

    Attributes
    ----------
    topology_, inputs_, design_ (sizes of the encoder), network_ (the encoder), crf_, scheme_ : what was learned
    history_, n_iter_, best_iter_, loss_, converged_, stop_reason_ : how training went

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["dogs", "bark"]] * 4
    >>> Y = [{"phrase": ["NP", "NP", "VP"], "tag": ["D", "N", "V"]}, {"phrase": ["NP", "VP"], "tag": ["N", "V"]}] * 4
    >>> model = Tagger(hidden=8, epochs=30, random_state=0).fit(X, Y)
    >>> model.predict([["the", "cat", "sleeps"]])[0].tree()
    [('NP', ['D', 'N']), ('VP', ['V'])]
    """

    topology_: Topology
    inputs_: Inputs
    design_: Design
    network_: Any
    crf_: CRF
    scheme_: Any
    history_: list[dict[str, Any]]

    def __init__(
        self,
        encoder: str = "auto",
        *,
        topology: Topology | None = None,
        parts: Any = ("token", "start", "stop"),
        durations: Any = None,
        max_duration: Mapping[str, int] | None = None,
        fillers: Any = "auto",
        scheme: Any = "auto",
        children: str = "auto",
        hidden: int | None = None,
        layers: int | None = None,
        word_size: int = 50,
        character_size: int = 30,
        dropout: float | None = None,
        min_count: int = 1,
        margin: float | Mapping[str, float] = 0.0,
        learning_rate: float = 2e-3,
        batch_size: int = 16,
        epochs: int | None = None,
        patience: int = 10,
        device: str = "cpu",
        n_jobs: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.encoder = encoder
        self.topology = topology
        self.parts = parts
        self.durations = durations
        self.max_duration = max_duration
        self.fillers = fillers
        self.scheme = scheme
        self.children = children
        self.hidden = hidden
        self.layers = layers
        self.word_size = word_size
        self.character_size = character_size
        self.dropout = dropout
        self.min_count = min_count
        self.margin = margin
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- learning

    def fit(self: Self, X: Sequence[Any], Y: Any, sample_weight: Any = None, development: Any = None) -> Self:
        """Learn from sequences and their labels, complete or partial.

        Parameters
        ----------
        X : list of sequences
            Lists of words, of dicts of strings and numbers, or of lists of strings; arrays (T, F); DataFrames.
        Y : list of labels
            What :meth:`hscrf.HSCRF.fit` takes: Labels, dicts of columns or segments by level, lists.
        sample_weight : (n,) numbers, optional
            Weight of each sequence.
        development : (X, Y), optional
            Data that are scored after each epoch; the best epoch is kept.

        Returns
        -------
        Tagger
            This object. Ctrl-C ends training and keeps the best epoch so far, or the last one.
        """
        check_tagger_options(self.get_params())
        Y = given_labels(Y)
        weights = check_data(X, Y, sample_weight)
        if development is not None:
            check_development(development)
        inputs = Inputs(self.min_count).fit(X)
        scheme = schemes_in(Y, self.scheme, self.topology)
        topology, labels = self._labels(Y, [length_of(x) for x in X], scheme)
        seed = int(generator(self.random_state).integers(2**63 - 1))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            crf = CRF(topology, self.parts, self.durations, n_jobs=self.n_jobs)
            self.design_ = design_of(self.get_params(), inputs)
            network = network_for(self.design_, inputs, crf.size).to(self.device)
            crf.to(self.device)
            self.topology_, self.inputs_, self.scheme_ = topology, inputs, scheme
            self.network_, self.crf_ = network, crf
            evaluate = None if development is None else self._evaluator(*development)
            self._train(X, labels, weights, evaluate, seed)
        return self

    def _labels(self, Y: Sequence[Any], lengths: Sequence[int], scheme: Any) -> tuple[Topology, list[Labels]]:
        """The topology, learned or given, and the labels over it."""
        limited = {*(self.max_duration or ()), *(self.durations or ())}
        statistics = LabelStatistics(self.topology, scheme, limited, children=self.children)
        labels = statistics.update(Y, lengths)
        topology = statistics.topology()
        if self.max_duration:
            topology = topology.limited(self.max_duration)
        neighbours = FillerNeighbours()
        neighbours.update(labels)
        topology = neighbours.remembering(topology, self.fillers)
        return topology, over(labels, topology)

    def _train(
        self,
        X: Sequence[Any],
        labels: Sequence[Labels],
        weights: Floats | None,
        evaluate: Callable[[], tuple[float, float]] | None,
        seed: int,
    ) -> None:
        items = self.inputs_.encode(X)
        chance = torch.Generator().manual_seed(seed)

        def step(which: Sequence[int]) -> Any:
            batch = self.inputs_.batch([items[n] for n in which])
            if "names" in batch:
                batch["names"] = self.inputs_.hide_rare(batch["names"], HIDDEN, chance)
            scores, lengths = self._scores(batch)
            own = None if weights is None else weights[which]
            with numbered(which, "Y"):
                loss = self.crf_(scores, [labels[n] for n in which], None, lengths, "sum", own, self.margin)
            return loss / len(which)

        schedule = Schedule(self.epochs, self.batch_size, self.learning_rate, self.patience, self.verbose)
        network = torch.nn.ModuleDict({"encoder": self.network_, "crf": self.crf_})
        outcome = Trainer(network, step, evaluate, schedule, seed).run([length_of(x) for x in X])
        network.eval()
        self.loss_, self.history_, self.best_iter_ = outcome.loss, outcome.history, outcome.best
        self.stop_reason_, self.converged_, self.n_iter_ = outcome.reason, outcome.converged, len(outcome.history)

    def _evaluator(self, X: Sequence[Any], Y: Any) -> Callable[[], tuple[float, float]]:
        """What scores development data: the share of steps that are right at all levels, and the loss."""
        items = self.inputs_.encode(X)
        truth = self._read_to_score(given_labels(Y, self.topology_.levels[1:]), X, "development Y")
        known = self._possible(truth)[1]

        @torch.no_grad()
        def evaluate() -> tuple[float, float]:
            found, total = [], 0.0
            for which, batch in self._batches(items):
                scores, lengths = self._scores(batch)
                with numbered(which, "development labels"):
                    found += list(zip(which, self.crf_.decode(scores, lengths=lengths), strict=True))
                    total += self.crf_(scores, [known[n] for n in which], lengths=lengths, reduction="sum").item()
            best = [labels for _, labels in sorted(found, key=lambda pair: pair[0])]
            return float(metrics.joint_accuracy(truth, best)), total / len(items)

        return evaluate

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file: tensors in the safetensors format, all else as JSON in its header.

        Parameters
        ----------
        path : str or path
        """
        from hscrf.torch.files import save

        self._check_fitted()
        save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tagger:
        """Read a model that :meth:`save` wrote. Nothing in the file is executed.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Tagger
        """
        from hscrf.torch.files import load

        return load(path)[0]
