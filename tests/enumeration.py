"""The independent twin: list every configuration of a small model and add up.

Nothing here comes from the package. A model is plain dense arrays of log potentials; levels are numbered from
the root, 0; times are inclusive, ``i..j``. The list is built as nested segments, while posteriors, counts and
evidence read only the arrays of states and endings (the paper's x and e), so each view checks the other.

The list is kept on the model after its first use: make variants with ``dataclasses.replace``, not in place.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

NO_LIMIT = 10**9
PARTS = ("token", "start", "stop", "duration", "segment", "tail", "init", "trans", "end")


class TooManyConfigurations(Exception):
    """The model has more configurations than the cap allows: draw a smaller one."""


class Impossible(Exception):
    """No configuration has a finite score and agrees with the evidence."""


class Table(NamedTuple):
    """N configurations: states (N, D, T), ends (N, D, T) of 0 and 1, log_scores (N,)."""

    states: np.ndarray
    ends: np.ndarray
    log_scores: np.ndarray


@dataclass(eq=False)
class Model:
    """Log potentials of one sequence; a missing part is zero, -inf is impossible, S_d = sizes[d]."""

    length: int  # T
    sizes: list  # states of each level, root first
    children: list  # [d]: (S_d, S_{d+1}) bool, for d < D - 1
    successors: list  # [d]: (S_d, S_d) bool; entry 0 is unused
    min_duration: list  # [d]: (S_d,) int; the root's is ignored
    max_duration: list  # [d]: (S_d,) int, NO_LIMIT for none, 1 for a unit bottom; the root's is ignored
    token: dict = field(default_factory=dict)  # level: (T, S_d)
    start: dict = field(default_factory=dict)  # level: (T, S_d), at the first time of a segment
    stop: dict = field(default_factory=dict)  # level: (T, S_d), at the last time of a segment
    duration: dict = field(default_factory=dict)  # level: (L, S_d); longer than L is impossible
    segment: dict = field(default_factory=dict)  # level: (T, L, S_d) by first time; longer is impossible
    tail: dict = field(default_factory=dict)  # level: (S_d,) each step beyond the longest duration of an open state
    init: dict = field(default_factory=dict)  # parent's level: (T or 1, S_d, S_{d+1}), at its first time
    trans: dict = field(default_factory=dict)  # parent's level: (T or 1, S_d, S_{d+1}, S_{d+1}), u ends at t
    end: dict = field(default_factory=dict)  # parent's level: (T or 1, S_d, S_{d+1}), at its last time
    open: dict = field(default_factory=dict)  # level: (S_d,) bool, may segments be longer than limits and tables
    cap: int = 200_000  # more configurations than this raise TooManyConfigurations
    _table: Table | None = field(default=None, init=False, repr=False)

    @property
    def depth(self):
        return len(self.sizes)


@dataclass(eq=False)
class Evidence:
    """What is known: states (D, T) and ends (D, T), -1 where unknown; allowed[level] (T, S) bool.

    An end of -2 is unknown, but a level ends there if and only if the one above it does.
    """

    states: np.ndarray | None = None
    ends: np.ndarray | None = None
    allowed: dict | None = None


@dataclass(eq=False)
class Configuration:
    """One complete labelling: states (D, T), ends (D, T) and its log score."""

    states: np.ndarray
    ends: np.ndarray
    log_score: float

    @property
    def segments(self):
        """For each level the list of its segments (state, i, j), i..j inclusive, in order."""
        return [_runs(states, ends) for states, ends in zip(self.states, self.ends, strict=True)]


def _runs(states, ends):
    """Segments (state, i, j) of one level from its rows of states and ends, each (T,)."""
    stops = np.flatnonzero(ends)
    starts = [0, *(stops[:-1] + 1)]
    return [(int(states[i]), int(i), int(j)) for i, j in zip(starts, stops, strict=True)]


# ------------------------------------------------------------------------------------------- potentials


def _at(part, level, time, *states):
    """One entry of init, trans or end; a time axis of length 1 serves every time; a missing table is zero."""
    if level not in part:
        return 0.0
    table = part[level]
    return float(table[(time if len(table) > 1 else 0, *states)])


def persist(model, level, i, j, state):
    """Log potential of ``state`` living from i to j at ``level``; -inf where a limit or a table ends."""
    length, score = j - i + 1, 0.0
    if level > 0 and length < model.min_duration[level][state]:
        return -math.inf
    if level in model.open and model.open[level][state]:
        explicit = longest_explicit(model, level, state)
        if length > explicit and level in model.tail:
            score += (length - explicit) * float(model.tail[level][state])
        length = min(length, explicit)
    if level > 0 and length > model.max_duration[level][state]:
        return -math.inf
    if level in model.token:
        score += float(model.token[level][i : j + 1, state].sum())
    if level in model.start:
        score += float(model.start[level][i, state])
    if level in model.stop:
        score += float(model.stop[level][j, state])
    if level in model.duration:
        table = model.duration[level]
        score += float(table[length - 1, state]) if length <= len(table) else -math.inf
    if level in model.segment:
        table = model.segment[level]
        score += float(table[i, length - 1, state]) if length <= table.shape[1] else -math.inf
    return score


def longest_explicit(model, level, state):
    """The longest duration of a state by limits and tables."""
    found = model.max_duration[level][state]
    if level in model.duration:
        found = min(found, len(model.duration[level]))
    if level in model.segment:
        found = min(found, model.segment[level].shape[1])
    return int(found)


# ------------------------------------------------------------------------------------------- enumeration


class _Enumerator:
    """Lists of segment trees, kept as blocks: Tables whose D and T axes span part of the levels and times."""

    def __init__(self, model):
        self.model = model
        self.trees_of = {}
        self.tilings_of = {}

    def trees(self, d, s, i, j):
        """All ways in which ``s`` of level ``d`` lives from i to j: a block of levels d.., times i..j."""
        key = d, s, i, j
        if key not in self.trees_of:
            self.trees_of[key] = self._trees(d, s, i, j)
        return self.trees_of[key]

    def _trees(self, d, s, i, j):
        own_score = persist(self.model, d, i, j, s)
        if own_score == -math.inf:
            return None
        if d == self.model.depth - 1:
            below = Table(np.zeros((1, 0, j - i + 1), np.int8), np.zeros((1, 0, j - i + 1), np.int8), np.zeros(1))
        else:
            below = self._joined(
                _raised(self.tilings(d, s, i, j, u), _at(self.model.end, d, j, s, u))
                for u in np.flatnonzero(self.model.children[d][s])
            )
        if below is None:
            return None
        row = np.full((len(below.log_scores), 1, j - i + 1), s, np.int8)
        ends = np.zeros_like(row)
        ends[..., -1] = 1
        return Table(
            np.concatenate([row, below.states], axis=1),
            np.concatenate([ends, below.ends], axis=1),
            below.log_scores + own_score,
        )

    def tilings(self, d, s, i, j, u):
        """All ways in which children of ``s`` (level d, starting at i) tile i..j, the last of them ``u``."""
        key = d, s, i, j, u
        if key not in self.tilings_of:
            self.tilings_of[key] = self._joined(self._last_children(d, s, i, j, u))
        return self.tilings_of[key]

    def _last_children(self, d, s, i, j, u):
        for t in range(i, j + 1):  # the last child starts at t
            last = self.trees(d + 1, u, t, j)
            if last is None:
                continue
            if t == i:
                yield _raised(last, _at(self.model.init, d, i, s, u))
                continue
            for v in np.flatnonzero(self.model.children[d][s] & self.model.successors[d + 1][:, u]):
                before = _raised(self.tilings(d, s, i, t - 1, v), _at(self.model.trans, d, t - 1, s, v, u))
                if before is not None:
                    yield self._paired(before, last)

    def _paired(self, left, right):
        """Every member of ``left`` followed in time by every member of ``right``."""
        many, more = len(left.log_scores), len(right.log_scores)
        self._check(many * more)
        first, second = np.repeat(np.arange(many), more), np.tile(np.arange(more), many)
        return Table(
            np.concatenate([left.states[first], right.states[second]], axis=2),
            np.concatenate([left.ends[first], right.ends[second]], axis=2),
            left.log_scores[first] + right.log_scores[second],
        )

    def _joined(self, blocks):
        """One block of the members of all ``blocks``; None where there are none."""
        kept, total = [], 0
        for block in blocks:
            if block is not None:
                kept.append(block)
                total += len(block.log_scores)
                self._check(total)
        return Table(*map(np.concatenate, zip(*kept, strict=True))) if kept else None

    def _check(self, count):
        if count > self.model.cap:
            raise TooManyConfigurations(f"more than {self.model.cap} configurations (or parts of them)")


def _raised(block, score):
    """The block with ``score`` added to each member; None where that is impossible."""
    if block is None or score == -math.inf:
        return None
    return block._replace(log_scores=block.log_scores + score)


def table(model):
    """Every configuration with a finite score, as one Table."""
    if model._table is None:
        depth, length = model.depth, model.length
        enumerator = _Enumerator(model)
        whole = enumerator._joined(enumerator.trees(0, s, 0, length - 1) for s in range(model.sizes[0]))
        if whole is None:
            empty = np.zeros((0, depth, length), np.int8)
            whole = Table(empty, empty, np.zeros(0))
        model._table = whole
    return model._table


def configurations(model):
    """Every configuration with a finite score, as a list."""
    return _listed(table(model))


def _listed(whole):
    return [Configuration(x, e, float(score)) for x, e, score in zip(*whole, strict=True)]


# ---------------------------------------------------------------------------------------------- evidence


def agrees(whole, evidence):
    """Which configurations of a Table agree with the evidence, (N,) bool: cell by cell, on x and e alone."""
    keep = np.ones(len(whole.log_scores), bool)
    if evidence is None:
        return keep
    for known, actual in ((evidence.states, whole.states), (evidence.ends, whole.ends)):
        if known is not None:
            keep &= ((known < 0) | (known == actual)).all(axis=(1, 2))
    if evidence.ends is not None:
        keep &= ((evidence.ends != -2) | (whole.ends == _above(whole.ends))).all(axis=(1, 2))
    for level, sets in (evidence.allowed or {}).items():
        keep &= sets[np.arange(sets.shape[0]), whole.states[:, level]].all(axis=1)
    return keep


def _above(ends):
    """The row of the level above for each level of ends (..., D, T), the root's own for the root."""
    return np.concatenate([ends[..., :1, :], ends[..., :-1, :]], axis=-2)


def consistent(model, evidence=None):
    """The configurations that agree with the evidence, as a Table."""
    whole = table(model)
    keep = agrees(whole, evidence)
    return Table(*(array[keep] for array in whole))


# ------------------------------------------------------------------------------------------------ answers


def _log_sum(log_scores):
    if len(log_scores) == 0:
        return -math.inf
    top = log_scores.max()
    return float(top + np.log(np.exp(log_scores - top).sum()))


def _posterior(model, evidence):
    """The consistent configurations and their probabilities."""
    possible = consistent(model, evidence)
    if len(possible.log_scores) == 0:
        raise Impossible("no configuration has a finite score and agrees with the evidence")
    return possible, np.exp(possible.log_scores - _log_sum(possible.log_scores))


def log_partition(model, evidence=None):
    """Log of the summed exponentiated scores; -inf where nothing agrees with the evidence."""
    return _log_sum(consistent(model, evidence).log_scores)


def best_score(model, evidence=None):
    """The highest score; -inf where nothing agrees with the evidence."""
    return float(consistent(model, evidence).log_scores.max(initial=-math.inf))


def ranked(model, evidence=None):
    """All consistent configurations, best first."""
    possible = consistent(model, evidence)
    order = np.argsort(-possible.log_scores, kind="stable")
    return _listed(Table(*(array[order] for array in possible)))


def entropy(model, evidence=None):
    """Entropy of the posterior over configurations, in nats."""
    possible, p = _posterior(model, evidence)
    log_p = possible.log_scores - _log_sum(possible.log_scores)
    return float(-(p * log_p).sum())


def state_marginals(model, evidence=None):
    """For each level Pr(x_t = s), (T, S)."""
    return [_tokens(model, d, *_posterior(model, evidence)) for d in range(model.depth)]


def ending_marginals(model, evidence=None):
    """For each level Pr(e_t = 1), (T,)."""
    possible, p = _posterior(model, evidence)
    return list(np.einsum("n,ndt->dt", p, possible.ends))


def segment_posteriors(model, evidence=None):
    """For each level the probability of a segment, (T, T, S), indexed [i, length - 1, s]."""
    return [_segments(model, d, *_posterior(model, evidence)) for d in range(model.depth)]


def counts(model, evidence=None):
    """Expected counts, part -> level -> an array shaped like that part: the gradient of log_partition."""
    possible, p = _posterior(model, evidence)
    count_of = {
        "token": _tokens,
        "start": _starts,
        "stop": _stops,
        "duration": _durations,
        "segment": _explicit_segments,
        "tail": _tails,
        "init": _inits,
        "trans": _transitions,
        "end": _ends,
    }
    return {
        part: {d: _fitted(count_of[part](model, d, possible, p), array) for d, array in getattr(model, part).items()}
        for part in PARTS
    }


def _fitted(count, like):
    """A count brought to the shape of its potential: summed over time, cut or padded over lengths."""
    if like.shape[0] == 1 and like.ndim > 1 and like.shape[1:] == count.shape[1:]:
        return count.sum(axis=0, keepdims=True)
    out = np.zeros(like.shape)
    common = tuple(slice(min(a, b)) for a, b in zip(count.shape, like.shape, strict=True))
    out[common] = count[common]
    return out


def _began(ends):
    """Where a segment starts: at 0 and after every ending; ends (N, D, T) -> bool (N, D, T)."""
    first = np.ones_like(ends[..., :1])
    return np.concatenate([first, ends[..., :-1]], axis=-1) == 1


def _histogram(p, happens, shape, *states):
    """Summed probability by states, over the configurations in which the event happens."""
    index = np.ravel_multi_index([state[happens].astype(int) for state in states], shape)
    return np.bincount(index, weights=p[happens], minlength=math.prod(shape)).reshape(shape)


def _each_time(model, one_time):
    return np.array([one_time(t) for t in range(model.length)])


def _tokens(model, d, possible, p):
    x, always = possible.states, np.ones(len(p), bool)
    return _each_time(model, lambda t: _histogram(p, always, (model.sizes[d],), x[:, d, t]))


def _starts(model, d, possible, p):
    x, began = possible.states, _began(possible.ends)
    return _each_time(model, lambda t: _histogram(p, began[:, d, t], (model.sizes[d],), x[:, d, t]))


def _stops(model, d, possible, p):
    x, ended = possible.states, possible.ends == 1
    return _each_time(model, lambda t: _histogram(p, ended[:, d, t], (model.sizes[d],), x[:, d, t]))


def _segments(model, d, possible, p):
    x, began, ended = possible.states, _began(possible.ends), possible.ends == 1
    out = np.zeros((model.length, model.length, model.sizes[d]))
    for i in range(model.length):
        for j in range(i, model.length):
            lives = began[:, d, i] & ~ended[:, d, i:j].any(axis=1) & ended[:, d, j]
            out[i, j - i] = _histogram(p, lives, (model.sizes[d],), x[:, d, i])
    return out


def _explicit_segments(model, d, possible, p):
    """Segments of open states longer than their explicit durations count as segments of the longest of these."""
    found = _segments(model, d, possible, p)
    for s in np.flatnonzero(model.open.get(d, [])):
        longest = longest_explicit(model, d, s)
        found[:, longest - 1 : longest, s] += found[:, longest:, s].sum(axis=1, keepdims=True)
        found[:, longest:, s] = 0.0
    return found


def _durations(model, d, possible, p):
    return _explicit_segments(model, d, possible, p).sum(axis=0)


def _tails(model, d, possible, p):
    """Steps beyond the longest explicit duration."""
    lengths = _segments(model, d, possible, p).sum(axis=0)
    found = np.zeros(model.sizes[d])
    for s in np.flatnonzero(model.open[d]):
        beyond = np.arange(1, model.length + 1) - longest_explicit(model, d, s)
        found[s] = lengths[:, s] @ np.maximum(beyond, 0)
    return found


def _inits(model, d, possible, p):
    x, began = possible.states, _began(possible.ends)
    shape = (model.sizes[d], model.sizes[d + 1])
    return _each_time(model, lambda t: _histogram(p, began[:, d, t], shape, x[:, d, t], x[:, d + 1, t]))


def _ends(model, d, possible, p):
    x, ended = possible.states, possible.ends == 1
    shape = (model.sizes[d], model.sizes[d + 1])
    return _each_time(model, lambda t: _histogram(p, ended[:, d, t], shape, x[:, d, t], x[:, d + 1, t]))


def _transitions(model, d, possible, p):
    """The child ends at t while the parent goes on; the last time has none."""
    x, ended = possible.states, possible.ends == 1
    out = np.zeros((model.length, model.sizes[d], model.sizes[d + 1], model.sizes[d + 1]))
    for t in range(model.length - 1):
        happens = ended[:, d + 1, t] & ~ended[:, d, t]
        out[t] = _histogram(p, happens, out.shape[1:], x[:, d, t], x[:, d + 1, t], x[:, d + 1, t + 1])
    return out


# ------------------------------------------------------------------------------------------ random models


def random_model(rng, depth, max_states=3, max_length=5, cap=30_000, tails=True):
    """A random model of every mix of parts, with at least one and at most ``cap`` configurations.

    ``tails``: may states be open.
    """
    for _ in itertools.count():
        model = _draw_model(rng, depth, max_states, max_length, cap, tails)
        try:
            if len(table(model).log_scores):
                return model
        except TooManyConfigurations:
            continue


def _draw_model(rng, depth, max_states, max_length, cap, tails):
    length = int(rng.integers(1, max_length + 1))
    roots = 1 if rng.random() < 0.5 else int(rng.integers(1, max_states + 1))
    sizes = [roots, *(int(n) for n in rng.integers(1, max_states + 1, depth - 1))]
    model = Model(
        length,
        sizes,
        children=[_draw_children(rng, *pair) for pair in itertools.pairwise(sizes)],
        successors=[_draw_mask(rng, size, size) for size in sizes],
        min_duration=[np.ones(size, int) for size in sizes],
        max_duration=[np.full(size, NO_LIMIT) for size in sizes],
        cap=cap,
    )
    draw = _table_drawer(rng)
    for d, size in enumerate(sizes):
        for part in (model.token, model.start, model.stop):
            if rng.random() < 0.5:
                part[d] = draw(length, size)
        _draw_lengths(rng, draw, model, d, tails)
    for d, (parents, below) in enumerate(itertools.pairwise(sizes)):
        for part, shape in (
            (model.init, (parents, below)),
            (model.trans, (parents, below, below)),
            (model.end, (parents, below)),
        ):
            if rng.random() < 0.7:
                part[d] = draw(length if rng.random() < 0.5 else 1, *shape)
    return model


def _draw_mask(rng, *shape):
    """All true, or sparse, with equal chances."""
    density = 1.0 if rng.random() < 0.5 else rng.uniform(0.3, 0.9)
    return rng.random(shape) < density


def _draw_children(rng, parents, below):
    """A sparse shared topology in which every parent has a child and every child a parent."""
    mask = _draw_mask(rng, parents, below)
    for s in np.flatnonzero(~mask.any(axis=1)):
        mask[s, rng.integers(below)] = True
    for u in np.flatnonzero(~mask.any(axis=0)):
        mask[rng.integers(parents), u] = True
    return mask


def _table_drawer(rng):
    """A function that draws log potentials of a shape, of one scale and one rate of -inf for the model."""
    scale = rng.choice([0.3, 1.0, 3.0])
    forbidden = rng.choice([0.0, 0.0, 0.05, 0.15])

    def draw(*shape):
        values = scale * rng.standard_normal(shape)
        values[rng.random(shape) < forbidden] = -math.inf
        return values

    return draw


def _draw_lengths(rng, draw, model, d, tails):
    """Decide the kind of a level: unit (bottom only), Markov, or segmental with any of tables and limits."""
    length, size = model.length, model.sizes[d]
    if d == 0:  # its only segment lasts T steps
        if rng.random() < 0.3:
            model.duration[d] = draw(length + int(rng.integers(3)), size)
        if rng.random() < 0.3:
            model.segment[d] = draw(length, length, size)
        return
    bottom = d == model.depth - 1
    kind = rng.choice(["unit", "markov", "segmental"], p=[0.5, 0.2, 0.3] if bottom else [0.0, 0.5, 0.5])
    if kind == "unit":
        model.max_duration[d] = np.ones(size, int)
        if rng.random() < 0.1:
            model.duration[d] = draw(1, size)
    elif kind == "segmental":
        choices = ["duration", "segment", "min", "max"]
        chosen = rng.choice(choices, size=int(rng.integers(1, 4)), replace=False)
        if "duration" in chosen:
            model.duration[d] = draw(int(rng.integers(1, length + 3)), size)
        if "segment" in chosen:
            model.segment[d] = draw(length, int(rng.integers(1, length + 1)), size)
        if "min" in chosen:
            model.min_duration[d] = rng.integers(1, min(3, length) + 1, size)
        if "max" in chosen:
            model.max_duration[d] = model.min_duration[d] + rng.integers(0, length, size)
            model.max_duration[d][rng.random(size) < 0.2] = NO_LIMIT
            if tails and rng.random() < 0.5:
                _open_tail(rng, draw, model, d)


def _open_tail(rng, draw, model, d):
    """Let limited states go on beyond their limit."""
    limited = model.max_duration[d] < NO_LIMIT
    opened = limited & (rng.random(limited.size) < 0.8)
    if opened.any():
        model.open[d] = opened
        if rng.random() < 0.9:
            model.tail[d] = draw(model.sizes[d])


def random_evidence(rng, model, listed=None):
    """Random cells of one possible configuration, so that the evidence is never contradictory."""
    listed = configurations(model) if listed is None else listed
    truth = listed[rng.integers(len(listed))]
    evidence = Evidence(
        states=_revealed(rng, truth.states),
        ends=_revealed(rng, truth.ends),
        allowed={d: _draw_sets(rng, truth.states[d], size) for d, size in enumerate(model.sizes) if rng.random() < 0.3},
    )
    with_parent = _revealed(rng, truth.ends == _above(truth.ends)) == 1
    with_parent[0] = False
    evidence.ends[with_parent & (evidence.ends == -1)] = -2
    return evidence


def _density(rng):
    return rng.choice([0.0, 0.1, 0.3, 0.6, 1.0], p=[0.3, 0.25, 0.25, 0.15, 0.05])


def _revealed(rng, truth):
    """``truth`` (D, T) where a level's density lets it be seen, -1 elsewhere."""
    density = [[_density(rng)] for _ in truth]
    return np.where(rng.random(truth.shape) < density, truth, -1).astype(int)


def _draw_sets(rng, truth, size):
    """Sets of allowed states (T, S) that contain the true one; some cells allow everything."""
    sets = (rng.random((len(truth), size)) < 0.5) | (rng.random((len(truth), 1)) < 0.5)
    sets[np.arange(len(truth)), truth] = True
    return sets
