"""Align true and predicted labels of a level."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Ints
from hscrf.errors import several
from hscrf.labels.cells import WITH_PARENT
from hscrf.labels.given import given_labels, steps_of
from hscrf.labels.induction import loose_topology
from hscrf.labels.labels import Labels
from hscrf.labels.schemes import schemes_in
from hscrf.labels.scoring import labels_to_score, widened, with_lasting_bottom
from hscrf.topology import Topology

Pairs = list[tuple[Labels, Labels]]


class Cells(NamedTuple):
    """One level of all sequences end to end, N steps; states are positions in ``names``."""

    true: Ints  # (N,), -1 unknown
    pred: Ints  # (N,)
    true_ends: NDArray[np.int8]  # (N,)
    pred_ends: NDArray[np.int8]  # (N,)
    stops: Ints  # where each sequence stops
    names: tuple[Any, ...]


def pairs_of(y_true: Any, y_pred: Any, scheme: Any = "auto") -> Pairs:
    """Pairs of true and predicted labels, checked for equal number and lengths, from any form of labels."""
    levels = _levels_of(y_true, y_pred)
    given_true, given_pred = (_given(y, levels, name) for y, name in ((y_true, "y_true"), (y_pred, "y_pred")))
    if len(given_true) != len(given_pred):
        raise ValueError(f"y_true has {several(len(given_true), 'sequence')} but y_pred has {len(given_pred)}")
    pairs = list(zip(*_read(given_true, given_pred, scheme), strict=True))
    for n, (true, pred) in enumerate(pairs):
        if true.length != pred.length:
            raise ValueError(f"y_true[{n}] has {several(true.length, 'step')} but y_pred[{n}] has {pred.length}")
    return pairs


def _levels_of(*sides: Any) -> Sequence[str]:
    """Names of the levels of the first Labels, for arrays, whose columns have none."""
    for side in sides:
        for y in side if isinstance(side, list | tuple) else ():
            if isinstance(y, Labels):
                return y.topology.levels[1:]
    return ()


def _given(labels: Any, levels: Sequence[str], what: str) -> list[Any]:
    if isinstance(labels, Labels):
        raise TypeError(f"{what} is one Labels; expected a list of them")
    return given_labels(labels, levels, what)


def _read(true: list[Any], pred: list[Any], scheme: Any) -> tuple[list[Labels], ...]:
    """Both sides as Labels: over the levels of the Labels among them, or over all named levels."""
    both = [*pred, *true]
    if all(isinstance(y, Labels) for y in both):
        return with_common_bottom(true, pred)
    known = [y.topology for y in both if isinstance(y, Labels)]
    kinds = schemes_in(both, scheme, known[0] if known else None)
    topology = known[0] if known else loose_topology([y for y in both if y is not None], kinds)
    steps = [max(0 if y is None else steps_of(y) for y in pair) for pair in zip(true, pred, strict=True)]
    wide = widened(topology, both, kinds)
    return with_common_bottom(
        labels_to_score(true, steps, wide, kinds, "y_true"),
        labels_to_score(pred, steps, wide, kinds, "y_pred"),
    )


def with_common_bottom(*sides: list[Labels]) -> tuple[list[Labels], ...]:
    """The same labels; a level whose segments may be long in some of them has runs as segments in all.

    >>> unit, lasting = Topology({"tag": ["N", "V"]}), Topology({"tag": ["N", "V"]}, max_duration={"tag": None})
    >>> one, other = (Labels.from_columns(topology, {"tag": ["N", "N", "V"]}) for topology in (unit, lasting))
    >>> [y.segments() for side in with_common_bottom([one], [other]) for y in side]
    [[(0, 2, 'N'), (2, 3, 'V')], [(0, 2, 'N'), (2, 3, 'V')]]
    """
    topologies = {id(y.topology): y.topology for side in sides for y in side}.values()
    lasting = {level for topology in topologies for level in topology.levels[: topology.depth - topology.unit_bottom]}
    return tuple([with_lasting_bottom(y) if y.topology.levels[-1] in lasting else y for y in side] for side in sides)


def level_names(pairs: Pairs) -> list[str]:
    """The levels of the truth, without a dummy root."""
    if not pairs:
        return []
    topology = pairs[0][0].topology
    return list(topology.levels[topology.n_states[0] == 1 :])


def chosen_level(pairs: Pairs, level: str | int | None) -> str | int:
    """The given level, or the only one."""
    names = level_names(pairs)
    if level is None and len(names) > 1:
        raise ValueError(f"level is None, but there are {', '.join(map(repr, names))}; expected one of them")
    return (names[0] if names else 1) if level is None else level


def cells_of(pairs: Pairs, level: str | int) -> Cells:
    """One level of all pairs; the predicted states must be known."""
    if pairs and not isinstance(level, str):
        level = pairs[0][0].topology.levels[pairs[0][0].topology.level(level)]
    names: dict[Hashable, int] = {}
    true = _side("y_true", [one for one, _ in pairs], level, names)
    pred = _side("y_pred", [other for _, other in pairs], level, names)
    stops = np.cumsum([one.length for one, _ in pairs], dtype=np.int64)
    cells = Cells(true[0], pred[0], true[1], pred[1], stops, tuple(names))
    check_known(cells, cells.pred >= 0, "y_pred", level)
    return cells


def known_cells(pairs: Pairs, level: str | int) -> Cells:
    """One level of all pairs; states and ends must be known on both sides."""
    cells = cells_of(pairs, level)
    check_known(cells, (cells.true >= 0) & (cells.true_ends >= 0), "y_true", level)
    check_known(cells, cells.pred_ends >= 0, "y_pred", level)
    return cells


def _side(
    what: str, labels: list[Labels], level: str | int, names: dict[Hashable, int]
) -> tuple[Ints, NDArray[np.int8]]:
    """States and ends (N,) of one side end to end; new state names are added to ``names``."""
    codes: dict[int, tuple[int, Ints]] = {}
    states, ends = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int8)]
    for n, one in enumerate(labels):
        if id(one.topology) not in codes:
            codes[id(one.topology)] = _code(f"{what}[{n}]", one.topology, level, names)
        d, code = codes[id(one.topology)]
        states.append(code[one.states[d]])
        # a run is scored as one segment
        inner = np.where(one.ends[d, :-1] == WITH_PARENT, np.int8(0), one.ends[d, :-1])
        ends.append(np.append(inner, np.int8(1)))
    return np.concatenate(states), np.concatenate(ends)


def _code(what: str, topology: Topology, level: str | int, names: dict[Hashable, int]) -> tuple[int, Ints]:
    """The level's index and its states (S + 1,) as positions in ``names``; the last is for unknown."""
    try:
        d = topology.level(level)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    return d, np.array([*(names.setdefault(name, len(names)) for name in topology.states[d]), -1])


def check_known(cells: Cells, known: NDArray[np.bool_], what: str, level: str | int) -> None:
    """Raise an error for the first unknown cell."""
    if not known.all():
        at = int(known.argmin())
        n = int(np.searchsorted(cells.stops, at, side="right"))
        t = at - int(np.append(0, cells.stops)[n])
        raise ValueError(f"{what}[{n}]: level {level!r} is unknown at {t}; expected every state and end to be known")


def is_known(labels: Labels, level: str | int) -> bool:
    """Whether every state and inner end of a level is known."""
    d = labels.topology.level(level)
    return bool((labels.states[d] >= 0).all() and (labels.ends[d, :-1] != -1).all())


def unzip(pairs: Pairs) -> tuple[list[Labels], list[Labels]]:
    """The true and the predicted labels of pairs."""
    return [one for one, _ in pairs], [other for _, other in pairs]


def ratio(part: int, whole: int) -> float:
    """A ratio of counts; 0 if the denominator is 0."""
    return part / whole if whole else 0.0


def mean_of(values: NDArray[Any]) -> float:
    """The mean, which is a share if values are true or false; nan if there are none."""
    return float(values.mean()) if values.size else float("nan")
