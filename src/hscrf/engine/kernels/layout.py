"""What a kernel is given: the structure, numbers, counts and work space of one layer, and the names of their rows."""

from typing import NamedTuple

import numpy as np

from hscrf.engine.kernels.grids import flag, seen_as_grids


@seen_as_grids
class Layer(NamedTuple):
    """Structure, evidence and addresses of one layer: levels ``top .. top + depth``, N packed time steps.

    Few arrays with named columns rather than many arrays: each one is passed by value through every call, and the
    time to compile grows with their number.
    """

    level_at: np.ndarray  # (S_top, depth + 2) first node of each level of the trie of each top state
    node: np.ndarray  # (16, nodes) structure, then address and stride of each potential: rows PARENT .. END
    may_end: np.ndarray  # (depth + 1, N) evidence: may level top + k end at t
    may_cross: np.ndarray  # (depth + 2, N) may levels top + 1 .. top + k - 1 all go on after t; k = depth + 1: all do
    reach: np.ndarray  # (N, S_top) longest admissible segment of the top state from t
    columns: np.ndarray  # (N, 4) where segments lie in tables, see BASE .. CHILD_SKIP; (N, 1) if the bottom has none
    borders: int  # 1 if there is any start or stop potential (else they are all one)
    between: int  # 1 if there are Markov levels between the top and a bottom with a table
    unit: int  # 1 if the bottom has length one, else 0


# Rows of Layer.node. The children of a node are COUNT consecutive ones from FIRST on. From TOKEN on, a row holds the
# address of a potential, and the row after it the stride.
PARENT, FIRST, COUNT, STATE = 0, 1, 2, 3
TOKEN, BEGIN, STOP = 4, 6, 8  # of the node itself
INIT, TRANS, END = 10, 12, 14  # of its children as a group

# A table of segments has a line for each state, and in it a column for each segment. Layer.columns says which: the one
# of the one-step segment that ends at j, for the top and for the bottom, NOWHERE if no segment may end; that of the
# segment that starts l steps earlier lies l columns further. Then the longest bottom segment from t. And how many of
# the shortest that end at j have no column, because none starts there: the column of one step may be negative.
BASE, CHILD_BASE, CHILD_REACH, CHILD_SKIP = 0, 1, 2, 3
NOWHERE = -(2**60)


@seen_as_grids
class Values(NamedTuple):
    """The numbers of a layer: logarithms, or in LINEAR scaled exponentials."""

    pot: np.ndarray  # flat, see ``Layer``


@seen_as_grids
class Counts(NamedTuple):
    """Expected counts: the gradient of log Z, shaped like the values."""

    pot: np.ndarray  # flat, see ``Layer``
    ending: np.ndarray  # (depth + 1, N) posterior that a Markov level ends at t


@seen_as_grids
class Leaves(NamedTuple):
    """What the leaves of all bundles of a layer meet, beside segments if the bottom has a table of them.

    In LINEAR the log mass of a segment t..j is that in its table and all of ``peak`` from t to j. Top states that share
    no children have peaks of their own: all segments under one of them may be much fainter than those of another.
    """

    tokens: np.ndarray  # flat (N, nodes): of the whole stacks of leaves, for starts side by side; else empty
    counts: np.ndarray  # flat, like them or like the table: posteriors
    peak: np.ndarray  # (peaks, N) LINEAR: log scale of a step
    peak_of: np.ndarray  # (S_top,) which of the peaks a top state has
    states: int  # of the bottom level
    top_columns: int  # of the table of the top's segments
    longest: int  # segment of the bottom, 0 without a table
    every: int  # LINEAR: rows are looked at after so many steps: fewer than take one out of range; 0: one step may
    least: float  # LINEAR: what is possible is never less, or the sequence is lossy


@seen_as_grids
class Work(NamedTuple):
    """Work space of one bundle: flat arrays, the row being the fastest index. A run alone is a bundle of one row."""

    alone: bool | None  # is it one run, children innermost
    apart: bool | None  # are its rows whole sequences, each with its own time
    rows: int
    mask: int  # step & mask is the place of a step: -1, all steps have one (always with a table); 1, two take turns
    nodes: int  # that ``up`` has: those of a trie, the leaves again if ``alive_at``, and some that vectors may reach
    starting: int  # nodes that ``down`` has: inner ones; leaves, too, unless they have length one
    # up[leaf + alive_at] is alive, up[leaf] ends, after its STOP; 0: one place serves both. In ``up_bar`` there is one
    # place: first of what ends, after ``end_leaves_back`` of what is alive
    alive_at: int
    up: np.ndarray  # (places, nodes, rows) nodes that end; leaves that are alive
    down: np.ndarray  # (places, starting, rows) nodes that start
    up_bar: np.ndarray  # (nodes, rows) bars of ``up`` at the current step
    down_bar: np.ndarray  # (nodes, rows) bars of all nodes that start there
    goes_on_bar: np.ndarray  # (nodes, rows) bars of leaves that go on at the next step
    gain: np.ndarray  # (places, rows) what the leaves were multiplied by when they were rescaled
    rescaled: np.ndarray  # (places,) were they
    scale: np.ndarray  # (rows,) LINEAR: log scale of each row at the current step; of sequences without peaks
    top: np.ndarray  # (rows,) what is written to the table
    met: np.ndarray  # (nodes, rows) alone or apart: tokens of a node and of all above it
    posterior: np.ndarray  # (nodes, rows) alone or apart
    # Rows side by side: pairs of children u, v of a parent, up[u] * down_bar[v]; lane k sums rows k, k + 4, ...
    group: int  # numbers that a parent has
    pairs: np.ndarray  # (inner nodes, group)
    # Sequences side by side
    own: np.ndarray  # (states, rows) tokens of one level by state
    found: np.ndarray  # (states, rows) posteriors of one level by state
    # With a table
    entered: np.ndarray  # leaves that start, see ``structure.entered_at``, on the scale of the latest step
    origin: int  # where it has the first row of the first leaf at the first step
    by_leaf: int  # from one leaf to the next
    by_step: int  # from one step to the next; alone the latest is first
    # Like it. Side by side, at step j the bars of leaves that end there: starts gather them. Alone, at step i those of
    # leaves that start there: ends add to them.
    segment_bar: np.ndarray
    total_gain: np.ndarray  # (steps, rows) the sum of the logarithms, to base two, of all gains up to a step
    places: np.ndarray  # (longest,) where the segments of a leaf that start at the current step lie; -1: there is none
    since: np.ndarray  # (steps,) alone: earliest start of a segment that ends at a step
    factor: np.ndarray  # alone: lines of ``longest`` numbers, by lag, see WEIGHT and OF_PARENTS


# Lines of Work.factor, for segments that end at the current step.
WEIGHT = 0  # the mass of a segment of the current leaf, times the factor of its parent
OF_PARENTS = 1  # one for each parent of leaves: tokens since a start, its own and those above; then posteriors of each

BLOCK = 8  # rows are computed by so many
# Columns of a list of bundles: top state, first time, number of steps, and which of the runs.
TOP, FROM, STEPS, RUN, RUN_END = 0, 1, 2, 3, 4
# Columns of a list of runs: alive from a time up to, not including, another; the column of its segment that ends at t
# in the table lies so far from t + BASE; the sequence; and how far its own time is ahead of that of its bundle.
SINCE, UNTIL, SHIFT, SEQUENCE, AHEAD = 0, 1, 2, 3, 4


class Sizes(NamedTuple):
    """What work space for a layer depends on: the most nodes of each kind that the trie of a top state has."""

    nodes: int
    inner: int
    leaves: int
    parents: int  # of leaves, but for the top
    widest: int  # group of children
    slack: int  # children that the last vector of a group reaches beyond it
    states: int  # of a level, and vectors reach beyond them
    ending: bool  # are leaves that end kept beside those that are alive
    unit: bool  # have leaves length one


def make_work(sizes, rows, steps, longest, apart, keep, backward, new):
    """Work space for any bundle of a layer up to a number of steps; ``new`` makes an array, see ``engine.space``.

    ``keep``: have all steps a place of their own, for a way back; ``backward``: is there a derivative.
    """
    alone, table = rows == 1, longest > 0
    size, inner, leaves, parents, widest, slack, states, ending, unit = sizes
    slack = 4 if alone else slack
    alive = leaves + -leaves % 4 + 4 if ending and not table else 0
    nodes = size + alive + slack
    starting = inner if unit else size + slack
    if alone:  # leaves begin where a vector does, at every step
        nodes, starting = nodes + -nodes % 4, starting + -starting % 4
    lead = -inner % 4 if alone else 0
    places = steps if keep or table else 2
    down = (places * starting + slack) * rows
    group = 4 * widest * (widest + -widest % 4)
    here = nodes * rows + -nodes * rows % 4  # numbers of one step
    by_step = -1 if alone else leaves * rows + 8  # no multiple of a large power of two: caches would be slow
    segments = steps * leaves if alone else steps * by_step

    def led(name, numbers):
        return new(name, numbers + lead)[lead:]

    return Work(
        flag(alone),
        flag(apart),
        rows,
        -1 if keep or table else 1,
        nodes,
        starting,
        alive,
        led("up", places * nodes * rows),
        led("down", down),
        led("up_bar", here if backward else 0),
        led("down_bar", here if backward else 0),
        led("goes_on_bar", here if backward else 0),
        new("gain", places * rows),
        new("rescaled", places, np.bool_),
        new("scale", rows),
        new("top", rows),
        led("met", here if alone or apart else 0),
        led("posterior", here if backward and (alone or apart) else 0),
        group,
        new("pairs", group * inner if backward and not alone else 0),
        new("own", states * rows if apart else 0),
        new("found", states * rows if apart else 0),
        new("entered", segments if table else 0),
        steps - 1 if alone else 0,
        steps if alone else rows,
        by_step,
        new("segment_bar", segments if table and backward else 0),
        new("total gain", places * rows if table else 0),
        new("places", longest if not alone else 0, np.int64),
        new("since", steps if table and alone else 0, np.int64),
        new("factor", (OF_PARENTS + 2 * parents) * longest if alone else 0),
    )
