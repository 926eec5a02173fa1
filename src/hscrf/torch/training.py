"""Training of a network by gradients: shuffled batches, a rate that falls to zero, the best epoch kept."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from hscrf.arrays import Floats

CLIP = 5.0  # the largest norm of a gradient
EPOCHS, LEAST_STEPS = 20, 500  # epochs if their number is not given, and steps of training that they make at least
HIDDEN = 0.5  # share of words that occur once which are read as unknown in training


class Schedule(NamedTuple):
    """How long and how fast to train."""

    epochs: int | None
    batch_size: int
    learning_rate: float
    patience: int
    verbose: int


class TrainingOutcome(NamedTuple):
    """The result of training."""

    loss: float  # mean over the sequences, in the epoch that was kept
    history: list[dict[str, Any]]
    best: int | None  # the epoch that was kept, counted from 1; None if there are no development data
    reason: str
    converged: bool  # not interrupted


class Trainer:
    """Trains a network and its layer by Adam, at a rate that falls to zero in equal steps.

    ``step`` gives the loss of a batch of sequence numbers as the mean over its sequences, ``evaluate`` a score of
    development data and its loss, or None. The epoch with the best score is kept, of equal ones that with the lowest
    loss; without development data it is the last one.
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
        self.optimizer = torch.optim.Adam(network.parameters(), lr=schedule.learning_rate, fused=True)
        self.history: list[dict[str, Any]] = []
        self.best: tuple[float, float] | None = None
        self.kept: dict[str, Any] = {}
        self.kept_epoch: int | None = None

    def run(self, lengths: Sequence[int]) -> TrainingOutcome:
        """Train until patience or epochs are over; Ctrl-C keeps the best epoch so far."""
        steps = math.ceil(len(lengths) / self.schedule.batch_size)  # in an epoch
        epochs = self.schedule.epochs or max(EPOCHS, math.ceil(LEAST_STEPS / steps))
        self.rate = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.0, epochs * steps)
        reason = f"{epochs} epochs"
        try:
            for epoch in range(1, epochs + 1):
                self._epoch(epoch, lengths)
                if self.kept_epoch is not None and epoch - self.kept_epoch >= self.schedule.patience:
                    reason = f"no better score for {self.schedule.patience} epochs"
                    break
        except KeyboardInterrupt:
            reason = "interrupted"
        if self.kept:
            self.network.load_state_dict(self.kept)
        kept = self.history[self.kept_epoch - 1] if self.kept_epoch else (self.history or [{"loss": float("nan")}])[-1]
        return TrainingOutcome(kept["loss"], self.history, self.kept_epoch, reason, reason != "interrupted")

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
            self.rate.step()
            total += loss.item() * len(which)
        entry: dict[str, Any] = {"iteration": epoch, "loss": total / len(lengths)}
        if self.evaluate is not None:
            self.network.eval()
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
