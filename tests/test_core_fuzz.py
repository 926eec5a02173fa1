"""Plans, evidence and arguments of all sorts straight into the core: it refuses them or answers, and never crashes.

`make sanitize` runs this with a core that looks at every access to memory.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from drawing import MIXES, draw_model
from hscrf import native
from hscrf.engine.compiled import make_core, segmental_levels
from hscrf.inference.posterior import values_of

pytestmark = pytest.mark.skipif(native.core is None, reason="the compiled core is missing")

REFUSED = (ValueError, TypeError, RuntimeError, MemoryError, OverflowError)
ITEMS = 40  # of the ways back of the k best


def draw_plan(rng, kinds):
    """The core of a random topology, potentials of a few sequences, and their offsets."""
    lengths = rng.integers(1, 12, rng.integers(1, 14))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    constant = bool(rng.integers(2))
    options = {"size": int(rng.integers(1, 4 if len(kinds) < 4 else 3)), "classes": int(rng.integers(1, 3))}
    scale = float(rng.choice([0.0, 1.0, 30.0, 1e4]))
    p = draw_model(rng, kinds, int(offsets[-1]), longest=6, constant=constant, scale=scale, forbidden=0.1, **options)
    values = values_of(p)
    if rng.random() < 0.2:  # not numbers, and infinite ones
        key = list(values)[rng.integers(len(values))]
        array = values[key] = values[key].copy()
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return make_core(p.topology, segmental_levels(p.topology, values)), p.topology, values, offsets


def draw_flags(rng, topology, steps):
    """Evidence that need not make sense: nothing is closed, and rules contradict each other."""
    share = rng.choice([0.05, 0.5, 0.9, 1.0])
    flags = {name: rng.random((topology.depth, steps)) < share for name in ("may_end", "may_go_on", "may_follow")}
    sets = [rng.random((steps, n)) < share if rng.random() < 0.5 else None for n in topology.n_states]
    return SimpleNamespace(allowed=sets, **flags)


def ask_everything(core, values, offsets, known, rng):
    """Call every verb; what an answer says about impossible sequences must agree."""
    log_z, logs = core.log_partition(values, offsets, known)
    weights = rng.standard_normal(offsets.size - 1) if rng.random() < 0.5 else None
    core.expectations(values, offsets, known, weights, bool(rng.integers(2)))
    states, ends, _ = core.best(values, offsets, known)
    drawn = core.draw(values, offsets, known, 2, 7)
    assert log_z.shape == (offsets.size - 1,)
    assert 0 <= logs <= log_z.size
    assert states.shape == ends.shape == drawn[0][0].shape


def walk_back(core, values, offsets, known, rng):
    """Ask the runs of the k best for items that are there, and for others."""
    length = int(offsets[1])
    cut = {key: array[:length] if len(array) == offsets[-1] else array for key, array in values.items()}
    part = None
    if known:
        flags = {
            name: np.ascontiguousarray(getattr(known, name)[:, :length])
            for name in ("may_end", "may_go_on", "may_follow")
        }
        part = SimpleNamespace(allowed=[None if one is None else one[:length] for one in known.allowed], **flags)
    runs = core.runs(cut, offsets[:2], part)
    for _ in range(ITEMS):
        try:
            run = runs.run(*map(int, rng.integers(-1, 4, 3)))
            kind, node, t = map(int, rng.integers([-1, -2, -2], [5, 40, length + 2]))
            run.incoming(kind, node, t)
            run.states_of(node)
        except ValueError:
            continue


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("seed", range(12))
def test_any_plan_and_any_evidence_is_answered(kinds, seed):
    rng = np.random.default_rng([seed, len(kinds)])
    core, topology, values, offsets = draw_plan(rng, kinds)
    known = draw_flags(rng, topology, int(offsets[-1])) if seed % 3 else None
    ask_everything(core, values, offsets, known, rng)
    walk_back(core, values, offsets, known, rng)


def spoil(rng, values, offsets, known):
    """The same arguments with one thing wrong."""
    values, key = dict(values), list(values)[rng.integers(len(values))]
    array = values[key]
    match rng.integers(10):
        case 0:
            values[key] = array[1:].copy()
        case 1:
            values[key] = array.astype(np.float32)
        case 2:
            values[key] = np.asfortranarray(np.repeat(array[None], 2, axis=0)).T
        case 3:
            values[key[0], int(rng.choice([-1, 7, 1 << 40]))] = values.pop(key)
        case 4:
            values["anything", 1] = array
        case 5:
            offsets = rng.permutation(offsets)
        case 6:
            offsets = offsets + int(rng.choice([-1, 1, 1 << 40]))
        case 7:
            offsets = offsets[: rng.integers(2)]
        case 8:
            known = SimpleNamespace(
                may_end=known.may_end[1:], may_go_on=known.may_go_on, may_follow=known.may_follow, allowed=()
            )
        case 9:
            known = SimpleNamespace(**{**vars(known), "allowed": [*known.allowed, known.may_end]})
    return values, offsets, known


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("seed", range(20))
def test_malformed_arguments_are_refused_or_answered(kinds, seed):
    rng = np.random.default_rng([seed, len(kinds), 1])
    core, topology, values, offsets = draw_plan(rng, kinds)
    wrong = spoil(rng, values, offsets, draw_flags(rng, topology, int(offsets[-1])))
    for verb in (core.log_partition, core.best, core.runs):
        try:
            verb(*wrong)
        except REFUSED:
            continue
    try:
        core.expectations(*wrong, np.ones(3), True)
        core.draw(*wrong, -1, 0)
    except REFUSED:
        pass


@pytest.mark.parametrize("seed", range(60))
def test_malformed_topologies_are_refused_or_work(seed):
    """Tables of children, successors and durations with one thing wrong."""
    rng = np.random.default_rng(seed)
    states = rng.integers(1, 4, rng.integers(2, 5)).tolist()
    depth = len(states)
    given = [
        states,
        [rng.random((states[d], states[d + 1])) < 0.7 for d in range(depth - 1)],
        [rng.random((n, n)) < 0.7 for n in states],
        [np.ones(n, dtype=np.int64) for n in states],
        [np.full(n, 9) for n in states],
        [d == 0 for d in range(depth)],
        True,
        [np.zeros(n, dtype=bool) for n in states],
    ]
    k = int(rng.integers(9))
    if k == 0:
        states[rng.integers(depth)] = int(rng.choice([-3, 0, 1 << 20]))
    elif k < 8 and k != 6:
        tables = given[k]
        match rng.integers(4):
            case 0:
                tables.pop()
            case 1 if k != 5:
                tables[0] = tables[0][:0].copy()
            case 2 if k in (3, 4):
                tables[0][:] = rng.choice([0, -5, 1 << 62])
            case _:
                tables.append(tables[-1])
    try:
        core = native.core.Engine(*given)
    except REFUSED:
        return
    values, offsets = {("token", depth - 1): rng.standard_normal((7, states[-1]))}, np.array([0, 3, 7])
    ask_everything(core, values, offsets, None, rng)
