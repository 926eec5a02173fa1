"""Indoor activities

The paper's first experiment: an activity is made of walks (or sub-activities), both are to be found from noisy
positions. The paper's video data cannot be had. Two data sets stand in for it: *kitchen*, a **substitute** that is
generated in the paper's shape (`hscrf.datasets.make_activities`: 90 sequences of one activity each, 3 activities that
share 12 walks, discrete positions, half for training and half for testing; every seed is a new data set), and
*CAD-120*, 85 real videos of four people (activity and sub-activity; leave one person out; every tenth frame), once with
object names hidden (o1, o2, ...) and once with plain names.

Systems see the same features of each step: position and velocity, or the relations of hands and objects within four
steps. **HSCRF** has gamma durations and averages of the features over each activity where activities differ in length
(kitchen), and steps at the bottom; the **nested SemiCRF** lets the bottom persist and has gamma durations there (in
CAD-120 it has none, for they take long). **DCRF** labels both levels by step, with exact inference; **flat CRF** is one
chain for each level. Hierarchical models know which child occurs under which parent from their training labels.
Accuracy is per time step. Every system finds the penalties of its levels and of its transitions by `c2="auto"`, anew
for each training; its folds are random sequences, so in CAD-120 the same people are on both sides. The rest of the
set-up of CAD-120 (relations within four steps, which activity may follow which, the number of iterations) was settled
after several looks at the results of all four people, so its numbers are not those of a test set that nobody has seen,
and its p-values flatter whoever wins. A video shows one activity, so in the training labels none follows another: there
systems know which activity may follow which, too; variants with *any successor* must learn it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from automatic import penalty_table, record_penalties, with_penalties
from hscrf import (
    HSCRF,
    LBFGS,
    ChainCRF,
    Duration,
    DynamicCRF,
    End,
    Init,
    Labels,
    Pair,
    Token,
    Topology,
    Trans,
    datasets,
    plots,
)
from runner import Comparison, Study, group_folds, main, take

Columns = dict[str, list[list[str]]]  # level -> labels of every step of every sequence
Predict = Callable[..., Columns]  # of observations, and of what decoding shall get right
CLAIMED = ("HSCRF", "DCRF", "flat CRF")  # systems of the paper's claims
ANY = ", any successor"
DECODING = {"sequence": "best labelling", "step": "most right steps"}


@dataclass(frozen=True)
class Task:
    """Observations, and labels whose bottom level persists."""

    name: str
    X: list[Any]
    Y: list[Labels]
    top_durations: bool  # whether the lengths of activities tell something
    successors: bool  # whether systems know which activities follow each other in training

    @property
    def levels(self) -> tuple[str, str]:
        top, bottom = self.Y[0].topology.levels[1:]
        return top, bottom


@dataclass(frozen=True)
class System:
    """A name, the levels it labels, and ``fit(X, Y, options)``, which returns a model and how it predicts."""

    name: str
    levels: tuple[str, ...]
    fit: Callable[..., tuple[HSCRF, Predict]]


# -- data ----------------------------------------------------------------------------------------------------------


def kitchen(seed: int, n: int) -> Task:
    X, Y = datasets.make_activities(n, n_activities=1, persisting=True, random_state=seed)
    return Task("kitchen", X, Y, top_durations=True, successors=False)


def imitation(seed: int, n: int) -> Task:
    """Videos of two people, made up, for tests without data."""
    X, Y = datasets.make_activities(n, n_activities=1, persisting=True, random_state=seed)
    return Task("imitation", X, Y, top_durations=False, successors=True)


def cad120(data: datasets.Dataset, plain: bool) -> Task:
    """Relations of hands and objects, of four steps before to four steps after."""
    tokens = data.tokens if plain else [anonymous(x) for x in data.tokens]
    name = f"CAD-120, {'plain' if plain else 'hidden'} names"
    return Task(name, [window(x, 4) for x in tokens], data.Y, top_durations=False, successors=True)


def anonymous(steps: Sequence[Sequence[str]]) -> list[list[str]]:
    """Relations with objects renamed o1, o2, ... in the order in which a video mentions them."""
    names: dict[str, str] = {"Head": "Head", "RH": "RH", "LH": "LH"}

    def rename(token: str) -> str:
        parts = re.fullmatch(r"([+-]?)([^-=]+)-([^=]+)(=.*)?", token)
        if not parts:
            return token
        one, other = (names.setdefault(name, f"o{len(names) - 2}") for name in parts.group(2, 3))
        return f"{parts[1]}{one}-{other}{parts[4] or ''}"

    return [[rename(token) for token in step] for step in steps]


def window(steps: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The features of each step and of its neighbours."""
    near = range(-width, width + 1)
    return [
        [f"{k}:{token}" for k in near if 0 <= t + k < len(steps) for token in steps[t + k]] for t in range(len(steps))
    ]


# -- systems -------------------------------------------------------------------------------------------------------


def systems(task: Task) -> list[System]:
    """Everything that is compared; chains are trained level by level."""
    both, seen = task.levels, {"successors": task.successors}
    found = [
        System("HSCRF", both, partial(fit_nested, unit=True, top_durations=task.top_durations, **seen)),
        System("nested SemiCRF, no durations", both, partial(fit_nested, unit=False, **seen)),
        System("DCRF", both, partial(fit_dynamic, **seen)),
        *(System("flat CRF", (level,), partial(fit_flat, level=level, **seen)) for level in both),
    ]
    if task.top_durations:
        found.insert(1, System("HSCRF, no durations", both, partial(fit_nested, unit=True)))
        found.insert(2, System("nested SemiCRF", both, partial(fit_nested, unit=False, bottom_durations=True)))
    if task.successors:
        found += [
            System("HSCRF" + ANY, both, partial(fit_nested, unit=True)),
            System("DCRF" + ANY, both, fit_dynamic),
            System("flat CRF" + ANY, both[:1], partial(fit_flat, level=both[0])),
        ]
    return found


def learning(study: Study, iterations: int | None = None) -> dict[str, Any]:
    """Options of every training, the same for all systems; it starts where the search for penalties ended."""
    most = iterations or study.pick(smallest=2, quick=30, full=60)
    return {"c2": study.pick(0.1, "auto", "auto"), "solver": LBFGS(delta=1e-4, max_iter=most)}


def fit_nested(
    X: Any,
    Y: Sequence[Labels],
    options: Mapping[str, Any],
    *,
    unit: bool,
    top_durations: bool = False,
    bottom_durations: bool = False,
    successors: bool = False,
) -> tuple[HSCRF, Predict]:
    model = nested_model(Y, options, unit, top_durations, bottom_durations, successors=successors)
    model.fit(X, [relabelled(model.topology, y) for y in Y])
    return model, lambda Z, loss="sequence": columns(model.predict(Z, loss=loss), Y[0].topology.levels[1:])


def nested_model(
    Y: Sequence[Labels],
    options: Mapping[str, Any],
    unit: bool = True,
    top_durations: bool = False,
    bottom_durations: bool = False,
    children: bool = True,
    successors: bool = False,
) -> HSCRF:
    """An HSCRF before training; ``children``: only those under a parent that occur there in the labels."""
    top, bottom = Y[0].topology.levels[1:]
    features: list[Any] = [Token(level) for level in (top, bottom)]
    features += [event(level) for level in ("root", top) for event in (Init, Trans, End)]
    limits: dict[str, int | None] = {} if unit else {bottom: None}
    if top_durations:
        features += [Duration(top), Token(top, average=True)]
        limits[top] = longest(Y, 1)
    if bottom_durations:
        features.append(Duration(bottom))
        limits[bottom] = longest(Y, 2)
    topology = wide_topology(Y, limits, children, following(Y, steps=False) if successors else None)
    return HSCRF(topology, features=features, **options)


def following(Y: Sequence[Labels], steps: bool) -> dict[str, list[str]]:
    """Which activities follow each one in the labels; from step to step, it follows itself."""
    names = Y[0].topology.states[1]
    found = {name: {name} if steps else set() for name in names}
    for y in Y:
        chain = [names[y.states[1, i]] for i, _ in runs(y, 1)]
        for one, other in pairwise(chain):
            found[one].add(other)
    return {name: sorted(after) for name, after in found.items()}


def wide_topology(
    Y: Sequence[Labels],
    limits: Mapping[str, int | None],
    children: bool,
    successors: Mapping[str, Sequence[str]] | None = None,
) -> Topology:
    old = Y[0].topology
    (top, bottom), (parents, below) = old.levels[1:], old.states[1:]
    seen = np.zeros((len(parents), len(below)), dtype=bool)
    for y in Y:
        known = (y.states[1] >= 0) & (y.states[2] >= 0)
        seen[y.states[1][known], y.states[2][known]] = True
    seen[:, ~seen.any(axis=0)] = True  # nothing is known of a child that never occurs
    told = {parents[s]: take(below, np.flatnonzero(row)) for s, row in enumerate(seen) if any(row)}
    return Topology(
        {top: parents, bottom: below},
        children={top: told} if children else None,
        successors={top: successors} if successors is not None else None,
        max_duration=limits,
    )


def longest(Y: Sequence[Labels], d: int) -> int:
    """A quarter more than the longest run of a level, for what training has not seen."""
    runs = [np.diff(np.flatnonzero(np.concatenate([[1], y.ends[d] != 0]))).max() for y in Y]
    return int(np.ceil(1.25 * max(runs)))


def relabelled(topology: Topology, y: Labels) -> Labels:
    """The same labels for a topology whose bottom has unit length, or persists."""
    ends = y.ends.copy()
    if topology.unit_bottom:
        ends[2] = 1
    return Labels(topology, y.states, ends)


def fit_dynamic(
    X: Any, Y: Sequence[Labels], options: Mapping[str, Any], *, successors: bool = False
) -> tuple[HSCRF, Predict]:
    levels = Y[0].topology.levels[1:]
    told = [{level: y.column(level) for level in levels} for y in Y]
    # no other pairs of labels than those of training
    topology = wide_topology(Y, {}, children=True, successors=following(Y, steps=True) if successors else None)
    own = [spec for level in levels for spec in (Token(level), Trans(level))]
    model = DynamicCRF(topology, combinations="all", features=[*own, Pair(*levels)], **options).fit(X, told)
    return model, lambda Z, loss="sequence": columns(model.predict(Z, loss=loss), levels)


def fit_flat(
    X: Any, Y: Sequence[Labels], options: Mapping[str, Any], *, level: str, successors: bool = False
) -> tuple[HSCRF, Predict]:
    features = [Token("label"), *(event("root") for event in (Init, Trans, End))]
    topology = None
    if successors and level == Y[0].topology.levels[1]:
        after = following(Y, steps=True)
        topology = Topology({"label": list(after)}, successors={"label": after})
    model = ChainCRF(topology, features=features, **options)
    model.fit(X, [y.column(level) for y in Y])
    return model, lambda Z, loss="sequence": {level: [y.column("label") for y in model.predict(Z, loss=loss)]}


def columns(labels: Sequence[Labels], levels: Sequence[str]) -> Columns:
    return {level: [y.column(level) for y in labels] for level in levels}


def accuracy(truth: Sequence[Labels], found: Columns) -> dict[str, float]:
    """The share of steps with the right label, by level; unknown ones are left out."""
    return {level: right_share([y.column(level) for y in truth], guess) for level, guess in found.items()}


def right_share(truth: Sequence[Sequence[str]], guess: Sequence[Sequence[str]]) -> float:
    steps = [(a, b) for one, other in zip(truth, guess, strict=True) for a, b in zip(one, other, strict=True)]
    return float(np.mean([a == b for a, b in steps if a != "?"]))


def full_labels(study: Study, task: Task, train: Sequence[int], test: Sequence[int], **keys: Any) -> dict[str, HSCRF]:
    """Train every system with all labels, and decode in both ways; the models of both levels by name."""
    X, Y, Z, truth = (take(given, which) for which in (train, test) for given in (task.X, task.Y))
    models = {}
    for system in systems(task):
        named = {"data": task.name, "system": system.name, **keys}
        with study.timed(**named):
            models[system.name], predict = system.fit(X, Y, learning(study))
        shown = system.name if len(system.levels) > 1 else f"{system.name}, {system.levels[0]}"
        record_penalties(study, models[system.name], **{**named, "system": shown})
        for loss, decoding in DECODING.items():
            found = predict(Z, loss)
            for level, value in accuracy(truth, found).items():
                study.record("full accuracy", value, decoding=decoding, level=level, **named)
                if "fold" in keys and system.name.removesuffix(ANY) in CLAIMED:
                    by_video(study, truth, found, test, decoding=decoding, level=level, **named)
                    if level == task.levels[0]:
                        changes = np.mean([len(set(guess)) > 1 for guess in found[level]])
                        study.record("changes", changes, decoding=decoding, **named)
    return models


def activity_given(study: Study, task: Task, model: HSCRF, test: Sequence[int], **keys: Any) -> None:
    """How well HSCRF finds what is below an activity if that is known: all that the nesting could give."""
    truth = take(task.Y, test)
    top, bottom = task.levels
    told = [Labels.from_columns(model.topology, {top: y.column(top)}) for y in truth]
    for loss, decoding in DECODING.items():
        found = columns(model.predict(take(task.X, test), evidence=told, loss=loss), [bottom])
        named = {"data": task.name, "system": "HSCRF, activity given", "decoding": decoding, **keys}
        study.record("full accuracy", accuracy(truth, found)[bottom], level=bottom, **named)


def by_video(study: Study, truth: Sequence[Labels], found: Columns, test: Sequence[int], **keys: Any) -> None:
    """Accuracy for each video: four people are few for a test, their videos are more."""
    level = keys["level"]
    for n, y, guess in zip(test, truth, found[level], strict=True):
        study.record("video accuracy", right_share([y.column(level)], [guess]), video=n, **keys)


# -- partial labels ------------------------------------------------------------------------------------------------


def masked(Y: Sequence[Labels], both: bool, seed: int) -> list[Labels]:
    """Half of the activities lose label and boundaries, and, if ``both``, half of the segments below their labels."""
    random = np.random.default_rng(seed)
    hidden = [y.states.copy() for y in Y], [y.ends.copy() for y in Y]
    for d in (1, 2) if both else (1,):
        every = [(n, i, j) for n, y in enumerate(Y) for i, j in runs(y, d)]
        for k in random.permutation(len(every))[: len(every) // 2]:
            n, i, j = every[k]
            hidden[0][n][d, i:j] = -1
            if d == 1:
                hidden[1][n][d, max(i - 1, 0) : j] = -1
                hidden[1][n][d, -1] = 1
    return [replace(y, states=states, ends=ends) for y, states, ends in zip(Y, *hidden, strict=True)]


def runs(y: Labels, d: int) -> list[tuple[int, int]]:
    """Half-open segments of a level; an unknown end is taken for one."""
    stops = np.flatnonzero(y.ends[d] != 0) + 1
    return list(zip([0, *stops[:-1].tolist()], stops.tolist(), strict=True))


def partial_labels(study: Study, task: Task, split: Callable[[int], Any]) -> None:
    """PO-HSCRF and PO-CRF for some random maskings, beside the same models with all labels.

    ``split(k)`` gives training and test of masking k.
    """
    bottom = task.levels[1]
    for k in range(study.pick(smallest=1, quick=1, full=4 if task.successors else 10)):
        train, test = split(k)
        X, Z, truth = take(task.X, train), take(task.X, test), take(task.Y, test)
        for hides in ("nothing", "activities", "both levels"):
            Y = take(task.Y, train)
            Y = Y if hides == "nothing" else masked(Y, hides == "both levels", k)
            model = nested_model(Y, learning(study), children=False)
            found = columns(model.fit(X, [relabelled(model.topology, y) for y in Y]).predict(Z), task.levels)
            found_flat = fit_flat(X, Y, learning(study), level=bottom)[1](Z)
            for name, guess in (("PO-HSCRF", found), ("PO-CRF", found_flat)):
                for level, value in accuracy(truth, guess).items():
                    record_part(study, task, "partial", value, hides=hides, system=name, level=level, masking=k)


def record_part(study: Study, task: Task, part: str, value: float, **keys: Any) -> None:
    study.record(f"{part} accuracy", value, data=task.name, **keys)


# -- known labels at test time -------------------------------------------------------------------------------------

FRACTIONS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def known_labels(study: Study, task: Task, train: Sequence[int], test: Sequence[int], whole: HSCRF) -> None:
    """Decode with the weights of the tenth iteration while more and more labels or ends are given.

    The penalties are those of the whole model, the weights are learned from nothing.
    """
    model = with_penalties(nested_model(take(task.Y, train), learning(study, 10), children=False), whole)
    topology = model.topology
    model.fit(take(task.X, train), [relabelled(topology, y) for y in take(task.Y, train)])
    X, truth = take(task.X, test), [relabelled(topology, y) for y in take(task.Y, test)]
    for given in ("states", "start and end times"):
        for fraction in FRACTIONS:
            for seed in range(study.pick(smallest=1, quick=2, full=5)):
                random = np.random.default_rng(seed)
                known = [revealed(y, fraction, given == "states", random) for y in truth]
                found = columns(model.predict(X, evidence=known), task.levels)
                for level, value in accuracy(truth, found).items():
                    keys = {"given": given, "share": fraction, "level": level, "seed": seed}
                    record_part(study, task, "evidence", value, **keys)


def revealed(y: Labels, fraction: float, states: bool, random: np.random.Generator) -> Labels:
    """States, or ends, of a share of the time steps, drawn at random."""
    hide = random.permutation(len(y))[round(fraction * len(y)) :]
    told = Labels.unknown(y.topology, len(y))
    seen, ends = told.states.copy(), told.ends.copy()
    whole = seen if states else ends
    whole[1:] = (y.states if states else y.ends)[1:]
    whole[1:, hide] = -1
    return Labels(y.topology, seen, ends)


def draw_curve(study: Study, task: Task, name: str) -> None:
    for given in ("states", "start and end times"):
        keys = {"data": task.name, "given": given}
        curve = {
            level: [study.values("evidence accuracy", share=f, level=level, **keys) for f in FRACTIONS]
            for level in task.levels
        }
        kind = given.split()[0]
        axes = plots.plot_evidence_curve(FRACTIONS, curve)
        study.figure(
            f"{name}-known-{kind}", axes, f"{task.name}: accuracy when a share of the {given} is given (all steps)."
        )


# -- what was learned ----------------------------------------------------------------------------------------------


def learned_structure(study: Study, task: Task, train: Sequence[int], draw: bool) -> None:
    """Children and neighbours whose weights are positive, beside those of the truth."""
    Y = take(task.Y, train)
    model = nested_model(Y, learning(study, 60), unit=False, children=False)
    model.fit(take(task.X, train), [relabelled(model.topology, y) for y in Y])
    weights = {part: weight_table(model, part) for part in ("init", "trans", "end")}
    true = {part: true_events(task.Y, part) for part in weights}
    children = {pair for table in true.values() for pair in children_of(table)}
    kept = {pair for table in weights.values() for pair in children_of({c for c, w in table.items() if w > 0})}
    moves = {cell for cell, w in weights["trans"].items() if w > 0}
    for what, found, right in (("children", kept, children), ("transitions", moves, true["trans"])):
        for kind, count in (("right", found & right), ("wrong", found - right), ("missed", right - found)):
            study.record("structure", len(count), data=task.name, edges=what, kind=kind)
    above = [w for cell, w in weight_table(model, "trans", root=True).items()]
    study.record("structure", sum(w > 0 for w in above), data=task.name, edges="activity to activity", kind="wrong")
    if draw:
        study.figure("indoor-topology", plots.plot_topology(model), f"{task.name}: the topology of positive weights.")
        caption = f"{task.name}: transitions with positive weights, for each activity."
        study.figure("indoor-transitions", plots.plot_transitions(model, task.levels[1]), caption)


def children_of(events: set[tuple[str, ...]]) -> set[tuple[str, str]]:
    """Parent and child for each child of each event."""
    return {(parent, child) for parent, *children in events for child in children}


def weight_table(model: HSCRF, part: str, root: bool = False) -> dict[tuple[str, ...], float]:
    """Weights of an event by the names of parent and children."""
    rows = model.weights_.query(f"part == '{part}'")
    rows = rows[(rows["level"] == "root") == root]
    return {tuple(states.split(" > ")): weight for states, weight in zip(rows["states"], rows["weight"], strict=True)}


def true_events(Y: Sequence[Labels], part: str) -> set[tuple[str, ...]]:
    """First children, neighbours, or last children that occur under each parent."""
    found = set()
    for y in Y:
        top, bottom = (y.topology.states[d] for d in (1, 2))
        below = runs(y, 2)
        for i, j in runs(y, 1):
            chain = [bottom[y.states[2, a]] for a, b in below if i <= a and b <= j and y.states[2, a] >= 0]
            parent = top[y.states[1, i]]
            pairs = [chain[k : k + 2] for k in range(len(chain) - 1)]
            events = {"init": [chain[:1]], "end": [chain[-1:]], "trans": pairs}
            found |= {(parent, *event) for event in events[part]}
    return found


# -- the study -----------------------------------------------------------------------------------------------------


def run(study: Study) -> None:
    run_kitchen(study)
    if study.variant == "smallest":
        run_videos(study, [imitation(1, 6)], ["a", "b"] * 3)
    else:
        data = datasets.load_cad120(study.data)
        assert data.subjects is not None
        names = study.pick((), (False,), (False, True))
        run_videos(study, [cad120(data, plain=plain) for plain in names], data.subjects)


def run_kitchen(study: Study) -> None:
    n = study.pick(smallest=6, quick=90, full=90)
    halves = list(range(n // 2)), list(range(n // 2, n))
    for seed in range(study.pick(smallest=1, quick=2, full=10)):
        full_labels(study, kitchen(seed, n), *halves, seed=seed)
    task = kitchen(0, n)
    other_parts(study, task, [halves], draw=True)
    report(study, task, "kitchen", "Kitchen (generated substitute)")


def other_parts(study: Study, task: Task, turns: Sequence[tuple[list[int], list[int]]], draw: bool) -> None:
    """Partial labels in all turns; known labels and what was learned in the first."""
    partial_labels(study, task, lambda k: turns[k % len(turns)])
    train, test = turns[0]
    Y = take(task.Y, train)
    whole = nested_model(Y, {**learning(study), "c2": "auto"}, children=False)
    whole.fit(take(task.X, train), [relabelled(whole.topology, y) for y in Y])
    known_labels(study, task, train, test, whole)
    learned_structure(study, task, train, draw)


def run_videos(study: Study, tasks: Sequence[Task], subjects: Sequence[str]) -> None:
    """Leave one person out."""
    outer = group_folds(subjects)
    if study.variant == "quick":
        outer = dict(list(outer.items())[:2])
    for task in tasks:
        for subject, (train, test) in outer.items():
            models = full_labels(study, task, train, test, fold=subject)
            activity_given(study, task, models["HSCRF"], test, fold=subject)
    other_parts(study, tasks[0], list(outer.values()), draw=False)
    for task in tasks:
        report(study, task, "cad120", f"{task.name} (real)", partial=task is tasks[0])


# -- the page ------------------------------------------------------------------------------------------------------


def report(study: Study, task: Task, name: str, title: str, partial: bool = True) -> None:
    """Tables, figures and verdicts of one data set."""
    study.heading(title)
    for decoding in DECODING.values():
        keys = {"data": task.name, "decoding": decoding}
        caption = f"Right steps in %, all labels of the training data known; decoding for the {decoding}."
        study.table("full accuracy", "system", "level", caption, percent=True, **keys)
        study.differences("full accuracy", comparisons(task), "system", "level", **keys)
        if study.select("video accuracy", **keys):
            pairs = [("HSCRF", other) for other in rivals(task)]
            caption = "The same by video instead of by person (videos weigh alike, whatever their length)."
            study.differences("video accuracy", pairs, "system", "level", caption, **keys)
    penalty_table(study, data=task.name)
    verdicts(study, task)
    if study.select("changes", data=task.name):
        explain(study, task)
    if not partial:
        return
    report_partial(study, task)
    draw_curve(study, task, f"indoor-{name}")
    report_curve(study, task)
    report_structure(study, task)


def rivals(task: Task) -> list[str]:
    """The systems that HSCRF is to beat."""
    return [*CLAIMED[1:], *(name + ANY for name in CLAIMED[1:] if task.successors)]


def comparisons(task: Task) -> list[tuple[str, str]]:
    short = "nested SemiCRF, no durations"
    pairs = [(one, other) for one in ("HSCRF", short) for other in rivals(task)]
    if task.successors:
        pairs.append(("HSCRF", "HSCRF" + ANY))
    if task.top_durations:
        pairs += [("HSCRF", "HSCRF, no durations"), ("nested SemiCRF", short)]
    return pairs


def verdicts(study: Study, task: Task) -> None:
    """Whether HSCRF beats the others, as in the paper, at each level."""
    name = "video accuracy" if study.select("video accuracy", data=task.name) else "full accuracy"
    how = "tests over videos" if name == "video accuracy" else "tests over data sets"
    for decoding in DECODING.values():
        said = []
        for other in rivals(task):
            for level in task.levels:
                keys = {"data": task.name, "decoding": decoding, "level": level}
                if not study.select(name, system=other, **keys):
                    continue
                found = study.compare(name, "HSCRF", other, "system", **keys)
                said.append(f"{other} at {level}: {judgement(found)}")
        study.say(f"**HSCRF beats the others** ({decoding}, {how})? {'; '.join(said)}.")


def explain(study: Study, task: Task) -> None:
    """What HSCRF could gain on videos, and what it does with their activities."""
    said = []
    for decoding in DECODING.values():
        keys = {"data": task.name, "decoding": decoding}
        given, own, flat = (
            100 * study.mean("full accuracy", system=system, level=task.levels[1], **keys)
            for system in ("HSCRF, activity given", "HSCRF", "flat CRF")
        )
        changes = (f"{100 * study.mean('changes', system=name + ANY, **keys):.0f} % by {name}" for name in CLAIMED)
        said.append(
            f"{decoding}: with the true activity given, HSCRF would get {given:.1f} % of the steps at "
            f"{task.levels[1]} right instead of {own:.1f} (flat CRF {flat:.1f}); where any successor is possible, more "
            f"than one activity is put into {', '.join(changes)} of the videos"
        )
    study.say(
        f"**What the nesting could give here** ({'; '.join(said)}). A video holds one activity, so that level has only "
        f"{len(task.Y)} labels, nearly all right or all wrong in a video."
    )


def judgement(found: Comparison) -> str:
    if found.p < 0.05:
        return "yes" if found.difference > 0 else "no, it is worse"
    return "better, but perhaps by chance" if found.difference > 0 else "no"


def report_partial(study: Study, task: Task) -> None:
    for level in task.levels:
        caption = f"Right steps in % at the level {level} when half of the segment labels are hidden in training."
        study.table("partial accuracy", "system", "hides", caption, percent=True, data=task.name, level=level)
    keys = {"data": task.name, "level": task.levels[1], "hides": "both levels"}
    found = study.compare("partial accuracy", "PO-HSCRF", "PO-CRF", "system", **keys)
    study.say(
        "Hidden are label and boundaries of half of the activities, or also the labels of half of the segments below "
        "(their boundaries stay, as in the paper). These models have no durations and may put any child under any "
        f"parent. **PO-HSCRF against PO-CRF** with half of both levels hidden: {task.levels[1]} {found}."
    )


def report_curve(study: Study, task: Task) -> None:
    said = []
    for level in task.levels:
        keys = {"data": task.name, "given": "states", "level": level}
        at = {f: study.mean("evidence accuracy", share=f, **keys) for f in FRACTIONS}
        said.append(f"{level} {100 * at[0.0]:.1f} → {100 * at[0.2]:.1f} → {100 * at[0.4]:.1f} %")
    study.say(
        "**A moderate amount of known labels lifts the accuracy of a poor model considerably** (weights of the tenth "
        f"iteration; 0, 20 and 40 % of the states known): {'; '.join(said)}."
    )


def report_structure(study: Study, task: Task) -> None:
    caption = "Edges with positive weights in a model that may have all of them, beside those that occur in the data."
    study.table("structure", "edges", "kind", caption, digits=0, data=task.name)


if __name__ == "__main__":
    main(run, __file__, __doc__)
