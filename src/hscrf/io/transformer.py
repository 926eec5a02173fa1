"""A scikit-learn transformer from tokens to feature strings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from hscrf.io.patterns import template_text
from hscrf.io.template_files import default_template, from_settings, named_columns, read_template
from hscrf.io.templates import Template

Self = TypeVar("Self", bound="TokenFeatures")


class TokenFeatures(BaseEstimator):
    """Describe tokens by feature strings, as ``hscrf fit`` does, for use in Python and in pipelines.

    Parameters
    ----------
    template : str, path, mapping, list of str or Template
        ``"default"``: words around, conjunctions, affixes, shape. The name of a file in TOML or in the notation of
        CRF++ (:mod:`hscrf.io.template_files`). The tables of such a TOML file as a dict, with lexicons, regular
        expressions, word shapes and clusters. A list of patterns (:mod:`hscrf.io.patterns`).
    columns : sequence of str, optional
        Names of the cells of a token. By default ``"word"`` for tokens that are strings, the keys for dicts, numbers
        for rows of cells.

    Attributes
    ----------
    template_ : Template
        The template in use; ``print(features.patterns())`` shows it.
    columns_ : tuple of str

    Examples
    --------
    >>> features = TokenFeatures({"word": {"lower": True}, "lexicon": {"city": {"entries": ["New York"],
    ...                                                                         "column": "word"}}})
    >>> features.fit_transform([["in", "New", "York"]])
    [[['word[0]=in', 'word.lower=in'], ['word[0]=New', 'word.lower=new', 'city=B'], \
['word[0]=York', 'word.lower=york', 'city=I']]]
    """

    def __init__(self, template: Any = "default", columns: Sequence[str] | None = None) -> None:
        self.template = template
        self.columns = columns

    def fit(self: Self, X: Sequence[Any], y: Any = None) -> Self:
        """Read the template for the columns of some sequences.

        Parameters
        ----------
        X : list of sequences
            Sequences of tokens: strings, rows of cells, or dicts.
        y : object
            Not used.

        Returns
        -------
        self
        """
        first = next((token for x in sequences_of_tokens(X) for token in x), None)
        if first is None:
            raise ValueError("X has no token, expected at least one")
        self.columns_ = tuple(self.columns) if self.columns is not None else _names(first)
        self.template_ = self._template()
        self.template_.check(len(self.columns_))
        return self

    def _template(self) -> Template:
        template, columns = self.template, self.columns_
        if isinstance(template, Template):
            return template
        if isinstance(template, Mapping):
            return from_settings(template, named_columns(columns, columns))
        if isinstance(template, (list, tuple)):
            return from_settings({"patterns": list(template)}, named_columns(columns, columns))
        if isinstance(template, os.PathLike) or (isinstance(template, str) and template != "default"):
            return read_template(template, columns, columns)
        if template != "default":
            expected = "'default', a file, a dict of tables, a list of patterns or a Template"
            raise ValueError(f"template is {template!r}, expected {expected}")
        return default_template(columns)

    def transform(self, X: Sequence[Any]) -> list[list[list[str]]]:
        """Return the feature strings of each token of each sequence, in the form that ``HSCRF`` takes.

        Parameters
        ----------
        X : list of sequences
            As in ``fit``.

        Returns
        -------
        list of lists of lists of str
        """
        if not hasattr(self, "template_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this TokenFeatures is not fitted yet: call fit first")
        rows = ([self._row(token, n, t) for t, token in enumerate(x)] for n, x in enumerate(sequences_of_tokens(X)))
        return list(map(self.template_.apply, rows))

    def _row(self, token: Any, n: int, t: int) -> list[str]:
        """The cells of a token."""
        if isinstance(token, Mapping):
            return [str(token.get(name, "")) for name in self.columns_]
        row = [token] if isinstance(token, str) else [str(cell) for cell in token]
        if len(row) != len(self.columns_):
            raise ValueError(f"X[{n}] has {len(row)} cells at step {t}, expected {len(self.columns_)}")
        return row

    def fit_transform(self, X: Sequence[Any], y: Any = None) -> list[list[list[str]]]:
        """Fit, then transform the same sequences.

        Parameters
        ----------
        X : list of sequences
            As in ``fit``.
        y : object
            Not used.

        Returns
        -------
        list of lists of lists of str
            Feature strings of each token of each sequence.
        """
        return self.fit(X, y).transform(X)

    def patterns(self) -> str:
        """Return the patterns in use as the text of a TOML file. ``template`` accepts such a file.

        Returns
        -------
        str
        """
        return template_text(self.template_, self.columns_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "template_")


def sequences_of_tokens(X: Iterable[Any]) -> Iterator[Any]:
    """Yield the same sequences; one that is a string, whose characters would be its tokens, is an error."""
    for n, x in enumerate(X):
        if isinstance(x, str):
            raise ValueError(f"X[{n}] is a string, expected a list of tokens; hscrf.io.read_text cuts text into tokens")
        yield x


def _names(token: Any) -> tuple[str, ...]:
    """Names of the cells of a token."""
    if isinstance(token, str):
        return ("word",)
    return tuple(map(str, token)) if isinstance(token, Mapping) else tuple(str(k) for k in range(len(token)))
