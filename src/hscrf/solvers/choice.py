"""Solvers by name, and as a model file holds them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hscrf.errors import FileFormatError
from hscrf.solvers.course import Solver
from hscrf.solvers.lbfgs import LBFGS
from hscrf.solvers.perceptron import Perceptron
from hscrf.solvers.sgd import SGD

SOLVERS: dict[str, Any] = {"lbfgs": LBFGS, "sgd": SGD, "perceptron": Perceptron}
DEFAULT = "lbfgs"
_NAMES = ", ".join(repr(name) for name in SOLVERS)
CLASSES: dict[str, Any] = {solver.__name__: solver for solver in SOLVERS.values()}


def solver_of(solver: str | Solver) -> Solver:
    """The solver of that name with its default options, or the solver itself.

    >>> solver_of("perceptron")
    Perceptron(epochs=10, batch=1, average=True)
    """
    if isinstance(solver, str) and solver in SOLVERS:
        chosen: Solver = SOLVERS[solver]()
        return chosen
    if not isinstance(solver, (str, type)) and callable(getattr(solver, "minimize", None)):
        return solver
    raise ValueError(f"solver is {solver!r}, expected {_NAMES} or a solver such as LBFGS(max_iter=100)")


def dump_solver(solver: str | Solver) -> Any:
    """A solver as JSON: its name, or its type and options; of a class that is not ours only where it is defined.

    >>> dump_solver("sgd"), dump_solver(Perceptron(epochs=3))
    ('sgd', {'type': 'Perceptron', 'epochs': 3, 'batch': 1, 'average': True})
    """
    solver_of(solver)  # raises where there is none
    if isinstance(solver, str):
        return solver
    kind = type(solver)
    if kind in SOLVERS.values():
        return {"type": kind.__name__, **asdict(solver)}  # type: ignore[call-overload]
    return {"other": f"{kind.__module__}.{kind.__qualname__}"}


def load_solver(entry: Any) -> str | Solver:
    """The solver that :func:`dump_solver` wrote.

    A solver of another class cannot come from a file. The default stands in for it, and a warning says so: weights and
    predictions do not depend on the solver, only a further ``fit`` does.
    """
    if isinstance(entry, str) and entry in SOLVERS:
        return entry
    if isinstance(entry, Mapping) and list(entry) == ["other"] and isinstance(entry["other"], str):
        warnings.warn(
            f"the model was fitted by the solver {entry['other']}, which a file cannot hold: it predicts as it did, "
            f"but fit would now use {DEFAULT!r}. To refit, set model.solver.",
            UserWarning,
            stacklevel=3,  # the caller of hscrf.load
        )
        return DEFAULT
    if isinstance(entry, Mapping) and isinstance(entry.get("type"), str) and entry["type"] in CLASSES:
        return _with_options(CLASSES[entry["type"]], {name: entry[name] for name in entry if name != "type"})
    raise FileFormatError(f"the solver is {entry!r}, expected {_NAMES} or one of {', '.join(CLASSES)} with options")


def _with_options(solver: Any, options: Mapping[str, Any]) -> Solver:
    """A solver of ours with options from a file."""
    for name, value in options.items():
        if not isinstance(value, (int, float, type(None))):
            raise FileFormatError(f"option {name} of the solver {solver.__name__} is {value!r}, expected a number")
    try:
        made: Solver = solver(**options)
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"the options of the solver {solver.__name__} are wrong: {error}") from None
    return made
