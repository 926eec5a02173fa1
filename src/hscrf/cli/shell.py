"""What the commands share of the shell: streams, progress, messages."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO, TypeVar

T = TypeVar("T")


class UserError(Exception):
    """Something the user can put right."""


def describe(error: BaseException) -> str:
    """One line for an error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory: {error}"
    return " ".join(str(error).split())


def complain(message: str, code: int) -> int:
    """Say one line on standard error."""
    with contextlib.suppress(BrokenPipeError):
        print(f"hscrf: {message}", file=sys.stderr, flush=True)
    return code


def note(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def names_in(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))


def source_of(path: str) -> Any:
    """What to read from."""
    return sys.stdin.buffer if path == "-" else path


def reread(path: str) -> Any:
    """What to read from twice: a pipe is kept in memory."""
    return Kept(sys.stdin.buffer.read()) if path == "-" else path


class Kept:
    """The lines of a pipe, as often as they are asked for."""

    name = "<stdin>"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self) -> bytes:
        return self.content

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.content.splitlines(keepends=True))


@contextlib.contextmanager
def target_of(path: str) -> Iterator[Any]:
    """What to write to: a path, or standard output in UTF-8."""
    if path == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
    else:
        yield path


def counted(items: Iterable[T], what: str, stream: TextIO | None = None) -> Iterator[T]:
    """The same items, with a live count on terminals for what takes longer than a second."""
    with Progress(what, stream) as progress:
        for item in items:
            progress.count += 1
            yield item


class Progress:
    """A line on terminals that lives while something takes longer than a second; it counts, if there is a count."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what, self.stream = what, stream or sys.stderr
        self.count = 0
        self.begin = time.monotonic()
        self.over = threading.Event()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self.stream.isatty():
            self.thread = threading.Thread(target=self._tick, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.over.set()
        if self.thread is not None:
            self.thread.join()

    def _tick(self) -> None:
        if self.over.wait(1.0):
            return
        while not self.over.wait(0.2):
            self._show("\r")
        self._show("\r", "\n")

    def _show(self, before: str, after: str = "") -> None:
        seconds = time.monotonic() - self.begin
        done = f"{self.count} sequences, {self.count / seconds:.0f} a second, " if self.count else ""
        self.stream.write(f"{before}{self.what}: {done}{seconds:.0f} s {after}")
        self.stream.flush()


def pairs_of(kind: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """A reader of name=value,name=value."""

    def read(text: str) -> dict[str, Any]:
        try:
            pairs = [(name, kind(value)) for name, value in (part.split("=") for part in text.split(","))]
        except ValueError:
            what = "a whole number" if kind is int else "a value"
            raise argparse.ArgumentTypeError(f"{text!r} is not LEVEL={what}, with commas between levels") from None
        if len(dict(pairs)) < len(pairs):
            raise argparse.ArgumentTypeError(f"{text!r} names a level twice")
        return dict(pairs)

    return read


def whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers that are not too small."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least {least}")
        return number

    return read
