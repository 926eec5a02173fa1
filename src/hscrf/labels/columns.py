"""One label for each time step: plain, BIO or BIOES, read and written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hscrf.errors import InfeasibleError, LabelError
from hscrf.labels.cells import WITH_PARENT, end_cell
from hscrf.labels.rules import first_true
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.labels.labels import Labels

Column = Sequence[str | None]
Scheme = str | Mapping[str, str]  # how label columns are written, of all levels or by level
Last = int | NDArray[np.integer[Any]]  # the last step, or the last steps of sequences one after the other

# whether a prefix opens a segment, and whether it closes one; L and U are other names of E and S
_PREFIXES = {
    "plain": {},
    "bio": {"B": (1, 0), "I": (0, 0)},
    "bioes": {"B": (1, 0), "I": (0, 0), "E": (0, 1), "S": (1, 1), "L": (0, 1), "U": (1, 1)},
}


def blank(topology: Topology, length: int) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """States and ends (D, T), all unknown."""
    if length < 1:
        raise ValueError(f"length is {length}, an empty sequence; expected at least one time step")
    shape = (topology.depth, length)
    return np.full(shape, -1, dtype=np.int32), np.full(shape, -1, dtype=np.int8)


def fill_root(
    topology: Topology, given: str | Column | None, states: NDArray[np.int32], ends: NDArray[np.int8]
) -> None:
    """Fill in the root: it ends at the last step only; its state is the given class, the only one, or unknown."""
    ends[0, :-1], ends[0, -1] = 0, 1
    if topology.n_states[0] == 1:
        states[0] = 0
    if isinstance(given, str):
        states[0] = topology.state(0, given)
    elif given is not None:
        np.maximum(states[0], read_column(topology, 0, given, "plain")[0], out=states[0])


def check_scheme(scheme: str) -> None:
    """Raise an error for an unknown scheme."""
    if scheme not in _PREFIXES:
        raise ValueError(f"scheme is {scheme!r}; expected 'plain', 'bio' or 'bioes'")


def schemes_of(topology: Topology, scheme: Scheme) -> list[str]:
    """The scheme of each level."""
    if isinstance(scheme, str):
        scheme = dict.fromkeys(topology.levels, scheme)
    schemes = ["plain"] * topology.depth
    for level, value in scheme.items():
        check_scheme(value)
        schemes[topology.level(level)] = value
    return schemes


def common_length(topology: Topology, columns: Mapping[int, Column]) -> int:
    """The length that all columns share; a root given as one class name has no length."""
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


def fill_columns(
    topology: Topology,
    given: Mapping[int, Column],
    schemes: Sequence[str],
    boundaries: str,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
    held: Collection[int] = (),
    last: Last = -1,
) -> None:
    """Read columns into rows (D, T) from top to bottom: each level uses the ends above it. Held rows stay unchanged.

    The rows may be those of several sequences one after the other; ``last`` are the last steps of each.
    """
    if boundaries not in ("runs", "fixed", "unknown"):
        raise ValueError(f"boundaries is {boundaries!r}; expected 'runs', 'fixed' or 'unknown'")
    for d in range(1, topology.depth):
        if d in held:
            continue
        if d in given:
            states[d], ends[d], inside = read_column(topology, d, given[d], schemes[d], last)
            open_runs(ends[d], inside, ends[d - 1], boundaries)
            _check_cuts(topology, d, ends)
        ends[d][ends[d - 1] == 1] = 1
    if topology.unit_bottom and topology.depth - 1 not in held:
        ends[-1] = 1


def read_column(
    topology: Topology, d: int, column: Column, scheme: str, last: Last = -1
) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.bool_]]:
    """States and ends (T,) of one level from its labels alone, and whether a step is inside a run without prefixes.

    ``last`` are the last steps of sequences. LabelError has the step of the first bad label.
    """
    tags = _distinct(column)
    parsed = []
    for tag in tags:
        try:
            parsed.append(_read_tag(topology, d, tag, scheme))
        except ValueError as error:
            raise LabelError(str(error), level=topology.levels[d], step=list(column).index(tag)) from None
    code = {tag: k for k, tag in enumerate(tags)}
    codes = np.fromiter(map(code.__getitem__, column), dtype=np.intp, count=len(column))
    state, opens, closes, named = np.array(parsed).T[:, codes]
    ends = ends_of_runs(state)
    ends[:-1][(closes[:-1] == 1) | (opens[1:] == 1)] = 1
    ends[last] = np.where(state[last] >= 0, 1, -1)
    inside = ends == 0
    inside[:-1] &= named[1:] == 0
    return state.astype(np.int32), ends, inside


def open_runs(
    ends: NDArray[np.int8], inside: NDArray[np.bool_], above: NDArray[np.int8], boundaries: str = "runs"
) -> None:
    """Set the ends (T,) inside runs that no prefix delimits, from the ends of the level above."""
    if boundaries == "runs":
        ends[inside] = np.where(above < 0, WITH_PARENT, above)[inside]
    else:
        ends[inside] = np.where(above == 1, 1, 0 if boundaries == "fixed" else -1)[inside]


def ends_of_runs(state: NDArray[Any]) -> NDArray[np.int8]:
    """Ends (T,) of a row of states: 1 where the state changes, -1 next to an unknown state, 0 otherwise."""
    ends = np.where(state >= 0, 1, -1).astype(np.int8)
    ends[:-1] = state[:-1] != state[1:]
    ends[:-1][(state[:-1] < 0) | (state[1:] < 0)] = -1
    return ends


def _distinct(column: Column) -> list[str | None]:
    """The distinct labels of a column in order of time; all labels if one of them, such as a list, has no hash."""
    try:
        return list(dict.fromkeys(column))
    except TypeError:
        return list(column)


def _check_cuts(topology: Topology, d: int, ends: NDArray[np.int8]) -> None:
    """Raise if the prefixes of a column say that a segment goes on where the level above ends."""
    cut = first_true((ends[d - 1] == 1) & (ends[d] == 0))
    if cut:
        upper, lower = end_cell(topology, d - 1, cut[0], True), end_cell(topology, d, cut[0], False)
        raise InfeasibleError(f"{upper}, but {lower.level!r} goes on there", cells=[upper, lower])


def _read_tag(topology: Topology, d: int, tag: str | None, scheme: str) -> tuple[int, int, int, int]:
    """State of a label, whether it opens a segment, whether it closes one, and whether it has a prefix."""
    if tag is None or tag == "?" or tag != tag:  # pandas writes a missing value as NaN
        return -1, 0, 0, 0
    unit = topology.unit_bottom and d == topology.depth - 1
    if scheme == "plain" or tag == "O" or (unit and tag in topology.states[d]):
        return topology.state(d, tag), 0, 0, 0
    prefix, _, name = str(tag).partition("-")
    if not name or prefix not in _PREFIXES[scheme]:
        known = ", ".join(f"{letter}-x" for letter in _PREFIXES[scheme])
        raise ValueError(f"column {topology.levels[d]!r} has the label {tag!r}; expected {known}, O or ?")
    return topology.state(d, name), *_PREFIXES[scheme][prefix], 1


def prefixes_of(labels: Labels, d: int, scheme: str) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """The scheme's prefixes, and which of them stands at each time step (T,) of level d."""
    known = (labels.states[d] >= 0) & (scheme != "plain")
    before, here = np.append(1, labels.ends[d, :-1]), labels.ends[d].copy()
    here[-1] = 1
    if "O" in labels.topology.states[d]:
        known &= labels.states[d] != labels.topology.state(d, "O")
    doubt = first_true(known & ((before < 0) | ((here < 0) & (scheme == "bioes"))))
    if doubt:
        level = labels.topology.levels[d]
        raise ValueError(f"level {level!r} has an unknown border at {doubt[0]}; expected known ends for {scheme!r}")
    kind = np.where(known, 2 * (before == 1) + (here == 1), 0)
    if scheme == "bioes":
        return ("I-", "E-", "B-", "S-"), kind
    return ("I-", "I-", "B-", "B-"), kind
