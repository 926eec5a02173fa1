"""Check arguments and data once, before any work."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from hscrf.arrays import Ints, whole_number
from hscrf.errors import a_type, several
from hscrf.features.specifications import BY_LENGTH, BY_SIZE
from hscrf.labels.labels import Labels
from hscrf.labels.packed import pack_labels
from hscrf.labels.schemes import stray_line, unread_lines
from hscrf.observations.packed import Observations
from hscrf.observations.readers import check_several
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator.contract import Learner


def check_lengths(X: Sequence[Any], Y: Sequence[Any]) -> None:
    """Raise an error unless X and Y are lists of the same number of sequences."""
    check_several(X)
    if not hasattr(Y, "__len__"):
        raise ValueError(f"Y is {a_type(Y)}, expected a list of sequences")
    if len(X) != len(Y):
        raise ValueError(f"X has {several(len(X), 'sequence')} but Y has {len(Y)}")


def check_specifications(features: Sequence[Any] | None, classes: tuple[Any, ...]) -> None:
    """Raise an error unless features are specifications of these classes with valid penalties."""
    if isinstance(features, str):
        raise ValueError(f"features is the string {features!r}, expected a list such as [{features!r}]")
    if not isinstance(features, Sequence | None):
        raise ValueError(f"features is {features!r}, expected a list such as [{features!r}]")
    for k, spec in enumerate(features or ()):
        if isinstance(spec, str) and spec == "default":
            continue
        if not isinstance(spec, classes):
            raise ValueError(f"features[{k}] is {spec!r}, expected one of {', '.join(c.__name__ for c in classes)}")
        named = spec.penalty in (BY_LENGTH, BY_SIZE)
        if not (named if isinstance(spec.penalty, str) else is_penalty(spec.penalty)):
            expected = f"a finite number of at least 0, {BY_LENGTH!r} or {BY_SIZE!r}"
            raise ValueError(f"features[{k}]: penalty is {spec.penalty!r}, expected {expected}")


def is_penalty(value: Any) -> bool:
    """Whether a value is a finite number of at least 0."""
    return isinstance(value, (int, float, np.number)) and bool(0 <= value < np.inf)


NUMBERS = (int, float, np.integer, np.floating)
OPTIONS: dict[str, tuple[tuple[type, ...], str]] = {  # types of arguments, and their names in errors
    "c1": (NUMBERS, "a number of at least 0"),
    "c2": (NUMBERS, "a number of at least 0, or 'auto'"),
    "min_count": (NUMBERS, "a number"),
    "smoothing": (NUMBERS, "a number of at least 0"),
    "tol": (NUMBERS, "a number"),
    "min_variance": (NUMBERS, "a number"),
    "max_iter": ((int, np.integer), "a whole number of at least 0"),
    "n_jobs": ((int, np.integer), "the number of threads, or -1 for one per core"),
    "edges": ((bool, np.bool_), "True or False"),
    "root_ends": ((bool, np.bool_), "True or False"),
    "verbose": ((int, bool, np.integer), "0, 1 or 2"),
    "standardize": ((bool, np.bool_), "True or False"),
    "warm_start": ((bool, np.bool_), "True or False"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse arguments of a wrong type, such as a number that is a string."""
    for name, (types, expected) in OPTIONS.items():
        value = options.get(name, 0 if bool not in types else False)
        if name == "c2" and isinstance(value, str) and value == "auto":
            continue
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ValueError(f"{name} is {value!r}, expected {expected}")
    for name in ("c1", "c2"):
        if not is_penalty(value := options.get(name, 0.0)) and value != "auto":
            raise ValueError(f"{name} is {value}, expected a finite number of at least 0")
    check_margin(options.get("margin", 0.0))
    whole_number(options.get("n_init", 1), "n_init", least=1)
    if not isinstance(options.get("topology"), Topology | None):
        raise ValueError(f"topology is {a_type(options['topology'])}, expected a Topology or None")
    check_seed(options.get("random_state"))
    check_scheme_names(options.get("scheme", "plain"))


def check_seed(random_state: Any) -> None:
    """Raise an error unless ``random_state`` is a seed, a generator or None."""
    if not isinstance(random_state, int | np.integer | np.random.Generator | np.random.RandomState | None):
        raise ValueError(f"random_state is {random_state!r}, expected a whole number, a generator or None")


def check_scheme_names(scheme: Any) -> None:
    """Refuse an unknown scheme."""
    if not isinstance(scheme, str | Mapping):
        raise ValueError(f"scheme is {scheme!r}, expected a name or a dict by level")
    for name in [scheme] if isinstance(scheme, str) else scheme.values():
        if name not in ("auto", "plain", "bio", "bioes"):
            raise ValueError(f"scheme is {name!r}; expected 'auto', 'plain', 'bio' or 'bioes'")


def check_run(development: Any, patience: Any, callback: Any) -> None:
    """Raise an error for wrong arguments of ``fit``, before any work."""
    whole_number(patience, "patience", least=1)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback is {callback!r}, expected a function of an entry of the history")
    if development is None or hasattr(development, "scorer_for"):
        return
    if not (isinstance(development, tuple | list) and len(development) == 2):
        raise ValueError(f"development is {a_type(development)}, expected a pair (X, Y)")


def check_margin(margin: Any) -> None:
    """Refuse anything but a cost, costs by level, or costs by level and state.

    Whether levels and states exist is checked once they are known.
    """
    costs: list[tuple[str, Any]] = [("margin", margin)]
    for _ in range(2):  # by level, by state
        costs = [
            (f"{name}[{key!r}]" if isinstance(cost, Mapping) else name, value)
            for name, cost in costs
            for key, value in (cost.items() if isinstance(cost, Mapping) else [(None, cost)])
        ]
    for name, cost in costs:
        if isinstance(cost, bool) or not isinstance(cost, NUMBERS) or not 0 <= cost < np.inf:
            expected = "a finite number of at least 0, or a dict of them by level, or by level and state"
            raise ValueError(f"{name} is {cost!r}, expected {expected}")


def count_states(topology: Topology, labels: Sequence[Labels]) -> list[Ints]:
    """Count the steps of each state of each level in the labels."""
    known = pack_labels(labels)
    return [
        np.bincount(row[row >= 0], minlength=size) for row, size in zip(known.states, topology.n_states, strict=True)
    ]


def warn_of_typos(topology: Topology, counts: Sequence[Ints]) -> None:
    """Warn of states that occur at one step only and resemble a common one; ``counts`` of all states of all levels."""
    for d in range(1, topology.depth):
        own = zip(topology.states[d], counts[d].tolist(), strict=True)
        names = [(name, n) for name, n in own if isinstance(name, str)]
        common = [name for name, n in names if n >= 5]
        for name in (name for name, n in names if n == 1):
            like = _resembling(name, common)
            if like is not None:
                warnings.warn(
                    f"level {topology.levels[d]!r} has the state {name!r} at one step only; is it {like!r}?",
                    stacklevel=5,
                )


def warn_of_tags(Y: Sequence[Any], scheme: Any, model: Learner) -> None:
    """Warn of prefixes that the given scheme does not read, and of tags that continue no segment."""
    lines = []
    if model.scheme != "auto" and "scheme" in model.get_params(deep=False):  # other families read tags as they are
        lines = unread_lines(Y, scheme, "scheme='plain'")
    for line in [*lines, stray_line(Y, scheme)]:
        if line:
            warnings.warn(line, stacklevel=5)


_OWN = re.compile(r"^[BIES]-|\d")  # parts of names in which states may well differ


def _resembling(name: str, common: Sequence[str]) -> str | None:
    """A common name that differs from this one by case or a typing error, not by a number or the prefix of a tag."""
    others = [word for word in common if _OWN.sub("", word) != _OWN.sub("", name)]
    folded = [word for word in others if word.casefold().strip() == name.casefold().strip()]
    close = get_close_matches(name, others, n=1, cutoff=0.8) if len(name) >= 5 else []
    return next(iter([*folded, *close]), None)


def warn_of_weights(sample_weight: Any) -> None:
    """Warn that sequences of weight 0 are not left out."""
    weights = np.asarray([] if sample_weight is None else sample_weight)
    count = int((weights == 0).sum()) if weights.dtype.kind in "iufb" else 0
    if count:
        if count == weights.size:
            raise ValueError("sample_weight is 0 for every sequence, expected some weights above 0")
        told = "nothing is added to the loss, but names, scales, states and pairs are learned there too"
        have = "sequence has" if count == 1 else "sequences have"
        warnings.warn(f"{count} {have} a sample_weight of 0: {told}; leave such sequences out of X", stacklevel=4)


def check_durations(durations: Any, max_duration: Any, open_duration: Any = False) -> None:
    """Refuse anything but None and a mapping by level; the values are checked where they are used."""
    if not isinstance(durations, Mapping | None):
        raise ValueError(f"durations is {durations!r}, expected a dict such as {{'action': 'gamma'}}")
    if isinstance(max_duration, bool) or not isinstance(max_duration, int | np.integer | Mapping | None):
        raise ValueError(f"max_duration is {max_duration!r}, expected a number of steps or a dict by level")
    if open_duration not in (True, False, "auto"):
        raise ValueError(f"open_duration is {open_duration!r}, expected True, False or 'auto'")
    if open_duration is True and not durations:
        raise ValueError("open_duration is True, but durations names no level; expected one")


def packed_lengths(observations: Observations) -> list[int]:
    """Return the number of steps of each sequence."""
    return np.diff(observations.offsets).tolist()


def check_steps(observations: Observations, labels: Sequence[Labels], name: str = "Y", offset: int = 0) -> None:
    """Raise an error unless each sequence has as many steps as its labels."""
    for n, (steps, y) in enumerate(zip(packed_lengths(observations), labels, strict=True), start=offset):
        if steps != y.length:
            raise ValueError(f"X[{n}] has {several(steps, 'step')} but {name}[{n}] has {y.length}")


@contextmanager
def unchanged_on_failure(model: object) -> Iterator[None]:
    """Restore the model if fitting fails."""
    former = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = former
        raise
