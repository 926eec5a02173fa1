"""What a kernel is given: the structure, numbers, counts and work space of one layer."""

from typing import NamedTuple

import numpy as np


class Layer(NamedTuple):
    """Structure, evidence and addresses of one layer: levels ``top .. top + depth``, N packed time steps.

    Few arrays with named columns rather than many arrays: each one is passed by value through every call, and the
    time to compile grows with their number.
    """

    level_at: np.ndarray  # (S_top, depth + 2) first node of each level of the trie of each top state
    node: np.ndarray  # (16, nodes) structure, then address and stride of each potential: rows PARENT .. END
    may_end: np.ndarray  # (depth + 1, N) evidence: may level top + k end at t
    may_cross: np.ndarray  # (depth + 2, N) may levels top + 1 .. top + k - 1 all go on after t
    reach: np.ndarray  # (N, S_top) longest admissible segment of the top state from t
    table: np.ndarray  # (N, 4) rows of segments, see BASE .. CHILD_SKIP
    starts: bool  # is there any start potential (else they are all one)
    stops: bool
    unit: bool  # the bottom has length one


PARENT, FIRST, COUNT, STATE = 0, 1, 2, 3  # rows of Layer.node; children are consecutive from FIRST
TOKEN, BEGIN, STOP = 4, 6, 8
INIT, TRANS, END = 10, 12, 14  # the block of the node's children

# Columns of Layer.table: the row of the one-step segment that ends at j, for the top and for the bottom, NOWHERE if no
# segment may end; the segment that starts l steps earlier lies l rows further. The longest bottom segment from t. How
# many of the shortest that end at j have no row, because none starts there: the row of one step may be negative.
BASE, CHILD_BASE, CHILD_REACH, CHILD_SKIP = 0, 1, 2, 3
NOWHERE = -(2**60)


class Values(NamedTuple):
    """The numbers of a layer: logarithms, or in LINEAR scaled exponentials."""

    pot: np.ndarray  # flat, see ``Layer``
    peak: np.ndarray  # (N,) LINEAR: log scale of all tokens at t together


class Segments(NamedTuple):
    """The segments of a bottom that has a table of them.

    Else None stands for them: like ``mode`` a type of its own, so that models without durations compile only what
    they need.
    """

    mass: np.ndarray  # (rows, S)
    shift: np.ndarray  # (rows,) LINEAR: their log scale; no possible segment is exactly zero


class Counts(NamedTuple):
    """Expected counts: the gradient of log Z, shaped like the values."""

    pot: np.ndarray
    ending: np.ndarray  # (depth + 1, N) posterior that a Markov level ends at t
    child: np.ndarray


class Scratch(NamedTuple):
    """Work space of one run: W steps, n leaves, m nodes, m - n of them inner ones."""

    enter: np.ndarray  # (W + 1, n) leaves that start at each step
    leaf: np.ndarray  # (W + 1, n) leaves alive at each step; none if the bottom has unit length, see ``recall``
    inner: np.ndarray  # (2, W + 1, m - n) inner nodes that end (UP) and that start (DOWN) at each step
    bar: np.ndarray  # (W + 1, n) the bars of ``enter``; without a table one row, that of the step after, if not unit
    scale: np.ndarray  # (W + 1,) log scale of ``enter`` at j, and of ``leaf`` at j - 1
    gain: np.ndarray  # (W + 1,) what the leaf row was multiplied by when it was rescaled
    weight: np.ndarray  # (W + 1,) LINEAR: scale of the child segments that end at j, by length
    since: np.ndarray  # (W + 1,) earliest start of a child segment that ends at j
    node: np.ndarray  # (7, m + 4) UP .. PASSED: values of the nodes at the current step


UP, DOWN, UP_BAR, DOWN_BAR, TOKENS, POSTERIOR, PASSED = 0, 1, 2, 3, 4, 5, 6  # of Scratch.node


def make_scratch(layer, child, steps, backward):
    """Work space for any run of a layer up to a number of steps."""
    depth = layer.level_at.shape[1] - 2
    leaves = int((layer.level_at[:, depth + 1] - layer.level_at[:, depth]).max())
    leaves += -leaves % 4  # vectors may reach beyond the last
    inner = int((layer.level_at[:, depth] - layer.level_at[:, 0]).max())
    return Scratch(
        np.empty((steps + 1, leaves)),
        np.empty((0 if layer.unit else steps + 1, leaves)),
        np.empty((2, steps + 1, inner)),
        np.empty((0 if layer.unit or not backward else 1 if child is None else steps + 1, leaves)),
        np.empty(steps + 1),
        np.empty(steps + 1),
        np.empty(steps + 1),
        np.empty(steps + 1, dtype=np.int64),
        np.empty((7, inner + leaves + 4)),
    )
