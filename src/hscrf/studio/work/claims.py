"""Which browser edits which sequence: the first that opens one holds it, others only read it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

LEAVE = 10.0  # seconds after the last page of a browser has closed, until what it held is free


class Held(Exception):
    """A sequence is edited in another browser; ``by`` is the name of its person."""

    def __init__(self, by: str) -> None:
        super().__init__(f"{by or 'another browser'} is working on this sequence: it can only be read here until then")
        self.by = by


@dataclass
class _Browser:
    name: str
    pages: int = 0  # that listen to the news
    left: float = 0.0  # when the last one closed


class Claims:
    """The sequence that each browser has open.

    A browser is known by the key of its cookie. It holds the sequence it opened last, until it opens another one, or
    for some seconds after its last page was closed. Keys are "" where there is only one browser: nothing is held then.

    >>> claims = Claims()
    >>> claims.arrive("a", "Ann"), claims.arrive("b", "Bob")
    (None, None)
    >>> claims.open(1, "a"), claims.open(1, "b"), claims.holder(1, "b")
    (None, None, 'Ann')
    >>> claims.open(2, "a"), claims.open(1, "b"), claims.holder(1, "a")
    ([1], None, 'Bob')
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._guard = threading.Lock()
        self._browsers: dict[str, _Browser] = {}
        self._held: dict[int, str] = {}  # sequence -> key
        self._now = now

    def arrive(self, key: str, name: str) -> None:
        """A page of a browser listens."""
        with self._guard:
            browser = self._browsers.setdefault(key, _Browser(name))
            browser.pages, browser.name = browser.pages + 1, name

    def depart(self, key: str) -> None:
        """A page of a browser listens no more."""
        with self._guard:
            browser = self._browsers.get(key)
            if browser is not None:
                browser.pages, browser.left = max(0, browser.pages - 1), self._now()

    def open(self, sequence: int, key: str, name: str | None = None) -> list[int] | None:
        """Open a sequence and hold it, unless another browser does; the sequences that became free, or None."""
        if not key:
            return None
        with self._guard:
            browser = self._browsers.setdefault(key, _Browser(name or "", left=self._now()))
            if name is not None:
                browser.name = name
            if not browser.pages:
                browser.left = self._now()
            freed = [n for n, holder in self._held.items() if holder == key and n != sequence]
            for n in freed:
                del self._held[n]
            if self._holder(sequence) in (None, key):
                self._held[sequence] = key
            return freed or None

    def holder(self, sequence: int, key: str) -> str | None:
        """The name of another person who holds a sequence; None if it may be edited."""
        with self._guard:
            holder = self._holder(sequence)
            return None if holder in (None, key) or not key else self._browsers[holder].name or "another browser"

    def check(self, sequence: int, key: str) -> None:
        """Raise :class:`Held` if another browser holds a sequence."""
        by = self.holder(sequence, key)
        if by is not None:
            raise Held(by)

    def held_by_others(self, key: str) -> dict[int, str]:
        """The sequences that others hold, with their names."""
        with self._guard:
            sequences = list(self._held)
        found = {n: self.holder(n, key) for n in sequences}
        return {n: name for n, name in found.items() if name is not None}

    def _holder(self, sequence: int) -> str | None:
        """The key that holds a sequence, unless its browser has left."""
        key = self._held.get(sequence)
        if key is None:
            return None
        browser = self._browsers[key]
        if not browser.pages and self._now() - browser.left > LEAVE:
            del self._held[sequence]
            return None
        return key
