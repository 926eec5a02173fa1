"""The walk back over a planned batch: from the best, or a draw, at the root down to the lowest level."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats
from hscrf.engine.bundling import Bundling
from hscrf.engine.kernels.arithmetic import LINEAR, LOG, MAX
from hscrf.engine.kernels.decoding import trace_best, trace_bundles
from hscrf.engine.kernels.layout import BLOCK, make_work
from hscrf.engine.kernels.tracing import LOST, trace
from hscrf.engine.passes import (
    ABSENT,
    NONE_LOSSY,
    Mode,
    Numbers,
    Tables,
    add_own_scores,
    inside,
    leaves_of,
    log_z_of,
    make_bundle,
    numbers_of,
    stacked_leaves,
)
from hscrf.engine.plan import LayerPlan, Plan
from hscrf.engine.space import SPACE
from hscrf.potentials import Arrays


def walk_back(
    plan: Plan, mode: Mode, values: Arrays, draws: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
    """States and ends (draws, D, N) of the best configuration (MAX) or of posterior draws (LOG), and log Z."""
    single = plan.topology.n_states[0] == 1  # a lone root state needs no choice, so no inside pass
    tables = tables_of(plan, mode, values, 1 if single else 0)
    states = np.zeros((draws, plan.topology.depth, plan.steps), dtype=np.int32)
    ends = np.zeros(states.shape, dtype=np.int8)
    ends[:, 0, plan.offsets[1:] - 1] = 1
    columns = plan.root_columns
    log_z = np.where(columns < 0, -np.inf, 0.0)
    if not single:
        log_z = log_z_of(plan, mode, tables[0])
    if not (log_z > -np.inf).all():
        return walk_feasible(plan, mode, values, draws, rng, np.flatnonzero(log_z > -np.inf))
    if not single:
        roots = tables[0][:, columns].T
        for draw in range(draws):
            picked = roots.argmax(axis=1) if mode is MAX else draw_rows(roots, rng)
            states[draw, 0] = np.repeat(picked, np.diff(plan.offsets))
    for layer in plan.layers:
        if not (log_z > -np.inf).all():
            return walk_feasible(plan, mode, values, draws, rng, np.flatnonzero(log_z > -np.inf))
        below = best_below if mode is MAX else draws_below
        mass = below(plan, layer, values, tables.get(layer.bottom), rng, states, ends)
        if single and layer.top == 0:
            table = np.full(plan.tables[0].shape, -np.inf)
            table[0, columns] = mass[::draws]
            add_own_scores(plan, 0, values, table)
            log_z = log_z_of(plan, mode, table)
    return states, ends, log_z


def best_below(
    plan: Plan,
    layer: LayerPlan,
    values: Arrays,
    child: Floats | None,
    rng: np.random.Generator,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
) -> Floats:
    """Write the best configuration below each segment of the top of a layer; return their masses."""
    numbers, bundling = numbers_of(plan, MAX, layer, values, NONE_LOSSY, SPACE.array), layer.bundling
    mass = np.full(int(ends[0, layer.top].sum()), LOST)
    if bundling is not None and bundling.apart and plan.topology.n_states[0] == 1:
        trace_together(plan, layer, bundling, numbers, states[0], ends[0], mass)
        if bundling.lone is None:
            return mass
    left, segments = mass == LOST, segments_of(states[:, layer.top], ends[:, layer.top])
    mass[left] = trace_alone(plan, MAX, layer, numbers, child, segments[left], rng, states, ends)
    return mass


def draws_below(
    plan: Plan,
    layer: LayerPlan,
    values: Arrays,
    child: Floats | None,
    rng: np.random.Generator,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
) -> Floats:
    """Write a draw below each segment of the top of a layer; return their masses. LOG only where LINEAR loses them."""
    segments = segments_of(states[:, layer.top], ends[:, layer.top])
    mass = np.full(len(segments), LOST)
    if child is None:
        lossy = np.zeros(plan.offsets.size - 1, dtype=bool)
        numbers = numbers_of(plan, LINEAR, layer, values, lossy, SPACE.array)
        if not lossy.any():
            mass = trace_alone(plan, LINEAR, layer, numbers, None, segments, rng, states, ends)
    left = mass == LOST
    if left.any():
        numbers = numbers_of(plan, LOG, layer, values, NONE_LOSSY, SPACE.array)
        mass[left] = trace_alone(plan, LOG, layer, numbers, child, segments[left], rng, states, ends)
    return mass


def tables_of(plan: Plan, mode: Mode, values: Arrays, down_to: int) -> Tables:
    """Log masses of segments, see ``inside``. Draws take those of LINEAR, which is far faster, if nothing is lost."""
    if mode is LOG:
        tables, lossy = inside(plan, LINEAR, values, down_to, SPACE.array)
        if not lossy.any():
            return tables
    return inside(plan, mode, values, down_to, SPACE.array)[0]


def walk_feasible(
    plan: Plan, mode: Mode, values: Arrays, draws: int, rng: np.random.Generator, which: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]:
    """``walk_back`` of those sequences that have any configuration; the others have log Z = -inf and zeros."""
    shape = (draws, plan.topology.depth, plan.steps)
    states, ends = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.int8)
    log_z = np.full(plan.offsets.size - 1, -np.inf)
    if which.size:
        steps, (part, own) = plan.steps_of(which), plan.select(which, values)
        states[:, :, steps], ends[:, :, steps], log_z[which] = walk_back(part, mode, own, draws, rng)
    return states, ends, log_z


def trace_alone(
    plan: Plan,
    mode: Mode,
    layer: LayerPlan,
    numbers: Numbers,
    child: Floats | None,
    segments: NDArray[np.int64],
    rng: np.random.Generator,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
) -> Floats:
    """Write a configuration below each segment: the best one in MAX, a draw in LINEAR or LOG. Return their masses.

    LOST is the mass of those that LINEAR loses; nothing is written for them. One run needs one row. But where all have
    walked side by side, a block of rows needs no kernels of its own.
    """
    steps, rows = int((segments[:, 2] - segments[:, 1]).max()) + 1, 1
    leaves, table = leaves_of(plan, mode, layer, numbers, child, ABSENT, NONE_LOSSY)
    if mode is MAX and table is None and layer.top > 0 and layer.bundling is not None and layer.bundling.lone is None:
        leaves, rows = stacked_leaves(plan, mode, layer.layer, numbers.values, leaves), BLOCK
    work = make_work(layer.sizes, rows, steps, leaves.longest, False, True, False, SPACE.array)
    run = (*make_bundle(), np.zeros(1, dtype=bool), work)
    given, mass = (mode, layer.layer, numbers.values, leaves, table, layer.top, segments, *run), np.empty(len(segments))
    if mode is MAX:
        trace_best(*given, states[0], ends[0], mass)
    else:
        room = steps + work.nodes + 2
        trace(*given, states, ends, mass, rng, np.empty(room), np.empty((room, 3), dtype=np.int64))
    return mass


def trace_together(
    plan: Plan,
    layer: LayerPlan,
    bundling: Bundling,
    numbers: Numbers,
    states: NDArray[np.int32],
    ends: NDArray[np.int8],
    mass: Floats,
) -> None:
    """Write the best configuration of all sequences that walk side by side, and their masses."""
    leaves, _ = leaves_of(plan, MAX, layer, numbers, None, ABSENT, NONE_LOSSY)
    work = make_work(layer.sizes, bundling.rows, bundling.steps, 0, True, True, False, SPACE.array)
    runs, leaf = (bundling.bundles, bundling.runs), np.empty(bundling.rows, dtype=np.int64)
    trace_bundles(MAX, layer.layer, numbers.values, leaves, *runs, states, ends, NONE_LOSSY, mass, leaf, work)


def draw_rows(log_weights: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """One column of each row, drawn in proportion to exp(log_weights)."""
    noise = rng.gumbel(size=log_weights.shape)
    return np.where(log_weights > -np.inf, log_weights + noise, -np.inf).argmax(axis=1)


def segments_of(states: NDArray[np.int32], ends: NDArray[np.int8]) -> NDArray[np.int64]:
    """Segments (n, 4) of one level as state, first step, last step and draw; equal ones stand together."""
    draw, last = np.nonzero(ends.view(np.bool_))
    first = np.empty_like(last)
    first[1:] = np.where(draw[1:] == draw[:-1], last[:-1] + 1, 0)
    first[0] = 0
    segments = np.column_stack([states[draw, last], first, last, draw])
    return segments if len(states) == 1 else segments[np.lexsort((draw, segments[:, 0], last, first))]
