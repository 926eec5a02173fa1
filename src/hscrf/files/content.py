"""The content of a file's header, read by the declared types of its fields.

A file may come from an untrusted source, so everything in it is checked. A :class:`Field` has a place in the file.
Reading it as a type returns a value of that type, or raises a ``FileFormatError`` that names the place.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import FileFormatError
from hscrf.features.blocks import Block

EXPECTED = {bool: "true or false", int: "an integer", float: "a number", str: "a string", NoneType: "null"}


class ContentError(FileFormatError):
    """A field is not what it should be; the file is not yet named."""

    def __init__(self, problem: str, lack: str | None = "valid") -> None:
        super().__init__(problem)
        self.lack = lack  # the property that the file lacks: valid, complete


@contextmanager
def naming(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Let errors about the content of a file name the file."""
    try:
        yield
    except ContentError as error:
        told = f" is not a {error.lack} {kind}:" if error.lack else ""
        raise FileFormatError(f"{os.fspath(path)}{told} {error}") from None


@dataclass(frozen=True)
class Field:
    """A value of a file's header, its place, and the arrays and functions that it may refer to.

    >>> Field({"max_iter": 5}, "solver")["max_iter"].read(int)
    5
    >>> Field({"max_iter": "5"}, "solver")["max_iter"].read(int)
    Traceback (most recent call last):
    hscrf.files.content.ContentError: solver.max_iter is '5', expected an integer
    """

    value: Any
    name: str = ""  # such as blocks[2].longest; the header itself has none
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    functions: Mapping[str, Any] = field(default_factory=dict, repr=False)

    # -- inside

    def __getitem__(self, key: str) -> Field:
        """A field of an object."""
        found = self.items()
        if key not in found:
            raise ContentError(f"{self.name or 'it'} has no field {key!r}", "complete")
        return found[key]

    def items(self) -> dict[str, Field]:
        """All fields of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        dot = f"{self.name}." if self.name else ""
        return {key: self._inner(value, f"{dot}{key}") for key, value in self.value.items()}

    def entries(self) -> list[Field]:
        """All entries of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [self._inner(value, f"{self.name}[{k}]") for k, value in enumerate(self.value)]

    def _inner(self, value: Any, name: str) -> Field:
        return Field(value, name, self.arrays, self.functions)

    def wrong(self, expected: str) -> ContentError:
        """Return the error for a value of another type than expected."""
        return ContentError(f"{self.name or 'its header'} is {brief(self.value)}, expected {expected}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Let errors raised in the block name the field."""
        try:
            yield
        except ContentError:
            raise
        except ValueError as error:
            raise ContentError(f"{self.name}: {' '.join(str(error).split())}") from None

    # -- values

    def read(self, hint: Any) -> Any:
        """The value as a type: a JSON type, a container, an array, a function, a dataclass, or a choice of these."""
        hint = unfolded(hint)
        origin, inner = get_origin(hint), get_args(hint)
        if hint is Any:
            return self.value
        if hint in EXPECTED:
            return self._plain(hint)
        if origin in (Union, UnionType):
            return self._either(inner)
        if origin is tuple:
            return self._tuple(inner)
        if origin in (list, Sequence):
            return [entry.read(inner[0]) for entry in self.entries()]
        if origin in (dict, Mapping):
            return {key: item.read(inner[1]) for key, item in self.items().items()}
        if origin is Callable:
            return self._function()
        if origin is np.ndarray:
            return self._array(np.dtype(get_args(inner[1])[0]))
        return self._object(hint)

    def choice(self, *known: str) -> str:
        """One of some strings."""
        text: str = self.read(str)
        if text not in known:
            raise self.wrong(" or ".join(map(repr, known)))
        return text

    def _plain(self, hint: type) -> Any:
        value = self.value
        fits = type(value) is hint
        if hint in (int, float):  # true is 1; 1 is 1.0
            fits = isinstance(value, int) or fits
            fits = fits and (-(2**63) <= value < 2**63 if hint is int else not math.isnan(as_float(value)))
        if hint is bool:
            fits = isinstance(value, int) and value in (0, 1)
        if not fits:
            raise self.wrong(EXPECTED[hint])
        return hint(value) if hint in (int, bool) else value

    def _either(self, hints: Sequence[Any]) -> Any:
        if all(isinstance(hint, type) and issubclass(hint, Block) for hint in hints):
            return self.one_of({hint.__name__: hint for hint in hints})
        inside = None
        for hint in hints:
            try:
                return self.read(hint)
            except ContentError as error:
                if not str(error).startswith(f"{self.name} is "):
                    inside = inside or error
        raise inside or self.wrong(" or ".join(named(hint) for hint in hints))

    def _tuple(self, hints: Sequence[Any]) -> tuple[Any, ...]:
        entries = self.entries()
        if len(hints) == 2 and hints[1] is ...:
            return tuple(entry.read(hints[0]) for entry in entries)
        if len(entries) != len(hints):
            raise self.wrong(f"a list of {len(hints)}")
        return tuple(entry.read(hint) for entry, hint in zip(entries, hints, strict=True))

    def _array(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The array of the file that the field points to."""
        return array_of(self.arrays, self["array"].read(str), dtype, None)

    def _function(self) -> Any:
        """The given function that the field names."""
        name = self["function"].read(str)
        if name not in self.functions:
            text = f"uses the segment function {name!r}: give it as load(path, functions={{{name!r}: ...}})"
            raise ContentError(text, lack=None)
        return self.functions[name]

    # -- objects

    def _object(self, hint: Any) -> Any:
        if isinstance(hint, type) and issubclass(hint, Block):
            return self.one_of({hint.__name__: hint} if is_dataclass(hint) else subclasses(hint))
        if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
            return self._named_tuple(hint)
        if is_dataclass(hint) and isinstance(hint, type):
            return self.record(hint)
        raise self.wrong(named(hint))

    def one_of(self, classes: Mapping[str, type]) -> Any:
        """An object of one of some dataclasses, whose name is its field ``type``."""
        return self.record(classes[self["type"].choice(*classes)])

    def record(self, cls: type, skip: Sequence[str] = ("type",)) -> Any:
        """An object of a dataclass, field by field."""
        hints, known = hints_of(cls), {item.name: item for item in fields(cls) if item.init}
        given = {name: item for name, item in self.items().items() if name not in skip}
        for name in given:
            if name not in known:
                raise ContentError(f"{self.name} has a field {name!r}, which a {cls.__name__} does not have")
        for name, item in known.items():
            if name not in given and item.default is MISSING and item.default_factory is MISSING:
                raise ContentError(f"{self.name} has no field {name!r}", "complete")
        values = {name: item.read(hints[name]) for name, item in given.items()}
        with self.blamed():
            return cls(**values)

    def _named_tuple(self, cls: Any) -> Any:
        entries, hints = self.entries(), list(hints_of(cls).values())
        least = len(hints) - len(cls._field_defaults)
        if not least <= len(entries) <= len(hints):
            raise self.wrong(f"a list of {least} to {len(hints)}")
        return cls(*(entry.read(hint) for entry, hint in zip(entries, hints, strict=False)))


def array_of(arrays: Mapping[str, NDArray[Any]], name: str, dtype: Any, axes: int | None = 1) -> NDArray[Any]:
    """An array of the file, which must have this dtype and this number of axes (None: any)."""
    if name not in arrays:
        raise ContentError(f"it has no array {brief(name)}", "complete")
    array = arrays[name]
    if array.dtype != dtype:
        raise ContentError(f"array {brief(name)} has dtype {array.dtype}, expected {np.dtype(dtype)}")
    if axes is not None and array.ndim != axes:
        raise ContentError(f"array {brief(name)} has {array.ndim} axes, expected {axes}")
    return array


@cache
def hints_of(thing: Any) -> dict[str, Any]:
    """The types that the fields of a class, or the arguments of a function, are declared with."""
    return get_type_hints(thing)


def subclasses(cls: type) -> dict[str, type]:
    """All subclasses by name."""
    found: dict[str, type] = {}
    inner: type
    for inner in cls.__subclasses__():
        found |= {inner.__name__: inner, **subclasses(inner)}
    return found


def as_float(value: Any) -> float:
    """A float; NaN for other values and for integers that are too large."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def unfolded(hint: Any) -> Any:
    """A type that an alias names: NumPy's ``NDArray`` is one of the ``type`` statement from version 2.5 on."""
    alias, inner = get_origin(hint), get_args(hint)
    if hasattr(alias, "__value__"):
        return alias.__value__[inner]
    return hint


def named(hint: Any) -> str:
    """The name of a type in JSON."""
    if hint in EXPECTED:
        return EXPECTED[hint]
    return "a list" if get_origin(hint) in (tuple, list, Sequence) else "an object"


def brief(value: Any) -> str:
    """A short form of a value for messages."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    text = {None: "null", True: "true", False: "false"}.get(value) if isinstance(value, bool | None) else repr(value)
    text = ascii(value) if text is None else text
    return text if len(text) <= 60 else f"{text[:57]}..."
