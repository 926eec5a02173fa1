"""What a kernel is given: the structure, numbers, counts and work space of one layer, and the names of their rows."""

from typing import NamedTuple

import numpy as np

from hscrf.engine.kernels.grids import seen_as_grids


@seen_as_grids
class Layer(NamedTuple):
    """Structure, evidence and addresses of one layer: levels ``top .. top + depth``, N packed time steps.

    Few arrays with named columns rather than many arrays: each one is passed by value through every call, and the
    time to compile grows with their number.
    """

    level_at: np.ndarray  # (S_top, depth + 2) first node of each level of the trie of each top state
    node: np.ndarray  # (16, nodes) structure, then address and stride of each potential: rows PARENT .. END
    may_end: np.ndarray  # (depth + 1, N) evidence: may level top + k end at t
    may_cross: np.ndarray  # (depth + 2, N) may levels top + 1 .. top + k - 1 all go on after t, and top + k change
    reach: np.ndarray  # (N, S_top) longest admissible segment of the top state from t
    table: np.ndarray  # (N, 4) columns of segments, see BASE .. CHILD_SKIP; (N, 1) if the bottom has no table
    starts: bool  # is there any start potential (else they are all one)
    stops: bool
    unit: bool  # the bottom has length one


# Rows of Layer.node. The children of a node are COUNT consecutive ones from FIRST on. From TOKEN on, a row holds the
# address of a potential, and the row after it the stride.
PARENT, FIRST, COUNT, STATE = 0, 1, 2, 3
TOKEN, BEGIN, STOP = 4, 6, 8  # of the node itself
INIT, TRANS, END = 10, 12, 14  # of its children as a group

# A table of segments has a line for each state, and in it a column for each segment. Layer.table says which: the column
# of the one-step segment that ends at j, for the top and for the bottom, NOWHERE if no segment may end; that of the
# segment that starts l steps earlier lies l columns further. The longest bottom segment from t. How many of the
# shortest that end at j have no column, because none starts there: the column of one step may be negative.
BASE, CHILD_BASE, CHILD_REACH, CHILD_SKIP = 0, 1, 2, 3
NOWHERE = -(2**60)


@seen_as_grids
class Values(NamedTuple):
    """The numbers of a layer: logarithms, or in LINEAR scaled exponentials."""

    pot: np.ndarray  # flat, see ``Layer``
    peak: np.ndarray  # (N,) LINEAR: log scale of all tokens at t together


@seen_as_grids
class Segments(NamedTuple):
    """The segments of a bottom that has a table of them.

    Else None stands for them: like ``mode`` a type of its own, so that models without durations compile only what
    they need.
    """

    mass: np.ndarray  # (S, columns) logarithms, or in LINEAR scaled exponentials; no possible segment is exactly zero
    shift: np.ndarray  # (columns,) LINEAR: the log scale of each column; else not read


@seen_as_grids
class Counts(NamedTuple):
    """Expected counts: the gradient of log Z, shaped like the values."""

    pot: np.ndarray  # flat, see ``Layer``
    ending: np.ndarray  # (depth + 1, N) posterior that a Markov level ends at t
    child: np.ndarray  # (S, columns) posteriors of the bottom's segments; empty without a table


@seen_as_grids
class Scratch(NamedTuple):
    """Work space of one run: W steps, n leaves, m nodes, m - n of them inner ones.

    Which arrays of leaves there are depends on the bottom; the others are empty. "Markov" is a bottom without a table
    whose states may last more than a step. ``up`` and ``down`` are flat and lie as those of ``Work`` do, in one row.
    """

    rows: int  # one
    kept: int  # all steps have a place of their own
    nodes: int  # that ``up`` has: all, or the inner ones if leaves start wherever they live and ``enter`` has them
    starting: int  # that ``down`` has: the inner ones below the top
    # (W + 1, n) leaves that start at j; empty if they do wherever they live and ``up`` has them. With a table
    # (n, W + 1), the latest first
    enter: np.ndarray
    up: np.ndarray  # (W + 1, nodes) inner nodes that end at j; leaves that are alive or, with a table, end
    down: np.ndarray  # (W + 1, starting) nodes that start at j, from the second number on: the top would be the first
    enter_bar: np.ndarray  # (n, W + 1) with a table: the bars of ``enter``, gathered from all j
    scale: np.ndarray  # (W + 1,) LINEAR: log scale of ``enter`` at j, and of all else at j - 1
    gain: np.ndarray  # (W + 1,) what the leaves at j were multiplied by when they were rescaled
    factor: np.ndarray  # with a table: flat, lines of W + 1 numbers, see WEIGHT .. OF_PARENTS
    since: np.ndarray  # (W + 1,) with a table: earliest start of a segment that ends at j
    node: np.ndarray  # (8, m + 4) values of all nodes at the current step, in the rows below


# Rows of Scratch.node, with j for the current step.
UP = 0  # the node ends at j; a leaf of a bottom without a table is alive at j until ``end_leaves``
DOWN = 1  # the node starts at j; in the backward pass, at j + 1
UP_BAR, DOWN_BAR = 2, 3  # the bars of these two
TOKENS = 4  # product of the tokens at j of the node and those above it
POSTERIOR = 5  # of the node at j, or with a table of its segments from one start to j
PASSED = 6  # with a table, parents of leaves: product of TOKENS from a start to j
GOES_ON_BAR = 7  # Markov, leaves: the bar of a leaf alive at j that goes on at j + 1
NODE_ROWS = 8

# Lines of Scratch.factor, for segments that end at the current step j.
WEIGHT = 0  # of a segment that starts so many steps earlier
PAST = 1  # LINEAR: log scale of ``enter``, the latest first, less PEAKS
PEAKS = 2  # LINEAR: the sum of all peaks from the start of the run to a step
OF_PARENTS = 3  # one line for each parent of leaves, its factor by lag; then one for each, posteriors by lag


def make_scratch(layer, child, steps, backward, linear, new):
    """Work space for any run of a layer up to a number of steps; ``new`` makes an array, see ``engine.space``."""
    depth = layer.level_at.shape[1] - 2
    leaves = int((layer.level_at[:, depth + 1] - layer.level_at[:, depth]).max())
    leaves += -leaves % 4  # vectors may reach beyond the last
    inner = int((layer.level_at[:, depth] - layer.level_at[:, 0]).max())
    parents = int((layer.level_at[:, depth] - layer.level_at[:, depth - 1]).max()) if depth > 1 else 0
    starting = linear or backward  # of a unit bottom the way back asks only for what has lived, derivatives for starts
    nodes = inner if layer.unit and starting else inner + leaves
    rows, segments = steps + 1, 0 if child is None else steps + 1
    enter = (0 if layer.unit and not starting else rows, leaves) if child is None else (leaves, rows)
    return Scratch(
        1,
        -1,
        nodes,
        inner - 1,
        new("enter", enter),
        new("up", rows * nodes),
        new("down", rows * (inner - 1) + 1),
        new("enter_bar", (leaves if backward else 0, segments)),
        new("scale", rows),
        new("gain", rows),
        new("factor", (OF_PARENTS + 2 * parents) * segments),
        new("since", segments, np.int64),
        new("node", (NODE_ROWS, inner + leaves + 4)),
    )


# ------------------------------------------------------------------------------
# Runs side by side, see ``bundles``


@seen_as_grids
class Leaves(NamedTuple):
    """What the leaves of all bundles of a layer meet, beside segments if the bottom has a table of them.

    In LINEAR the log mass of a segment t..j is that in its table and all of ``peak`` from t to j.
    """

    tokens: np.ndarray  # flat (N, leaves of all top states): of whole stacks; empty with a table, or if rows are apart
    counts: np.ndarray  # flat, like them or like the table: posteriors
    peak: np.ndarray  # (N,) LINEAR: log scale of a step
    number: int  # of leaves of all top states
    states: int  # of the bottom level
    top_columns: int  # of the table of the top's segments
    longest: int  # segment of the bottom, 0 without a table
    every: int  # LINEAR: so many steps cannot take a row from one end of the range of floats to the other; 0: not one
    least: float  # LINEAR: what is possible is never less, or the sequence is lossy


@seen_as_grids
class Work(NamedTuple):
    """Work space of one bundle: flat arrays, the row being the fastest index."""

    rows: int
    kept: int  # step & kept is the place of a step in ``up`` and ``down``: all steps have one, or they take turns
    nodes: int  # of a trie, and some beyond the last that vectors may reach
    starting: int  # of them those that ``down`` has: inner ones, or all if the bottom has a table
    up: np.ndarray  # (steps, nodes, rows) inner nodes that end; leaves that are alive or, with a table, end
    down: np.ndarray  # (steps, starting, rows) nodes that start
    later: np.ndarray  # like it, with a table: bars of ``up`` of the leaves at this and later steps
    lines: np.ndarray  # (longest,) where the segments of a leaf that start at the current step lie in the table
    up_bar: np.ndarray  # (nodes, rows) bars of ``up`` at the current step
    down_bar: np.ndarray  # (nodes, rows) bars of all nodes that start there
    goes_on_bar: np.ndarray  # (nodes, rows) bars of leaves that go on at the next step
    gain: np.ndarray  # (steps, rows) what the leaves were multiplied by when they were rescaled
    rescaled: np.ndarray  # (steps,) were they
    scale: np.ndarray  # (rows,) LINEAR: log scale of each row at the current step, apart without that of tokens
    top: np.ndarray  # (rows,) what is written to the table
    group: int  # the size of what follows for one parent
    pairs: np.ndarray  # (inner nodes, group) children u, v of a parent: up[u] * down_bar[v] of four rows
    own: np.ndarray  # (states, rows) apart: tokens of one level by state
    met: np.ndarray  # (inner nodes, rows) apart: tokens of a node and of all above it
    found: np.ndarray  # (states, rows) apart: posteriors of one level by state
    posterior: np.ndarray  # (nodes, rows) apart


BLOCK = 8  # rows are computed by so many
# Columns of a list of bundles: top state, its first leaf among those of all top states, first time, number of steps,
# and which of the runs.
TOP, LEAF, FROM, STEPS, RUN, RUN_END = 0, 1, 2, 3, 4, 5
# Columns of a list of runs: alive from a time up to, not including, another; the column of its segment that ends at t
# in the table lies so far from t + BASE; the sequence; and how far its own time is ahead of that of its bundle.
SINCE, UNTIL, SHIFT, SEQUENCE, AHEAD = 0, 1, 2, 3, 4


def make_work(layer, rows, steps, longest, apart, keep, new):
    """Work space for any bundle of a layer up to a number of steps; are all of them kept, for a way back?"""
    slack = int((-layer.node[COUNT] % 4).max())
    nodes = int((layer.level_at[:, -1] - layer.level_at[:, 0]).max()) + slack
    inner = int((layer.level_at[:, -2] - layer.level_at[:, 0]).max())
    starting = nodes if longest else inner
    places = steps if keep or longest else 2
    down = (places * starting + slack) * rows
    widest = int(layer.node[COUNT].max())
    states = int(layer.node[STATE].max()) + 4 if apart else 0
    group = 4 * widest * (widest + -widest % 4)
    return Work(
        rows,
        -1 if keep or longest else 1,
        nodes,
        starting,
        new("up", places * nodes * rows),
        new("down", down),
        new("later", down if longest and keep else 0),
        new("lines", longest, np.int64),
        new("up_bar", nodes * rows),
        new("down_bar", nodes * rows),
        new("goes_on_bar", nodes * rows),
        new("row gain", steps * rows),
        new("rescaled", steps, np.bool_),
        new("row scale", rows),
        new("top", rows),
        group,
        new("pairs", group * inner if keep else 0),
        new("own", states * rows),
        new("met", inner * rows if apart else 0),
        new("found", states * rows),
        new("posterior", nodes * rows if apart else 0),
    )
