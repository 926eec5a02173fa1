"""The recursion, compiled.

    compile        how kernels are cached; every kernel of the package, in any room, goes through it
    compiler       how they are compiled: parts only within kernels
    grids          arrays as kernels see them: an address and a shape
    lanes          four numbers at once: ``vectors`` when compiled, ``plain`` with ``NUMBA_DISABLE_JIT=1``
    arithmetic     the three arithmetics below
    layout         what a kernel is given: ``Layer``, ``Values``, ``Leaves``, ``Counts``; work space: ``Work``
    structure      where things lie in it
    groups, rows   one parent and its children: in one run, children innermost; in many side by side, rows innermost
    tokens, trie   one time step: what nodes meet by themselves, and what parents and children do
    leaves         the lowest nodes live through a step or, with a table, end there as segments
    scales         how rows stay in range
    runs           whole runs, forward and backward
    decoding       the best way back
    tracing        the way back item by item: for draws, and for the k best
    tables, exponentials   what the engine prepares before a sweep

A ``kernel`` is called from Python, a ``part`` by kernels only, and ``inlined`` parts leave no call behind. To follow
one in a debugger, set ``NUMBA_DISABLE_JIT=1``: all of them are Python functions then.

One layer of the model (DESIGN: *levels are layers*) is a set of **runs**. The run of top state ``s`` and start ``i``
walks over ``t = i, i + 1, ...`` and carries the mass of everything that may happen under ``s`` since ``i``. Its chain
state is a *leaf*: a stack of states from just below the top down to the layer's bottom. Leaves and the inner nodes
above them form a trie, numbered level by level, the top itself being node ``level_at[s, 0]``.

    down[t, node]    the node starts at t
    up[t, node]      the node ends at t; a leaf without a table is alive at t

One step of a run goes down, lives, and goes up:

    descend        a node starts because its parent does (``init``) or because a sibling has ended (``trans``)
    live           a leaf that starts, or goes on, meets the tokens of t (``sum_segments``: its segment ends at t)
    ascend         a node ends because one of its children does (``end``); the top's mass is that of all below it
                   over i .. t: what it has by itself is added later (``tables.add_persist``)

In docs/theory.md a step begins with what ends. There G is ``up``, P is ``down``, enter is ``down`` of the leaves, and H
is the second term of ``product``.

The same code runs in three arithmetics, told apart by ``mode``: LINEAR (sums of products, each run scaled), LOG
(log-sum-exp) and MAX (the best instead of the sum). The backward pass is the derivative of the forward pass in
reverse: ``*_bar`` holds d log Z / d value, so value x bar is a posterior probability.

LINEAR loses nothing: a value is either exactly zero because it is impossible, or at least ``TINY`` relative to its
row; a run in which this fails reports it, and the caller takes LOG instead.

Runs walk in **bundles**, a row for each. A run alone is a bundle of one row. Where children are few and segments long,
the runs of one top state from different starts walk side by side: a step of all of them is a product of two matrices
instead of many products of a vector and a matrix. So do the sequences of a batch whose levels are all Markov.
``engine.bundling`` decides which runs do, by a rule that ``benchmarks/rows.py`` justifies; the others go alone, and so
do all in LOG.

A table of segments has a line for each state and a column for each segment, by its last step and then by its length.
So a sum over the starts of one end reads memory in order, whatever the number of states.

Times are rows of the packed batch, so one call serves many sequences. All potentials of a layer lie in one flat
array; a node holds the address and the stride in time (0: constant) of each of its potentials.
"""
