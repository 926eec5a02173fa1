"""The recipe of a file: the roles of its columns, its features, and how to write it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hscrf.errors import several
from hscrf.estimator.contract import Model
from hscrf.files.container import write_container
from hscrf.files.content import Field
from hscrf.files.model import SCHEMES
from hscrf.io.cells import Dated, cell_text, date_in, is_empty_cell, number_in, sign_hint
from hscrf.io.columns import read_columns
from hscrf.io.crfsuite import read_crfsuite
from hscrf.io.documents import Document
from hscrf.io.jsonl import read_jsonl
from hscrf.io.lines import Skip
from hscrf.io.sniffing import hinted, options_for, suffix_of
from hscrf.io.tables import read_table
from hscrf.io.tags import detect_scheme, with_checked_tags
from hscrf.io.template_files import default_template, read_template
from hscrf.io.templates import Template
from hscrf.io.texts import read_text
from hscrf.labels.reading import is_segments
from hscrf.observations.columns import Table
from hscrf.topology import Topology

FORMATS = ("columns", "jsonl", "table", "crfsuite", "text")
PREDICTED = "{}_predicted"  # name of an appended column


@dataclass(frozen=True)
class Recipe:
    """How to read a file, make features of it, and write it back."""

    format: str = "columns"
    levels: tuple[str, ...] = ()  # top to bottom
    places: Mapping[str, int] | None = None  # of the levels' columns, where they are given by number
    names: tuple[str, ...] | None = None  # of all columns
    features: tuple[str, ...] | None = None  # names of the columns that are features
    numeric: tuple[str, ...] | None = None  # features of a table that hold numbers
    dates: tuple[str, ...] = ()  # numeric features that hold dates
    decimal: str | None = None  # decimal sign of numbers; None: detected
    scheme: Mapping[str, str] = field(default_factory=dict)  # by level
    separator: str | None = None
    joint: str = "\t"  # between the columns of the training file: what follows a column that stands alone
    comment: str | None = None
    sequence: str | None = "sequence"  # column of a table
    time: str | None = None
    suffix: str = ""  # ending of the training file's name: files with this ending are read in the same way
    template: Template | None = None
    tokens: str = "words"  # how plain text is cut
    by: str | None = None  # documents of plain text: "line" or "file"; None: lines if there is one file

    # -- files

    @property
    def label_order(self) -> tuple[str, ...]:
        """The levels in the order of their columns, which is that of predicted columns too."""
        if self.names is not None:
            return tuple(name for name in self.names if name in self.levels)
        return tuple(sorted(self.places, key=self.places.__getitem__)) if self.places else self.levels

    @property
    def predicted(self) -> list[str]:
        """Names of the columns that a prediction appends."""
        return [PREDICTED.format(level) for level in self.label_order]

    @property
    def cells(self) -> tuple[str, ...]:
        """The features that are columns in other formats; none where a token has a set of features."""
        features = self.features or ()
        rows = self.format in ("columns", "table") or self.template is not None or self.numeric is not None
        return features if rows or features == ("token",) else ()

    def as_format(self, form: str) -> Recipe:
        """The recipe for a file in another format than that of training, as ``hscrf predict --to`` writes it."""
        if form == self.format:
            return self
        names = (*self.cells, *self.levels) if form == "columns" and self.features is not None else None
        scheme = self.scheme
        if self.format == "jsonl":  # segments are written as BIO there
            scheme = {level: kind for level, kind in scheme.items() if kind != "plain"}
        features = self.cells or None if form == "table" else self.features
        return replace(
            self, format=form, names=names, places=None, features=features, scheme=scheme, separator=None, comment=None
        )

    def with_levels(self, levels: Sequence[str]) -> Recipe:
        """The recipe of a model that may lack levels."""
        return replace(self, levels=tuple(levels), scheme={k: v for k, v in self.scheme.items() if k in levels})

    def written(self) -> Recipe:
        """The recipe of written predictions: for CRFsuite items only the labels are written."""
        if self.format != "crfsuite":
            return self
        return replace(self, format="columns", separator="\t", names=self.levels, places=None)

    def read(
        self, source: Any, extra: Sequence[str] = (), unlabelled: bool = False, loose: bool = False
    ) -> Iterator[Document]:
        """The documents of a file; ``extra`` names further columns, ``unlabelled`` allows labels to be missing.

        ``loose``: the columns of ``extra`` may be missing, and others may follow them.
        """
        return hinted(self.documents(source, extra, unlabelled, loose), self, unlabelled)

    def documents(
        self,
        source: Any,
        extra: Sequence[str] = (),
        unlabelled: bool = False,
        loose: bool = False,
        skip: Skip | None = None,
    ) -> Iterator[Document]:
        """The same as :meth:`read`, but errors name no options; ``skip`` is called with those of bad sequences."""
        options: dict[str, Any] = {"scheme": self.scheme or None, "skip": skip}
        if self.format == "jsonl":
            return read_jsonl(source, self.levels or None, unlabelled=unlabelled, **options)
        if self.format == "crfsuite":
            return read_crfsuite(source, self.levels[0] if self.levels else "label", **options)
        if self.format == "text":
            return read_text(source, self.tokens, self.by, skip=skip)
        if self.format == "columns":
            options |= {"separator": self.separator, "comment": self.comment}
            levels = self.places or self.levels
            extra = () if loose and self.names is None else extra  # where they begin is unknown
            options |= {"extra": extra, "unlabelled": unlabelled, "loose": loose}
            return read_columns(source, levels, self.names, **options)
        return read_table(
            source,
            self.levels,
            sequence=self.sequence,
            time=self.time,
            features=self.features,
            numeric=() if self.numeric is None and self.template is not None else self.numeric,
            separator=self.delimiter(source),
            extra=extra,
            unlabelled=unlabelled,
            loose=loose,
            decimal=self.decimal,
            dates=self.dates,
            **options,
        )

    def delimiter(self, path: Any) -> str:
        """What separates the cells of a table."""
        return self.separator or ("\t" if suffix_of(path) == ".tsv" else ",")

    # -- settings from the training file

    def resolved(self, documents: Sequence[Document], template: str | None) -> Recipe:
        """The recipe with everything unknown filled in from the documents of a training file."""
        first = documents[0]
        features = self._feature_names(first)
        if not features:
            told = f"there is no column but the labels {', '.join(first.columns)}, expected a feature column"
            options = options_for(first.file, self, unlabelled=False) if os.path.exists(first.file) else ""
            raise first.error(f"{told}; {options} would read the file" if options else told)
        levels = self.levels or tuple(first.labels or ())
        names = _with_levels(first.columns, levels) if self.format == "columns" else first.columns
        recipe = replace(
            self,
            levels=levels,
            places=None,
            names=names or None if self.format != "jsonl" else None,
            features=features,
            numeric=_numeric(documents, features),
            dates=_dates(documents, features),
            joint=first.separator * (self.format == "columns") or self.joint,
            decimal=first.decimal if self.format == "table" else None,
            scheme={level: self.scheme.get(level) or detect_scheme(documents, level) for level in levels},
        )
        for _ in hinted(with_checked_tags(documents, recipe.scheme), replace(self, scheme=recipe.scheme)):
            pass
        return replace(recipe, template=recipe._template(first, template))

    def settled(self, documents: Sequence[Document], topology: Topology) -> Recipe:
        """The recipe with the schemes of the columns of another file than the training file.

        A level that was plain, or segments, in training may be in BIO in this file. A level of segments is taken for
        BIO if the columns of the file do not show its scheme.
        """
        scheme = dict(self.scheme)
        for level in self.levels:
            states = topology.states[topology.level(level)]
            unit = topology.unit_bottom and level == topology.levels[-1]
            columns = [(document.labels or {}).get(level, ()) for document in documents]
            known = {tag for column in columns if not is_segments(column) for tag in column} - {"?", "O", None}
            if level not in scheme and self.format != "jsonl" and not known:
                scheme[level] = "plain" if unit else "bio"
            elif scheme.get(level, "plain") == "plain" and known.isdisjoint(states):
                scheme[level] = detect_scheme(documents, level)
        return replace(self, scheme=scheme)

    def _feature_names(self, document: Document) -> tuple[str, ...]:
        token = document.tokens[0]
        if document.columns and self.format == "jsonl":
            return document.columns
        if document.columns:
            taken = {*(document.labels or ()), *document.extra, *([self.sequence] if self.format == "table" else [])}
            return tuple(name for name in document.columns if name not in taken)
        if isinstance(token, str):
            return ("token",)
        return tuple(token) if isinstance(token, Mapping) else tuple(map(str, range(len(token))))

    def _template(self, first: Document, given: str | None) -> Template | None:
        """The given template; by default one for words if tokens are words."""
        assert self.features is not None
        token = first.tokens[0]
        if given == "none":
            return None
        if given not in (None, "default"):
            return read_template(str(given), self._counted_columns(), self.features)
        named = self.format == "table" or (self.format == "jsonl" and bool(first.columns))
        words = isinstance(token, str) or self.format == "columns" or (named and not self.numeric)
        return default_template(self.features) if words or given == "default" else None

    def _counted_columns(self) -> tuple[str, ...]:
        """The columns that a CRF++ template counts: all of a column file, the features of other formats."""
        assert self.features is not None
        return self.names if self.format == "columns" and self.names else self.features

    def for_others(self, first: Sequence[Document], template: str | None) -> Recipe:
        """The recipe for further training files, whose columns have the types of the first."""
        if self.format != "table":
            return self
        known = self.resolved(first, template)
        return replace(self, features=known.features, numeric=known.numeric, dates=known.dates, decimal=known.decimal)

    # -- observations

    def observe(self, document: Document) -> Any:
        """The observations of a document."""
        tokens, first = document.tokens, document.tokens[0]
        if self.template is not None:
            return Features(self.template, self._rows(document))
        if self.numeric is not None and isinstance(first, (str, Mapping)):  # the model has the columns of a table
            given = {"token"} if isinstance(first, str) else set(first)
            if not given & set(self.features or ()):
                known = ", ".join(self.features or ())
                raise document.error(f"there are the features {', '.join(given)}, but the model was trained on {known}")
        if isinstance(first, str):
            name = self.features[0] if self.features and len(self.features) == 1 else "token"
            return [[f"{name}={token}"] for token in tokens]
        if self.numeric is not None and (isinstance(first, Mapping) or self.format == "columns"):
            return self._columns(document)
        if isinstance(first, Mapping):
            return tokens
        if not all(isinstance(cell, str) for token in tokens for cell in token):
            if self.numeric is not None and set(self.numeric) != set(self.features or ()):
                return self._columns(document)
            return self._named(self._array(document))
        if self.format == "columns":
            names = self.features or ()
            return [[f"{name}={cell}" for name, cell in zip(names, token, strict=True)] for token in tokens]
        return tokens

    def _array(self, document: Document) -> Any:
        """Rows of numbers, NaN where one is missing."""
        try:
            return np.array(document.tokens, dtype=np.float64)
        except (TypeError, ValueError):
            for t, token in enumerate(document.tokens):
                for k, cell in enumerate(token):
                    if isinstance(cell, str):
                        raise document.error(
                            f"cell {k} of token {t} is {cell!r}, expected a number or null", t
                        ) from None
            raise

    def _columns(self, document: Document) -> Any:
        """The observations of a model of a table: numbers in numeric columns, text in others; cells may be missing."""
        names, numeric = self.features or (), set(self.numeric or ())
        cells: dict[str, list[Any]] = {name: [] for name in names}
        for t, token in enumerate(document.tokens):
            row = token if isinstance(token, Mapping) else dict(zip(names, self._row(document, t), strict=True))
            for name in names:
                cell = row.get(name)
                if name in numeric:
                    cells[name].append(self._number(document, t, name, cell))
                else:
                    cells[name].append(cell if isinstance(cell, str) else cell_text(cell))
        arrays = {name: np.array(cells[name], dtype=np.float64) for name in names if name in numeric}
        if len(arrays) == len(names):
            return self._named(np.column_stack([arrays[name] for name in names]))
        return Table({name: arrays.get(name, cells[name]) for name in names})

    def _number(self, document: Document, t: int, name: str, cell: Any) -> float:
        if is_empty_cell(cell):
            return np.nan
        dated = name in self.dates and isinstance(cell, str)
        value = date_in(cell) if dated else number_in(cell, self.decimal or ".")
        if value is None:
            kind = "a date" if dated else "a finite number"
            hint = "" if dated else sign_hint(cell, self.decimal or ".")
            problem = f"column {name!r} is {cell!r}, expected {kind} as in training, or nothing if it is missing{hint}"
            raise document.error(problem, t)
        return value

    def _row(self, document: Document, t: int) -> list[Any]:
        """The cells of a token that has no names."""
        token, names = document.tokens[t], self.features or ()
        row = [token] if isinstance(token, str) else list(token)
        if len(row) != len(names):
            raise document.error(
                f"token {t} has {several(len(row), 'column')}, but the model was trained on {len(names)}", t
            )
        return row

    def _named(self, rows: Any) -> Any:
        """Rows of numbers with the names of the table's columns."""
        names = self.features or ()
        if len(names) != rows.shape[1] or names == tuple(map(str, range(len(names)))):
            return rows
        named = rows.view(NamedColumns)
        named.columns = names
        return named

    def _rows(self, document: Document) -> list[list[str]]:
        """The feature columns of every token as text."""
        names = self.features or ()
        rows = []
        for t, token in enumerate(document.tokens):
            cells = [token.get(name, "") for name in names] if isinstance(token, Mapping) else self._row(document, t)
            rows.append([cell if isinstance(cell, str) else cell_text(cell) for cell in cells])
        return rows

    # -- JSON

    def save_with(self, model: Model, path: str) -> None:
        """Write a model together with this recipe into one file, which ``hscrf.load`` and the shell read."""
        header, arrays = model.content()
        write_container(path, {**header, "recipe": self.to_dict()}, arrays)

    def to_dict(self) -> dict[str, Any]:
        """The recipe as JSON."""
        template = None if self.template is None else self.template.to_dict()
        return {**asdict(replace(self, template=None)), "template": template}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Recipe:
        """The recipe that :meth:`to_dict` wrote."""
        recipe: Recipe = Field(entry, "recipe").record(cls)
        return recipe

    def check(self, topology: Topology) -> None:
        """Raise a ``ValueError`` unless files can be read and features made for a model of this topology."""
        if self.format not in FORMATS:
            raise ValueError(f"format is {self.format!r}, expected {', '.join(FORMATS)}")
        if self.levels != topology.levels[1:]:
            raise ValueError(f"levels are {self.levels}, but the model has {topology.levels[1:]}")
        for level, scheme in self.scheme.items():
            if level not in self.levels or scheme not in SCHEMES:
                raise ValueError(f"scheme of level {level!r} is {scheme!r}, expected {', '.join(SCHEMES)}")
        for names in (self.names, self.features, self.numeric):
            if names is not None and len(set(names)) < len(names):
                raise ValueError(f"columns are {names}, expected distinct names")
        if "" in (self.separator, self.comment, self.joint):
            raise ValueError("separator, joint or comment is empty, expected text")
        written = [*topology.levels, *(name for states in topology.states for name in states), *(self.names or ())]
        "".join([*written, *(self.features or ()), self.separator or ""]).encode()  # types that files can hold
        if self.template is not None:
            self.template.check(len(self.features or ()))


def _with_levels(columns: tuple[str, ...], levels: Sequence[str]) -> tuple[str, ...]:
    """The columns of a file and, where it has no labels, those that labels will have."""
    return (*columns, *(level for level in levels if level not in columns))


class NamedColumns(np.ndarray[Any, Any]):
    """An array whose columns have names, as those of a DataFrame do."""

    columns: tuple[str, ...]


class Features(Sequence[list[str]]):
    """The feature strings of a sequence, computed each time they are read to save memory."""

    def __init__(self, template: Template, rows: list[list[str]]) -> None:
        self.template, self.rows = template, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[list[str]]:
        return iter(self.template.apply(self.rows))

    def __getitem__(self, t: Any) -> Any:
        return self.template.apply(self.rows)[t]


def _dates(documents: Sequence[Document], features: Sequence[str]) -> tuple[str, ...]:
    """The features of a table that are dates."""
    found: dict[str, None] = {}
    for document in documents:
        for token in document.tokens:
            cells = token.items() if isinstance(token, Mapping) else zip(features, token, strict=False)
            found |= {name: None for name, cell in cells if isinstance(cell, Dated)}
    return tuple(name for name in features if name in found)


def _numeric(documents: Sequence[Document], features: Sequence[str]) -> tuple[str, ...] | None:
    """The features that are numbers, in a table or as rows of JSON; None where features have no columns."""
    token = documents[0].tokens[0]
    if isinstance(token, Mapping):
        if not documents[0].columns:
            return None
        return tuple(name for name, value in token.items() if isinstance(value, float))
    if not isinstance(token, list):
        return None
    rows = [row for document in documents for row in document.tokens]
    texts = {k for row in rows for k, cell in enumerate(row) if isinstance(cell, str)}
    return tuple(name for k, name in enumerate(features) if k not in texts) if len(texts) < len(token) else None
