"""One container for models and checkpoints: a JSON header and named arrays in a single file.

    b"HSCRF container\\n"  magic
    uint32, 2 x uint64    version of the format, length of the file, length of the JSON text
    bytes                 the JSON text: {"header": ..., "arrays": [{name, dtype, shape, offset}, ...]}
    bytes                 the arrays, little-endian, in C order, each at its offset from the end of the JSON text
    32 bytes              SHA-256 of everything before

Numbers of the frame are little-endian too. Nothing in a file is executed, and nothing is believed before its checksum
and its sizes have been checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.replacing import File, replacing

MAGIC = b"HSCRF container\n"
VERSION = 1
FRAME = struct.Struct("<IQQ")  # version, length of the file, length of the JSON text
START = len(MAGIC) + FRAME.size
DIGEST = hashlib.sha256().digest_size
DTYPES = {name: np.dtype(name).newbyteorder("<") for name in ("bool", "int8", "int32", "int64", "float32", "float64")}
Arrays = dict[str, NDArray[Any]]


def write_container(path: File, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a header (anything JSON can say) and arrays; the old file stays until the new one is complete.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_container(pathlib.Path(folder, "m"), {"name": "é"}, {"w": np.arange(3.0)})
    ...     read_container(pathlib.Path(folder, "m"))
    ({'name': 'é'}, {'w': array([0., 1., 2.])})
    """
    chunks = list(_chunks(header, arrays))
    with replacing(path) as file:
        digest = hashlib.sha256()
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.write(digest.digest())


def _chunks(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """The bytes of a container up to its checksum."""
    table, data, offset = [], [], 0
    for name, given in arrays.items():
        array = np.asarray(given)
        dtype = array.dtype.name
        if dtype not in DTYPES:
            raise TypeError(f"array {name!r} has dtype {dtype}, expected one of {', '.join(DTYPES)}")
        table.append({"name": name, "dtype": dtype, "shape": list(array.shape), "offset": offset})
        data.append(np.ascontiguousarray(array, dtype=DTYPES[dtype]).reshape(-1).view(np.uint8).data)
        offset += array.nbytes
    text = json.dumps({"header": header, "arrays": table}, default=_plain).encode("ascii")
    yield MAGIC + FRAME.pack(VERSION, START + len(text) + offset + DIGEST, len(text)) + text
    yield from data


def _plain(value: object) -> Any:
    """What JSON knows for what it does not: numpy's numbers, mappings that are no dicts."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"the header of a file cannot hold {value!r}, which is of type {type(value).__name__}")


def read_container(path: File) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of a file that ``write_container`` made; else a ``FileFormatError``."""
    if os.path.isdir(path):
        raise FileFormatError(f"{path} is a folder, not an hscrf file")
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise FileFormatError(f"{path} is not an hscrf file")
        file.seek(0)
        content = file.read()
    try:
        text, data = _split(content)
        header, table = _parse(text)
        return header, _arrays(data, table)
    except FileFormatError as error:
        raise FileFormatError(f"{path} {error}") from None


def _split(content: bytes) -> tuple[str, memoryview]:
    """The JSON text and the arrays' bytes of a file of the right version, length and checksum."""
    if len(content) < START + DIGEST:
        raise FileFormatError(f"is truncated: {len(content)} bytes are too few for any hscrf file")
    version, size, length = FRAME.unpack_from(content, len(MAGIC))
    if version > VERSION:
        raise FileFormatError(f"has format version {version}, but this hscrf reads up to {VERSION}: upgrade hscrf")
    if len(content) < size:
        raise FileFormatError(f"is truncated: it has {len(content)} bytes of {size}")
    body = memoryview(content)[:-DIGEST]
    if hashlib.sha256(body).digest() != content[-DIGEST:]:
        raise FileFormatError("is altered: its checksum does not match")
    if version < 1 or size != len(content) or length > len(body) - START:
        raise _nonsense(f"version {version}, {size} bytes, {length} of them JSON")
    return bytes(body[START : START + length]).decode("ascii", "replace"), body[START + length :]


def _nonsense(what: str) -> FileFormatError:
    return FileFormatError(f"has a header that makes no sense: {what}")


def _parse(text: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The header, and what it says of each array."""
    try:
        content = json.loads(text, object_pairs_hook=_distinct)
        header, entries = content["header"], content["arrays"]
        table = {entry["name"]: entry for entry in entries}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _nonsense(f"{type(error).__name__}: {error}") from None
    if not (isinstance(header, dict) and isinstance(entries, list) and all(isinstance(name, str) for name in table)):
        raise _nonsense("it is not an object, or its arrays are not a list with names")
    if len(table) != len(entries):
        raise _nonsense("two arrays have the same name")
    return header, table


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, whose names must be distinct."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def _arrays(data: memoryview, table: Mapping[str, Mapping[str, Any]]) -> Arrays:
    """All arrays, which lie one behind the other: no byte belongs to two of them, or to none."""
    arrays: Arrays = {}
    offset = 0
    for name, entry in table.items():
        arrays[name] = _array(data, name, entry)
        if entry["offset"] != offset:
            raise _nonsense(f"array {name!r} begins at byte {entry['offset']}, expected {offset}")
        offset += arrays[name].nbytes
    if offset != len(data):
        raise _nonsense(f"its arrays end at byte {offset} of {len(data)}")
    return arrays


def _array(data: memoryview, name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    """One array, copied out of the file; its size is checked before anything is allocated."""
    dtype, shape, offset = (entry.get(key) for key in ("dtype", "shape", "offset"))
    if not (isinstance(dtype, str) and dtype in DTYPES and isinstance(shape, list) and len(shape) <= 32):
        raise _nonsense(f"array {name!r} has dtype {dtype!r} and shape {shape!r}")
    if not all(type(number) is int and 0 <= number < 2**48 for number in (offset, *shape)):
        raise _nonsense(f"array {name!r} has shape {shape!r} and offset {offset!r}")
    stop = offset + math.prod(shape) * DTYPES[dtype].itemsize
    if stop > len(data):
        raise _nonsense(f"array {name!r} ends at byte {stop} of {len(data)}")
    raw = np.frombuffer(data[offset:stop], dtype=np.uint8)
    if dtype == "bool" and raw.max(initial=0) > 1:
        raise _nonsense(f"array {name!r} is neither true nor false")
    try:
        return raw.view(DTYPES[dtype]).reshape(shape).astype(dtype)
    except (ValueError, MemoryError) as error:  # such as an empty array with an enormous second axis
        raise _nonsense(f"array {name!r}: {error}") from None
