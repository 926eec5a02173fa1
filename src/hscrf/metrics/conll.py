"""Count chunks as conlleval does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hscrf.errors import several
from hscrf.metrics.cells import chosen_level, pairs_of, ratio, unzip
from hscrf.metrics.scores import Score, SegmentScores, total_of


@dataclass(frozen=True)
class ConllScores(SegmentScores):
    """The counts of conlleval.

    Attributes
    ----------
    correct, predicted, support : int
        Chunks that are right, predicted, and in the truth.
    per_label : dict of str to Score
        The counts of each chunk type.
    tokens : int
        The number of tokens.
    correct_tokens : int
        The number of tokens whose whole tag is right.
    """

    tokens: int = 0
    correct_tokens: int = 0

    @property
    def accuracy(self) -> float:
        """Share of the tokens with the right tag."""
        return ratio(self.correct_tokens, self.tokens)


def conlleval(y_true: Sequence[Any], y_pred: Sequence[Any], *, level: str | int | None = None) -> ConllScores:
    """Score tag sequences as the script of the CoNLL shared tasks does (version 2004-01-26).

    A chunk begins at B-x, at I-x after O, and wherever the type changes, so ill-formed tags are repaired. IOE and
    bracket tags are read too. Unlike the script, S-x (or U-x) is a chunk of its own, and a new chunk follows E-x (or
    L-x): BIOES is scored correctly.

    Parameters
    ----------
    y_true, y_pred : lists of lists of tags
        Labels in other forms, such as :class:`hscrf.Labels` or dicts by level, are first written as BIO tags of one
        level.
    level : str, int or None
        The level of labels that are not tags. None means the only one.

    Returns
    -------
    ConllScores

    Raises
    ------
    ValueError
        If numbers or lengths of sequences differ.

    Examples
    --------
    >>> scores = conlleval([["B-NP", "I-NP", "O", "B-VP"]], [["I-NP", "I-NP", "O", "B-NP"]])
    >>> scores.precision, scores.recall, scores.accuracy
    (0.5, 0.5, 0.5)
    """
    y_true, y_pred = _tags_of(y_true, y_pred, level)
    _check_tags(y_true, y_pred)
    true, pred = _all_chunks(y_true), _all_chunks(y_pred)
    counts = [Counter(kind for *_, kind in chunks) for chunks in (true & pred, pred, true)]
    kinds = sorted(counts[1].keys() | counts[2].keys())
    scores = total_of({kind: Score(*(count[kind] for count in counts)) for kind in kinds})
    right = sum(
        tag == other for one, two in zip(y_true, y_pred, strict=True) for tag, other in zip(one, two, strict=True)
    )
    return ConllScores(scores.correct, scores.predicted, scores.support, scores.per_label, sum(map(len, y_true)), right)


def conlleval_text(scores: ConllScores) -> str:
    """Return the scores in the text format of conlleval.

    Parameters
    ----------
    scores : ConllScores
        From :func:`conlleval`.

    Returns
    -------
    str

    Examples
    --------
    >>> print(conlleval_text(conlleval([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "B-NP"]])))
    processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  66.67%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                   NP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2
                   VP: precision:   0.00%; recall:   0.00%; FB1:   0.00  0
    """
    first = f"processed {scores.tokens} tokens with {scores.support} phrases; "
    lines = [f"{first}found: {scores.predicted} phrases; correct: {scores.correct}."]
    if scores.tokens:
        accuracy = 100 * scores.correct_tokens / scores.tokens
        lines.append(f"accuracy: {accuracy:6.2f}%; {_percentages(scores)}")
    for kind, score in scores.per_label.items():
        lines.append(f"{kind:>17}: {_percentages(score)}  {score.predicted}")
    return "\n".join(lines)


def _percentages(score: Score) -> str:
    precision = ratio(100 * score.correct, score.predicted)
    recall = ratio(100 * score.correct, score.support)
    f1 = 2 * precision * recall / (precision + recall) if score.correct else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _tags_of(y_true: Any, y_pred: Any, level: str | int | None) -> tuple[Any, Any]:
    """Lists of tags: as given, or converted from other labels."""
    if all(isinstance(side, list | tuple) and all(_is_tags(tags) for tags in side) for side in (y_true, y_pred)):
        return y_true, y_pred
    pairs = pairs_of(y_true, y_pred)
    chosen = chosen_level(pairs, level)
    return tuple([one.column(chosen, "bio") for one in side] for side in unzip(pairs))  # type: ignore[return-value]


def _is_tags(tags: Any) -> bool:
    return isinstance(tags, str) or (isinstance(tags, list | tuple) and not (tags and isinstance(tags[0], tuple)))


def _check_tags(y_true: Sequence[Sequence[str]], y_pred: Sequence[Sequence[str]]) -> None:
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {several(len(y_true), 'sequence')} but y_pred has {len(y_pred)}")
    for n, (one, other) in enumerate(zip(y_true, y_pred, strict=True)):
        for what, tags in (("y_true", one), ("y_pred", other)):
            if isinstance(tags, str):
                raise TypeError(f"{what}[{n}] is the string {tags!r}; expected a list of tags")
        if len(one) != len(other):
            raise ValueError(f"y_true[{n}] has {len(one)} tags but y_pred[{n}] has {len(other)}")


def _all_chunks(sequences: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
    """Chunks (sequence, start, stop, type) of all tag sequences."""
    return {(n, *chunk) for n, tags in enumerate(sequences) for chunk in _chunks(tags)}


def _chunks(tags: Sequence[str]) -> list[tuple[int, int, str]]:
    """Chunks (start, stop, type) of one tag sequence."""
    chunks, start = [], None
    before = ("O", "")
    for t, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        here = (_SYNONYMS.get(prefix, prefix), kind)
        if start is not None and _chunk_ends(before, here):
            chunks.append((start, t, before[1]))
            start = None
        if _chunk_starts(before, here):
            start = t
        before = here
    return chunks


_SYNONYMS = {"L": "E", "U": "S"}

# a boundary lies between these prefixes of one type
_BORDERS = {("B", "B"), ("I", "B"), ("E", "E"), ("E", "I"), ("E", "B")}


def _border(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether prefixes alone put a boundary between two tags; S and brackets are chunks of their own."""
    alone = {"S", "[", "]"}
    return (before[0], here[0]) in _BORDERS or before[0] in alone or here[0] in alone


def _chunk_ends(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether a chunk, if there is one, ends between two tags (prefix, type)."""
    if before[0] in ("O", "."):
        return False
    return here[0] == "O" or before[1] != here[1] or _border(before, here)


def _chunk_starts(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Whether a chunk starts at the second of two tags (prefix, type)."""
    if here[0] in ("O", "."):
        return False
    return before[0] == "O" or before[1] != here[1] or _border(before, here)
