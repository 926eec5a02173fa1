"""The passes over a planned batch in one arithmetic: inside and outside; ``walk`` goes back from there.

LINEAR works with scaled numbers and reports the sequences in which they would lose mass that matters (``lossy``); LOG
and MAX never do. ``batch.py`` chooses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.engine.bundling import Bundling
from hscrf.engine.kernels.arithmetic import LINEAR, LOG, MAX, SMALLEST, TINY
from hscrf.engine.kernels.bundles import sweep_bundles
from hscrf.engine.kernels.exponentials import exponentiate, gauge_rows, shift_rows
from hscrf.engine.kernels.layout import Counts, Layer, Leaves, Segments, Values, make_scratch, make_work
from hscrf.engine.kernels.row_leaves import stack_tokens, unstack_counts
from hscrf.engine.kernels.runs import sweep
from hscrf.engine.kernels.tables import add_persist, add_persist_back
from hscrf.engine.plan import LayerPlan, Plan, Span
from hscrf.engine.root import add_persist_of_roots, add_persist_of_roots_back
from hscrf.potentials import OWN, Arrays, Key

Mode = int | None  # LINEAR, LOG or MAX
Bools = NDArray[np.bool_]

SPREAD = 300.0  # scaled numbers may be multiplied by exp(-SPREAD) between two checks and stay normal floats
CHECKED = 250.0  # and by exp(-CHECKED) between two checks of rows, which need not be at every step
# Segments may differ by more. Then all that are less than FAINTEST, next to the best way, are taken for that: they add
# nothing to what is at least SAFE, and what is less makes a sequence lossy.
NARROW, FAINTEST, SAFE = 60.0, 1e-150, 1e-100
ABSENT = np.empty((0, 0))
NO_COUNTS = Counts(np.empty(0), ABSENT, ABSENT)


class Expectations(NamedTuple):
    """Log Z of each sequence and the posteriors of everything, each sequence's times its weight."""

    log_z: Floats  # (sequences,)
    counts: dict[Key, Floats]  # like the values given
    state: list[Floats]  # per level (N, S)
    ending: list[Floats]  # per level (N,)
    segments: dict[int, Floats]  # per explicit level (rows, S)


class Numbers(NamedTuple):
    """The numbers of a layer in one arithmetic."""

    values: Values
    segments: Segments | None  # of its bottom; None without a table, and in LINEAR until ``_sweep`` needs them
    spread: float  # LINEAR: no step changes the log mass of a run, but for segments of its leaves, by more


def inside(plan: Plan, mode: Mode, values: Arrays, down_to: int = 0) -> tuple[dict[int, Floats], Bools]:
    """Log masses, own persist included, of all admissible segments of the explicit levels >= down_to."""
    tables: dict[int, Floats] = {}
    lossy = np.zeros(plan.offsets.size - 1, dtype=bool)
    bottom = plan.topology.depth - 1
    if bottom in plan.tables:
        tables[bottom] = np.zeros((plan.tables[bottom].rows, plan.topology.n_states[bottom]))
        add_own_scores(plan, bottom, values, tables[bottom])
    for layer in reversed(plan.layers):
        if layer.top < down_to:
            break
        numbers = numbers_of(plan, mode, layer, values, tables, lossy)
        if numbers is None:
            break
        mass = np.zeros((plan.tables[layer.top].rows, plan.topology.n_states[layer.top]))
        scale = np.zeros_like(mass)
        _sweep(plan, mode, layer, numbers, tables.get(layer.bottom), None, ABSENT, mass, scale, lossy)
        tables[layer.top] = _finish(plan, mode, layer.top, values, mass, scale)
    return tables, lossy


def log_z_of(plan: Plan, mode: Mode, root: Floats) -> Floats:
    """Sum (or the best) over the root's states; -inf where the sequence has no admissible root."""
    rows = plan.root_rows()
    values = np.full((rows.size, root.shape[1]), -np.inf)
    values[rows >= 0] = root[rows[rows >= 0]]
    best = values.max(axis=1)
    if mode is MAX or values.shape[1] == 1:
        return best
    safe = np.where(best > -np.inf, best, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(values - safe[:, None]).sum(axis=1))


def outside(plan: Plan, mode: Mode, values: Arrays, weights: Floats | None = None) -> tuple[Expectations, Bools]:
    """Inside up to the layer below the root, then outside from the root down.

    The posterior of the root is multiplied by the positive weight (n,) of its sequence; all else follows.
    """
    single = plan.topology.n_states[0] == 1  # a lone root state has posterior one: no inside pass is needed
    tables, lossy = inside(plan, mode, values, down_to=1 if single else 0)
    result = empty(plan, whole=False)
    if lossy.all():
        return result, lossy
    roots = plan.root_rows()
    weight = np.ones(roots.size) if weights is None else weights
    if single:
        possible = roots >= 0
        result.segments[0][roots[possible]] = weight[possible, None]
    else:
        result.log_z[:] = log_z_of(plan, mode, tables[0])
        finite = result.log_z > -np.inf
        posterior = np.exp(tables[0][roots[finite]] - result.log_z[finite, None])
        result.segments[0][roots[finite]] = weight[finite, None] * posterior
    for layer in plan.layers:
        numbers = numbers_of(plan, mode, layer, values, tables, lossy)
        if numbers is None:
            return result, lossy
        ending = np.zeros((layer.bottom - layer.top + 1, plan.steps))
        counts = Counts(np.zeros(layer.size), ending, result.segments.get(layer.bottom, ABSENT))
        post = result.segments[layer.top]
        mass = np.zeros_like(post)
        scale = np.zeros_like(post)
        _sweep(plan, mode, layer, numbers, tables.get(layer.bottom), counts, post, mass, scale, lossy)
        if layer.top == 0 and single:
            if mode is LOG:
                mass[post == 0.0] = -np.inf
            result.log_z[:] = log_z_of(plan, mode, _finish(plan, mode, 0, values, mass, scale))
        _collect(plan, layer, counts, result)
    for d in plan.explicit:
        _count_own_scores(plan, d, result)
    return result, lossy


# ------------------------------------------------------------------------------
# One layer


def numbers_of(
    plan: Plan, mode: Mode, layer: LayerPlan, values: Arrays, tables: Mapping[int, Floats], lossy: Bools
) -> Any:
    """The numbers of a layer in the given arithmetic.

    LINEAR: sequences whose tokens differ too much are marked as lossy; if other potentials do, all are, and there
    are no values.
    """
    flat = np.empty(layer.size)
    peak = np.zeros(plan.steps)
    reached = low = 0.0  # by the factors between a leaf that ends and the next that starts; and by tokens
    for span in layer.spans:
        view = span.view(flat)
        _fill(span, values, view)
        if mode is LINEAR and span.key[0] == "token":
            view = view[:-1]
            highest = np.empty(plan.steps)
            lowest = shift_rows(view, view, highest)
            low -= lowest
            peak += highest
            limit = -SPREAD / (layer.bottom - layer.top)
            if lowest < limit:
                steps = ((view < limit) & (view > -np.inf)).any(axis=1)
                lossy |= np.logical_or.reduceat(steps, plan.offsets[:-1])
        elif mode is LINEAR:
            reached += max(-lowest_finite(view), view.max(initial=0.0))
    child = tables.get(layer.bottom)
    if mode is not LINEAR:
        return Numbers(Values(flat, peak), None if child is None else Segments(child, peak), 0.0)
    if reached > SPREAD:
        lossy[:] = True
        return None
    exponentiate(flat)
    spread = reached + low + np.log(layer.layer.node.shape[1])
    return Numbers(Values(flat, peak), None, spread)


def _fill(span: Span, values: Arrays, view: Floats) -> None:
    """Write the log-potentials of a span."""
    part, d = span.key
    if part == "token":
        view[-1] = 0.0
        view = view[:-1]
        view[:] = values.get(span.key, 0.0)
        # the durations and segments of a unit bottom are tokens too
        if ("duration", d) in values:
            view += values["duration", d][0]
        if ("segment", d) in values:
            view += values["segment", d][:, 0]
    elif not span.given:
        view[:] = 0.0
    elif span.columns is None:
        view[:] = values[span.key]
    else:
        np.take(values[span.key].reshape(span.rows, -1), span.columns, axis=1, out=view, mode="clip")
    if span.forbidden is not None:
        np.putmask(view, np.broadcast_to(span.forbidden, view.shape), -np.inf)


def _sweep(
    plan: Plan, mode: Mode, layer: LayerPlan, numbers: Numbers, child: Floats | None, counts: Any, post: Any, *out: Any
) -> None:
    """Walk all runs of a layer, also backward if there are counts to fill."""
    alone: Layer | None = layer.layer
    if layer.bundling is not None and mode is not LOG:
        leaves, table = leaves_of(plan, mode, layer, layer.bundling, numbers, child, counts)
        if leaves.every > 0:
            alone = layer.bundling.lone
            _sweep_bundles(mode, layer.layer, layer.bundling, numbers.values, leaves, table, counts, post, *out)
    if alone is not None:
        steps, segments = int(alone.reach.max()), numbers.segments
        if mode is LINEAR and child is not None:
            segments = Segments(*to_linear(child))
        work = make_scratch(alone, segments, steps, counts is not None, mode is LINEAR)
        sweep(mode, alone, numbers.values, segments, counts, plan.offsets, post, *out, work)


def _sweep_bundles(
    mode: Mode,
    layer: Layer,
    bundling: Bundling,
    values: Values,
    leaves: Leaves,
    table: Floats | None,
    counts: Any,
    *out: Any,
) -> None:
    """Walk the runs of a layer that go side by side."""
    work = make_work(layer, bundling.rows, bundling.steps, leaves.longest, bundling.apart)
    kind = (table, bundling.apart or None)  # None, a type of its own: what is not needed is not compiled
    flat = [array.reshape(-1) for array in out]
    found = NO_COUNTS if counts is None and mode is LINEAR else counts
    sweep_bundles(mode, layer, values, leaves, *kind, found, bundling.bundles, bundling.runs, *flat, work)
    if counts is not None and leaves.tokens.size:
        unstack_counts(layer, counts.pot, counts.ending, leaves.counts.reshape(-1, leaves.number))


def leaves_of(
    plan: Plan, mode: Mode, layer: LayerPlan, bundling: Bundling, numbers: Numbers, child: Floats | None, counts: Any
) -> tuple[Leaves, Floats | None]:
    """What the leaves of bundles meet, and the table of their segments, flat, if there is one.

    ``every`` is 0 if LINEAR cannot hold them side by side.
    """
    none, least, peak = np.empty(0), TINY, numbers.values.peak
    shape = (bundling.leaves, plan.topology.n_states[layer.bottom])
    if bundling.apart:
        return Leaves(none, none, peak, *shape, 0, steps_between_checks(mode, numbers.spread), least), None
    if child is None:
        tokens = np.empty((plan.steps, bundling.leaves))
        stack_tokens(mode, layer.layer, numbers.values.pot, tokens)
        found = none if counts is None else np.zeros(tokens.size)
        every = steps_between_checks(mode, numbers.spread)
        return Leaves(tokens.reshape(-1), found, peak, *shape, 0, every, least), None
    table = plan.tables[layer.bottom]
    longest, found = int(table.most.max()), none if counts is None else counts.child.reshape(-1)
    if mode is not LINEAR:
        return Leaves(none, found, peak, *shape, longest, 1, least), child.reshape(-1)
    segments, peak = np.empty(child.size), np.empty(plan.steps)
    lowest = gauge_rows(plan.offsets, table.base, table.skip, table.width, child, segments.reshape(child.shape), peak)
    exponentiate(segments)
    spread = numbers.spread + np.log(longest)
    every = steps_between_checks(mode, spread - lowest)
    if not every and spread < NARROW:
        segments[(segments < FAINTEST) & (child.reshape(-1) > -np.inf)] = FAINTEST
        every, least = 1, SAFE
    return Leaves(none, found, peak, *shape, longest, every, least), segments


def steps_between_checks(mode: Mode, spread: float) -> int:
    """How many steps rows may go before they are looked at, 0 if not one."""
    return int(CHECKED / spread) if mode is LINEAR and spread > 0.0 else 1


def _finish(plan: Plan, mode: Mode, d: int, values: Arrays, mass: Floats, scale: Floats) -> Floats:
    """Log masses with the level's own persist, from what the runs left."""
    if mode is LINEAR:
        with np.errstate(divide="ignore"):
            np.log(mass, out=mass)
        mass += scale
    add_own_scores(plan, d, values, mass)
    return mass


def add_own_scores(plan: Plan, d: int, values: Arrays, table: Floats) -> None:
    """Add the scores of the segments of level d by themselves."""
    base, skip, width, reach, _, least, _ = plan.tables[d]
    rows = (base, skip, width, reach, least, plan.topology.min_duration[d])
    own = [np.ascontiguousarray(values.get((part, d), ABSENT)).reshape(-1, table.shape[1]) for part in OWN]
    if d == 0:
        add_persist_of_roots(width, skip, reach, plan.topology.min_duration[d], own, table)
        return
    add_persist(*rows, *own, table, np.empty((1, table.shape[1])))


# ------------------------------------------------------------------------------
# Counts


def empty(plan: Plan, whole: bool = True) -> Expectations:
    """Zero counts and posteriors; unless ``whole`` without room for tokens, states and endings: a pass makes it."""
    steps = plan.steps if whole else 0
    return Expectations(
        np.zeros(plan.offsets.size - 1),
        {key: np.zeros(shape) for key, shape in plan.shapes.items() if whole or key[0] != "token"},
        [np.zeros((steps, size)) for size in plan.topology.n_states],
        [np.zeros(steps) for _ in plan.topology.levels],
        {d: np.zeros((table.rows, table.reach.shape[1])) for d, table in plan.tables.items()},
    )


def _collect(plan: Plan, layer: LayerPlan, counts: Counts, result: Expectations) -> None:
    """Move the counts of a layer from the flat array to the parts they belong to."""
    segmental = layer.bottom in plan.tables
    for k in range(1, layer.bottom - layer.top + (0 if segmental else 1)):
        result.ending[layer.top + k] = counts.ending[k]
    for span in layer.spans:
        part, d = span.key
        view = span.view(counts.pot)
        if part == "token":
            if segmental:  # counted as differences in time
                np.cumsum(view, axis=0, out=view)
            result.state[d] = view[:-1]
            _count_tokens(plan, d, result)
        elif span.given and span.columns is not None:
            kept = span.columns >= 0
            result.counts[span.key].reshape(span.rows, -1)[:, span.columns[kept]] = view[:, kept]
        elif span.given:
            result.counts[span.key] = view


def _count_tokens(plan: Plan, d: int, result: Expectations) -> None:
    """The state posteriors of a Markov level are its token counts; a unit bottom has other parts like them."""
    state = result.state[d]
    if ("token", d) in plan.shapes:
        result.counts["token", d] = state
    if ("duration", d) in result.counts:
        result.counts["duration", d][0] = state.sum(axis=0)
    if ("segment", d) in result.counts:
        result.counts["segment", d][:, 0] = state


def _count_own_scores(plan: Plan, d: int, result: Expectations) -> None:
    """Reverse of ``add_own_scores``: from posteriors of segments to states, endings and counts of level d."""
    table, post = plan.tables[d], result.segments[d]
    found = result.state[d], result.ending[d] = np.zeros((plan.steps, post.shape[1])), np.zeros(plan.steps)
    own = [result.counts.get((part, d), ABSENT).reshape(-1, post.shape[1]) for part in OWN[1:]]
    if d == 0:
        add_persist_of_roots_back(table.width, table.skip, post, found, own)
    else:
        alive = np.empty((1, post.shape[1]))
        add_persist_back(table.base, table.skip, table.width, post, *found, *own, alive)
    if ("token", d) in plan.shapes:
        result.counts["token", d] = result.state[d]


# ------------------------------------------------------------------------------
# Arrays


def lowest_finite(values: Floats) -> float:
    """The lowest value that is not -inf, at most zero."""
    lowest = values.min(initial=0.0)
    return float(lowest if lowest > -np.inf else np.min(values, initial=0.0, where=values > -np.inf))


def to_linear(table: Floats) -> tuple[Floats, Floats]:
    """Rows (rows, S) of logarithms as scaled exponentials and their log scales; only the impossible becomes zero.

    In blocks that stay in the cache.
    """

    linear, shift = np.empty_like(table), np.empty(len(table))
    for begin in range(0, len(table), 4096):
        block = slice(begin, begin + 4096)
        rows, out = table[block], linear[block]
        shift_rows(rows, out, shift[block])
        exponentiate(out.reshape(-1))
        if out.min() < SMALLEST:
            out[(out < SMALLEST) & (rows > -np.inf)] = SMALLEST
    return linear, shift
