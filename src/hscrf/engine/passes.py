"""The passes over a planned batch in one arithmetic: inside and outside; ``walk`` goes back from there.

LINEAR works with scaled numbers and reports the sequences in which they would lose mass that matters (``lossy``); LOG
and MAX never do. ``batch.py`` chooses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine.bundling import Bundling
from hscrf.engine.kernels.arithmetic import LINEAR, LOG, MAX, TINY
from hscrf.engine.kernels.exponentials import exponentiate, gauge, raise_lines, raise_rows
from hscrf.engine.kernels.layout import Counts, Layer, Leaves, Values, make_work
from hscrf.engine.kernels.leaves import stack_tokens, unstack_counts
from hscrf.engine.kernels.runs import sweep, sweep_bundles
from hscrf.engine.kernels.tables import add_persist, add_persist_back
from hscrf.engine.plan import LayerPlan, Plan, SegmentTable, Span
from hscrf.engine.root import add_persist_of_roots, add_persist_of_roots_back
from hscrf.engine.space import SPACE, New, fresh, zeros_beside
from hscrf.potentials import OWN, Arrays, Key

Mode = int | None  # LINEAR, LOG or MAX
Bools = NDArray[np.bool_]

SPREAD = 300.0  # scaled numbers may be multiplied by exp(-SPREAD) between two checks and stay normal floats
CHECKED = 250.0  # and by exp(-CHECKED) between two checks of rows, which need not be at every step
# Segments may differ by more. Then all that are less than FAINTEST, next to the best way, are taken for that, and what
# is less than SAFE makes a sequence lossy. A row is at most HIGH, and a step may raise it by exp(NARROW): many such
# starts times FAINTEST are less than the last digit of SAFE. And SAFE * exp(-NARROW) * FAINTEST is a normal float.
NARROW, SAFE = 60.0, 1e-90
ABSENT = np.empty((0, 0))
NONE_LOSSY = np.empty(0, dtype=bool)  # MAX and LOG lose nothing
NO_COUNTS = Counts(np.empty(0), ABSENT)


class Expectations(NamedTuple):
    """Log Z of each sequence and the posteriors of everything, each sequence's times its weight."""

    log_z: Floats  # (sequences,)
    counts: dict[Key, Floats]  # like the values given
    state: list[Floats]  # per level (N, S)
    ending: list[Floats]  # per level (N,)
    segments: dict[int, Floats]  # per explicit level (S, columns), see ``plan.SegmentTable``


class Numbers(NamedTuple):
    """The numbers of a layer in one arithmetic."""

    values: Values
    peak: Floats  # (N,) LINEAR: log scale of all tokens at t together
    spread: float  # LINEAR: no step changes the log mass of a run, but for segments of its leaves, by more
    low: float  # LINEAR: its part that is due to tokens


Tables = dict[int, Floats]  # log masses (S, columns) of the segments of explicit levels


def inside(plan: Plan, mode: Mode, values: Arrays, down_to: int = 0, new: New = fresh) -> tuple[Tables, Bools]:
    """Log masses, own persist included, of all admissible segments of the explicit levels >= down_to."""
    tables: Tables = {}
    lossy = np.zeros(plan.offsets.size - 1, dtype=bool)
    bottom = plan.topology.depth - 1
    if bottom in plan.tables:
        tables[bottom] = filled(new(f"table {bottom}", plan.tables[bottom].shape), 0.0)
        add_own_scores(plan, bottom, values, tables[bottom])
    for layer in reversed(plan.layers):
        if layer.top < down_to:
            break
        numbers = numbers_of(plan, mode, layer, values, lossy, new)
        if numbers is None:
            break
        mass = new(f"table {layer.top}", plan.tables[layer.top].shape)  # own scores are -inf wherever no run fills it
        _sweep(plan, mode, layer, numbers, tables.get(layer.bottom), None, ABSENT, ABSENT, mass, lossy)
        add_own_scores(plan, layer.top, values, mass)
        tables[layer.top] = mass
    return tables, lossy


def log_z_of(plan: Plan, mode: Mode, root: Floats) -> Floats:
    """Sum (or the best) over the root's states; -inf where the sequence has no admissible root."""
    columns = plan.root_columns
    values = np.full((columns.size, len(root)), -np.inf)
    values[columns >= 0] = root[:, columns[columns >= 0]].T
    best = values.max(axis=1)
    if mode is MAX or values.shape[1] == 1:
        return best
    safe = np.where(best > -np.inf, best, 0.0)
    with np.errstate(divide="ignore"):
        return safe + np.log(np.exp(values - safe[:, None]).sum(axis=1))


def outside(
    plan: Plan, mode: Mode, values: Arrays, weights: Floats | None = None, new: New = fresh
) -> tuple[Expectations, Bools]:
    """Inside up to the layer below the root, then outside from the root down.

    The posterior of the root is multiplied by the positive weight (n,) of its sequence; all else follows. ``new`` makes
    the tables of segments, those that are returned, too.
    """
    single = plan.topology.n_states[0] == 1  # a lone root state has posterior one: no inside pass is needed
    tables, lossy = inside(plan, mode, values, 1 if single else 0, new)
    result = empty(plan, False, new)
    if lossy.all():
        return result, lossy
    roots = plan.root_columns
    weight = np.ones(roots.size) if weights is None else weights
    if single:
        possible = roots >= 0
        result.segments[0][:, roots[possible]] = weight[possible]
    else:
        result.log_z[:] = log_z_of(plan, mode, tables[0])
        finite = result.log_z > -np.inf
        posterior = np.exp(tables[0][:, roots[finite]] - result.log_z[finite])
        result.segments[0][:, roots[finite]] = weight[finite] * posterior
    for layer in plan.layers:
        numbers = numbers_of(plan, mode, layer, values, lossy, new)
        if numbers is None:
            return result, lossy
        ending = np.zeros((layer.bottom - layer.top + 1, plan.steps))
        counts = Counts(zeros_beside(numbers.values.pot), ending)
        post, below = result.segments[layer.top], result.segments.get(layer.bottom, ABSENT)
        unknown = layer.top == 0 and single
        mass = np.full_like(post, -np.inf) if unknown else ABSENT
        _sweep(plan, mode, layer, numbers, tables.get(layer.bottom), counts, below, post, mass, lossy)
        if unknown:
            add_own_scores(plan, 0, values, mass)
            result.log_z[:] = log_z_of(plan, mode, mass)
        _collect(plan, layer, counts, result)
    for d in plan.explicit:
        _count_own_scores(plan, d, result)
    return result, lossy


# ------------------------------------------------------------------------------
# One layer


def numbers_of(
    plan: Plan,
    mode: Mode,
    layer: LayerPlan,
    values: Arrays,
    lossy: Bools,
    new: New = fresh,
) -> Any:
    """The numbers of a layer in the given arithmetic.

    LINEAR: sequences whose tokens differ too much are marked as lossy; if other potentials do, all are, and there
    are no values.
    """
    flat = new(f"flat {layer.top}", layer.size)
    peak = filled(new(f"peak {layer.top}", plan.steps), 0.0)
    for span in layer.tables:
        _fill(span, values, span.view(flat))
    flat[layer.gaps] = 0.0
    if mode is not LINEAR:
        for span in layer.tokens:
            view = span.view(flat)
            view[:-1], view[-1] = _tokens_of(plan, span, values), 0.0
        return Numbers(Values(flat), peak, 0.0, 0.0)
    tables = flat[layer.tables[0].begin :]
    reached = farthest(tables, layer)  # by the factors between a leaf that ends and the next that starts
    if reached > SPREAD:
        lossy[:] = True
        return None
    exponentiate(tables)
    low = sum(_raise_tokens(plan, layer, span, values, span.view(flat), peak, lossy) for span in layer.tokens)
    return Numbers(Values(flat), peak, reached + low + np.log(layer.layer.node.shape[1]), low)


def farthest(tables: Floats, layer: LayerPlan) -> float:
    """The sum over tables of the largest of their log-potentials, whatever its sign, that is not -inf."""
    sizes = np.abs(tables)
    sizes[sizes == np.inf] = 0.0
    return float(np.maximum.reduceat(sizes, [span.begin - layer.tables[0].begin for span in layer.tables]).sum())


def _raise_tokens(
    plan: Plan, layer: LayerPlan, span: Span, values: Arrays, view: Floats, peak: Floats, lossy: Bools
) -> float:
    """Write the exponentials of the tokens of a level; the highest of each step is taken off and put on ``peak``.

    Sequences whose tokens differ too much are marked. Return how far below the highest of its step any of them is.
    """
    if not span.given and span.forbidden is None:
        view.fill(1.0)
        return 0.0
    view[-1] = 1.0
    tokens, highest = _tokens_of(plan, span, values), SPACE.array("highest", plan.steps)
    lowest, limit = raise_rows(tokens, view.reshape(-1), highest), -SPREAD / (layer.bottom - layer.top)
    if lowest < limit:
        steps = ((tokens < highest[:, None] + limit) & (tokens > -np.inf)).any(axis=1)
        lossy |= np.logical_or.reduceat(steps, plan.offsets[:-1])
    peak += highest
    return -lowest


def _tokens_of(plan: Plan, span: Span, values: Arrays) -> Floats:
    """The log-potentials (N, S) of a level at each step: its tokens, and all that is like them in a unit bottom."""
    d, tokens = span.key[1], values.get(span.key)
    like = [part for part in OWN[1:] if plan.is_unit(d) and (part, d) in values]
    if tokens is not None and not like and span.forbidden is None:
        return np.ascontiguousarray(tokens)
    total = filled(SPACE.array("tokens of a level", (plan.steps, span.width)), 0.0)
    if tokens is not None:
        total += tokens
    for part in like:
        array = values[part, d]
        total += {"duration": array[:1], "segment": array[:, 0]}.get(part, array)
    if span.forbidden is not None:
        np.copyto(total, -np.inf, where=span.forbidden)
    return total


def _fill(span: Span, values: Arrays, view: Floats) -> None:
    """Write the log-potentials of a table."""
    if not span.given:
        view[:] = 0.0
    elif span.columns is None:
        view[:] = values[span.key]
    else:
        np.take(values[span.key].reshape(span.rows, -1), span.columns, axis=1, out=view, mode="clip")
    if span.forbidden is not None:
        np.copyto(view, -np.inf, where=span.forbidden)


def _sweep(
    plan: Plan,
    mode: Mode,
    layer: LayerPlan,
    numbers: Numbers,
    child: Floats | None,
    counts: Any,
    below: Floats,
    post: Floats,
    mass: Floats,
    lossy: Bools,
) -> None:
    """Walk all runs of a layer; its bottom has the table ``child``, or None.

    With counts to fill, also backward: from the posteriors ``post`` of the top's segments to those ``below``.
    """
    alone: Layer | None = layer.layer
    leaves, table = leaves_of(plan, mode, layer, numbers, child, below, lossy)
    out = (post.reshape(-1), mass.reshape(-1), lossy)
    keep = counts is not None
    if counts is None and mode is LINEAR and (layer.bundling is not None or len(plan.layers) > 1):
        counts = NO_COUNTS  # learning needs log masses and counts, from one kernel
    if table is not None and not leaves.every:
        return  # all sequences are lossy
    if layer.bundling is not None and mode is not LOG and leaves.every > 0:
        _sweep_bundles(plan, mode, layer, layer.bundling, numbers.values, leaves, table, keep, counts, *out)
        alone = layer.bundling.lone
    if alone is not None:
        steps = int(alone.reach.max())
        work = make_work(layer.sizes, 1, steps, leaves.longest, False, keep, keep, SPACE.array)
        sweep(mode, alone, numbers.values, leaves, table, counts, plan.offsets, *make_bundle(), *out, work)


def make_bundle() -> tuple[Ints, Ints]:
    """Room for a bundle of one run, see ``kernels.runs.sweep``."""
    return np.zeros(5, dtype=np.int64), np.zeros((1, 5), dtype=np.int64)


def _sweep_bundles(
    plan: Plan,
    mode: Mode,
    layer: LayerPlan,
    bundling: Bundling,
    values: Values,
    leaves: Leaves,
    table: Floats | None,
    keep: bool,
    counts: Any,
    *out: Any,
) -> None:
    """Walk the runs of a layer that go side by side; ``keep``: there are counts to fill."""
    stacked, structure = table is None and not bundling.apart, layer.layer
    shape = layer.sizes, bundling.rows, bundling.steps, leaves.longest, bundling.apart
    work = make_work(*shape, keep, keep, SPACE.array)
    if stacked:
        leaves = stacked_leaves(plan, mode, structure, values, leaves)
        leaves = leaves._replace(counts=np.zeros(leaves.tokens.size if keep else 0))
    sweep_bundles(mode, structure, values, leaves, table, counts, bundling.bundles, bundling.runs, *out, work)
    if stacked and keep:
        unstack_counts(structure, counts.pot, counts.ending, leaves.counts.reshape(plan.steps, -1))


def stacked_leaves(plan: Plan, mode: Mode, layer: Layer, values: Values, leaves: Leaves) -> Leaves:
    """The leaves with the tokens of their whole stacks, for starts side by side."""
    tokens = SPACE.array("tokens", (plan.steps, layer.node.shape[1]))
    stack_tokens(mode, layer, values.pot, tokens)
    return leaves._replace(tokens=tokens.reshape(-1))


def leaves_of(
    plan: Plan, mode: Mode, layer: LayerPlan, numbers: Numbers, child: Floats | None, below: Floats, lossy: Bools
) -> tuple[Leaves, Floats | None]:
    """What the leaves of runs meet, and the table of their segments, flat, if there is one.

    ``every`` is 0 if LINEAR cannot hold them without a look at every step; with a table, if it cannot hold them at all:
    then all sequences are lossy.
    """
    none, peak, tops = np.empty(0), numbers.peak[None], len(layer.layer.level_at)
    shape = (plan.topology.n_states[layer.bottom], plan.tables[layer.top].columns)
    shared = (peak, np.zeros(tops, dtype=np.int64), *shape)
    if child is None:
        return Leaves(none, none, *shared, 0, steps_between_checks(mode, numbers.spread), TINY), None
    table = plan.tables[layer.bottom]
    longest, posteriors = max(1, int(table.most.max())), below.reshape(-1)
    if mode is not LINEAR:
        return Leaves(none, posteriors, *shared, longest, 1, TINY), child.reshape(-1)
    (peak_of, groups), lowest = layer.kin, 0.0
    peak, segments = np.empty((len(groups), plan.steps)), SPACE.array("gauged", child.shape)
    flat, highest = segments.reshape(-1), SPACE.array("highest segments", table.columns)
    for states, gained in zip(groups, peak, strict=True):
        np.maximum.reduce(child if len(states) == len(child) else child[states], axis=0, out=highest)
        gauge(plan.offsets, table.base, table.skip, table.width, highest, gained)
        lowest = min(lowest, raise_lines(child.reshape(-1), states, highest, flat))
    peak += numbers.peak
    spread = numbers.spread + np.log(longest)
    beside = spread + numbers.low * longest  # tokens of Markov levels above a segment are met at all of its steps
    every, least = 1, TINY  # segments may end at some steps only, so all are looked at
    if beside - lowest > CHECKED and spread < NARROW:
        least = SAFE
    elif beside - lowest > CHECKED:
        lossy |= beside - lowest_of_sequences(plan, table, segments) > CHECKED
        every = int(not lossy.all())
    return Leaves(none, posteriors, peak, peak_of, *shape, longest, every, least), flat


def lowest_of_sequences(plan: Plan, table: SegmentTable, segments: Floats) -> Floats:
    """The logarithm (n,) of the lowest segment of each sequence that is possible, at most zero."""
    by_column = np.log(segments.min(axis=0, initial=1.0, where=segments > 0.0))
    by_step, there = np.zeros(plan.steps), table.width > 0
    by_step[there] = np.minimum.reduceat(by_column, (table.base + table.skip)[there])
    return np.minimum.reduceat(by_step, plan.offsets[:-1])


def steps_between_checks(mode: Mode, spread: float) -> int:
    """How many steps rows may go before they are looked at, 0 if not one."""
    return int(CHECKED / spread) if mode is LINEAR and spread > 0.0 else 1


def add_own_scores(plan: Plan, d: int, values: Arrays, table: Floats) -> None:
    """Add the scores of the segments of level d by themselves."""
    base, skip, width, reach, _, least, _ = plan.tables[d]
    own = [np.ascontiguousarray(values.get((part, d), ABSENT)).reshape(-1, len(table)) for part in OWN]
    if d == 0:
        add_persist_of_roots(plan.roots, own, table)
        return
    shortest = plan.topology.min_duration[d]
    by_state = [np.ascontiguousarray(part.T) for part in own[:-1]]
    add_persist(base, skip, width, reach, least, shortest, *by_state, own[-1], table)


# ------------------------------------------------------------------------------
# Counts


def empty(plan: Plan, whole: bool = True, new: New = fresh) -> Expectations:
    """Zero counts and posteriors; unless ``whole`` without room for tokens, states and endings: a pass makes it."""
    steps = plan.steps if whole else 0
    return Expectations(
        np.zeros(plan.offsets.size - 1),
        {key: np.zeros(shape) for key, shape in plan.shapes.items() if whole or key[0] != "token"},
        [np.zeros((steps, size)) for size in plan.topology.n_states],
        [np.zeros(steps) for _ in plan.topology.levels],
        {d: filled(new(f"segments {d}", table.shape), 0.0) for d, table in plan.tables.items()},
    )


def _collect(plan: Plan, layer: LayerPlan, counts: Counts, result: Expectations) -> None:
    """Move the counts of a layer from the flat array to the parts they belong to."""
    segmental = layer.bottom in plan.tables
    for k in range(1, layer.bottom - layer.top + (0 if segmental else 1)):
        result.ending[layer.top + k] = counts.ending[k]
    for span in layer.tokens:
        d, view = span.key[1], span.view(counts.pot)
        if segmental:  # counted as differences in time
            np.cumsum(view, axis=0, out=view)
        result.state[d] = view[:-1]
        _count_tokens(plan, d, result)
    for span in layer.tables:
        view = span.view(counts.pot)
        if span.given and span.columns is not None:
            here, there = span.kept
            result.counts[span.key].reshape(span.rows, -1)[:, there] = view[:, here]
        elif span.given:
            result.counts[span.key] = view


def _count_tokens(plan: Plan, d: int, result: Expectations) -> None:
    """The state posteriors of a Markov level are its token counts; all parts of a unit bottom are like them."""
    state = result.state[d]
    if ("token", d) in plan.shapes:
        result.counts["token", d] = state
    if not plan.is_unit(d):
        return
    for border in ("start", "stop"):
        if (border, d) in plan.shapes:
            result.counts[border, d][:] = state
    if ("duration", d) in result.counts:
        result.counts["duration", d][0] = state.sum(axis=0)
    if ("segment", d) in result.counts:
        result.counts["segment", d][:, 0] = state


def _count_own_scores(plan: Plan, d: int, result: Expectations) -> None:
    """Reverse of ``add_own_scores``: from posteriors of segments to states, endings and counts of level d."""
    table, post = plan.tables[d], result.segments[d]
    result.state[d], result.ending[d] = np.zeros((plan.steps, len(post))), np.zeros(plan.steps)
    found = [result.state[d], *(result.counts.get((part, d), ABSENT).reshape(-1, len(post)) for part in OWN[1:])]
    if d == 0:
        add_persist_of_roots_back(plan.roots, post, (found[0], result.ending[0]), found[1:])
    else:
        state, *own = (np.zeros(part.T.shape) for part in found[:-1])
        add_persist_back(table.base, table.skip, table.width, post, state, result.ending[d], *own, found[-1])
        for part, counts in zip(found, [state, *own], strict=False):
            part += counts.T
    if ("token", d) in plan.shapes:
        result.counts["token", d] = result.state[d]


# ------------------------------------------------------------------------------
# Arrays


def filled(array: Floats, value: float) -> Floats:
    """The array, full of one number."""
    array.fill(value)
    return array
