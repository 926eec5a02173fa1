"""Penalties of all systems alike: chosen by ``c2="auto"``, from all training sequences or from the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hscrf import HSCRF
from runner import Study


def fit_automatic(
    model: HSCRF,
    X: Sequence[Any],
    Y: Sequence[Any],
    most: int | None = None,
    found: HSCRF | None = None,
    c2: float | str = "auto",
) -> HSCRF:
    """Fit to everything; penalties are searched among the first sequences if there are more than ``most``.

    If a model is given that has ``found`` penalties, or if ``c2`` is a number, there is no search.
    """
    model.set_params(c2=c2)
    if c2 != "auto":
        return model.fit(X, Y)
    if found is not None:
        return with_penalties(model, found).fit(X, Y)
    if most is None or len(X) <= most:
        return model.fit(X, Y)
    found = type(model)(**model.get_params(deep=False)).fit(X[:most], Y[:most])
    return with_penalties(model, found).fit(X, Y)


def with_penalties(model: HSCRF, found: HSCRF) -> HSCRF:
    """A model that will learn from nothing, with the penalties that another's search has found."""

    def given(objective: Any, weights: Any, groups: Any = None) -> Any:
        model.c2_, model.factors_, model.penalties_ = found.c2_, found.factors_, found.penalties_
        model.penalty_reason_ = found.penalty_reason_
        return weights

    model._choose_penalties = given  # type: ignore[method-assign]
    return model


def record_penalties(study: Study, model: HSCRF, **keys: Any) -> None:
    """What was found: the penalty, and the factors of groups of weights."""
    study.record("chosen penalty", model.c2_, group="c2", **keys)
    for group, factor in model.factors_.items():
        study.record("chosen penalty", factor, group=f"× {group}", **keys)


def penalty_table(study: Study, **keys: Any) -> None:
    """For each system the geometric mean of what was found; a factor that was not found is one."""
    chosen = study.select("chosen penalty", **keys)
    groups = sorted(dict.fromkeys(r["group"] for r in chosen), key=lambda group: group != "c2")
    lines = [["system", *groups]]
    for system in dict.fromkeys(r["system"] for r in chosen):
        runs = len(study.select("chosen penalty", system=system, group="c2", **keys))
        logs = [np.log(study.values("chosen penalty", system=system, group=group, **keys)) for group in groups]
        lines.append([system, *(f"{np.exp(some.sum() / runs):.2g}" if some.size else "–" for some in logs)])
    study.lines(lines, 'Penalties that `c2="auto"` found, geometric means over runs; a dash where there is no factor.')
