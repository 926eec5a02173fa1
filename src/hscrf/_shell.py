"""What the commands share of the shell: streams, progress, messages."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO, TypeVar

__all__ = [
    "UserError",
    "complain",
    "counted",
    "describe",
    "names_in",
    "note",
    "pairs_of",
    "reread",
    "source_of",
    "target_of",
]

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
    stream = stream or sys.stderr
    begin = shown = time.monotonic()
    n = 0
    try:
        for n, item in enumerate(items, start=1):
            now = time.monotonic()
            if stream.isatty() and now - begin > 1 and now - shown > 0.2:
                stream.write(f"\r{what}: {n} sequences, {n / (now - begin):.0f} a second ")
                stream.flush()
                shown = now
            yield item
    finally:
        if shown > begin:
            stream.write(f"\r{what}: {n} sequences in {time.monotonic() - begin:.1f} s \n")


def pairs_of(kind: Callable[[str], Any]) -> Callable[[str], dict[str, Any]]:
    """A reader of name=value,name=value."""

    def read(text: str) -> dict[str, Any]:
        try:
            return {name: kind(value) for name, value in (part.split("=") for part in text.split(","))}
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not LEVEL=VALUE[,LEVEL=VALUE]") from None

    return read
