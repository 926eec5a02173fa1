"""A lock for a database, which admits one process; the system releases it when that process dies."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from hscrf.files.locking import try_lock


class Locked(OSError):
    """Another process has the lock."""


class Lock:
    """A file that one process holds; the system takes it back from a process that is killed.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one = Lock(pathlib.Path(folder, "a.lock"))
    ...     try:
    ...         Lock(pathlib.Path(folder, "a.lock"))
    ...     except Locked as error:
    ...         print(str(error).startswith("another process"))
    ...     one.release()
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file: Any = open(self.path, "a+", encoding="ascii")  # noqa: SIM115
        try:
            try_lock(self._file)
        except OSError:
            self._file.seek(0)
            owner = self._file.read(20).strip()
            self._file.close()
            who = f"process {owner}" if owner.isdigit() else "its process"
            raise Locked(f"another process has opened {self.path.removesuffix('.lock')}: stop {who} first") from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        """Give the lock back; the file is left, since another process may already be waiting for it."""
        with contextlib.suppress(OSError):
            self._file.truncate(0)
        self._file.close()
