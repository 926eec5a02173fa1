"""Sources of sequences: files of any format that ``hscrf.io`` reads, or parts that are computed on demand."""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from hscrf.errors import DataFileError, InfeasibleError, SequenceError, a_type, several
from hscrf.io.recipe import Features, Recipe
from hscrf.io.sniffing import format_of, suffix_of

STRETCHES = 2  # stretches for each process, to balance the load
SEEN = 100  # number of sequences of the first file that determine the features
Skip = Callable[[Exception], object]


Place = tuple[int, int]  # the line on which a sequence begins, and its number in its source, from 0


class SourceSequence(NamedTuple):
    """One sequence: its observations, its labels or None, and its place."""

    x: Any
    y: Any
    place: Place


class Source(Protocol):
    """A source whose sequences can be read repeatedly, in the same order."""

    @property
    def name(self) -> str:
        """Its name in errors."""

    def items(self, skip: Skip | None) -> Iterator[SourceSequence]:
        """The sequences; with ``skip``, which is called with each error, unreadable ones are left out."""

    def error(self, place: Place, error: Exception) -> Exception:
        """The same problem with its place."""

    def state(self) -> dict[str, Any] | None:
        """A cheap stamp of the source, such as size and time; None if there is none."""

    def digest(self) -> str:
        """The checksum of its content."""

    def travels(self) -> bool:
        """Whether another process can read it."""

    def absolute(self) -> Source:
        """The same for processes with another working directory."""


@dataclass(frozen=True)
class FileSource:
    """A file of documents."""

    name: str
    recipe: Recipe
    unlabelled: bool = False

    def items(self, skip: Skip | None) -> Iterator[SourceSequence]:
        """Yield the sequences of the file."""
        for document in self.recipe.documents(self.name, unlabelled=self.unlabelled, skip=skip):
            try:
                x = self.recipe.observe(document)
                x = list(x) if isinstance(x, Features) else x  # made once, because the file is read several times
                if document.labels is None and not self.unlabelled:
                    raise document.error("there are no labels to learn from")
            except DataFileError as error:
                if skip is None:
                    raise
                skip(error)
                continue
            yield SourceSequence(x, document.labels, (document.lines[0], document.number or 0))

    def error(self, place: Place, error: Exception) -> Exception:
        """Return the problem with the file and the line."""
        if isinstance(error, DataFileError):
            return error
        line, number = place
        problem = error.problem if isinstance(error, SequenceError) else str(error)
        step = getattr(error, "step", None)
        by_lines = self.recipe.format in ("columns", "crfsuite") and not isinstance(error, InfeasibleError)
        if isinstance(error, InfeasibleError) and error.cells:
            problem += f" (steps are counted from 0 at line {line})"
        return DataFileError(self.name, line + (step or 0) * by_lines, problem, sequence=number, step=step)

    def state(self) -> dict[str, Any]:
        """Return size and time of the file."""
        found = os.stat(self.name)
        return {"size": found.st_size, "time": found.st_mtime_ns}

    def digest(self) -> str:
        """Return the checksum of the file."""
        digest = hashlib.sha256()
        with open(self.name, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()

    def travels(self) -> bool:
        """Return True: other processes can read the file."""
        return True

    def absolute(self) -> FileSource:
        """Return the same source with an absolute path."""
        return replace(self, name=os.path.abspath(self.name))


@dataclass(frozen=True)
class PartSource:
    """A function, or a Dask delayed object, that returns (X, Y)."""

    name: str
    part: Any
    number: int

    def items(self, skip: Skip | None) -> Iterator[SourceSequence]:
        """Compute the part and yield its sequences."""
        made = self.part.compute() if hasattr(self.part, "compute") else self.part()
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise ValueError(f"{self.name} returned {a_type(made)}, expected a pair (X, Y)")
        X, Y = made
        if Y is not None and len(X) != len(Y):
            raise ValueError(f"{self.name} has {several(len(X), 'sequence')} in X but {len(Y)} in Y")
        for n, x in enumerate(X):
            yield SourceSequence(x, None if Y is None else Y[n], (n, n))

    def error(self, place: Place, error: Exception) -> Exception:
        """Return the problem with the part and the number of the sequence."""
        _, number = place
        problem = error.problem if isinstance(error, SequenceError) else str(error)
        found = type(error)(problem) if isinstance(error, SequenceError) else ValueError(problem)
        found.args = (f"{self.name}, sequence {number}: {problem}",)
        found.__dict__.update({**error.__dict__, "sequence": number})
        return found

    def state(self) -> None:
        """Return None: a part has no cheap stamp."""
        return None

    def digest(self) -> str:
        """Return an empty string: a part has no checksum."""
        return ""

    def travels(self) -> bool:
        """Return whether the part is a function that can be pickled; the scheduler computes delayed objects."""
        if hasattr(self.part, "compute"):
            return False
        try:
            pickle.dumps(self.part)
        except (pickle.PicklingError, AttributeError, TypeError):
            return False
        return True

    def absolute(self) -> PartSource:
        """Return this source."""
        return self


def stretches_of(sources: Sequence[Source], size: int, least: int) -> list[tuple[int, Sequence[Source]]]:
    """Divide sources into stretches of neighbours for ``size`` processes.

    Returns the number of the first source of each stretch, and its sources. All sources are one stretch if they have
    fewer than ``least`` bytes, or if only this process can read them.
    """
    if size == 1 or not all(source.travels() for source in sources):
        return [(0, sources)]
    states = [source.state() for source in sources]
    sizes = [least if state is None else state["size"] for state in states]  # the size of a part is unknown
    total = sum(sizes)
    if total < least or not total:
        return [(0, sources)]
    middles = np.cumsum(sizes) - 0.5 * np.array(sizes)
    groups = (middles * (size * STRETCHES) / total).astype(np.int64)
    begins = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(sources)]
    return [(a, sources[a:b]) for a, b in pairwise(begins)]


def files_of(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    levels: Sequence[str] | Mapping[str, int] | None,
    template: str | None,
    unlabelled: bool,
    skip: bool = False,
    **layout: Any,
) -> list[FileSource]:
    """A source for each file that names and patterns match; the first file determines the columns."""
    known = [name for name, one in inspect.signature(recipe_for).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for name in layout:
        if name not in known:
            expected = ["files", "levels", "template", "unlabelled", "cache", "errors", *known]
            raise TypeError(f"from_files takes no argument {name!r}; expected {', '.join(expected)}")
    paths = paths_of(files)
    return sources_of(paths, recipe_for(paths[0], levels, **layout), template, unlabelled, skip)


def sources_of(
    paths: Sequence[str], recipe: Recipe, template: str | None, unlabelled: bool, skip: bool = False
) -> list[FileSource]:
    """Sources of one recipe, which the first sequences complete. Schemes are left to the model."""
    left_out: list[Exception] = []
    documents = recipe.documents(paths[0], unlabelled=unlabelled, skip=left_out.append if skip else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # packing reads the file again and reports problems
        first = list(islice(documents, SEEN))
    if not first:
        raise left_out[0]
    known = recipe if recipe.features is not None and recipe.names else recipe.resolved(first, template)
    return [FileSource(path, replace(known, scheme={}), unlabelled) for path in paths]


def recipe_for(
    path: str,
    levels: Sequence[str] | Mapping[str, int] | None,
    *,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    separator: str | None = None,
    comment: str | None = None,
    sequence: str | None = "sequence",
    time: str | None = None,
) -> Recipe:
    """The recipe of files like this one."""
    form = format or format_of(path, tuple(levels or ())) or "columns"
    given = tuple(levels or (("label",) if form == "columns" else ()))
    return Recipe(
        format=form,
        levels=given,
        places=dict(levels) if isinstance(levels, Mapping) else None,
        names=tuple(columns) if columns else None,
        features=tuple(features) if features else None,
        separator=separator,
        comment=comment,
        sequence=sequence,
        time=time,
        suffix=suffix_of(path),
    )


def paths_of(files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that names and patterns such as ``data/*.jsonl`` match, those of a pattern in order."""
    import glob

    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found: list[str] = []
    for name in [os.fspath(file) for file in given]:
        matching = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
        if not matching:
            raise FileNotFoundError(2, "there is no such file, and no file matches the pattern", name)
        found += matching
    if not found:
        raise ValueError("there are no files, expected at least one")
    return found
