"""Where things lie: the nodes of a trie, their potentials, and their rows in the work space."""

from hscrf.engine.kernels.compile import inlined, unsigned


@inlined
def shape_of(layer, s):
    """Depth of the layer, the first node of the trie of s, its first leaf and its end."""
    depth = layer.level_at.shape[1] - 2
    return depth, layer.level_at[s, 0], layer.level_at[s, depth], layer.level_at[s, depth + 1]


@inlined
def cell(layer, part, node, t):
    """Address of a part of a node at time t."""
    return layer.node[part, node] + t * layer.node[part + 1, node]


@inlined
def at(work, step, x):
    """Where the rows of node root + x lie in ``up`` at a step; bars have one step, the first."""
    return (place_of(work, step) * unsigned(work.nodes) + unsigned(x)) * unsigned(work.rows)


@inlined
def at_down(work, step, x):
    """Where the rows of a node lie in ``down`` at a step."""
    return (place_of(work, step) * unsigned(work.starting) + unsigned(x)) * unsigned(work.rows)


@inlined
def place_of(work, step):
    """The place of a step in the work space."""
    return unsigned(step) & unsigned(work.mask)


@inlined
def entered_at(work, leaf, step):
    """Where the rows of a leaf that starts at a step lie in ``entered``; alone, those of the steps before it follow."""
    return unsigned(work.origin + leaf * work.by_leaf + step * work.by_step)


@inlined
def starting_leaves(layer, s, step, work):
    """Where leaves that start at a step lie, if they have no table: the array, the first one and the end."""
    _, root, bottom, stop = shape_of(layer, s)
    values, begin = work.up, at(work, step, bottom - root)
    if not layer.unit:
        values, begin = work.down, at_down(work, step, bottom - root)
    return values, begin, begin + unsigned((stop - bottom) * work.rows)


@inlined
def lines_of(work, n, span):
    """How n nodes are walked four numbers at a time: how many lines there are, and where each begins and ends.

    Side by side the line of a node is its rows. Alone all nodes are one line.
    """
    count, begin, end = n, span[1], span[2]
    if work.alone:
        count, begin, end = 1, unsigned(0), unsigned(n + -n % 4)
    return count, begin, end
