"""Segments with levels, labels and confidences, and their text: the input of exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from hscrf.labels.labels import Labels

Tiers = Mapping[str, Sequence[tuple[int, int, Any]]]  # name -> half-open segments (start, stop, label) in steps
WORDS = ("word", "token", "w", "text")  # names of features that hold the word of a step


class Span(NamedTuple):
    """A segment of one level, half-open in steps.

    Parameters
    ----------
    start, stop : int
        First step, and the step after the last.
    level : str
        Name of the level.
    label : object
        State of the segment.
    confidence : float, optional
        Probability of the segment.
    """

    start: int
    stop: int
    level: str
    label: Any
    confidence: float | None = None


@dataclass(frozen=True)
class Labelled:
    """One sequence to export.

    Parameters
    ----------
    name : str
        Name of the sequence.
    tokens : sequence
        Observations, one entry for each step: words, rows of cells, dicts of features, or rows of numbers.
    spans : list of Span
        Ordered by level from top to bottom, then by start.
    levels : tuple of str
        All levels, also those without any span.
    times : sequence of float, optional
        The time in seconds at which each step begins, if steps are not equally long.
    text : str, optional
        The text of the tokens. Without it, spaces join the tokens.
    offsets : sequence of tuple of int, optional
        Start and stop of each token in ``text``.
    """

    name: str
    tokens: Sequence[Any]
    spans: list[Span] = field(default_factory=list)
    levels: tuple[str, ...] = ()
    times: Sequence[float] | None = None
    text: str | None = None
    offsets: Sequence[tuple[int, int]] | None = None

    @property
    def words(self) -> list[str]:
        """A word for each step."""
        return [word_of(token) for token in self.tokens]

    @property
    def has_words(self) -> bool:
        """Whether steps are words, not numbers or features without a word."""
        token = self.tokens[0] if len(self.tokens) else None
        if isinstance(token, Mapping):
            return any(key in token for key in WORDS)
        return self.text is not None or isinstance(
            token[0] if isinstance(token, (list, tuple)) and token else token, str
        )

    def written(self) -> tuple[str, list[tuple[int, int]]]:
        """Return the text of the sequence, and the place of each step in it.

        Returns
        -------
        text : str
            The original text, or words joined by spaces.
        places : list of tuple of int
            Half-open ``(start, stop)`` in characters, one for each step.
        """
        if self.text is not None and self.offsets is not None:
            return self.text, [(start, stop) for start, stop in self.offsets]
        return joined(self.words)

    def of_level(self, level: str) -> list[Span]:
        """Return the spans of one level.

        Parameters
        ----------
        level : str
            Name of the level.

        Returns
        -------
        list of Span
        """
        return [span for span in self.spans if span.level == level]


def spans_of(
    labels: Labels, confidence: Mapping[str, Sequence[float]] | None = None, ignore: Iterable[Any] = ("O",)
) -> list[Span]:
    """Return the segments of complete labels, by level from top to bottom.

    Parameters
    ----------
    labels : Labels
    confidence : mapping, optional
        For each level the confidence of each of its segments, in their order. By default that of labels from
        ``predict(X, confidence=True)``; other labels have none.
    ignore : iterable
        Labels that are left out: those of steps outside any segment.

    Returns
    -------
    list of Span

    Examples
    --------
    >>> from hscrf import Labels, Topology
    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["D", "N", "V"]})
    >>> columns = {"phrase": ["B-NP", "I-NP", "O"], "tag": ["D", "N", "V"]}
    >>> labels = Labels.from_columns(topology, columns, {"phrase": "bio", "tag": "plain"})
    >>> [tuple(span[:4]) for span in spans_of(labels)[:2]]
    [(0, 2, 'phrase', 'NP'), (0, 1, 'tag', 'D')]
    """
    left_out = set(ignore)
    found = []
    for level in labels.topology.levels[1:]:
        segments = labels.segments(level)
        sure = (confidence or {}).get(level)
        if confidence is None and labels.posterior is not None:
            sure = [segment.probability for segment in labels.confidence(level)]
        values = [None] * len(segments) if sure is None else [round(float(value), 6) for value in sure]
        found += [Span(*segment[:2], level, segment[2], p) for segment, p in zip(segments, values, strict=True)]
    return [span for span in found if span.label not in left_out]


def word_of(token: Any) -> str:
    """A token as text: the first of its columns, a word among its features, or all of them.

    >>> word_of(["the", "DT"]), word_of({"word": "cat", "pos": "NN"}), word_of("sat")
    ('the', 'cat', 'sat')
    """
    if isinstance(token, (list, tuple)) and token:
        return str(token[0])
    if isinstance(token, Mapping) and token:
        return str(next((token[key] for key in WORDS if key in token), features_of(token)))
    return str(token)


def features_of(token: Any) -> str:
    """The features of a token in a line."""
    if isinstance(token, Mapping):
        return "  ".join(f"{key}={value}" for key, value in token.items())
    return "  ".join(map(str, token)) if isinstance(token, (list, tuple)) else str(token)


def joined(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Words joined by spaces, and where each begins and ends.

    >>> joined(["the", "cat"])
    ('the cat', [(0, 3), (4, 7)])
    """
    places = word_offsets(words)
    return " ".join(words), [(place, place + len(word)) for place, word in zip(places, words, strict=False)]


def word_offsets(words: Sequence[str]) -> list[int]:
    """Where each word begins in the text of all, joined by spaces, and where one after the last would.

    >>> word_offsets(["the", "cat"])
    [0, 4, 8]
    """
    return list(accumulate((len(word) + 1 for word in words), initial=0))
