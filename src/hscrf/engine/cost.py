"""Estimate the cost of inference in multiply-adds and bytes, and suggest how to reduce it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hscrf.engine.tally import COUNTER
from hscrf.errors import several
from hscrf.fillers import expanded
from hscrf.topology import Topology

RATE = 2e9  # multiply-adds per second of one thread, roughly
FIXED = 2000.0  # the other work for each step of a segment, in multiply-adds
PASSES = 2.0  # the cost of one training iteration, in summing passes
TABLES = 8  # arrays of the size of a table of segments that are alive at once
LONG, MUCH = 5.0, 2e9  # seconds of a pass over the data, and bytes, above which a warning is shown

REASON = "scores differ so much that scaled numbers cannot hold them"


class CostlyModel(Protocol):
    """The attributes of a model that the cost estimate reads."""

    topology_: Topology
    n_jobs: int


OPTION = "max_duration={{{level!r}: STEPS}} (in the shell --max-duration {level}=STEPS)"


@dataclass(frozen=True)
class Cost:
    """The cost of one pass over sequences; a level is the one whose segments cost most, None if no level has tables."""

    operations: float  # multiply-adds
    memory: float  # bytes for the longest sequence
    level: str | None
    longest: int  # steps of a segment of that level

    def seconds(self, learning: bool = False, jobs: int = 1) -> float:
        """A rough guess for one pass over the data."""
        return self.operations * (PASSES if learning else 1.0) / (RATE * max(jobs, 1))

    def warning(
        self,
        learning: bool = False,
        jobs: int = 1,
        option: str = OPTION,
        each: str = "an iteration",
    ) -> str:
        """Return one line with the cost and how to reduce it; an empty string if the cost is small.

        ``option`` is how a limit is given where the line is read, ``each`` what it is about.
        """
        seconds = self.seconds(learning, jobs)
        if seconds < LONG and self.memory < MUCH:
            return ""
        line = f"about {time_in_words(seconds)} for {each} and {self.memory / 1e9:.1f} GB of memory"
        if self.level is None:
            return line
        told = f"level {self.level!r} has segments of up to {several(self.longest, 'step')}"
        return f"{line}: {told}; {option.format(level=self.level)} makes it cheaper"


def estimate(topology: Topology, lengths: Any, explicit: Sequence[int] = ()) -> Cost:
    """The cost of one pass; ``explicit`` names levels that have tables of segments besides those with limits.

    A layer reaches from a level with a table (the root is one) down to the next, or to the bottom. Its cost is, for
    every step of every segment of its upper level, the segments that may end there below it, and its transitions.

    >>> topology = Topology({"day": ["work", "rest"], "act": ["a", "b"]}, max_duration={"day": 50})
    >>> short, long = (estimate(topology, [n]).operations for n in (1000, 2000))
    >>> round(long / short, 1)  # linear in the length, where durations are limited
    2.0
    """
    topology = expanded(topology)
    sizes = np.asarray(lengths, dtype=np.float64)
    bottom = topology.depth - 1
    tables = [d for d in range(bottom + 1) if d == 0 or _has_table(topology, d, explicit)]
    tops = [d for d in tables if d < bottom]
    work, most, level, longest = 0.0, 0.0, None, 0
    for top, end in zip(tops, [*tops[1:], bottom], strict=True):
        leaves, squares = _layer_size(topology, top, end)
        runs = sizes if top == 0 else _segments(sizes, _longest(topology, top))
        reach = np.minimum(_longest(topology, end), sizes) if end in tables else 1.0
        work += float((runs * (FIXED + reach * leaves + squares)).sum())
    memory = 0.0
    length = sizes.max(initial=0.0)
    for d in tables[1:]:
        rows = float(_segments(length, _longest(topology, d)))
        memory += 8.0 * TABLES * rows * topology.n_states[d]
        if rows > most:
            most, level, longest = rows, topology.levels[d], int(min(_longest(topology, d), length))
    return Cost(work, memory, level, longest)


def _has_table(topology: Topology, d: int, explicit: Sequence[int]) -> bool:
    if d == topology.depth - 1 and topology.unit_bottom:
        return False
    return topology.has_limits(d) or d in explicit


def _segments(sizes: Any, longest: int) -> Any:
    """The segments of sequences that are no longer than a limit."""
    reach = np.minimum(float(longest), sizes)
    return reach * sizes - reach * (reach - 1) / 2


def _longest(topology: Topology, d: int) -> int:
    """The longest segments in tables: for open states above the bottom, those of any length."""
    limits = topology.max_duration[d] if d == topology.depth - 1 else topology.longest_legal(d)
    return int(limits.max())


def _layer_size(topology: Topology, top: int, end: int) -> tuple[float, float]:
    """The leaves of the tries of a layer, and the sum of its squared groups of siblings."""
    paths, squares = np.ones(topology.n_states[top]), 0.0
    for d in range(top, end):
        children = topology.children[d].astype(np.float64)
        squares += float(paths @ children.sum(axis=1) ** 2)
        paths = paths @ children
    return float(paths.sum()), squares


def time_in_words(seconds: float) -> str:
    """A span of time in words.

    >>> time_in_words(0.4), time_in_words(40), time_in_words(400), time_in_words(40_000)
    ('1 s', '40 s', '7 minutes', '11 hours')
    """
    if seconds < 120:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"


def timed_levels(model: object) -> list[int]:
    """The levels of a model that have weights for durations or segments."""
    blocks = getattr(model, "blocks_", ())  # neural models have no specifications
    return [block.key[1] for block in blocks if block.key[0] in ("duration", "segment")]


def report_cost(model: CostlyModel, lengths: Any, learning: bool = True) -> None:
    """Print the estimated cost of a training iteration or a prediction to standard error, if it is high."""
    if getattr(model, "verbose", 0) != 1:
        return
    each, option = (
        ("an iteration", OPTION) if learning else (f"{several(len(lengths), 'sequence')}", f"a model with {OPTION}")
    )
    cost = estimate(model.topology_, lengths, timed_levels(model))
    line = cost.warning(learning, model.n_jobs, option, each)
    if line:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def reporting_logarithms(model: object) -> Iterator[None]:
    """Print to standard error when the first sequence runs in logarithms, and at the end how many did."""
    if not getattr(model, "verbose", 0):
        yield
        return
    before, lock = COUNTER.total, threading.Lock()
    said: list[bool] = []

    def tell() -> None:
        with lock:
            if not said:
                said.append(True)
                print(f"some sequences run in logarithms, which are slower: {REASON}", file=sys.stderr, flush=True)

    COUNTER.on_logarithms(tell)
    try:
        yield
    finally:
        COUNTER.on_logarithms(None)
        found = COUNTER.total.since(before)
        if found.in_logarithms:
            share = f"{found.in_logarithms:,} of {found.sequences:,} evaluations"
            line = f"{several(found.affected, 'sequence')} ran in logarithms, in {share} of single sequences"
            print(line, file=sys.stderr, flush=True)
