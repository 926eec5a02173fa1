"""Plain texts of a studio: their tokens, and the effect of another tokenization on existing labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from hscrf.io.documents import Document
from hscrf.io.texts import TOKENS, text_document, tokenize
from hscrf.studio.data.events import State
from hscrf.studio.data.problems import Invalid
from hscrf.studio.data.sequences import InputSequence
from hscrf.studio.data.token_moves import MovedTokens, moved_between

WORDS = {"words": "words and signs", "blanks": "blanks only", "characters": "single characters"}


@dataclass
class Texts:
    """Texts by the names of their sequences, their tokenization, and the observations of tokens."""

    rows: Sequence[tuple[str, str]]
    observe: Callable[[Document], Any]
    tokens: str = "words"

    def items(self) -> list[InputSequence]:
        """The sequences in the current tokenization."""
        found = []
        for name, text in self.rows:
            document = text_document(text, self.tokens)
            seen = self.observe(document)
            places = [(start, stop) for start, stop in document.extra["offsets"]]
            found.append(InputSequence(name, document.tokens, seen, text=text, offsets=places))
        return found


# -- another way to cut


def shown(studio: Any) -> dict[str, Any] | None:
    """Data for the page: how texts are cut now, and how they were cut before; None without texts."""
    texts = studio.project.texts
    if texts is None:
        return None
    former = [cut["tokens"] for cut in studio.database.setting("cuts", [])][-2:-1]
    return {"now": texts.tokens, "former": former[0] if former else None, "ways": WORDS}


def preview(studio: Any, tokens: Any, sequence: int | None = None) -> dict[str, Any]:
    """The effect of another tokenization on tokens and labels, as text, and the new tokens of a sequence."""
    texts = _checked(studio, tokens)
    now = sum(tracked.length for tracked in studio.workspace.sequences.values())
    lost, kept = _lost(studio, tokens)
    names = dict(texts.rows)
    then = sum(len(tokenize(text, tokens)) for text in names.values())
    words = [f"{len(names)} texts are {then:,} tokens ({WORDS[tokens]}); now they are {now:,}."]
    if lost:
        more = ", …" if len(lost) > 3 else ""
        words.append(
            f"Not possible: in {_count(len(lost), 'sequence')} ({', '.join(lost[:3])}{more}) a label or a border lies "
            "inside what would be one token, and would be lost. Release it there, or leave the tokens as they are."
        )
    elif kept:
        words.append(f"{_count(kept, 'sequence')} with labels keep them: each label stays on its characters.")
    else:
        words.append("There are no labels yet.")
    tracked = studio.workspace.sequences.get(sequence)
    text = names.get(tracked.name, "") if tracked is not None else ""
    sample = [text[start:stop] for start, stop in tokenize(text, tokens)[:60]]
    return {"words": words, "possible": not lost, "sample": sample}


def apply(studio: Any, tokens: Any) -> None:
    """Cut all texts in another way, as one step: the former way brings everything back."""
    texts = _checked(studio, tokens)
    if tokens == texts.tokens:
        return
    if studio.trainer.state()["running"]:
        raise Invalid("a model is being trained with the tokens as they are: wait for it, or stop it", kind="running")
    with ExitStack() as guards:  # no event comes between
        for tracked in studio.workspace.sequences.values():
            guards.enter_context(tracked.guard)
        if _lost(studio, tokens)[0]:
            raise Invalid("labels would be lost: nothing was changed", "tokens")
        items = replace(texts, tokens=tokens).items()
        studio.workspace.recut(items, tokens)
        texts.tokens, studio.project.items = tokens, items
    studio.forget_doubts()
    studio.notifications.send("tokens")


def _checked(studio: Any, tokens: Any) -> Texts:
    texts: Texts | None = studio.project.texts
    if texts is None:
        raise Invalid("the sequences are not plain texts: their tokens came with the data", "tokens")
    if tokens not in TOKENS:
        raise Invalid(f"tokens is {tokens!r}, expected {', '.join(TOKENS)}", "tokens")
    return texts


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _lost(studio: Any, tokens: str) -> tuple[list[str], int]:
    """Names of the sequences whose labels would not survive, and how many others have labels."""
    texts, lost, kept = dict(studio.project.texts.rows), [], 0
    for tracked in studio.workspace.sequences.values():
        text = texts.get(tracked.name)
        with tracked.guard:
            if text is None or not tracked.state.version:
                continue
            moved = moved_between(text, studio.project.texts.tokens, tokens)
            cuts = [*studio.database.setting("cuts", []), {"tokens": tokens, "at": studio.database.last_event()}]
            events = studio.database.events(tracked.id, cuts)
            then = State.replayed(tracked.state.levels, moved.count, events)
            if not _same(tracked.state, then, moved):
                lost.append(tracked.name)
            elif tracked.state.in_force:
                kept += 1
    return lost, kept


def _same(now: Any, then: Any, moved: MovedTokens) -> bool:
    """Whether the known labels of a text cover the same characters under other tokens."""
    if now.status != then.status:
        return False
    for level in now.levels:
        old, new = now.knowledge.cells[level.name], then.knowledge.cells[level.name]
        for step in range(now.length):
            start, stop = moved.span(step, step + 1)
            if (new.label[start:stop] != old.label[step]).any():
                return False
        known = [at for at in range(1, now.length) if old.border[at] == 1]
        if any(not moved.is_exact[at] or new.border[moved.floor[at]] != 1 for at in known):
            return False
    return True
