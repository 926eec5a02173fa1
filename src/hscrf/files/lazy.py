"""Containers whose arrays are read on demand; files are checked once, and again if they change."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from io import FileIO
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.files.container import DTYPES, bytes_of, naming_file, read_contents

ALIGN = 64  # bytes; the alignment of arrays in these files
KEPT = 256  # files whose tables of contents are kept


class Stamp(NamedTuple):
    """The identity of a file that was checked."""

    inode: int
    size: int
    time: int

    @classmethod
    def of(cls, file: int) -> Stamp:
        """Return the stamp of an open file."""
        found = os.fstat(file)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class ContainerFile:
    """A container on disk whose arrays are read by position, some at a time.

    Its checksum is compared with ``digest`` when it is opened, and again if the file has another size, time or inode
    than before. Files are read, not mapped into memory: truncating a mapped file would kill the process, while reading
    raises an error that names the file. Any number of threads may read.
    """

    def __init__(self, path: str, digest: str) -> None:
        self.path, self.digest = path, digest
        with _opened(path) as file, naming_file(path):
            self.stamp = Stamp.of(file.fileno())
            found = read_contents(file, self.stamp.size)
        if found.digest != digest:
            raise FileFormatError(f"{path} is not the file that was packed: it has another checksum")
        self.header, self.table, self.begin = found.header, found.table, found.begin

    def read(self, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read arrays that are stored one after the other, all at once."""
        entries = [self.table[name] for name in names]
        begin = entries[0]["offset"]
        stop = entries[-1]["offset"] + bytes_of(names[-1], entries[-1])
        content = np.empty(stop - begin, dtype=np.uint8)
        with _opened(self.path) as file:
            if Stamp.of(file.fileno()) != self.stamp:
                self._check_again()
            file.seek(self.begin + begin)
            done = 0
            while done < content.size:  # one read returns at most 2 GB
                count = file.readinto(content.data[done:])
                if not count:
                    raise FileFormatError(f"{self.path} was cut short while it was read")
                done += count
        found = {}
        for name, entry in zip(names, entries, strict=True):
            raw = content[entry["offset"] - begin : entry["offset"] - begin + bytes_of(name, entry)]
            found[name] = raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        return found

    def _check_again(self) -> None:
        """The file has another stamp: raise unless its content is unchanged."""
        try:
            self.stamp = ContainerFile(self.path, self.digest).stamp
        except FileFormatError as error:
            raise FileFormatError(f"{error}; it was changed while it was in use") from None


def _opened(path: str) -> FileIO:
    try:
        return open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise FileFormatError(f"{path} is gone: pack the data again") from None


class CheckedFiles:
    """The files that a process has checked; tables of contents of the latest are kept."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self.files: OrderedDict[tuple[str, str], ContainerFile] = OrderedDict()
        self.lock = Lock()

    def open(self, path: str, digest: str) -> ContainerFile:
        """The file of that name and checksum."""
        key = (path, digest)
        with self.lock:
            if key in self.files:
                self.files.move_to_end(key)
                return self.files[key]
        found = ContainerFile(path, digest)
        with self.lock:
            self.files[key] = found
            while len(self.files) > self.kept:
                self.files.popitem(last=False)
        return found


CHECKED_FILES = CheckedFiles()
