"""Solvers by name."""

from __future__ import annotations

from collections.abc import Callable

from hscrf.solvers.course import Solver
from hscrf.solvers.lbfgs import LBFGS
from hscrf.solvers.perceptron import Perceptron
from hscrf.solvers.sgd import SGD

_SOLVERS: dict[str, Callable[[], Solver]] = {"lbfgs": LBFGS, "sgd": SGD, "perceptron": Perceptron}


def solver_of(solver: str | Solver) -> Solver:
    """The solver of that name with its default options, or the solver itself.

    >>> solver_of("perceptron")
    Perceptron(epochs=10, batch=1, average=True)
    """
    if isinstance(solver, str) and solver in _SOLVERS:
        return _SOLVERS[solver]()
    if not isinstance(solver, (str, type)) and callable(getattr(solver, "minimize", None)):
        return solver
    names = ", ".join(repr(name) for name in _SOLVERS)
    raise ValueError(f"solver is {solver!r}, expected {names} or a solver such as LBFGS(max_iter=100)")
