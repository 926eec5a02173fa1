"""A folder of packed data: each set is there as a whole or not at all, and is found again by what it was made of."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from hscrf.errors import FileFormatError
from hscrf.estimator.container import read_container, write_container
from hscrf.scale.sources import Source

MANIFEST = "manifest.hscrf"
UNFINISHED = ".unfinished-"


def key_of(settings: Any) -> str:
    """A name for settings that JSON can hold."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]


class Cache:
    """Sets of packed data in a folder, by key.

    A set is made in a folder of its own, with every file flushed, and then renamed: a killed process leaves nothing
    that could be taken for whole. What it does leave is removed by the next one that packs here.
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.abspath(folder)

    def find(self, key: str, sources: Sequence[Source]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Header and arrays of the set with that key, if its sources are still the same."""
        path = self.path(key)
        if not os.path.exists(os.path.join(path, MANIFEST)):
            return None
        try:
            header, arrays = read_container(os.path.join(path, MANIFEST))
        except FileFormatError:
            return None
        known = header["sources"]
        if len(known) != len(sources) or not all(map(_same, known, sources)):
            return None
        return header, arrays

    def path(self, key: str) -> str:
        """The folder of a set."""
        return os.path.join(self.folder, key)

    @contextlib.contextmanager
    def making(self, key: str) -> Iterator[str]:
        """A folder to write a set into, which becomes the one with that key when the block ends without an error."""
        os.makedirs(self.folder, exist_ok=True)
        self._tidy()
        work = os.path.join(self.folder, f"{UNFINISHED}{secrets.token_hex(8)}")
        os.mkdir(work)
        lock = os.open(work, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield work
            _flush(work)
            self._put(work, self.path(key))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                told = f"{os.strerror(error.errno)} while packing; nothing of it is kept"
                raise OSError(error.errno, told, self.folder) from None
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
            os.close(lock)

    def _put(self, work: str, path: str) -> None:
        """Give a finished folder its name; one that is out of date, or damaged, goes first."""
        if os.path.exists(path):
            old = f"{work}-old"
            os.rename(path, old)
            shutil.rmtree(old, ignore_errors=True)
        os.rename(work, path)
        _flush(self.folder)

    def _tidy(self) -> None:
        """Remove what killed processes left: nobody holds its lock."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if not name.startswith(UNFINISHED):
                continue
            with contextlib.suppress(OSError):
                lock = os.open(path, os.O_RDONLY)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(lock)


def write_manifest(folder: str, header: dict[str, Any], arrays: dict[str, Any], sources: Sequence[Source]) -> None:
    """Write what is known of a set, and of its sources as they are now."""
    entries = [{"name": source.name, "state": source.state(), "digest": source.digest()} for source in sources]
    write_container(os.path.join(folder, MANIFEST), {**header, "sources": entries}, arrays)


def _same(known: dict[str, Any], source: Source) -> bool:
    """Whether a source is what it was: the same size and time, or else the same content."""
    try:
        state = source.state()
        if known["name"] != source.name or (state is not None and known["state"]["size"] != state["size"]):
            return False
        return known["state"] == state or known["digest"] == source.digest()
    except OSError:
        return False


def _flush(folder: str) -> None:
    """Have the names in a folder written to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
