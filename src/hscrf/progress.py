"""Show progress during long operations."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from threading import Event, Thread
from typing import Any, TextIO

AFTER, EVERY = 1.0, 0.2  # seconds before progress is shown, and between two checks of the clock


def is_live(stream: TextIO) -> bool:
    """Whether a carriage return writes over a line: in terminals and notebooks, not in files."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


class Waiting:
    """A line during an operation of more than a second: its name, a count if there is one, and seconds.

    Terminals and notebooks show one live line. Elsewhere nothing is shown or, with ``plain``, a line after the first
    second and one in the end.
    """

    def __init__(self, what: str, stream: TextIO | None = None, plain: bool = False) -> None:
        self.what, self.stream = what, stream or sys.stderr
        self.plain = plain
        self.count = 0
        self.begin = time.monotonic()
        self.over = Event()
        self.thread: Thread | None = None
        self.width = 0

    def __enter__(self) -> Waiting:
        if self.plain or is_live(self.stream):
            self.thread = Thread(target=self._tick, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def _tick(self) -> None:
        if self.over.wait(AFTER):
            return
        live = is_live(self.stream)
        if not live:
            self._write(f"{self.what} ...\n")
        while not self.over.wait(EVERY):
            if live:
                self._write(f"\r{self._line().ljust(self.width)}")
        self._write(f"\r{self._line().ljust(self.width)}\n" if live else f"{self._line()}\n")

    def _line(self) -> str:
        seconds = time.monotonic() - self.begin
        done = f"{self.count} sequences, {self.count / seconds:.0f} per second, " if self.count else ""
        return f"{self.what}: {done}{seconds:.0f} s "

    def _write(self, text: str) -> None:
        self.width = max(self.width, len(text.strip("\r\n")))
        self.stream.write(text)
        self.stream.flush()


def waiting(what: str, verbose: int) -> AbstractContextManager[Any]:
    """A :class:`Waiting` if ``verbose`` is 1, else a context that shows nothing."""
    return Waiting(what, plain=True) if verbose == 1 else nullcontext()
