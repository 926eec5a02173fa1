"""What is given is checked once, at the border."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hscrf.labels.labels import Labels
from hscrf.observations.packed import Observations


def check_lengths(X: Sequence[Any], Y: Sequence[Any]) -> None:
    for name, given in (("X", X), ("Y", Y)):
        if not hasattr(given, "__len__"):
            raise ValueError(f"{name} is a {type(given).__name__}, expected a list of sequences")
    if len(X) != len(Y):
        raise ValueError(f"X has {len(X)} sequences but Y has {len(Y)}")


def check_specifications(features: Sequence[Any] | None, classes: tuple[Any, ...]) -> None:
    if isinstance(features, str):
        raise ValueError(f"features is the string {features!r}, expected a list such as [{features!r}]")
    for k, spec in enumerate(features or ()):
        if isinstance(spec, str) and spec == "default":
            continue
        if not isinstance(spec, classes):
            raise ValueError(f"features[{k}] is {spec!r}, expected one of {', '.join(c.__name__ for c in classes)}")
        if not isinstance(spec.penalty, (int, float, np.number)) or not 0 <= spec.penalty < np.inf:
            raise ValueError(f"features[{k}]: penalty is {spec.penalty!r}, expected a finite number of at least 0")


def check_durations(durations: Any, max_duration: Any) -> None:
    """Refuse what is neither None nor a mapping by level; the values are checked where they are used."""
    if not isinstance(durations, Mapping | None):
        raise ValueError(f"durations is {durations!r}, expected a dict such as {{'action': 'gamma'}}")
    if isinstance(max_duration, bool) or not isinstance(max_duration, int | np.integer | Mapping | None):
        raise ValueError(f"max_duration is {max_duration!r}, expected a number of steps or a dict by level")


def lengths_of(observations: Observations) -> list[int]:
    return np.diff(observations.offsets).tolist()


def check_steps(observations: Observations, labels: Sequence[Labels], name: str = "Y", offset: int = 0) -> None:
    for n, (steps, y) in enumerate(zip(lengths_of(observations), labels, strict=True), start=offset):
        if steps != y.length:
            raise ValueError(f"X[{n}] has {steps} steps but {name}[{n}] has {y.length}")


@contextmanager
def unchanged_on_failure(model: Any) -> Iterator[None]:
    """Whatever goes wrong while fitting, the model stays what it was."""
    former = model.__dict__.copy()
    try:
        yield
    except BaseException:
        model.__dict__ = former
        raise
