"""Bad sequences: raise an error, or leave them out and count them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

MOST_MESSAGES = 20  # number of messages that are kept
Item = TypeVar("Item")


@dataclass
class Problems:
    """The problems of sequences: the first one is raised or, with ``skip``, all are counted."""

    skip: bool = False
    count: int = 0
    messages: list[str] = field(default_factory=list)  # the first messages

    def refuse(self, error: Exception) -> None:
        """Raise the error of a bad sequence, or count the sequence as left out."""
        if not self.skip:
            raise error from None
        self.note(error)

    def note(self, error: Exception) -> None:
        """Count a sequence that was left out."""
        self.count += 1
        if len(self.messages) < MOST_MESSAGES:
            self.messages.append(str(error))

    def add(self, other: Problems) -> None:
        """Add the problems of later sequences."""
        self.count += other.count
        self.messages += other.messages[: MOST_MESSAGES - len(self.messages)]


def without_bad(
    items: Sequence[Item],
    problem_of: Callable[[Item], Exception | None],
    refuse: Callable[[Item, Exception], object],
    error: Exception,
) -> list[Item]:
    """The good items of a batch that failed with ``error``; ``refuse`` is called with each bad item.

    Raises ``error`` if each item is good by itself.
    """
    good = []
    for item in items:
        problem = problem_of(item)
        if problem is None:
            good.append(item)
        else:
            refuse(item, problem)
    if len(good) == len(items):
        raise error
    return good
