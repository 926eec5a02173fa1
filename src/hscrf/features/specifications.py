"""Which part of which level is fed by what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hscrf.topology import UNLIMITED, Topology


@dataclass(frozen=True)
class Token:
    """Features of every step of a segment, summed over it, or averaged (then the level needs a longest duration)."""

    level: str
    average: bool = False
    penalty: float = field(default=1.0, kw_only=True)

    @property
    def needs_limit(self) -> bool:
        return self.average


@dataclass(frozen=True)
class Start:
    """Features of the first step of a segment."""

    level: str
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = False


@dataclass(frozen=True)
class Stop:
    """Features of the last step of a segment."""

    level: str
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = False


@dataclass(frozen=True)
class Duration:
    """Weights for the length l of a segment.

    ``"gamma"``: log l and l, the sufficient statistics of a gamma density; ``"bins"``: one weight for lengths
    1, 2, 3-4, 5-8, 9-16 and so on; ``"each"``: one weight for every length.
    """

    level: str
    kind: str = "gamma"
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in ("gamma", "bins", "each"):
            raise ValueError(f"Duration kind is {self.kind!r}, expected 'gamma', 'bins' or 'each'")


@dataclass(frozen=True)
class Segment:
    """A function ``f(z, start, stop)`` of the observations z of a sequence and a half-open segment: a vector."""

    level: str
    function: Callable[[Any, int, int], Any]
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = True


@dataclass(frozen=True)
class Init:
    """A parent and its first child, by the parent's level; ``observed``: with the features of that step."""

    level: str
    observed: bool = False
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = False


@dataclass(frozen=True)
class Trans:
    """Two neighbouring children of a parent, by its level; ``observed``: with the features of the first's last step."""

    level: str
    observed: bool = False
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = False


@dataclass(frozen=True)
class End:
    """A parent and its last child, by the parent's level; ``observed``: with the features of that step."""

    level: str
    observed: bool = False
    penalty: float = field(default=1.0, kw_only=True)
    needs_limit: ClassVar[bool] = False


Specification = Token | Start | Stop | Duration | Segment | Init | Trans | End


PART = {Token: "token", Start: "start", Stop: "stop", Duration: "duration", Segment: "segment"} | {
    Init: "init",
    Trans: "trans",
    End: "end",
}


def default_specifications(topology: Topology) -> list[Specification]:
    """Token features at every level with a choice; weights for first, neighbouring and last children everywhere."""
    specifications: list[Specification] = []
    for d, level in enumerate(topology.levels):
        if topology.n_states[d] > 1:
            specifications.append(Token(level))
        if topology.has_limits(d) and topology.max_duration[d].max() < UNLIMITED:
            specifications.append(Duration(level))
        if d + 1 < topology.depth and topology.n_states[d + 1] > 1:
            specifications += [Init(level), Trans(level), End(level)]
    return specifications
