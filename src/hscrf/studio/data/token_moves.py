"""Events that were made on other tokens of the same text, on the tokens of today: labels stay on their characters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from hscrf.io.texts import tokenize

Places = Sequence[tuple[int, int]]  # of tokens in a text


class MovedTokens:
    """Borders of old tokens among new ones of the same text."""

    def __init__(self, old: Places, new: Places) -> None:
        starts = [start for start, _ in new]
        known = set(starts)
        self.count = len(new)
        self.ceil = [0, *(bisect_left(starts, start) for start, _ in old[1:]), len(new)]
        self.is_exact = [True, *(start in known for start, _ in old[1:]), True]
        self.floor = [k if exact else k - 1 for k, exact in zip(self.ceil, self.is_exact, strict=True)]

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """All new tokens that some old ones have a part of."""
        return self.floor[start], self.ceil[stop]

    def border(self, at: int) -> int:
        """The border inside the text that is nearest before an old one."""
        return max(1, min(self.count - 1, self.floor[at]))

    def event(self, kind: str, body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """An event on the new tokens."""
        found = dict(body)
        if "start" in body:
            found["start"], found["stop"] = self.span(body["start"], body["stop"])
        if kind == "boundary":
            if self.count < 2:  # there is no border any more
                return "release", {"level": body["level"], "start": 0, "stop": self.count}
            found |= {name: self.border(body[name]) for name in ("at", "from") if name in body}
        if kind == "accept":
            found["segments"] = {level: self.rows(rows) for level, rows in body["segments"].items()}
        if kind == "differ":
            found["rows"] = [[level, *self.span(i, j), *said] for level, i, j, *said in body["rows"]]
            found["borders"] = [[level, self.border(at), *said] for level, at, *said in body.get("borders", ())]
        if kind == "import":
            found["levels"] = {level: self._known(known) for level, known in body["levels"].items()}
        return kind, found

    def rows(self, rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Segments [start, stop, label]."""
        return [[*self.span(start, stop), label] for start, stop, label in rows]

    def _known(self, known: Mapping[str, Any]) -> dict[str, Any]:
        found = {**known, "labels": self.rows(known.get("labels", ()))}
        if "on" in known:
            found["on"] = sorted({self.border(at) for at in known["on"]} if self.count > 1 else ())
        if "off" in known:  # no border inside a segment that begins one border earlier
            spans = [self.span(start - 1, stop) for start, stop in known["off"]]
            found["off"] = [[start + 1, stop] for start, stop in spans if stop > start + 1]
        return found


def moved_event(
    kind: str, body: dict[str, Any], event: int, cuts: Sequence[Mapping[str, Any]], text: str
) -> tuple[str, dict[str, Any]]:
    """An event, given by its number, on the tokens of today.

    ``cuts`` are the ways in which texts were cut: {"tokens": way, "at": number of the last event before it}.

    >>> cuts = [{"tokens": "blanks", "at": 0}, {"tokens": "words", "at": 3}]
    >>> moved_event("label", {"level": "tag", "start": 0, "stop": 1, "label": "N"}, 3, cuts, "cats, dogs")
    ('label', {'level': 'tag', 'start': 0, 'stop': 2, 'label': 'N'})
    """
    then = next(cut["tokens"] for cut in reversed(cuts) if cut["at"] < event or cut is cuts[0])
    now = cuts[-1]["tokens"]
    if then == now:
        return kind, body
    return moved_between(text, then, now).event(kind, body)


@lru_cache(maxsize=32)
def moved_between(text: str, then: str, now: str) -> MovedTokens:
    """From one way to cut a text to another."""
    return MovedTokens(tokenize(text, then), tokenize(text, now))
