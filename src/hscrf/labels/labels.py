"""Labels of one sequence at every level: states and ending indicators, known, unknown or narrowed to sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import several
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.closure import closure
from hscrf.labels.columns import (
    Column,
    blank,
    check_scheme,
    common_length,
    fill_columns,
    fill_root,
    prefixes_of,
    schemes_of,
)
from hscrf.labels.rules import RULES, checked_cells, checked_sets, same_sets
from hscrf.labels.segments import Segment, SegmentConfidence, fill_segments, node_of, read_nodes, sorted_segments
from hscrf.labels.shown import frame_of, level_or_only, shown_levels, text_of, tree_of
from hscrf.topology import Topology

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Known states and ending indicators of one sequence, the paper's (x, e).

    Parameters
    ----------
    topology : Topology
    states : array (D, T) of int
        The state of the segment of level d over time t; -1 where unknown.
    ends : array (D, T) of int
        Whether that segment ends at t (1) or goes on (0); -1 where unknown. -2 means that it ends there if and only if
        its parent does.
    allowed : dict of str to bool array (T, S_d), optional
        By level: the states that each step may have.
    score : float, optional
        The log score, set by decoding.
    posterior : dict of str to array (segments, 2), optional
        By level: the numbers of :meth:`confidence`.

    Examples
    --------
    >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
    >>> labels = Labels.from_segments(topology, {"phrase": [(0, 2, "NP"), (2, 3, "O")]})
    >>> labels
    Labels(3 steps, root > phrase > tag, partial)
    >>> labels.ends.tolist()
    [[0, 0, 1], [0, 1, 1], [-1, -1, -1]]
    >>> print(labels)
    phrase  NP 0-2, O 2-3
    tag     ? ? ?
    >>> list(labels)
    [('NP', '?'), ('NP', '?'), ('O', '?')]
    """

    topology: Topology
    states: NDArray[np.int32]  # (D, T), -1 unknown
    ends: NDArray[np.int8]  # (D, T), -1 unknown, 0 goes on, 1 ends, -2 ends if and only if its parent does
    allowed: Mapping[str, NDArray[np.bool_]] | None = None  # level name -> (T, S_d)
    score: float | None = None  # set by decoding
    posterior: Mapping[str, NDArray[np.float64]] | None = None  # level name -> (segments, 2), see ``confidence``

    def __post_init__(self) -> None:
        put = partial(object.__setattr__, self)
        put("states", checked_cells(self.topology, self.states, "states", -1, self.topology.n_states, np.int32))
        put("ends", checked_cells(self.topology, self.ends, "ends", WITH_PARENT, (2,) * self.topology.depth, np.int8))
        if self.states.shape != self.ends.shape:
            raise ValueError(f"states has {several(self.length, 'step')} but ends has {self.ends.shape[1]}")
        put("allowed", checked_sets(self.topology, self.allowed, self.length))

    @classmethod
    def unchecked(
        cls,
        topology: Topology,
        states: NDArray[np.int32],
        ends: NDArray[np.int8],
        score: float | None = None,
        allowed: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> Labels:
        """Return labels that are known to be valid, such as decoded ones: nothing is checked or copied.

        Parameters
        ----------
        topology, states, ends, score, allowed
            As in the constructor, with states of int32 and ends of int8.

        Returns
        -------
        Labels
        """
        labels = object.__new__(cls)
        labels.__dict__.update(
            topology=topology, states=states, ends=ends, score=score, allowed=allowed, posterior=None
        )
        return labels

    @classmethod
    def unknown(cls, topology: Topology, length: int) -> Labels:
        """Return labels whose states and ends are all unknown.

        Parameters
        ----------
        topology : Topology
        length : int

        Returns
        -------
        Labels
        """
        return cls(topology, *blank(topology, length))

    @classmethod
    def from_segments(
        cls, topology: Topology, segments: Mapping[str, Iterable[Segment] | str], length: int | None = None
    ) -> Labels:
        """Read half-open segments ``(start, stop, state)`` of some or all levels.

        Levels not named and gaps between segments are unknown, but a gap is known to end before a segment.

        Parameters
        ----------
        topology : Topology
        segments : dict of str to list of (start, stop, state)
            The class of the sequence may be given as ``"root": class``.
        length : int, default the last stop

        Returns
        -------
        Labels

        Examples
        --------
        >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
        >>> Labels.from_segments(topology, {"phrase": [(1, 3, "NP")]}, length=4).column("phrase")
        ['?', 'NP', 'NP', '?']
        """
        given = {topology.level(name): value for name, value in segments.items()}
        root = str(given.pop(0)) if isinstance(given.get(0), str) else None
        listed = {d: sorted_segments(topology, d, value) for d, value in given.items()}
        if length is None:
            length = max((triples[-1][1] for triples in listed.values() if triples), default=0)
        states, ends = blank(topology, length)
        fill_root(topology, root, states, ends)
        for d, triples in listed.items():
            fill_segments(topology, d, triples, states[d], ends[d])
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

        The boundaries of an unknown step are unknown, unless the prefix of its neighbour determines them. In BIO and
        BIOES an I-x that continues no x starts a segment, and ``"O"`` is a state like others. A segment with prefixes
        that goes on where the level above is known to end is an error.

        Parameters
        ----------
        topology : Topology
        columns : dict of str to list of labels
        scheme : str or dict of str to str
            "plain", "bio" or "bioes", for all levels or by level.
        boundaries : {"runs", "fixed", "unknown"}
            How to read a run of equal labels without prefixes, such as ``"O"``. "runs": it ends exactly where the level
            above ends, and its ends are unknown where those are. "fixed": it is one segment, unless the level above is
            known to end in it. "unknown": it may be any number of segments.

        Returns
        -------
        Labels

        Examples
        --------
        >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]})
        >>> columns = {"phrase": ["B-NP", "B-NP", "I-NP", "O"], "tag": ["N", "N", "?", "V"]}
        >>> Labels.from_columns(topology, columns, scheme={"phrase": "bio"}).segments("phrase")
        [(0, 1, 'NP'), (1, 3, 'NP'), (3, 4, 'O')]

        Below an unknown parent -2 stands for an end that is there if the parent ends:

        >>> topology = Topology({"phrase": ["NP", "O"], "name": ["P", "O"]}, max_duration={"name": None})
        >>> Labels.from_columns(topology, {"name": ["B-P", "I-P", "O", "O", "O"]}, scheme="bio").ends[2].tolist()
        [0, 1, -2, -2, 1]
        """
        given = {topology.level(name): column for name, column in columns.items()}
        schemes = schemes_of(topology, scheme)
        states, ends = blank(topology, common_length(topology, given))
        fill_root(topology, given.pop(0, None), states, ends)
        fill_columns(topology, given, schemes, boundaries, states, ends)
        return cls(topology, states, ends)._checked()

    @classmethod
    def from_tree(cls, topology: Topology, tree: Any) -> Labels:
        """Read a nested list of ``(state, children)`` pairs; a leaf is ``(state, duration)`` or a bare state.

        Parameters
        ----------
        topology : Topology
        tree : list, or tuple (class, list) with several root classes

        Returns
        -------
        Labels

        Examples
        --------
        >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["D", "N", "V"]})
        >>> labels = Labels.from_tree(topology, [("NP", ["D", "N"]), ("VP", [("V", 1)])])
        >>> labels.column("phrase", scheme="bio")
        ['B-NP', 'I-NP', 'B-VP']
        """
        segments: dict[str, Any] = {level: [] for level in topology.levels[1:]}
        if topology.n_states[0] > 1:
            segments["root"], tree = node_of(topology, 0, tree)
        read_nodes(topology, 1, tree, 0, segments)
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
        """Raise an error if known labels break a rule of the hierarchy.

        On complete labels the rules are exactly those of a legal nested segmentation.

        Raises
        ------
        InfeasibleError
            With the labels that contradict each other.

        Examples
        --------
        >>> topology = Topology({"phrase": ["NP", "O"], "tag": ["N", "V"]}, max_duration={"tag": None})
        >>> Labels(topology, [[0, 0], [0, 0], [1, 1]], [[0, 1], [1, 1], [0, 1]]).check()
        Traceback (most recent call last):
        hscrf.errors.InfeasibleError: level 'phrase' ends at 0, but 'tag' goes on there
        """
        for rule in RULES:
            rule(self)

    def closed(self) -> Labels:
        """Return these labels with everything that follows from them by nesting; no legal configuration is lost.

        All levels end at the last step. Where a level ends, all below it end; where it goes on, all above it go on.
        Steps of one segment have the same allowed states. The allowed states of parents and children limit each other.
        Where the state must change, a segment ends. The steps that segments share are nested and form a tree, so one
        sweep up and one sweep down are enough. The cost is O(T * sum of S_d * S_{d+1}).

        Returns
        -------
        Labels

        Examples
        --------
        >>> topology = Topology({"phrase": ["NP", "VP"], "tag": ["N", "V"]},
        ...                     children={"phrase": {"NP": ["N"], "VP": ["V"]}})
        >>> closed = Labels.from_columns(topology, {"tag": ["N", "?", "V"]}).closed()
        >>> closed.column("phrase"), closed.ends[1].tolist()
        (['NP', '?', 'VP'], [-1, -1, 1])
        """
        self.check()
        states, ends, sets = closure(self)
        named = dict(zip(self.topology.levels, sets, strict=True))
        return Labels(self.topology, states, ends, named, self.score)._checked()

    def segment_arrays(self, level: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
        """Return start, stop (half-open) and state index of the segments of a completely known level.

        Parameters
        ----------
        level : int

        Returns
        -------
        start, stop, state : ndarrays of shape (segments,)
        """
        unknown = (self.states[level] < 0) | (self.ends[level] < 0)
        if unknown.any():
            name, t = self.topology.levels[level], int(unknown.argmax())
            raise ValueError(f"level {name!r} is unknown at {t}; expected every state and end to be known")
        stop = np.append(np.flatnonzero(self.ends[level, :-1]) + 1, self.length)
        start = np.append(0, stop[:-1])
        return start, stop, self.states[level, start]

    def segments(self, level: str | int | None = None) -> list[Segment]:
        """Return the segments of a completely known level as half-open ``(start, stop, state)``.

        Parameters
        ----------
        level : str, int or None
            None means the only level below the root.

        Returns
        -------
        list of tuple
        """
        d = level_or_only(self.topology, level)
        start, stop, state = self.segment_arrays(d)
        names = self.topology.states[d]
        return [(i, j, names[s]) for i, j, s in zip(start.tolist(), stop.tolist(), state.tolist(), strict=True)]

    def confidence(self, level: str | int | None = None) -> list[SegmentConfidence]:
        """Return the segments of a level with their posterior probabilities.

        Parameters
        ----------
        level : str, int or None
            The level. None means the only one below the root.

        Returns
        -------
        list of SegmentConfidence
            Tuples ``(start, stop, state, probability, label_probability)``. ``probability`` is the posterior
            probability of the segment, with exactly these boundaries and this state. ``label_probability`` is the mean
            over its steps of the probability of this state.

        Raises
        ------
        ValueError
            If the labels do not come from ``predict(X, confidence=True)``.

        Examples
        --------
        >>> from hscrf import ChainCRF
        >>> model = ChainCRF().fit([[["a"], ["b"]]] * 3, [["N", "V"]] * 3)
        >>> segment = model.predict([[["a"], ["b"]]], confidence=True)[0].confidence()[0]
        >>> segment[:3], 0.5 < segment.probability < 1
        ((0, 1, 'N'), True)
        """
        d = level_or_only(self.topology, level)
        if self.posterior is None:
            raise ValueError("these labels have no confidence; expected labels from predict(X, confidence=True)")
        numbers = self.posterior[self.topology.levels[d]].tolist()
        return [SegmentConfidence(*triple, *row) for triple, row in zip(self.segments(d), numbers, strict=True)]

    def column(self, level: str | int | None = None, scheme: str = "plain") -> list[Any]:
        """Return one label per time step, ``"?"`` where unknown.

        Parameters
        ----------
        level : str, int or None
            None means the only level below the root.
        scheme : str
            "plain", "bio" or "bioes"; tags with prefixes need known ends.

        Returns
        -------
        list
        """
        d = level_or_only(self.topology, level)
        check_scheme(scheme)
        names = (*self.topology.states[d], "?")
        if scheme == "plain":
            return [names[s] for s in self.states[d].tolist()]
        prefixes, kind = prefixes_of(self, d, scheme)
        tags = [[name if name in ("O", "?") else f"{prefix}{name}" for name in names] for prefix in prefixes]
        return [tags[k][s] for k, s in zip(kind.tolist(), self.states[d].tolist(), strict=True)]

    def to_frame(self, scheme: str = "plain") -> DataFrame:
        """Return a DataFrame with a row for each step and a column for each level, missing where unknown.

        Parameters
        ----------
        scheme : str
            "plain", "bio" or "bioes".

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> Labels.from_columns(Topology({"tag": ["N", "V"]}), {"tag": ["N", "?"]}).to_frame()["tag"].isna().tolist()
        [False, True]
        """
        return frame_of(self, scheme)

    def tree(self) -> list[Any] | tuple[Any, list[Any]]:
        """Return complete labels as the nested list that :meth:`from_tree` reads.

        Returns
        -------
        list, or tuple (class, list) with several root classes
        """
        return tree_of(self)

    def _checked(self) -> Labels:
        self.check()
        return self

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        """The state of each step; with several levels, a tuple of their states from top to bottom."""
        columns = [self.column(d) for d in shown_levels(self.topology)]
        return iter(columns[0]) if len(columns) == 1 else zip(*columns, strict=True)

    def __str__(self) -> str:
        return text_of(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return (
            self.topology == other.topology
            and np.array_equal(self.states, other.states)
            and np.array_equal(self.ends, other.ends)
            and same_sets(self.allowed or {}, other.allowed or {})
        )

    def __hash__(self) -> int:
        return hash((self.states.tobytes(), self.ends.tobytes()))

    def __repr__(self) -> str:
        known = "complete" if self.is_complete else "partial"
        score = "" if self.score is None else f", score {self.score:.6g}"
        return f"Labels({several(self.length, 'step')}, {' > '.join(self.topology.levels)}, {known}{score})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Labels, (self.topology, self.states, self.ends, self.allowed, self.score, self.posterior)
