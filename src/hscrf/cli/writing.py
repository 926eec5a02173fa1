"""Write documents with their predictions, in the format of the input or in another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hscrf import io
from hscrf.cli.comparison import predicted, truth_labels
from hscrf.cli.shell import UserError
from hscrf.io.documents import Document
from hscrf.io.recipe import Recipe
from hscrf.io.sniffing import suffix_of
from hscrf.labels.given import is_unknown
from hscrf.labels.labels import Labels
from hscrf.topology import Topology


@dataclass(frozen=True)
class Output:
    """The output format for documents read by a recipe."""

    recipe: Recipe
    topology: Topology
    to: str | None = None  # the format; None: that of the input
    source: str = ""  # the name of the input; a table keeps its separator

    def __post_init__(self) -> None:
        if self.to == "crfsuite" and len(self.recipe.levels) > 1:
            raise UserError(f"--to crfsuite has one label, but the levels are {', '.join(self.recipe.levels)}")

    @property
    def form(self) -> str:
        """The format that is written; of CRFsuite items only labels come out, as crfsuite does it; of text, JSON."""
        return self.to or {"crfsuite": "columns", "text": "jsonl"}.get(self.recipe.format, self.recipe.format)

    @property
    def alike(self) -> bool:
        """Whether the output has the format of the input."""
        return self.form == self.recipe.format

    def scheme(self, level: str) -> str:
        """The scheme of a column: that of the input, BIO for what JSON Lines may have as segments."""
        known = self.recipe.scheme.get(level, "plain")
        segments = self.recipe.format in ("jsonl", "text") and self.form != "jsonl" and not self.is_unit(level)
        return "bio" if segments and known == "plain" else known

    def is_unit(self, level: str) -> bool:
        """Whether the segments of a level have one step each."""
        topology = self.topology
        return topology.unit_bottom and topology.level(level) == topology.depth - 1

    def column(self, labels: Labels, level: str) -> list[Any]:
        """Labels of a level: a column or, in JSON Lines, segments where these may be longer than a step."""
        if self.form == "jsonl":
            return labels.column(level) if self.is_unit(level) else labels.segments(level)
        return labels.column(level, self.scheme(level))

    # -- documents

    def convert(self, document: Document) -> Document:
        """The document in the format of the output, without a prediction."""
        if self.alike:
            return replace(document, separator=document.separator or self.recipe.joint)
        if self.form == "jsonl":
            comments = {"comments": list(document.comments)} if document.comments else {}
            return replace(document, columns=(), comments=(), extra={**document.extra, **comments})
        name = document.name or str((document.number or 0) + 1)
        plain = Document([], lines=document.lines, file=document.file, number=document.number, name=name)
        cells = self.recipe.cells
        if self.form == "crfsuite":
            rows = [dict(zip(cells, row, strict=True)) for row in self.rows(document)] if cells else document.tokens
            return replace(plain, tokens=rows, labels=self.labels(document))
        tokens = self.rows(document)
        sequence = ("sequence",) if self.form == "table" else ()
        order = (*sequence, *cells, *self.recipe.levels)
        if self.form == "columns":
            tokens = [[io.cell_text(cell) for cell in row] for row in tokens]
        return replace(plain, tokens=tokens, labels=self.labels(document), columns=order)

    def rows(self, document: Document) -> list[list[Any]]:
        """The cells of each token; none where a token has a set of features."""
        names = self.recipe.cells
        if not names:
            return [[] for _ in document.tokens]
        return [_row(token, names) for token in document.tokens]

    def labels(self, document: Document) -> dict[str, list[str]]:
        """A column for each level, ? where the document has no labels."""
        levels = self.recipe.levels
        given = {level: column for level, column in (document.labels or {}).items() if not all(map(is_unknown, column))}
        if not given:
            return {level: ["?"] * len(document) for level in levels}
        labels = truth_labels([replace(document, labels=given)], self.recipe.scheme, not self.topology.unit_bottom)[0]
        return {
            level: labels.column(level, self.scheme(level)) if level in given else ["?"] * len(document)
            for level in levels
        }

    # -- files

    def write(self, target: Any, documents: Iterator[Document]) -> None:
        """Write documents with their predictions."""
        if self.form == "jsonl":
            io.write_jsonl(target, documents)
        elif self.form == "table":
            sequence = self.recipe.sequence if self.alike else "sequence"
            io.write_table(target, documents, sequence=sequence, separator=self.delimiter(target))
        elif self.form == "crfsuite":  # the prediction is the label
            levels = self.recipe.levels
            io.write_crfsuite(target, (predicted(document, levels) for document in documents))
        else:
            io.write_columns(target, documents, self.recipe.separator if self.alike else "\t")

    def delimiter(self, target: Any) -> str:
        """The separator of a table: by the name of the output, else that of the input."""
        named = {".csv": ",", ".tsv": "\t"}.get(suffix_of(target))
        given = self.recipe.delimiter(self.source) if self.recipe.format == "table" else None
        return (self.recipe.separator if self.alike else None) or named or given or ","


def _row(token: Any, names: tuple[str, ...]) -> list[Any]:
    """The cells of a token, by the names of its columns."""
    if isinstance(token, dict):
        return [token.get(name, "") for name in names]
    return [token] if isinstance(token, str) else list(token)
