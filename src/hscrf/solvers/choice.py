"""Solvers by name, and as JSON of model files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hscrf.solvers.course import Solver
from hscrf.solvers.lbfgs import LBFGS
from hscrf.solvers.perceptron import Perceptron
from hscrf.solvers.sgd import SGD

SOLVERS: dict[str, Any] = {"lbfgs": LBFGS, "sgd": SGD, "perceptron": Perceptron}
DEFAULT = "lbfgs"
_NAMES = ", ".join(repr(name) for name in SOLVERS)
CLASSES: dict[str, Any] = {solver.__name__: solver for solver in SOLVERS.values()}


def solver_of(solver: str | Solver) -> Solver:
    """Return the solver of a name with its default options, or the given solver.

    Parameters
    ----------
    solver : str or solver

    Returns
    -------
    solver

    Examples
    --------
    >>> solver_of("perceptron")
    Perceptron(epochs=10, batch=None, average=True)
    """
    if isinstance(solver, str) and solver in SOLVERS:
        chosen: Solver = SOLVERS[solver]()
        return chosen
    if not isinstance(solver, (str, type)) and callable(getattr(solver, "minimize", None)):
        return solver
    raise ValueError(f"solver is {solver!r}, expected {_NAMES} or a solver such as LBFGS(max_iter=100)")


def dump_solver(solver: str | Solver) -> str | dict[str, Any]:
    """A solver as JSON: its name, or its type and options; for a class of the user, only the name of the class.

    >>> dump_solver("sgd"), dump_solver(Perceptron(epochs=3))
    ('sgd', {'type': 'Perceptron', 'epochs': 3, 'batch': None, 'average': True})
    """
    solver_of(solver)  # raises where there is none
    if isinstance(solver, str):
        return solver
    kind = type(solver)
    if kind in SOLVERS.values():
        return {"type": kind.__name__, **asdict(solver)}  # type: ignore[call-overload]
    return {"other": f"{kind.__module__}.{kind.__qualname__}"}


def known_solver(solver: str | Solver | Mapping[str, str]) -> str | Solver:
    """The solver of a model from a file; the default one instead of a class of the user, which files cannot hold.

    A warning says so: weights and predictions do not depend on the solver, only a further ``fit`` does.
    """
    if not isinstance(solver, Mapping):
        return solver
    warnings.warn(
        f"the model was fitted by the solver {solver['other']}, which a file cannot hold: it predicts as it did, "
        f"but fit would now use {DEFAULT!r}. To refit, set model.solver.",
        UserWarning,
        stacklevel=4,  # the caller of hscrf.load
    )
    return DEFAULT
