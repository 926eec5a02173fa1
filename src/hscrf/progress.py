"""What is going on, said where one waits for it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO

AFTER, EVERY = 1.0, 0.2  # seconds until a word is said, and between two looks at the clock


def is_live(stream: TextIO) -> bool:
    """Whether a carriage return writes over a line: in terminals and notebooks, not in files."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")


class Waiting:
    """A line while something takes longer than a second: what it is, a count if there is one, and seconds.

    Terminals and notebooks show one live line. Elsewhere nothing is shown or, with ``plain``, a line after the first
    second, one when kernels begin to be compiled, and one in the end.
    """

    def __init__(self, what: str, stream: TextIO | None = None, plain: bool = False) -> None:
        self.what, self.stream = what, stream or sys.stderr
        self.plain = plain
        self.count = 0
        self.begin = time.monotonic()
        self.over = threading.Event()
        self.compilation = Compilation()
        self.thread: threading.Thread | None = None
        self.width = 0

    def __enter__(self) -> Waiting:
        if self.plain or is_live(self.stream):
            self.compilation.watch()
            self.thread = threading.Thread(target=self._tick, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.over.set()
        self.compilation.leave()
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def _tick(self) -> None:
        if self.over.wait(AFTER):
            return
        live, told = is_live(self.stream), ""
        while not self.over.wait(EVERY):
            if live:
                self._write(f"\r{self._line().ljust(self.width)}")
            elif self._doing() != told and not told.endswith("compiling"):
                told = self._doing()
                self._write(f"{told} ...\n")
        self._write(f"\r{self._line().ljust(self.width)}\n" if live else f"{self._line()}\n")

    def _doing(self) -> str:
        return f"{self.what}, compiling" if self.compilation.depth else self.what

    def _line(self) -> str:
        seconds = time.monotonic() - self.begin
        done = f"{self.count} sequences, {self.count / seconds:.0f} per second, " if self.count else ""
        return f"{self._doing()}: {done}{seconds:.0f} s "

    def _write(self, text: str) -> None:
        self.width = max(self.width, len(text.strip("\r\n")))
        self.stream.write(text)
        self.stream.flush()


class Compilation:
    """Whether Numba is compiling right now: the number of compilations that have begun and not ended."""

    def __init__(self) -> None:
        self.depth = 0
        self.installed: Any = None

    def watch(self) -> None:
        """Be told of compilations from now on, if Numba is there already."""
        events = sys.modules.get("numba.core.event")
        if events is not None:
            listener = type("Listener", (events.Listener,), {"on_start": self._add(1), "on_end": self._add(-1)})
            self.installed = events.install_listener("numba:compile", listener())
            self.installed.__enter__()

    def leave(self) -> None:
        """Be told no more."""
        if self.installed is not None:
            self.installed.__exit__(None, None, None)
            self.installed, self.depth = None, 0

    def _add(self, number: int) -> Callable[[Any, Any], None]:
        """What Numba calls when a compilation begins, or ends."""

        def note(listener: Any, event: Any) -> None:
            self.depth += number

        return note


def waiting(what: str, verbose: int) -> AbstractContextManager[Any]:
    """A :class:`Waiting` for models that are asked to show what they do; nothing for others."""
    return Waiting(what, plain=True) if verbose == 1 else nullcontext()
