"""How many sequences were evaluated in this process, and how many of them scaled numbers could not hold."""

from __future__ import annotations

import threading
from typing import NamedTuple


class Tally(NamedTuple):
    """Evaluations of sequences: log Z, with or without counts."""

    sequences: int = 0
    in_logarithms: int = 0

    def since(self, before: Tally) -> Tally:
        """What was added since another tally.

        >>> Tally(7, 2).since(Tally(4, 1))
        Tally(sequences=3, in_logarithms=1)
        """
        return Tally(self.sequences - before.sequences, self.in_logarithms - before.in_logarithms)


class Counter:
    """A tally that threads add to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.total = Tally()

    def add(self, sequences: int, in_logarithms: int) -> None:
        """Count some evaluations."""
        with self.lock:
            self.total = Tally(self.total.sequences + sequences, self.total.in_logarithms + in_logarithms)


COUNTER = Counter()
