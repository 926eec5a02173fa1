"""Functions for all commands: streams, progress, messages, values of options."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

from hscrf.errors import DataFileError
from hscrf.progress import Waiting

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF
    from hscrf.torch.tagger import Tagger

T = TypeVar("T")
N = TypeVar("N", int, float)


class UserError(argparse.ArgumentTypeError):
    """An error that the user can correct. If argparse reads an option, the message also names the option."""


def error_line(error: BaseException) -> str:
    """One line for an error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory: {error}"
    text = " ".join(str(error).split())
    return text if isinstance(error, (UserError, DataFileError)) else typed(text)


OPTIONS = {"max_duration": "max-duration", "min_count": "min-count", "max_iter": "max-iter", "n_jobs": "jobs"}
_OPTION = re.compile(r"(?<![\w'\"-])(max_duration|min_count|max_iter|n_jobs|c1|c2)(?=[ =:,]|$)=?")


def typed(message: str) -> str:
    """A message of the library with its options as they are typed in the shell.

    >>> typed("max_iter=40 iterations done"), typed("c2 is -1.0")
    ('--max-iter 40 iterations done', '--c2 is -1.0')
    """
    return _OPTION.sub(lambda m: f"--{OPTIONS.get(m[1], m[1])}{' ' * m[0].endswith('=')}", message)


def complain(message: str, code: int) -> int:
    """Print one line on standard error; returns the exit code."""
    with contextlib.suppress(BrokenPipeError):
        print(f"hscrf: {message}", file=sys.stderr, flush=True)
    return code


def note(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr, flush=True)


def save_trained(model: HSCRF | Tagger, path: str, save: Callable[[], None], unit: str) -> int:
    """Write a trained model; after Ctrl-C report it and return 130. Without any iteration nothing is written."""
    interrupted = model.stop_reason_ == "interrupted"
    if interrupted and not model.n_iter_:
        return complain(f"interrupted before the first {unit}: no model written", 130)
    model.set_params(verbose=0)  # progress is shown once
    save()
    if interrupted:
        return complain(f"interrupted: {path} holds the best of {model.n_iter_} {unit}s", 130)
    return 0


def names_in(text: str | None) -> tuple[str, ...]:
    """The names in chunk,pos; none without a text."""
    return tuple(filter(None, (text or "").split(",")))


def source_of(path: str) -> str | BinaryIO:
    """The source to read: a path, or standard input."""
    return sys.stdin.buffer if path == "-" else path


def reread(path: str) -> str | KeptInput:
    """A source that can be read twice: standard input is kept in memory."""
    return KeptInput(sys.stdin.buffer.read()) if path == "-" else path


class KeptInput:
    """The content of standard input, which can be read more than once."""

    name = "<stdin>"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self) -> bytes:
        return self.content

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.content.splitlines(keepends=True))


@contextlib.contextmanager
def target_of(path: str) -> Iterator[Any]:
    """The target to write: a path, or standard output in UTF-8."""
    if path == "-":
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
        yield sys.stdout
    else:
        yield path


def counted(items: Iterable[T], what: str, stream: TextIO | None = None) -> Iterator[T]:
    """The same items; a terminal shows a live count if they take longer than a second."""
    with Waiting(what, stream) as progress:
        for item in items:
            progress.count += 1
            yield item


def pairs_in(text: str, kind: Callable[[str], Any] = str, option: str = "") -> dict[str, Any]:
    """The values in name=value,name=value. ``option`` is named in errors that argparse does not raise.

    >>> pairs_in("chunk=3,pos=2", int)
    {'chunk': 3, 'pos': 2}
    """
    prefix = f"{option}: " if option else ""
    try:
        pairs = [(name, kind(value)) for name, value in (part.split("=") for part in text.split(","))]
    except ValueError:
        what = "VALUE" if kind is str else "NUMBER"
        raise UserError(f"{prefix}{text!r} is not LEVEL={what}, with commas between levels") from None
    if len(dict(pairs)) < len(pairs):
        raise UserError(f"{prefix}{text!r} names a level twice")
    return dict(pairs)


class Merge(argparse.Action):
    """Join the levels of an option that is given several times."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        known = getattr(namespace, self.dest)
        if known is not self.default:
            if not isinstance(known, dict) or not isinstance(values, dict):
                parser.error(f"argument {option}: expected it once, or LEVEL=VALUE each time")
            twice = set(known) & set(values)
            if twice:
                parser.error(f"argument {option}: names the level {min(twice)!r} twice")
            values = {**known, **values}
        setattr(namespace, self.dest, values)


def number_reader(kind: Callable[[str], N], holds: Callable[[N], bool], expected: str) -> Callable[[str], N]:
    """A reader of numbers for which a condition holds; its error names what is expected."""

    def read(text: str) -> N:
        with contextlib.suppress(ValueError):
            number = kind(text)
            if holds(number):
                return number
        raise UserError(f"{text!r} is not {expected}")

    return read


def whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers that are at least ``least``."""
    return number_reader(int, lambda number: number >= least, f"a whole number of at least {least}")


def number_above(least: float) -> Callable[[str], float]:
    """A reader of finite numbers that are greater than ``least``."""
    return number_reader(float, lambda number: least < number < math.inf, f"a number greater than {least:g}")


amount = number_reader(float, lambda number: 0 <= number < math.inf, "a number of at least 0")
