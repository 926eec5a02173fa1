"""Labels of an endless sequence, step by step, with a fixed delay."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hscrf.arrays import Floats, whole_number
from hscrf.errors import InfeasibleError, several
from hscrf.fillers import expanded
from hscrf.potentials import Key
from hscrf.streaming.chain import LARGEST, ChainRecursion
from hscrf.streaming.layout import Layout
from hscrf.streaming.lookback import SegmentalRecursion
from hscrf.streaming.scoring import StepScorer
from hscrf.streaming.terms import Arranger, Terms
from hscrf.topology import Topology

TOGETHER = 1000  # rows of a table that are added at once


@dataclass(frozen=True)
class Step:
    """The labels of one step of a stream.

    Parameters
    ----------
    step : int
        Time step, from 0.
    labels : dict from level to state
        The state of each level.
    starts : dict from level to bool
        Whether a segment of the level starts at this step.
    probabilities : dict from level to ndarray (S,), optional
        Probabilities of the states, in the order of the topology's states.
    """

    step: int
    labels: dict[str, Any]
    starts: dict[str, bool]
    probabilities: dict[str, Floats] | None = None


@dataclass(frozen=True)
class Shown:
    """The public view of stacks of a model's states: levels and states as the user sees them."""

    topology: Topology
    states: np.ndarray  # (D, leaves) of that topology
    nested: bool  # whether its levels are those of the model

    def labels(self, leaf: int) -> dict[str, Any]:
        """The names of the states of one stack, by level, without the root."""
        names = self.topology.states
        return {level: names[d][self.states[d, leaf]] for d, level in enumerate(self.topology.levels) if d}


class Window:
    """A recursion and its last ``lag + 1`` steps."""

    def __init__(self, layout: Layout, lag: int, best: bool) -> None:
        markov = not layout.ages and layout.leaves <= LARGEST
        self.recursion: Any = ChainRecursion(layout, best) if markov else SegmentalRecursion(layout, best)
        self.records: deque[Any] = deque(maxlen=lag + 1)
        self.masses: deque[Floats] = deque(maxlen=lag + 1)

    def push(self, terms: Terms) -> None:
        """Add one step, and forget the oldest."""
        self.records.append(self.recursion.push(terms))
        self.masses.append(self.recursion.masses)

    def ends(self, finished: bool) -> Floats:
        """Log masses of the entries at the last step; raises if none is possible."""
        found: Floats = self.recursion.finished() if finished else self.recursion.unfinished()
        if not found.max() > -np.inf:
            raise InfeasibleError(
                f"no labelling of the {several(self.recursion.step + 1, 'step')} seen so far is possible"
            )
        return found


class Survivor(Window):
    """The best labelling of all steps so far; its last ``lag + 1`` steps are kept."""

    def __init__(self, layout: Layout, lag: int) -> None:
        super().__init__(layout, lag, best=True)
        self.path: deque[tuple[int, int]] = deque(maxlen=lag + 1)  # entries, and the topmost level that begins there

    def trace(self, finished: bool) -> None:
        """Trace the best way back until it meets the previous one: before that both are equal."""
        entry: int | None = int(self.ends(finished).argmax())
        if len(self.path) == len(self.records) and not finished:
            self.path.popleft()
        while len(self.path) < len(self.records):
            self.path.append((-1, 0))  # not known yet
        for k in range(len(self.records) - 1, -1, -1):
            if entry is None or self.path[k][0] == entry:
                return
            before, begun = self.recursion.predecessor(self.records[k], entry)
            self.path[k] = entry, begun
            entry = before


class Smoother(Window):
    """Probabilities of the states of the last ``lag + 1`` steps, given all steps so far."""

    def __init__(self, layout: Layout, lag: int) -> None:
        super().__init__(layout, lag, best=False)

    def probabilities(self, finished: bool) -> list[Floats]:
        """Of the stacks (leaves,), for the last step and then those before it."""
        return list(self.recursion.probabilities(self.records, self.masses, self.ends(finished)))


class Stream:
    """Decode a sequence step by step: push an observation, get the labels of the step ``lag`` steps before.

    Made by ``model.stream()``. Time and memory of a step do not depend on the number of steps before it. The result is
    exact: the labels of a step belong to the best labelling of all observations so far.

    Parameters
    ----------
    scorer : StepScorer
        Scores of one observation.
    topology : Topology
        Topology of the model.
    shown : callable
        Maps the engine's states (D, leaves) of all stacks to a :class:`Shown`.
    lag : int
        Delay of the labels, in steps. A larger delay gives better labels.
    marginals : bool
        Whether to compute the probabilities of all states as well. Their cost is proportional to the lag.

    Notes
    -----
    The last segments of the best labelling need not have ended. An unfinished segment has no last child, no stop and no
    length yet. In a segmental level its score is that of the best length that is still possible; for probabilities, the
    sum over these lengths. At the end of the sequence, :meth:`flush` returns the remaining steps, with the labels that
    ``predict`` gives for the whole sequence.

    Examples
    --------
    >>> from hscrf import ChainCRF
    >>> X, Y = [[["a"], ["b"], ["a"]], [["b"], ["b"]]], [["N", "V", "N"], ["V", "V"]]
    >>> stream = ChainCRF().fit(X, Y).stream(lag=1)
    >>> stream.push(["a"]) is None
    True
    >>> stream.push(["b"]).labels
    {'label': 'N'}
    >>> [step.labels["label"] for step in stream.flush()]
    ['V']
    """

    def __init__(
        self, scorer: StepScorer, topology: Topology, shown: Any, lag: int = 20, marginals: bool = False
    ) -> None:
        self.lag = whole_number(lag, "lag", least=0)
        self.marginals = marginals
        self.scorer = scorer
        self.layout = Layout(expanded(topology), scorer.durations, scorer.limits, scorer.keys, scorer.tails)
        self.arranger = Arranger(self.layout, scorer.constant)
        self.shown: Shown = shown(self.layout.states)
        levels = self.shown.topology.levels
        self.indicators = {
            level: (self.shown.states[d][:, None] == np.arange(self.shown.topology.n_states[d])).astype(np.float64)
            for d, level in enumerate(levels)
            if d
        }
        self.reset()

    def reset(self) -> None:
        """Begin a new sequence. Steps whose labels were not returned yet are dropped."""
        self.seen = 0  # observations
        self.given = 0  # steps whose labels were returned
        self.survivor = Survivor(self.layout, self.lag)
        self.smoother = Smoother(self.layout, self.lag) if self.marginals else None

    def push(self, x: Any) -> Step | None:
        """Add one observation.

        Parameters
        ----------
        x : object
            One step of what the model was fitted on: a list of strings, a dict of features, a row of numbers, a row of
            a DataFrame, or a symbol.

        Returns
        -------
        Step or None
            The labels of the step ``lag`` steps before; None for the first ``lag`` observations.
        """
        (terms,) = self.arranger(*self.scorer.values(self.scorer.as_sequence(x)))
        return self._push(terms)

    def extend(self, X: Any) -> list[Step]:
        """Add several observations at once. This is faster than single calls of :meth:`push`, with the same labels.

        Parameters
        ----------
        X : sequence
            One sequence in a form that ``predict`` takes, or a part of one.

        Returns
        -------
        list of Step
            The steps that :meth:`push` would have returned.
        """
        found = map(self._push, self.arranger(*self.scorer.values(X)))
        return [step for step in found if step is not None]

    def push_scores(self, row: Mapping[Key, Floats]) -> Step | None:
        """Add the log-potentials of one step.

        Parameters
        ----------
        row : mapping from (part, index of the level) to ndarray
            Arrays without a time axis, for the model's topology.

        Returns
        -------
        Step or None
            As in :meth:`push`.
        """
        (terms,) = self.arranger({key: table[None] for key, table in row.items()}, 1)
        return self._push(terms)

    def _push(self, terms: Terms) -> Step | None:
        """Add one step. Return the oldest step that was not returned yet if it is ``lag`` steps old."""
        with np.errstate(divide="ignore"):
            self.survivor.push(terms)
            if self.smoother is not None:
                self.smoother.push(terms)
            self.seen += 1
            return self._steps(False)[0] if self.seen > self.lag else None

    def flush(self) -> list[Step]:
        """End the sequence. The stream can then begin another one.

        Returns
        -------
        list of Step
            The labels of all steps that were not returned yet.
        """
        if self.given == self.seen:
            self.reset()
            return []
        with np.errstate(divide="ignore"):
            steps = self._steps(True)
        self.reset()
        return steps

    def run(self, X: Any) -> Iterator[Step]:
        """Label all observations of one sequence, in order.

        Parameters
        ----------
        X : iterable
            One sequence in a form that ``predict`` takes, or any iterable of observations.

        Yields
        ------
        Step
            The labels of each step.
        """
        if hasattr(X, "iloc") or hasattr(X, "tocsr"):  # which iterate over columns, or over matrices
            rows = X.iloc if hasattr(X, "iloc") else X.tocsr()
            for first in range(0, X.shape[0], TOGETHER):
                yield from self.extend(rows[first : first + TOGETHER])
            yield from self.flush()
            return
        for x in X:
            step = self.push(x)
            if step is not None:
                yield step
        yield from self.flush()

    def _steps(self, finished: bool) -> list[Step]:
        """The labels of the oldest step that was not returned; at the end, of all such steps."""
        self.survivor.trace(finished)
        first = self.seen - len(self.survivor.path)
        wanted = range(self.given, self.seen) if finished else range(self.given, self.given + 1)
        tables: dict[int, Floats] = {}
        if self.smoother is not None:
            for k, row in enumerate(self.smoother.probabilities(finished)):
                tables[self.seen - 1 - k] = row
        found = [self._step(t, *self.survivor.path[t - first], tables.get(t)) for t in wanted]
        self.given = wanted.stop
        return found

    def _step(self, t: int, entry: int, begun: int, row: Floats | None) -> Step:
        levels = self.shown.topology.levels
        starts = {level: not self.shown.nested or d >= begun for d, level in enumerate(levels) if d}
        table = None if row is None else {level: row @ own for level, own in self.indicators.items()}
        return Step(t, self.shown.labels(entry % self.layout.leaves), starts, table)
