"""Count the sequences evaluated in this process, and those that needed logarithms."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple


class Tally(NamedTuple):
    """Evaluations of sequences: log Z, with or without counts.

    ``affected`` counts sequences instead: for each batch the most that needed logarithms in one evaluation.
    """

    sequences: int = 0
    in_logarithms: int = 0
    affected: int = 0

    def since(self, before: Tally) -> Tally:
        """The difference from an earlier tally.

        >>> Tally(7, 2, 1).since(Tally(4, 1, 1))
        Tally(sequences=3, in_logarithms=1, affected=0)
        """
        return Tally(*(now - then for now, then in zip(self, before, strict=True)))


class Counter:
    """A tally that threads add to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.total = Tally()
        self._told: Callable[[], None] | None = None

    def on_logarithms(self, told: Callable[[], None] | None) -> None:
        """Call ``told`` after each evaluation that needed logarithms; None ends this."""
        self._told = told

    def add(self, sequences: int, in_logarithms: int, affected: int = 0) -> None:
        """Count some evaluations; ``affected``: sequences of their batch that had not needed logarithms before."""
        with self.lock:
            before = self.total
            self.total = Tally(
                before.sequences + sequences, before.in_logarithms + in_logarithms, before.affected + affected
            )
        told = self._told
        if in_logarithms and told is not None:
            told()


COUNTER = Counter()
