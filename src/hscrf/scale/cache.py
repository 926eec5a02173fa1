"""A cache of packed data: each set is complete or absent; its key depends on its sources and settings."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from typing import Any

from hscrf.errors import FileFormatError
from hscrf.files.container import read_container, write_container
from hscrf.files.locking import try_lock
from hscrf.scale.sources import Source

MANIFEST = "manifest.hscrf"
UNFINISHED = ".unfinished-"
LOCK = ".lock"  # the lock file of an unfinished folder, held by its process


def key_of(settings: Any) -> str:
    """A name for settings, which must be JSON."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]


class Cache:
    """Sets of packed data in a folder, by key.

    A set is made in a folder of its own, with every file flushed, and then renamed: a killed process leaves no
    set that looks complete. The next process that packs here removes the unfinished folder.
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

    def difference(self, settings: dict[str, Any], sources: Sequence[Source]) -> list[str]:
        """The settings that differ in a set of the same sources; of several sets the one with fewest differences."""
        found: list[list[str]] = []
        for name in sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []:
            with contextlib.suppress(OSError, FileFormatError, KeyError):
                header = read_container(os.path.join(self.folder, name, MANIFEST))[0]
                same = [entry["name"] for entry in header["sources"]] == [source.name for source in sources]
                if same and header["kind"] == "shards":
                    found.append(differing(header["made_of"], settings))
        return min(filter(None, found), key=len, default=[])

    def path(self, key: str) -> str:
        """The folder of a set."""
        return os.path.join(self.folder, key)

    @contextlib.contextmanager
    def making(self, key: str) -> Iterator[str]:
        """A folder to write a set into, which becomes the one with that key when the block ends without an error."""
        os.makedirs(self.folder, exist_ok=True)
        self._tidy()
        work, lock = self._begun()
        try:
            os.mkdir(work)
            yield work
            _flush(work)
            self._put(work, self.path(key))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                told = f"{os.strerror(error.errno)} while packing; unfinished shards were removed"
                raise OSError(error.errno, told, self.folder) from None
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
            _remove(lock)

    def _begun(self) -> tuple[str, Any]:
        """The name of a new folder, and its lock, which is taken first: a folder without a lock may be removed."""
        while True:
            work = os.path.join(self.folder, f"{UNFINISHED}{secrets.token_hex(8)}")
            lock = open(work + LOCK, "ab")  # noqa: SIM115
            try:
                try_lock(lock)
                if os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name)):
                    return work, lock
            except OSError:  # another process took the lock or removed the file: begin again
                pass
            lock.close()

    def _put(self, work: str, path: str) -> None:
        """Rename a finished folder; an outdated or damaged one of that name is removed first."""
        if os.path.exists(path):
            old = f"{work}-old"
            os.rename(path, old)
            shutil.rmtree(old, ignore_errors=True)
        os.rename(work, path)
        _flush(self.folder)

    def _tidy(self) -> None:
        """Remove the folders that killed processes left: no process holds their locks."""
        left = {name.removesuffix(LOCK) for name in os.listdir(self.folder) if name.startswith(UNFINISHED)}
        for name in sorted(left):
            path = os.path.join(self.folder, name)
            with contextlib.suppress(OSError), open(path + LOCK, "ab") as lock:
                try_lock(lock)
                shutil.rmtree(path, ignore_errors=True)
                _remove(lock)


def differing(one: Any, other: Any, name: str = "") -> list[str]:
    """The names of the entries in which two JSON values differ.

    >>> differing({"a": 1, "b": {"c": [2, 3]}}, {"a": 1, "b": {"c": [2, 4]}})
    ['c']
    """
    if isinstance(one, dict) and isinstance(other, dict):
        keys = dict.fromkeys([*one, *other])
        return list(dict.fromkeys(part for k in keys for part in differing(one.get(k), other.get(k), k)))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return list(dict.fromkeys(part for pair in pairs for part in differing(*pair, name)))
    return [] if one == other else [name]


def write_manifest(folder: str, header: dict[str, Any], arrays: dict[str, Any], sources: Sequence[Source]) -> None:
    """Write the manifest of a set, with the current state of its sources."""
    entries = [{"name": source.name, "state": source.state(), "digest": source.digest()} for source in sources]
    write_container(os.path.join(folder, MANIFEST), {**header, "sources": entries}, arrays)


def _same(known: dict[str, Any], source: Source) -> bool:
    """Whether a source is unchanged: the same size and time, or else the same content."""
    try:
        state = source.state()
        if known["name"] != source.name or (state is not None and known["state"]["size"] != state["size"]):
            return False
        return known["state"] == state or known["digest"] == source.digest()
    except OSError:
        return False


def _remove(lock: Any) -> None:
    """Remove the file of a lock and release it; Windows removes closed files only."""
    with contextlib.suppress(OSError):
        os.unlink(lock.name)
    lock.close()
    with contextlib.suppress(OSError):
        os.unlink(lock.name)


def _flush(folder: str) -> None:
    """Write the names in a folder to disk; Windows has no such call."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
