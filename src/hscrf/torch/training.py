"""Training of a network by gradients: shuffled batches, early stopping on development data, the best epoch kept."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from hscrf.arrays import Floats

CLIP = 5.0  # the largest norm of a gradient
LONGEST_AVERAGE = 200  # steps of training that weights are averaged over, at most
HIDDEN = 0.5  # share of words that occur once which are read as unknown in training


class Schedule(NamedTuple):
    """How long and how fast to train."""

    epochs: int
    batch_size: int
    learning_rate: float
    patience: int
    verbose: int


class TrainingOutcome(NamedTuple):
    """What training came to."""

    loss: float  # mean over the sequences, in the epoch that was kept
    history: list[dict[str, Any]]
    best: int | None  # the epoch that was kept, counted from 1; None if there are no development data
    reason: str
    converged: bool


class WeightAverage:
    """Running averages of the parameters of a network, over about the last two epochs.

    Averages give better labels than the last weights, and scores that vary less from epoch to epoch. ``steps`` is the
    number of steps in an epoch.
    """

    def __init__(self, network: Any, steps: int) -> None:
        self.parameters = list(network.parameters())
        self.averages = [parameter.detach().clone() for parameter in self.parameters]
        self.decay, self.updates = 1 - 1 / min(2 * steps, LONGEST_AVERAGE), 0

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step. The first steps are averaged with equal weights, almost."""
        self.updates += 1
        share = (1 - self.decay) / (1 - self.decay**self.updates)
        for average, parameter in zip(self.averages, self.parameters, strict=True):
            average.lerp_(parameter, share)

    def assign(self) -> None:
        """Give the averages to the network."""
        self._set(self.averages)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The network has the averages inside of a ``with`` block, and its own weights again afterwards."""
        own = [parameter.detach().clone() for parameter in self.parameters]
        self.assign()
        try:
            yield
        finally:
            self._set(own)

    @torch.no_grad()
    def _set(self, weights: Sequence[Any]) -> None:
        for parameter, weight in zip(self.parameters, weights, strict=True):
            parameter.copy_(weight)


class Trainer:
    """Trains a network and its layer.

    ``step`` gives the loss of a batch of sequence numbers as the mean over its sequences, ``evaluate`` a score of
    development data and its loss, or None. The better score wins, then the lower loss. Evaluated and kept are the
    averages of the weights (:class:`WeightAverage`).
    """

    def __init__(
        self,
        network: Any,
        step: Callable[[Sequence[int]], Any],
        evaluate: Callable[[], tuple[float, float]] | None,
        schedule: Schedule,
        seed: int,
    ) -> None:
        self.network, self.step, self.evaluate, self.schedule = network, step, evaluate, schedule
        self.random = np.random.default_rng(seed)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=schedule.learning_rate)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[float, float] | None = None
        self.kept: dict[str, Any] = {}
        self.kept_epoch: int | None = None

    def run(self, lengths: Sequence[int]) -> TrainingOutcome:
        """Train until patience or epochs are over; Ctrl-C keeps the best epoch so far."""
        reason, converged = f"{self.schedule.epochs} epochs", False
        self.average = WeightAverage(self.network, math.ceil(len(lengths) / self.schedule.batch_size))
        try:
            for epoch in range(1, self.schedule.epochs + 1):
                self._epoch(epoch, lengths)
                if self.kept_epoch is not None and epoch - self.kept_epoch >= self.schedule.patience:
                    reason = f"no better score for {self.schedule.patience} epochs"
                    converged = True
                    break
        except KeyboardInterrupt:
            reason = "interrupted"
        if self.kept:
            self.network.load_state_dict(self.kept)
        else:
            self.average.assign()
        kept = self.history[self.kept_epoch - 1] if self.kept_epoch else (self.history or [{"loss": float("nan")}])[-1]
        return TrainingOutcome(kept["loss"], self.history, self.kept_epoch, reason, converged)

    def _epoch(self, epoch: int, lengths: Sequence[int]) -> None:
        begin, total = time.perf_counter(), 0.0
        self.network.train()
        for which in batches_by_length(self.random, lengths, self.schedule.batch_size):
            loss = self.step(which)
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} in epoch {epoch}: a smaller learning_rate may help")
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), CLIP)
            self.optimizer.step()
            self.average.update()
            total += loss.item() * len(which)
        entry: dict[str, Any] = {"iteration": epoch, "loss": total / len(lengths)}
        if self.evaluate is not None:
            self.network.eval()
            with self.average.applied():
                score, dev_loss = self.evaluate()
                entry |= {"score": score, "dev_loss": dev_loss}
                if self.best is None or (score, -dev_loss) > self.best:
                    self.best, self.kept_epoch = (score, -dev_loss), epoch
                    self.kept = copy.deepcopy(self.network.state_dict())
        entry["seconds"] = time.perf_counter() - begin
        self.history.append(entry)
        if self.schedule.verbose:
            print(epoch_line(entry), file=sys.stderr, flush=True)


def epoch_line(entry: dict[str, Any]) -> str:
    """A line about an epoch."""
    score = f"  dev {entry['score']:.4f}" if "score" in entry else ""
    return f"epoch {entry['iteration']:3d}  loss {entry['loss']:10.4f}{score}  {entry['seconds']:.1f} s"


def batches_by_length(random: np.random.Generator, lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Sequence numbers in random batches; sequences of similar lengths are put together, so that little is padding."""
    noise: Floats = np.asarray(lengths) * random.uniform(0.8, 1.25, len(lengths))
    order = np.argsort(noise, kind="stable")
    cuts = [order[k : k + size].tolist() for k in range(0, order.size, size)]
    return (cuts[k] for k in random.permutation(len(cuts)))
