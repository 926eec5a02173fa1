"""Which sequence comes next: the most doubtful, not all of one kind, and a random tenth for an honest estimate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

TENTH = 10
VARIED = 30  # places at the head of the queue that are chosen for variety too
VARIETY = 0.5  # share of its doubt that a sequence loses if it equals an earlier choice


@dataclass(frozen=True)
class Candidate:
    """A sequence that waits."""

    id: int
    name: str
    doubt: float | None = None  # nats a step, None before a model has looked
    profile: Sequence[float] = ()  # what it is made of


def is_random(name: str, seed: int = 0) -> bool:
    """Whether a sequence belongs to the random tenth, independent of any model.

    >>> sum(is_random(f"day_{n}") for n in range(1000))
    83
    """
    return _draw(name, seed) % TENTH == 0


def _draw(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode("utf-8", "surrogatepass")).digest()[:8], "big")


def ordered(waiting: Sequence[Candidate], done: Mapping[str, int], seed: int = 0) -> list[tuple[Candidate, str]]:
    """The waiting sequences in working order, each with why: "doubt", "random", or "file" without a model.

    Every tenth place belongs to the random tenth, in an order of its own: those that are done of it are a random sample
    of all. ``done`` counts the accepted sequences of both sorts: {"random": 1, "other": 9}.
    """
    random = sorted((c for c in waiting if is_random(c.name, seed)), key=lambda c: _draw(c.name, seed))
    others = [c for c in waiting if not is_random(c.name, seed)]
    if any(c.doubt is not None for c in others):
        others, why = varied(others), "doubt"
    else:
        why = "file"
    found: list[tuple[Candidate, str]] = []
    turns = {"random": done.get("random", 0), "other": done.get("other", 0)}
    while random or others:
        due = turns["random"] * (TENTH - 1) < turns["other"] - (TENTH - 2)
        if random and (due or not others):
            found.append((random.pop(0), "random"))
            turns["random"] += 1
        else:
            found.append((others.pop(0), why))
            turns["other"] += 1
    return found


def varied(candidates: Sequence[Candidate]) -> list[Candidate]:
    """By doubt, the largest first; at the head a sequence counts for less, the more it is like an earlier one."""
    rest = sorted(candidates, key=lambda c: (-(c.doubt if c.doubt is not None else -1.0), c.id))
    if not rest or not all(len(c.profile) == len(rest[0].profile) > 0 for c in rest):
        return rest
    table = np.array([c.profile for c in rest], dtype=float)
    table /= np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
    doubt = np.array([c.doubt if c.doubt is not None else 0.0 for c in rest])
    alike = np.zeros(len(rest))
    left = np.ones(len(rest), dtype=bool)
    head = []
    for _ in range(min(VARIED, len(rest))):
        best = int(np.where(left, doubt * (1 - VARIETY * alike), -1.0).argmax())
        head.append(best)
        left[best] = False
        alike = np.maximum(alike, table @ table[best])
    return [rest[k] for k in (*head, *np.flatnonzero(left).tolist())]
