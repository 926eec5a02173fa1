"""What users bring as labels: tables, arrays, columns, segments; as the reader takes them, and as they are scored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hscrf.errors import LabelError, several
from hscrf.labels.induction import LabelStatistics, check_alike, loosened, state_names
from hscrf.labels.labels import Labels
from hscrf.labels.reading import as_labels, by_level, is_segments
from hscrf.labels.renumbering import over
from hscrf.names import in_order, unknown_name
from hscrf.topology import Topology

SEQUENCE, TIME = "sequence", "time"  # columns of a long table that are no level


# -- one form for all


def given_labels(Y: Any, levels: Sequence[str] = (), name: str = "Y") -> list[Any]:
    """Labels of each sequence as the reader takes them: Labels, a list, a dict by level, or None for nothing known.

    A sequence may be Labels; a list, a 1-D array or a series, which is the only level; a dict of columns or segments;
    a DataFrame, a column a level; or a 2-D array (T, levels), whose columns have the names ``levels`` from top to
    bottom. Y may be one DataFrame with a column "sequence": its sequences are in the order of their first rows, and
    their steps in the order of a column "time", if there is one. None, NaN and "?" are unknown, and -1 where all
    labels of a column are integers.

    >>> given_labels([np.array([[1, 4], [-1, 5]])], ["phrase", "tag"])
    [{'phrase': [1, '?'], 'tag': [4, 5]}]
    >>> import pandas
    >>> given_labels(pandas.DataFrame({"sequence": ["a", "a", "b"], "tag": ["N", None, "V"]}))
    [{'tag': ['N', '?']}, {'tag': ['V']}]
    """
    if _is_frame(Y):
        Y = _sequences(Y, name)
    if isinstance(Y, Labels | Mapping | str) or not hasattr(Y, "__len__"):
        raise ValueError(f"{name} is a {type(Y).__name__}, expected a list of sequences")
    return [_one(y, n, levels, name) for n, y in enumerate(Y)]


def is_unknown(label: Any) -> bool:
    """Whether a label says that nothing is known: None, ``"?"``, NaN.

    >>> [is_unknown(label) for label in (None, "?", float("nan"), "O", 0)]
    [True, True, True, False, False]
    """
    if label is None or (isinstance(label, str) and label == "?"):
        return True
    differs = label != label
    return differs is not True and differs is not False if not isinstance(differs, bool | np.bool_) else bool(differs)


def _is_frame(y: Any) -> bool:
    return hasattr(y, "columns") and hasattr(y, "iloc")


def _sequences(frame: Any, name: str) -> list[Any]:
    """The frames of each sequence of a long table."""
    if SEQUENCE not in frame.columns:
        problem = f"{name} is one table without a column {SEQUENCE!r}; expected one, or a list of tables"
        raise ValueError(problem)
    parts = [part for _, part in frame.groupby(SEQUENCE, sort=False)]
    if TIME in frame.columns:
        parts = [part.sort_values(TIME, kind="stable") for part in parts]
    return [part.drop(columns=[column for column in (SEQUENCE, TIME) if column in part.columns]) for part in parts]


def _one(y: Any, n: int, levels: Sequence[str], name: str) -> Any:
    """The labels of one sequence."""
    if y is None or isinstance(y, Labels):
        return y
    if _is_frame(y):
        return {str(level): _column(y[level]) for level in y.columns}
    if isinstance(y, np.ndarray) and y.ndim == 2:
        return dict(zip(_names(y, n, levels, name), map(_column, y.T), strict=True))
    if isinstance(y, Mapping):
        return {level: _column(column) for level, column in y.items()}
    if len(levels) > 1 and hasattr(y, "__len__"):
        known = ", ".join(map(repr, levels))
        raise LabelError(f"one list of labels for the levels {known}; expected a dict by level").of_sequence(n, name)
    return _column(y)


def _names(y: Any, n: int, levels: Sequence[str], name: str) -> Sequence[str]:
    """Names of the columns of an array: those of the model, or level1, level2 and so on."""
    if not levels:
        return ["label"] if y.shape[1] == 1 else [f"level{k + 1}" for k in range(y.shape[1])]
    if len(levels) != y.shape[1]:
        known = ", ".join(map(repr, levels))
        raise LabelError(f"an array has {several(y.shape[1], 'column')}, expected one for each of {known}").of_sequence(
            n, name
        )
    return levels


def _column(column: Any) -> Any:
    """A column with ``"?"`` where it is unknown; segments, classes and what is no column stay as they are."""
    if isinstance(column, str) or not hasattr(column, "__len__"):
        return column
    labels = _plain_list(column)
    if is_segments(labels):
        return labels
    try:
        distinct = set(labels)
    except TypeError:
        return labels
    if "?" not in distinct and set(map(type, distinct)) == {str}:
        return labels
    unknown = {label for label in distinct if is_unknown(label)}
    if -1 in distinct and all(_is_integer(label) for label in distinct - unknown):
        unknown.add(-1)
    if not unknown - {"?"}:
        return labels
    return ["?" if label in unknown or is_unknown(label) else label for label in labels]


def _plain_list(column: Any) -> Any:
    """A list of Python objects; whole numbers that NaN made floats are integers again."""
    if isinstance(column, list | tuple):
        return column
    values = np.asarray(column)
    if values.dtype.kind == "f":
        known = values[~np.isnan(values)]
        if known.size < values.size and (known == np.round(known)).all():
            return ["?" if np.isnan(value) else int(value) for value in values.tolist()]
    return values.tolist()


def _is_integer(label: Any) -> bool:
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


# -- schemes


def schemes_in(Y: Sequence[Any], scheme: Any, topology: Topology | None = None) -> Any:
    """The scheme, with "auto" replaced by what the columns of each level look like.

    A level is in BIO if one of its labels is B-x or I-x, in BIOES if another is E-x or S-x; it is plain if the
    topology has its labels as states.

    >>> schemes_in([{"phrase": ["B-NP", "I-NP", "O"], "tag": ["D", "N", "V"]}], "auto")
    {'phrase': 'bio', 'tag': 'plain'}
    """
    asked = scheme if isinstance(scheme, Mapping) else None
    if asked:
        _check_levels(asked, Y, topology)
    if scheme != "auto" and (asked is None or "auto" not in asked.values()):
        return scheme
    tags = tags_in(Y, topology)
    if asked is not None:
        return {level: looks_like(tags.get(level, set())) if kind == "auto" else kind for level, kind in asked.items()}
    return {level: looks_like(found) for level, found in tags.items()}


def _check_levels(asked: Mapping[str, str], Y: Sequence[Any], topology: Topology | None) -> None:
    """Raise for a scheme of a level that is not there, as far as the levels are known."""
    known = () if topology is None else topology.levels
    for y in () if known else Y:
        if y is not None:
            known = y.topology.levels if isinstance(y, Labels) else ("root", *by_level(y))
            break
    for level in asked:
        if known and level not in known:
            raise ValueError(f"scheme names the {unknown_name('level', level, known)}")


def tags_in(Y: Iterable[Any], topology: Topology | None = None) -> dict[str, set[str]]:
    """The strings in the columns of each level that are no states of the topology."""
    only = None if topology is None else topology.levels[1]
    found: dict[str, set[str]] = {}
    for y in Y:
        if y is None or isinstance(y, Labels):
            continue
        given = by_level(y) if only is None or isinstance(y, Mapping) else {only: y}
        for level, column in given.items():
            if level != "root" and hasattr(column, "__len__"):
                tags = found.setdefault(level, set())
                if not isinstance(column, str) and not is_segments(column):
                    tags.update(tag for tag in column if isinstance(tag, str))
    for level, tags in found.items():
        if topology is not None and level in topology.levels:
            tags.difference_update(topology.states[topology.level(level)])
    return found


def looks_like(tags: set[str]) -> str:
    """The scheme that labels look as if they were in."""
    prefixes = {tag[0] for tag in tags if re.match(r"[BIESLU]-.", tag)}
    if not prefixes & {"B", "I"}:
        return "plain"
    return "bio" if prefixes <= {"B", "I"} else "bioes"


# -- scoring


def labels_to_score(
    Y: Sequence[Any], lengths: Sequence[int], topology: Topology, scheme: Any, name: str = "Y"
) -> list[Labels]:
    """Labels of each sequence that need not keep the rules of the topology, nor have only its states."""
    wide = widened(topology, Y, scheme, name)
    return [
        y
        if isinstance(y, Labels)
        else Labels.unknown(wide, length)
        if y is None
        else as_labels(y, n, length, wide, scheme, name)
        for n, (y, length) in enumerate(zip(Y, lengths, strict=True))
    ]


def widened(topology: Topology, Y: Sequence[Any], scheme: Any, name: str = "Y") -> Topology:
    """The same levels without rules, and with all states that the labels name; the bottom persists if theirs does."""
    loose = loosened(topology)
    states: dict[str, set[Any]] = {level: set() for level in loose.levels}
    lasting = not topology.unit_bottom
    bottom = topology.levels[-1]
    for n, y in enumerate(Y):
        if y is None or isinstance(y, Labels):
            continue
        for level, column in _by_level(y, topology).items():
            if level in states:  # the reader refuses others
                kind = "plain" if level == "root" else scheme_of(scheme, level)
                states[level] |= _names_in(column, kind, level, n, name)
                lasting |= level == bottom and (kind != "plain" or _has_long_segments(column))
    old = {level: set(names) for level, names in zip(loose.levels, loose.states, strict=True)}
    for level in loose.levels[1:]:
        check_alike(level, sorted([*old[level], *(states[level] - old[level])], key=str))
    new = {level: in_order(states[level] - old[level]) for level in loose.levels}
    named = {level: [*names, *new[level]] for level, names in zip(loose.levels[1:], loose.states[1:], strict=True)}
    classes = None if loose.states[0] == ("root",) else [*loose.states[0], *new["root"]]
    return Topology(named, root=classes, max_duration={bottom: None} if lasting else None)


def scheme_of(scheme: Any, level: str) -> str:
    """The scheme of one level."""
    return scheme.get(level, "plain") if isinstance(scheme, Mapping) else scheme


def _by_level(y: Any, topology: Topology) -> Mapping[str, Any]:
    return y if isinstance(y, Mapping) else {topology.levels[1]: y}


def _names_in(column: Any, scheme: str, level: str, n: int, name: str) -> set[Any]:
    try:
        names = state_names(column, scheme)
    except (ValueError, TypeError) as error:
        raise LabelError(str(error), level=level).of_sequence(n, name) from None
    return {label for label in names if not is_unknown(label)}


def _has_long_segments(column: Any) -> bool:
    if isinstance(column, str) or len(column) == 0 or not is_segments(column):
        return False
    return any(len(item) == 3 and item[1] - item[0] > 1 for item in column)


def possible_labels(y: Labels, topology: Topology, n: int, name: str = "Y") -> Labels | None:
    """The labels over a topology; None if it lacks one of their states or forbids them."""
    if y.topology.levels != topology.levels:
        raise ValueError(f"{name}[{n}] has {y.topology}, but the model has {topology}")
    classes, known = topology.states[0], y.states[0] >= 0
    own = {y.topology.states[0][s] for s in y.states[0][known].tolist()}
    if ("root",) not in (classes, y.topology.states[0]) and not own <= set(classes):
        return None
    try:
        found = over([y], topology)[0]
        found.closed()
    except ValueError:
        return None
    return found


def learn_topology(Y: Any, scheme: Any = "auto") -> Topology:
    """Learn the topology that ``fit`` would learn from labels.

    Parameters
    ----------
    Y : list
        Labels of each sequence, as ``fit`` takes them.
    scheme : str or dict
        "plain", "bio" or "bioes", for all levels or as a dict by level; "auto" looks at the labels.

    Returns
    -------
    Topology
        The states of all levels, and which children each parent has if no label is missing.

    Examples
    --------
    >>> learn_topology([{"phrase": ["B-NP", "I-NP", "O"], "tag": ["D", "N", "V"]}])
    Topology(root 1 > phrase 2 > tag 3)
    """
    given = given_labels(Y)
    statistics = LabelStatistics(None, schemes_in(given, scheme))
    statistics.update(given, [steps_of(y) for y in given])
    return statistics.topology()


def steps_of(y: Any) -> int:
    """The number of steps that labels speak of: the length of a column, or where the last segment stops."""
    if isinstance(y, Labels):
        return y.length
    steps = 0
    for level, column in by_level(y).items():
        if level != "root" or not isinstance(column, str):
            steps = max(steps, max((item[1] for item in column), default=0) if is_segments(column) else len(column))
    return steps
