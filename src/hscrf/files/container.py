r"""One container for models and checkpoints: a JSON header and named arrays in a single file.

    b"HSCRF container\n"  magic
    uint32, 2 x uint64    version of the format, length of the file, length of the JSON text
    bytes                 the JSON text: {"header": ..., "arrays": [{name, dtype, shape, offset}, ...], "align": ...}
    bytes                 the arrays, little-endian, in C order, each at its offset from the end of the JSON text
                          (and from the beginning of the file) at a multiple of "align", if that is there
    32 bytes              SHA-256 of everything before

The numbers before the JSON text are little-endian too. Nothing in a file is executed, and nothing is used before the
checksum and the sizes have been checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.files.replacing import File, replacing

MAGIC = b"HSCRF container\n"
VERSION = 1
FRAME = struct.Struct("<IQQ")  # version, length of the file, length of the JSON text
START = len(MAGIC) + FRAME.size
DIGEST = hashlib.sha256().digest_size
PIECE = 1 << 20  # bytes that are read at a time to check a file
NUMBERS = ("bool", "int8", "uint16", "int32", "int64", "float32", "float64")
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in NUMBERS}
Arrays = dict[str, NDArray[Any]]


def write_container(path: File, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], align: int = 1) -> str:
    """Write a header (of JSON values) and arrays; the old file stays until the new one is complete.

    Arrays begin at multiples of ``align`` bytes. Returns the checksum.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_container(pathlib.Path(folder, "m"), {"name": "é"}, {"w": np.arange(3.0)})
    ...     read_container(pathlib.Path(folder, "m"))
    ({'name': 'é'}, {'w': array([0., 1., 2.])})
    """
    chunks = list(_chunks(header, arrays, align))
    with replacing(path) as file:
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.write(digest.digest())
    return digest.hexdigest()


def _chunks(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], align: int) -> Iterator[bytes | memoryview]:
    """The bytes of a container up to its checksum."""
    table: list[dict[str, Any]] = []
    data: list[bytes | memoryview] = []
    offset = 0
    for name, given in arrays.items():
        array = np.asarray(given)
        dtype = array.dtype.name
        if dtype not in DTYPES:
            raise TypeError(f"array {name!r} has dtype {dtype}, expected one of {', '.join(DTYPES)}")
        data.append(bytes(-offset % align))
        offset += -offset % align
        table.append({"name": name, "dtype": dtype, "shape": list(array.shape), "offset": offset})
        data.append(np.ascontiguousarray(array, dtype=DTYPES[dtype]).reshape(-1).view(np.uint8).data)
        offset += array.nbytes
    content = {"header": header, "arrays": table, **({"align": align} if align > 1 else {})}
    text = json.dumps(content, default=_plain).encode("ascii")
    text += b" " * (-(START + len(text)) % align)
    yield MAGIC + FRAME.pack(VERSION, START + len(text) + offset + DIGEST, len(text)) + text
    yield from data


def _plain(value: object) -> Any:
    """JSON values for numbers of numpy and for mappings that are not dicts."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"the header of a file cannot hold {value!r}, which is of type {type(value).__name__}")


class Contents(NamedTuple):
    """The checked header of a container: its checksum, its sizes and its table of arrays."""

    header: dict[str, Any]
    table: dict[str, dict[str, Any]]  # of each array: dtype, shape, offset
    begin: int  # byte of the file where the arrays begin
    digest: str


def read_container(path: File) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file that ``write_container`` made; else a ``FileFormatError``."""
    if os.path.isdir(path):
        raise FileFormatError(f"{path} is a folder, not an hscrf file")
    with open(path, "rb") as file:
        own = file.read(len(MAGIC)) == MAGIC
        file.seek(0)
        content = file.read() if own else file.read(START)
    with naming_file(path):
        found = read_contents(io.BytesIO(content), len(content))
        data = memoryview(content)[found.begin :]
        return found.header, {name: _array(data, name, entry) for name, entry in found.table.items()}


def read_contents(file: IO[bytes], size: int) -> Contents:
    """Check an open container of that many bytes, a piece at a time; its errors do not name the file."""
    start = file.read(START)
    if not start.startswith(MAGIC):
        tensors = start[8:].startswith(b'{"')  # as safetensors begin, after their length
        raise FileFormatError("is not an hscrf file" + "; hscrf.torch.Tagger.load opens taggers" * tensors)
    if size < START + DIGEST:
        raise FileFormatError(f"is truncated: {size} bytes are too few for any hscrf file")
    version, expected, length = FRAME.unpack_from(start, len(MAGIC))
    if version > VERSION:
        raise FileFormatError(f"has format version {version}, but this hscrf reads up to {VERSION}: upgrade hscrf")
    if size < expected:
        raise FileFormatError(f"is truncated: it has {size} bytes of {expected}")
    rest = size - START - DIGEST  # bytes of the text and of the arrays
    text = file.read(min(length, rest))
    digest = hashlib.sha256(start + text)
    for piece in _pieces(file, rest - len(text)):
        digest.update(piece)
    if digest.digest() != file.read(DIGEST):
        raise FileFormatError("is altered: its checksum does not match")
    if version < 1 or size != expected or length > rest:
        raise _nonsense(f"version {version}, {expected} bytes, {length} of them JSON")
    header, table, align = _parsed(text.decode("ascii", "replace"))
    _check_places(table, align, rest - length)
    return Contents(header, table, START + length, digest.hexdigest())


@contextlib.contextmanager
def naming_file(path: File) -> Iterator[None]:
    """Let errors of ``read_contents`` name the file."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{os.fspath(path)} {error}") from None


def _pieces(file: IO[bytes], size: int) -> Iterator[bytes]:
    """The next bytes of a file, some at a time; fewer if it ends before."""
    while size > 0:
        piece = file.read(min(PIECE, size))
        if not piece:
            return
        size -= len(piece)
        yield piece


def _nonsense(what: str) -> FileFormatError:
    return FileFormatError(f"has an invalid header: {what}")


def _parsed(text: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]], int]:
    """The header, the entry of each array, and the alignment of arrays."""
    try:
        content = json.loads(text, object_pairs_hook=_distinct)
        header, entries = content["header"], content["arrays"]
        table = {entry["name"]: entry for entry in entries}
        align = content.get("align", 1)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _nonsense(f"{type(error).__name__}: {error}") from None
    if not (isinstance(header, dict) and isinstance(entries, list) and all(isinstance(name, str) for name in table)):
        raise _nonsense("it is not an object, or its arrays are not a list with names")
    if len(table) != len(entries):
        raise _nonsense("two arrays have the same name")
    if type(align) is not int or not 1 <= align <= 4096:
        raise _nonsense(f"its arrays are aligned to {align!r} bytes")
    return header, table, align


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose names must be distinct."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return found


def _check_places(table: Mapping[str, Mapping[str, Any]], align: int, size: int) -> None:
    """Raise unless the arrays follow each other and fill the given number of bytes without overlap."""
    end = 0
    for name, entry in table.items():
        begin = end + -end % align
        end = begin + bytes_of(name, entry)
        if entry["offset"] != begin:
            raise _nonsense(f"array {name!r} begins at byte {entry['offset']}, expected {begin}")
        if end > size:
            raise _nonsense(f"array {name!r} ends at byte {end} of {size}")
    if end != size:
        raise _nonsense(f"its arrays end at byte {end} of {size}")


def bytes_of(name: str, entry: Mapping[str, Any]) -> int:
    """The number of bytes of an array; its entry must be valid."""
    dtype, shape, offset = (entry.get(key) for key in ("dtype", "shape", "offset"))
    if not (isinstance(dtype, str) and dtype in DTYPES and isinstance(shape, list) and len(shape) <= 32):
        raise _nonsense(f"array {name!r} has dtype {dtype!r} and shape {shape!r}")
    if not all(type(number) is int and 0 <= number < 2**48 for number in (offset, *shape)):
        raise _nonsense(f"array {name!r} has shape {shape!r} and offset {offset!r}")
    return math.prod(shape) * DTYPES[dtype].itemsize


def _array(data: memoryview, name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    """One array, copied out of the file."""
    raw = np.frombuffer(data[entry["offset"] : entry["offset"] + bytes_of(name, entry)], dtype=np.uint8)
    if entry["dtype"] == "bool" and raw.max(initial=0) > 1:
        raise _nonsense(f"array {name!r} is boolean, but has bytes other than 0 and 1")
    try:
        return raw.view(DTYPES[entry["dtype"]]).reshape(entry["shape"]).astype(entry["dtype"])
    except (ValueError, MemoryError) as error:  # such as an empty array with an enormous second axis
        raise _nonsense(f"array {name!r}: {error}") from None
