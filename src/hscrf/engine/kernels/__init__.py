"""The recursion, compiled.

    compile        how kernels are cached; every kernel of the package, in any room, goes through it
    compiler       how they are compiled: parts only within kernels
    grids          arrays as kernels see them: an address and a shape
    lanes          four numbers at once: ``vectors`` when compiled, ``plain`` with ``NUMBA_DISABLE_JIT=1``
    arithmetic     the three arithmetics below
    layout         what a kernel is given: ``Layer``, ``Values``, ``Segments``, ``Counts``; work space: ``Scratch`` of a
                   run, ``Work`` of a bundle
    groups, trie   one time step: one parent with its children, then all of them
    steps          bottoms without a table of segments
    segmental      bottoms with one
    runs           whole runs and layers, forward and backward
    bundles        runs side by side: each number of a table serves many of them
    rows, row_trie, row_leaves     for them what ``groups``, ``trie``, and ``steps`` with ``segmental`` are for one run
    row_scales     how the rows of a bundle stay in range
    row_tokens     tokens of runs that are whole sequences; starts and stops of inner levels
    decoding       the best way back
    tracing        the way back item by item: for draws, and for the k best
    tables, exponentials   what the engine prepares before a sweep

A ``kernel`` is called from Python, a ``part`` by kernels only, and ``inlined`` parts leave no call behind. To follow
one in a debugger, set ``NUMBA_DISABLE_JIT=1``: all of them are Python functions then.

One layer of the model (DESIGN: *levels are layers*) is a set of **runs**. The run of top state ``s`` and start ``i``
walks over ``j = i, i + 1, ...`` and carries the mass of everything that may happen under ``s`` since ``i``. Its chain
state is a *leaf*: a stack of states from just below the top down to the layer's bottom; leaves and the inner nodes
above them form a trie, numbered level by level, the top itself being node ``level_at[s, 0]``.

    enter[j, leaf]   a leaf starts at j                    (``descend``: across by ``trans``, down by ``init``)
    up[j, leaf]      a leaf has lived through j            (``extend_step``: it starts, or goes on; ``sum_segments``:
                                                           its segment ends at j, over all starts)
    UP[node]         the node ends at j                    (``ascend``: up by ``end``)

One step of a run goes down, lives, and goes up:

    descend        a node starts because its parent does (``init``) or because a sibling has ended (``trans``)
    extend_step    a leaf that starts, or goes on, meets the tokens of j (``extend_segments``: segments end at j)
    ascend         a node ends because one of its children does (``end``); the top's mass is that of i .. j

The same code runs in three arithmetics, told apart by ``mode``: LINEAR (sums of products, each row of a run scaled),
LOG (log-sum-exp) and MAX (the best instead of the sum). The backward pass is the derivative of the forward pass in
reverse: ``*_bar`` holds d log Z / d value, so value x bar is a posterior probability.

LINEAR loses nothing: a value is either exactly zero because it is impossible, or at least ``TINY`` relative to its
row; a run in which this fails reports it, and the caller takes LOG instead.

A segmental level has a run from every start. Where children are few and segments long, the runs of one top state walk
side by side in LINEAR and MAX (``bundles``): a step of all of them is a product of two matrices instead of many
products of a vector and a matrix. So do the sequences of a batch whose levels are all Markov. ``engine.bundling``
decides which runs do, by a rule that ``benchmarks/rows.py`` justifies; the others go alone, and so do all in LOG.

A table of segments has a line for each state and a column for each segment, by its last step and then by its length.
So a sum over the starts of one end reads memory in order, whatever the number of states.

Times are rows of the packed batch, so one call serves many sequences. All potentials of a layer lie in one flat
array; a node holds the address and the stride in time (0: constant) of each of its potentials.
"""
