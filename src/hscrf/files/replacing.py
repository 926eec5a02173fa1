"""Files that are written whole or not at all: the old one stays until the new one is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from typing import BinaryIO

File = str | os.PathLike[str]


@contextlib.contextmanager
def replaced(path: File) -> Iterator[str]:
    """The name of a file to write, which takes the place of ``path`` when the block ends without an error.

    It is in the folder of ``path`` and has its ending. A special file, such as ``/dev/stdout``, is written directly.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "numbers.txt")
    ...     _ = path.write_text("old")
    ...     with contextlib.suppress(ZeroDivisionError), replaced(path) as name:
    ...         _ = pathlib.Path(name).write_text(f"{1 / 0}")
    ...     path.read_text()
    'old'
    """
    target = os.path.realpath(path)  # a link stays a link
    if os.path.exists(target) and not os.path.isfile(target):
        yield target
        return
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".hscrf-{secrets.token_hex(8)}.tmp{os.path.splitext(name)[1]}")
    try:
        _claim(temporary, path)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):  # there is no old file
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _claim(temporary: str, path: File) -> None:
    """Create an empty file; an error names the requested file."""
    try:
        open(temporary, "xb").close()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None


@contextlib.contextmanager
def replacing(path: File) -> Iterator[BinaryIO]:
    """A binary file to write to that takes the place of ``path`` once it is complete and on disk."""
    with replaced(path) as temporary, open(temporary, "wb") as file:
        yield file
