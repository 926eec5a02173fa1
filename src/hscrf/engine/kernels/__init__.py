"""The recursion, compiled.

One layer of the model (DESIGN: *levels are layers*) is a set of **runs**. The run of top state ``s`` and start ``i``
walks over ``j = i, i + 1, ...`` and carries the mass of everything that may happen under ``s`` since ``i``. Its chain
state is a *leaf*: a stack of states from just below the top down to the layer's bottom; leaves and the inner nodes
above them form a trie, numbered level by level, the top itself being node ``level_at[s, 0]``.

    enter[j, leaf]   a leaf starts at j                 (``descend``: across by ``trans``, down by ``init``)
    leaf[j, leaf]    a leaf is alive at j               (``extend_step``: tokens; ``sum_segments``: child segments)
    up[node]         the node ends at j                 (``ascend``: up by ``end``)

The same code runs in three arithmetics, told apart by ``mode``: LINEAR (sums of products, each row of a run scaled),
LOG (log-sum-exp) and MAX (the best instead of the sum). The backward pass is the reverse-mode derivative of the
forward pass: ``*_bar`` holds d log Z / d value, so value x bar is a posterior probability.

LINEAR loses nothing: a value is either exactly zero because it is impossible, or at least ``TINY`` relative to its
row; a run in which this fails reports it, and the caller takes LOG instead.

Times are rows of the packed batch, so one call serves many sequences. All potentials of a layer lie in one flat
array; a node holds the address and the stride in time (0: constant) of each of its potentials.
"""
