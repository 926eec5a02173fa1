"""Open compressed files as streams of their content."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO

from hscrf.errors import DataFileError

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma", ".zst": "zstandard"}  # endings of names, and their modules
DAMAGE = (
    "EOFError",
    "error",
    "LZMAError",
    "BadGzipFile",
    "ZstdError",
)  # errors of these modules; bz2 raises an OSError


def open_compressed(path: str | os.PathLike[str]) -> BinaryIO:
    """A file as a stream of bytes; a file with the name of a compressed file is decompressed."""
    ending = os.path.splitext(os.fspath(path))[1]
    if ending not in COMPRESSED:
        return open(path, "rb")
    if ending == ".zst":
        return _opened_zst(path)
    return import_module(COMPRESSED[ending]).open(path, "rb")


def _opened_zst(path: str | os.PathLike[str]) -> Any:
    """A file that zstd has compressed: by Python's library if it has one, else by the package zstandard."""
    with suppress(ImportError):
        return import_module("compression.zstd").open(path, "rb")
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise ImportError(f"{os.fspath(path)} needs the package zstandard: pip install zstandard") from None
    return io.BufferedReader(ZstFile(path, zstandard))


class ZstFile(io.RawIOBase):
    """The content of a file compressed by zstd. Unlike the reader of the package, it detects truncated files."""

    def __init__(self, path: str | os.PathLike[str], zstandard: Any) -> None:
        self.file, self.zstandard = open(path, "rb"), zstandard  # noqa: SIM115 - closed by close
        self.pieces = self._pieces()
        self.rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes into a buffer; return their number."""
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = piece
        taken, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)

    def _pieces(self) -> Iterator[bytes]:
        """The content frame by frame; raises if the last frame does not end."""
        frame = None
        while piece := self.file.read(1 << 16):
            while piece:
                frame = frame or self.zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(piece)
                piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        if frame is not None:
            raise EOFError("it ends before the end of its last frame")

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        super().close()


def whole_stream(name: str, stream: Iterable[bytes | str]) -> Iterator[bytes | str]:
    """The lines of a stream; damage to a compressed file is an error at the line where it shows."""
    number = 1
    try:
        for line in stream:
            yield line
            number += 1
    except Exception as error:
        if type(error).__name__ not in DAMAGE and getattr(error, "errno", 0) is not None:
            raise
        raise DataFileError(name, number, f"the compressed file is damaged or truncated: {error}") from None
