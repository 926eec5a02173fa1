"""Labels of one sequence at every level: states and ending indicators, known, unknown or narrowed to sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hscrf.topology import Topology

__all__ = ["InfeasibleError", "Labels"]

Segment = tuple[int, int, str]
Column = Sequence["str | None"]

# which prefixes open a segment, which close it; L and U are other names of E and S
_PREFIXES = {
    "plain": {},
    "bio": {"B": (1, 0), "I": (0, 0)},
    "bioes": {"B": (1, 0), "I": (0, 0), "E": (0, 1), "S": (1, 1), "L": (0, 1), "U": (1, 1)},
}


class InfeasibleError(ValueError):
    """Labels that no segmentation can satisfy."""


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """What is known of the states and ending indicators of one sequence, the paper's (x, e).

    ``states[d, t]`` is the state of the segment of level d over time t; ``ends[d, t]`` says whether that
    segment ends at t (1) or goes on (0). Unknown is -1. ``allowed`` narrows levels to sets of states.

    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> labels = Labels.from_segments(topology, {"phrase": [(0, 2, "NP"), (2, 3, "O")]})
    >>> labels
    Labels(3 steps, root > phrase > tag, partial)
    >>> labels.ends.tolist()
    [[0, 0, 1], [0, 1, 1], [-1, -1, -1]]
    """

    topology: Topology
    states: NDArray[np.int32]  # (D, T), -1 unknown
    ends: NDArray[np.int8]  # (D, T), -1 unknown, 0 goes on, 1 ends
    allowed: Mapping[str, NDArray[np.bool_]] | None = None  # level name -> (T, S_d)
    score: float | None = None  # set by decoding

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        put("states", _cells(self.topology, self.states, "states", self.topology.n_states, np.int32))
        put("ends", _cells(self.topology, self.ends, "ends", (2,) * self.topology.depth, np.int8))
        if self.states.shape != self.ends.shape:
            raise ValueError(f"states has {self.length} steps but ends has {self.ends.shape[1]}")
        put("allowed", _sets(self.topology, self.allowed, self.length))

    @classmethod
    def _found(cls, topology: Topology, states: NDArray[np.int32], ends: NDArray[np.int8], score: float) -> Labels:
        """What decoding found: complete, legal, and not to be looked at again."""
        labels = object.__new__(cls)
        for name, value in (("topology", topology), ("states", states), ("ends", ends), ("score", score)):
            object.__setattr__(labels, name, value)
        object.__setattr__(labels, "allowed", None)
        return labels

    @classmethod
    def unknown(cls, topology: Topology, length: int) -> Labels:
        """Return labels of which nothing is known."""
        return cls(topology, *_blank(topology, length))

    @classmethod
    def from_segments(
        cls, topology: Topology, segments: Mapping[str, Iterable[Segment] | str], length: int | None = None
    ) -> Labels:
        """Read half-open segments ``(start, stop, state)`` of some or all levels.

        Levels not mentioned and gaps between segments are unknown; something ends just before every segment.
        A root of several classes may be given as ``"root": class``.

        >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
        >>> Labels.from_segments(topology, {"phrase": [(1, 3, "NP")]}, length=4).column("phrase")
        ['?', 'NP', 'NP', '?']
        """
        given = {topology.level(name): value for name, value in segments.items()}
        root = str(given.pop(0)) if isinstance(given.get(0), str) else None
        listed = {d: _sorted_segments(topology, d, value) for d, value in given.items()}
        if length is None:
            length = max((triples[-1][1] for triples in listed.values() if triples), default=0)
        states, ends = _blank(topology, length)
        _fill_root(topology, root, states, ends)
        for d, triples in listed.items():
            _fill_segments(topology, d, triples, states[d], ends[d])
        return cls(topology, states, ends)._checked()

    @classmethod
    def from_columns(
        cls,
        topology: Topology,
        columns: Mapping[str, Column],
        scheme: str | Mapping[str, str] = "plain",
        boundaries: str = "runs",
    ) -> Labels:
        """Read one label per time step for some or all levels; ``"?"``, None or NaN is unknown.

        The borders of an unknown cell are unknown unless its neighbour's prefix tells. Equal neighbours of
        a plain column are one segment if ``boundaries="runs"``, perhaps two if ``"unknown"``. In BIO and
        BIOES an ill-formed I-x starts a segment, and maximal runs of ``"O"``, a state of that name, are one.
        Plain columns and ``"O"`` are cut where the level above is known to end; an I-x that goes on there is an error.

        >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
        >>> columns = {"phrase": ["B-NP", "B-NP", "I-NP", "O"], "tag": ["N", "N", "?", "V"]}
        >>> Labels.from_columns(topology, columns, scheme={"phrase": "bio"}).segments("phrase")
        [(0, 1, 'NP'), (1, 3, 'NP'), (3, 4, 'O')]
        """
        given = {topology.level(name): column for name, column in columns.items()}
        schemes = _schemes(topology, scheme)
        if boundaries not in ("runs", "unknown"):
            raise ValueError(f"boundaries is {boundaries!r}; expected 'runs' or 'unknown'")
        states, ends = _blank(topology, _common_length(topology, given))
        _fill_root(topology, given.pop(0, None), states, ends)
        for d in range(1, topology.depth):
            if d in given:
                runs = boundaries == "runs" or schemes[d] != "plain"
                states[d], ends[d] = _read_column(topology, d, given[d], schemes[d], runs)
            _cut(topology, d, given.get(d), schemes[d], ends)
        if topology.unit_bottom:
            ends[-1] = 1
        return cls(topology, states, ends)._checked()

    @classmethod
    def from_tree(cls, topology: Topology, tree: Any) -> Labels:
        """Read a nested list of ``(state, children)`` pairs; a leaf is ``(state, duration)`` or a bare state.

        With several root classes a tree is the pair ``(class, list)``.

        >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
        >>> labels = Labels.from_tree(topology, [("NP", ["D", "N"]), ("VP", [("V", 1)])])
        >>> labels.column("phrase", scheme="bio")
        ['B-NP', 'I-NP', 'B-VP']
        """
        segments: dict[str, Any] = {level: [] for level in topology.levels[1:]}
        if topology.n_states[0] > 1:
            segments["root"], tree = _node(topology, 0, tree)
        _read_nodes(topology, 1, tree, 0, segments)
        return cls.from_segments(topology, segments)

    @property
    def length(self) -> int:
        """Number of time steps."""
        return int(self.states.shape[1])

    @property
    def is_complete(self) -> bool:
        """Whether every state and every ending indicator is known."""
        return bool((self.states >= 0).all() and (self.ends >= 0).all())

    def check(self) -> None:
        """Raise InfeasibleError if what is known breaks a rule of the hierarchy.

        On complete labels the rules are exactly those of a legal nested segmentation.

        >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]}, max_duration={"tag": None})
        >>> Labels(topology, [[0, 0], [0, 0], [1, 1]], [[0, 1], [1, 1], [0, 1]]).check()
        Traceback (most recent call last):
        hscrf.labels.InfeasibleError: level 'phrase' ends at 0, but 'tag' goes on there
        """
        for rule in _RULES:
            rule(self)

    def closed(self) -> Labels:
        """Return these labels with all that follows from them by nesting; no legal configuration is lost.

        The last step ends everywhere; an end ends all below, going on goes on above; a segment that goes
        on shares its allowed states; children and parents narrow each other; a change of state is an end.
        Where a level goes on so do all above, hence runs that go on form a tree, on which one sweep up and
        one down are enough. Cost O(T * sum of S_d * S_{d+1}).

        >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]},
        ...                     children={"phrase": {"NP": ["N"], "VP": ["V"]}})
        >>> closed = Labels.from_columns(topology, {"tag": ["N", "?", "V"]}).closed()
        >>> closed.column("phrase"), closed.ends[1].tolist()
        (['NP', '?', 'VP'], [-1, -1, 1])
        """
        self.check()
        ends = _closed_ends(self)
        sets = _closed_sets(self, ends)
        for d, allowed in enumerate(sets):
            changes = ~(allowed[:-1] & allowed[1:]).any(axis=1)
            ends[d, :-1][changes] = 1
        _end_below(ends)
        states = np.array([_only_state(allowed) for allowed in sets])
        named = dict(zip(self.topology.levels, sets, strict=True))
        return Labels(self.topology, states, ends, named, self.score)._checked()

    def segment_arrays(self, level: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
        """Return start, stop (half-open) and state index of the segments of a completely known level."""
        unknown = (self.states[level] < 0) | (self.ends[level] < 0)
        if unknown.any():
            name, t = self.topology.levels[level], int(unknown.argmax())
            raise ValueError(f"level {name!r} is unknown at {t}; expected every state and end to be known")
        stop = np.append(np.flatnonzero(self.ends[level, :-1]) + 1, self.length)
        start = np.append(0, stop[:-1])
        return start, stop, self.states[level, start]

    def segments(self, level: str | int) -> list[Segment]:
        """Return the segments of a completely known level as half-open ``(start, stop, state)``."""
        d = self.topology.level(level)
        start, stop, state = self.segment_arrays(d)
        names = self.topology.states[d]
        return [(i, j, names[s]) for i, j, s in zip(start.tolist(), stop.tolist(), state.tolist(), strict=True)]

    def column(self, level: str | int, scheme: str = "plain") -> list[str]:
        """Return one label per time step, ``"?"`` where unknown; BIO and BIOES need the ends to be known."""
        d = self.topology.level(level)
        _check_scheme(scheme)
        names = (*self.topology.states[d], "?")
        if scheme == "plain":
            return [names[s] for s in self.states[d].tolist()]
        prefixes, kind = _prefixes_of(self, d, scheme)
        tags = [[name if name in ("O", "?") else prefix + name for name in names] for prefix in prefixes]
        return [tags[k][s] for k, s in zip(kind.tolist(), self.states[d].tolist(), strict=True)]

    def tree(self) -> Any:
        """Return complete labels as the nested list that :meth:`from_tree` reads."""
        _, stop, _ = self.segment_arrays(self.topology.depth - 1)
        nodes: list[Any] = [
            name if j - i == 1 else (name, j - i) for i, j, name in self.segments(self.topology.depth - 1)
        ]
        for d in reversed(range(self.topology.depth - 1)):
            inner, (_, stop, state) = stop, self.segment_arrays(d)
            cuts = [0, *np.searchsorted(inner, stop, side="right").tolist()]
            names = [self.topology.states[d][s] for s in state]
            nodes = [(name, nodes[i:j]) for name, (i, j) in zip(names, pairwise(cuts), strict=True)]
        return nodes[0] if self.topology.n_states[0] > 1 else nodes[0][1]

    def with_score(self, score: float | None) -> Labels:
        """Return the same labels with another score."""
        return replace(self, score=score)

    def _checked(self) -> Labels:
        self.check()
        return self

    def __len__(self) -> int:
        return self.length

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return (
            self.topology == other.topology
            and np.array_equal(self.states, other.states)
            and np.array_equal(self.ends, other.ends)
            and _same_sets(self.allowed or {}, other.allowed or {})
        )

    def __hash__(self) -> int:
        return hash((self.states.tobytes(), self.ends.tobytes()))

    def __repr__(self) -> str:
        known = "complete" if self.is_complete else "partial"
        score = "" if self.score is None else f", score {self.score:.6g}"
        return f"Labels({self.length} steps, {' > '.join(self.topology.levels)}, {known}{score})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (self.topology, self.states, self.ends, self.allowed, self.score)


# ------------------------------------------------------------------------------
# The border: arrays are checked once


def _cells(
    topology: Topology, values: ArrayLike, what: str, sizes: Sequence[int], dtype: type[np.signedinteger[Any]]
) -> NDArray[np.signedinteger[Any]]:
    """A read-only copy (D, T) of integers from -1 to sizes[d] - 1."""
    raw = np.asarray(values)
    if raw.ndim != 2 or len(raw) != topology.depth:
        raise ValueError(f"{what} has shape {raw.shape}; expected ({topology.depth}, T), a row for each level")
    if raw.shape[1] == 0:
        raise ValueError(f"{what} is an empty sequence; expected at least one time step")
    if raw.dtype.kind not in "iub":
        raise ValueError(f"{what} has dtype {raw.dtype}; expected integers")
    wrong = _first((raw < -1) | (raw >= np.array(sizes)[:, None]))
    if wrong:
        d, t = wrong
        raise ValueError(f"{what} of level {topology.levels[d]!r} is {raw[d, t]} at {t}; expected -1 to {sizes[d] - 1}")
    return _sealed(raw.astype(dtype))


def _sets(
    topology: Topology, allowed: Mapping[str, ArrayLike] | None, length: int
) -> dict[str, NDArray[np.bool_]] | None:
    """Read-only copies of the allowed sets, by level name."""
    if allowed is None:
        return None
    sets = {}
    for name, values in allowed.items():
        d, raw = topology.level(name), np.asarray(values)
        expected = (length, topology.n_states[d])
        if raw.shape != expected or raw.dtype != bool:
            raise ValueError(f"allowed[{name!r}] is {raw.dtype} {raw.shape}; expected bool {expected}")
        sets[topology.levels[d]] = _sealed(raw.copy())
    return sets


def _sealed(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _same_sets(one: Mapping[str, NDArray[np.bool_]], other: Mapping[str, NDArray[np.bool_]]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[level], other[level]) for level in one)


def _first(mask: NDArray[np.bool_] | np.bool_) -> tuple[int, ...] | None:
    """Index of the first true cell, None if there is none."""
    if not mask.any():
        return None
    return tuple(map(int, np.unravel_index(int(mask.argmax()), mask.shape)))


# ------------------------------------------------------------------------------
# The rules of the hierarchy


def _last_step_ends(labels: Labels) -> None:
    hit = _first(labels.ends[:, -1] == 0)
    if hit:
        level, t = labels.topology.levels[hit[0]], labels.length - 1
        raise InfeasibleError(f"level {level!r} goes on at {t}, but the sequence ends there")


def _root_goes_on(labels: Labels) -> None:
    hit = _first(labels.ends[0, :-1] == 1)
    if hit:
        raise InfeasibleError(f"level 'root' ends at {hit[0]}, but the sequence ends at {labels.length - 1}")


def _ends_nest(labels: Labels) -> None:
    above = np.logical_or.accumulate(labels.ends == 1, axis=0)
    hit = _first(above[:-1] & (labels.ends[1:] == 0))
    if hit:
        levels, t = labels.topology.levels, hit[1]
        upper = levels[int((labels.ends[:, t] == 1).argmax())]
        raise InfeasibleError(f"level {upper!r} ends at {t}, but {levels[hit[0] + 1]!r} goes on there")


def _unit_bottom_ends(labels: Labels) -> None:
    hit = _first(labels.ends[-1] == 0)
    if labels.topology.unit_bottom and hit:
        level = labels.topology.levels[-1]
        raise InfeasibleError(f"level {level!r} goes on at {hit[0]}, but its segments have length 1")


def _segments_keep_their_state(labels: Labels) -> None:
    before, after = labels.states[:, :-1], labels.states[:, 1:]
    hit = _first((labels.ends[:, :-1] == 0) & (before >= 0) & (after >= 0) & (before != after))
    if hit:
        d, t = hit
        raise InfeasibleError(
            f"level {labels.topology.levels[d]!r} goes on at {t}, but changes from {_state(labels, d, t)} "
            f"to {_state(labels, d, t + 1)} at {t + 1}"
        )


def _children_fit(labels: Labels) -> None:
    levels = labels.topology.levels
    for d, table in enumerate(labels.topology.children):
        parent, child = labels.states[d], labels.states[d + 1]
        hit = _first((parent >= 0) & (child >= 0) & ~table[parent, child])
        if hit:
            t = hit[0]
            raise InfeasibleError(
                f"{levels[d + 1]} {_state(labels, d + 1, t)} at {t} is no child of {levels[d]} {_state(labels, d, t)}"
            )


def _successors_fit(labels: Labels) -> None:
    for d, table in enumerate(labels.topology.successors[1:], start=1):
        before, after = labels.states[d, :-1], labels.states[d, 1:]
        same_parent = (labels.ends[d, :-1] == 1) & (labels.ends[d - 1, :-1] == 0)
        hit = _first(same_parent & (before >= 0) & (after >= 0) & ~table[before, after])
        if hit:
            t = hit[0]
            raise InfeasibleError(
                f"level {labels.topology.levels[d]!r}: {_state(labels, d, t + 1)} at {t + 1} may not follow "
                f"{_state(labels, d, t)}"
            )


def _durations_fit(labels: Labels) -> None:
    for d in filter(labels.topology.has_limits, range(1, labels.topology.depth)):
        start, stop, state = _known_segments(labels, d)
        low, high = labels.topology.min_duration[d][state], labels.topology.max_duration[d][state]
        hit = _first((stop - start < low) | (stop - start > high))
        if hit:
            k = hit[0]
            raise InfeasibleError(
                f"{labels.topology.levels[d]} {labels.topology.states[d][state[k]]!r} from {start[k]} to "
                f"{stop[k]} lasts {stop[k] - start[k]} steps; expected {_range(low[k], high[k])}"
            )


def _allowed_sets_fit(labels: Labels) -> None:
    for name, allowed in (labels.allowed or {}).items():
        d = labels.topology.level(name)
        empty = _first(~allowed.any(axis=1))
        if empty:
            raise InfeasibleError(f"level {name!r} is allowed no state at {empty[0]}")
        state = labels.states[d]
        hit = _first((state >= 0) & ~allowed[np.arange(labels.length), state])
        if hit:
            raise InfeasibleError(f"level {name!r} is {_state(labels, d, hit[0])} at {hit[0]}, which is not allowed")


_RULES: tuple[Callable[[Labels], None], ...] = (
    _last_step_ends,
    _root_goes_on,
    _ends_nest,
    _unit_bottom_ends,
    _segments_keep_their_state,
    _children_fit,
    _successors_fit,
    _durations_fit,
    _allowed_sets_fit,
)


def _state(labels: Labels, d: int, t: int) -> str:
    return repr(labels.topology.states[d][labels.states[d, t]])


def _range(low: int, high: int) -> str:
    return f"at least {low}" if high == np.iinfo(np.int64).max else f"{low} to {high}"


def _known_segments(labels: Labels, d: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Start, stop and state of the segments of level d whose borders, inside and state are known."""
    ends = labels.ends[d]
    stop = np.flatnonzero(ends == 1) + 1
    if not stop.size:
        return stop, stop, stop
    start = np.append(0, stop[:-1])
    state = np.maximum.reduceat(labels.states[d, : stop[-1]], start)
    doubts = np.append(0, np.cumsum(ends < 0))
    known = (doubts[start] == doubts[stop]) & (state >= 0)
    return start[known], stop[known], state[known]


# ------------------------------------------------------------------------------
# Closure


def _end_below(ends: NDArray[np.int8]) -> None:
    """An end ends all levels below it."""
    for above, below in pairwise(ends):
        below[above == 1] = 1


def _closed_ends(labels: Labels) -> NDArray[np.int8]:
    """Ending indicators (D, T) that follow from those known, but for ends below ends."""
    ends: NDArray[np.int8] = labels.ends.copy()
    ends[0] = 0
    ends[:, -1] = 1
    if labels.topology.unit_bottom:
        ends[-1] = 1
    for below, above in pairwise(ends[::-1]):
        above[below == 0] = 0
    return ends


def _closed_sets(labels: Labels, ends: NDArray[np.int8]) -> list[NDArray[np.bool_]]:
    """Allowed sets (T, S_d) of every level: one sweep up, one sweep down."""
    sets = [_asked(labels, d) for d in range(labels.topology.depth)]
    children = labels.topology.children
    for d in reversed(range(labels.topology.depth)):
        if d < len(children):
            sets[d] &= _reachable(sets[d + 1], children[d].T)  # a parent needs an allowed child
        sets[d] = _shared_along_segments(sets[d], ends[d])
        empty = _first(~sets[d].any(axis=1))
        if empty:
            raise InfeasibleError(_conflict(labels, ends, d, empty[0]))
    for d, table in enumerate(children):
        sets[d + 1] &= _reachable(sets[d], table)  # a child needs an allowed parent
    return sets


def _asked(labels: Labels, d: int) -> NDArray[np.bool_]:
    """The states (T, S_d) that the labels themselves allow."""
    shape = (labels.length, labels.topology.n_states[d])
    name = labels.topology.levels[d]
    asked: NDArray[np.bool_] = (labels.allowed or {}).get(name, np.ones(shape, dtype=bool)).copy()
    known = labels.states[d] >= 0
    asked[known] = np.eye(shape[1], dtype=bool)[labels.states[d, known]]
    return asked


def _only_state(allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The state (T,) where exactly one is allowed (T, S), else -1."""
    return np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), -1)


def _reachable(allowed: NDArray[np.bool_], table: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The states (T, S') that the table (S, S') relates to an allowed one (T, S)."""
    if table.all():
        return np.ones((1, table.shape[1]), dtype=bool)
    return allowed.astype(np.float32) @ table.astype(np.float32) > 0


def _shared_along_segments(allowed: NDArray[np.bool_], ends: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Intersect the sets (T, S) of steps that are known to belong to one segment."""
    heads = np.flatnonzero(np.append(True, ends[:-1] != 0))
    shared = np.logical_and.reduceat(allowed, heads, axis=0)
    return np.repeat(shared, np.diff(heads, append=len(ends)), axis=0)


def _conflict(labels: Labels, ends: NDArray[np.int8], d: int, t: int) -> str:
    """Say that no state of level d is left at t, and what was asked of its segment."""
    stop = t + 1 + int((ends[d, t:] != 0).argmax())
    span = f"at {t}" if stop == t + 1 else f"from {t} to {stop}, where it goes on"
    asked = []
    for m in range(d, labels.topology.depth):
        sets = _asked(labels, m)[t:stop]
        _, times = np.unique(sets, axis=0, return_index=True)
        asked += [_request(labels, m, t + int(i), sets[i]) for i in np.sort(times) if not sets[i].all()]
    level = labels.topology.levels[d]
    return f"no state of level {level!r} is possible {span}; asked were {', '.join(asked[:6])}"


def _request(labels: Labels, d: int, t: int, allowed: NDArray[np.bool_]) -> str:
    names = [repr(labels.topology.states[d][s]) for s in np.flatnonzero(allowed)]
    return f"{labels.topology.levels[d]} {' or '.join(names)} at {t}"


# ------------------------------------------------------------------------------
# Reading and writing


def _blank(topology: Topology, length: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """States and ends (D, T) of which nothing is known."""
    if length < 1:
        raise ValueError(f"length is {length}, an empty sequence; expected at least one time step")
    shape = (topology.depth, length)
    return np.full(shape, -1, dtype=np.int32), np.full(shape, -1, dtype=np.int8)


def read_labels(topology: Topology, given: Mapping[str, Any], scheme: Any, length: int) -> Labels:
    """Labels of each level from its column or its segments."""
    columns = {level: column for level, column in given.items() if not is_segments(column)}
    segments = {level: given[level] for level in given if level not in columns}
    if not columns:
        return Labels.from_segments(topology, segments, length)
    labels = Labels.from_columns(topology, columns, scheme=scheme)
    if not segments:
        return labels
    if labels.length != length:
        raise ValueError(f"level {next(iter(columns))!r} has {labels.length} labels for {length} steps")
    both = Labels.from_segments(topology, segments, length)
    states, ends = both.states.copy(), both.ends.copy()
    rows = [topology.level(level) for level in columns]
    states[rows], ends[rows] = labels.states[rows], labels.ends[rows]
    schemes = _schemes(topology, scheme)
    for d, level in enumerate(topology.levels[1:], start=1):
        if level not in segments:
            _cut(topology, d, columns.get(level), schemes[d], ends)
    both = Labels(topology, states, ends)
    both.check()
    return both


def is_segments(column: Any) -> bool:
    """Whether labels of a level are segments, not one label for each step."""
    return not isinstance(column, str) and len(column) > 0 and isinstance(column[0], (tuple, list))


def _fill_root(
    topology: Topology, given: str | Column | None, states: NDArray[np.int32], ends: NDArray[np.int8]
) -> None:
    """The root ends at the last step only; its state is the only one, the class given, or unknown."""
    ends[0, :-1], ends[0, -1] = 0, 1
    if topology.n_states[0] == 1:
        states[0] = 0
    if isinstance(given, str):
        states[0] = topology.state(0, given)
    elif given is not None:
        np.maximum(states[0], _read_column(topology, 0, given, "plain", True)[0], out=states[0])


def _sorted_segments(topology: Topology, d: int, segments: Iterable[Any]) -> list[Segment]:
    """The segments of one level in order of time, none overlapping another."""
    level = topology.levels[d]
    triples = sorted((_segment(level, segment) for segment in segments), key=lambda triple: triple[:2])
    for one, other in pairwise(triples):
        if other[0] < one[1]:
            raise ValueError(f"level {level!r}: segment {other} overlaps {one}; expected disjoint segments")
    return triples


def _segment(level: str, segment: Segment) -> Segment:
    try:
        start, stop, state = segment
        start, stop = int(start.__index__()), int(stop.__index__())
    except (TypeError, ValueError, AttributeError):
        raise ValueError(f"level {level!r}: {segment!r} is no segment; expected (start, stop, state)") from None
    if not 0 <= start < stop:
        raise ValueError(f"level {level!r}: segment {(start, stop, state)}; expected 0 <= start < stop")
    return start, stop, state


def _fill_segments(
    topology: Topology, d: int, segments: list[Segment], states: NDArray[np.int32], ends: NDArray[np.int8]
) -> None:
    """Write the segments of level d into its rows (T,)."""
    for segment in segments:
        start, stop, name = segment
        if stop > len(states):
            level = topology.levels[d]
            raise ValueError(f"level {level!r}: segment {segment}; expected stop <= length {len(states)}")
        states[start:stop] = topology.state(d, name)
        ends[start : stop - 1] = 0
        ends[stop - 1] = 1
        if start > 0:
            ends[start - 1] = 1  # whatever was before ends here


def _check_scheme(scheme: str) -> None:
    if scheme not in _PREFIXES:
        raise ValueError(f"scheme is {scheme!r}; expected 'plain', 'bio' or 'bioes'")


def _schemes(topology: Topology, scheme: str | Mapping[str, str]) -> list[str]:
    """The scheme of each level."""
    if isinstance(scheme, str):
        scheme = dict.fromkeys(topology.levels, scheme)
    schemes = ["plain"] * topology.depth
    for level, value in scheme.items():
        _check_scheme(value)
        schemes[topology.level(level)] = value
    return schemes


def _common_length(topology: Topology, columns: Mapping[int, Column]) -> int:
    """The length of every column; a root given as one class name has none."""
    lengths = {topology.levels[d]: len(column) for d, column in columns.items() if not isinstance(column, str)}
    for d, column in columns.items():
        if d > 0 and isinstance(column, str):
            raise ValueError(f"column {topology.levels[d]!r} is the string {column!r}; expected a list of labels")
    if not lengths:
        raise ValueError("columns names no level below the root; expected at least one list of labels")
    if len(set(lengths.values())) > 1:
        named = ", ".join(f"{level!r} has {n}" for level, n in lengths.items())
        raise ValueError(f"columns differ in length: {named} steps")
    return next(iter(lengths.values()))


def _read_column(
    topology: Topology, d: int, column: Column, scheme: str, runs: bool
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """States and ends (T,) of one level, read from its labels alone."""
    tags = list(dict.fromkeys(column))
    parsed = np.array([_read_tag(topology, d, tag, scheme) for tag in tags])
    code = {tag: k for k, tag in enumerate(tags)}
    state, opens, closes = parsed[[code[tag] for tag in column]].T
    ends = np.where(state >= 0, 1, -1)
    ends[:-1] = np.where(state[:-1] != state[1:], 1, 0 if runs else -1)
    ends[:-1][(state[:-1] < 0) | (state[1:] < 0)] = -1
    ends[:-1][(closes[:-1] == 1) | (opens[1:] == 1)] = 1
    return state.astype(np.int32), ends.astype(np.int8)


def _cut(topology: Topology, d: int, column: Column | None, scheme: str, ends: NDArray[np.int8]) -> None:
    """End a level wherever the one above it ends, unless a prefix of its column says that it goes on."""
    if column is not None and scheme != "plain":
        _check_cuts(topology, d, column, ends)
    ends[d][ends[d - 1] == 1] = 1


def _check_cuts(topology: Topology, d: int, column: Column, ends: NDArray[np.int8]) -> None:
    """Raise if the prefixes of a column say that a segment goes on where the level above ends."""
    for t in np.flatnonzero((ends[d - 1] == 1) & (ends[d] == 0)).tolist():
        if column[t] != "O":
            raise InfeasibleError(
                f"level {topology.levels[d - 1]!r} ends at {t}, but {topology.levels[d]!r} goes on there"
            )


def _read_tag(topology: Topology, d: int, tag: str | None, scheme: str) -> tuple[int, int, int]:
    """State of a label, whether it opens a segment, and whether it closes one."""
    if tag is None or tag == "?" or tag != tag:  # NaN is what pandas has for nothing
        return -1, 0, 0
    unit = topology.unit_bottom and d == topology.depth - 1
    if scheme == "plain" or tag == "O" or (unit and tag in topology.states[d]):
        return topology.state(d, tag), 0, 0
    prefix, _, name = tag.partition("-")
    if not name or prefix not in _PREFIXES[scheme]:
        known = ", ".join(f"{letter}-x" for letter in _PREFIXES[scheme])
        raise ValueError(f"column {topology.levels[d]!r} has the label {tag!r}; expected {known}, O or ?")
    return topology.state(d, name), *_PREFIXES[scheme][prefix]


def _prefixes_of(labels: Labels, d: int, scheme: str) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The scheme's prefixes, and which of them each time step (T,) of level d bears."""
    known = (labels.states[d] >= 0) & (scheme != "plain")
    before, here = np.append(1, labels.ends[d, :-1]), labels.ends[d].copy()
    here[-1] = 1
    if "O" in labels.topology.states[d]:
        known &= labels.states[d] != labels.topology.state(d, "O")
    doubt = _first(known & ((before < 0) | ((here < 0) & (scheme == "bioes"))))
    if doubt:
        level = labels.topology.levels[d]
        raise ValueError(f"level {level!r} has an unknown border at {doubt[0]}; expected known ends for {scheme!r}")
    kind = np.where(known, 2 * (before == 1) + (here == 1), 0)
    if scheme == "bioes":
        return ("I-", "E-", "B-", "S-"), kind
    return ("I-", "I-", "B-", "B-"), kind


def _node(topology: Topology, d: int, node: Any) -> tuple[str, Any]:
    """State and content of one node; a bare state at the bottom lasts one step."""
    if isinstance(node, str) and d == topology.depth - 1:
        return node, 1
    if isinstance(node, str) or not isinstance(node, Sequence) or len(node) != 2 or not isinstance(node[0], str):
        content = "duration" if d == topology.depth - 1 else "children"
        raise ValueError(f"tree has the node {node!r} at level {topology.levels[d]!r}; expected (state, {content})")
    return node[0], node[1]


def _read_nodes(topology: Topology, d: int, nodes: Any, start: int, segments: dict[str, Any]) -> int:
    """Add the segments of level d and below that begin at start; return where the last one stops."""
    if not isinstance(nodes, Sequence) or isinstance(nodes, str) or not nodes:
        raise ValueError(f"tree has {nodes!r} at level {topology.levels[d]!r}; expected a list of nodes")
    for node in nodes:
        name, content = _node(topology, d, node)
        if d < topology.depth - 1:
            stop = _read_nodes(topology, d + 1, content, start, segments)
        else:
            stop = start + _duration(topology, name, content)
        segments[topology.levels[d]].append((start, stop, name))
        start = stop
    return start


def _duration(topology: Topology, name: str, duration: Any) -> int:
    if isinstance(duration, bool) or not isinstance(duration, (int, np.integer)) or duration < 1:
        level = topology.levels[-1]
        raise ValueError(f"tree gives {level} {name!r} the duration {duration!r}; expected a positive integer")
    return int(duration)
