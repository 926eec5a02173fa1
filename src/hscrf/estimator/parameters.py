"""Arguments of estimators and of their solvers: scikit-learn's base class, and names such as ``solver__max_iter``."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from hscrf.solvers.choice import solver_of
from hscrf.solvers.course import Solver

Self = TypeVar("Self", bound="SequenceEstimator")
PREFIX = "solver__"


class SequenceEstimator(BaseEstimator):
    """scikit-learn's base class for estimators of sequences, which may have a solver with options of its own.

    Solvers are frozen: setting an option replaces the solver by a changed copy.

    Examples
    --------
    >>> from hscrf import HSCRF, SGD
    >>> HSCRF(c2=0.3).set_params(solver__max_iter=5).solver.max_iter
    5
    >>> HSCRF(solver=SGD(epochs=3)).get_params()["solver__epochs"]
    3
    """

    solver: Any

    def __dir__(self) -> list[str]:
        """Names for completion; scikit-learn reads each property for them, and ``weights_`` is a long table."""
        return list(object.__dir__(self))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor by name.

        Parameters
        ----------
        deep : bool
            Whether the options of a solver object are listed too, as ``solver__`` and their name.

        Returns
        -------
        dict
        """
        found: dict[str, Any] = super().get_params(deep)
        solver = found.get("solver")
        if deep and is_dataclass(solver) and not isinstance(solver, type):
            found |= {PREFIX + field.name: getattr(solver, field.name) for field in fields(solver)}
        return found

    def set_params(self: Self, **params: Any) -> Self:
        """Change arguments of the constructor, and options of the solver.

        Parameters
        ----------
        **params
            Arguments by name; ``solver__max_iter=50`` changes the option ``max_iter`` of the solver.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there is no such argument, or the solver has no such option.
        """
        nested = {name: value for name, value in params.items() if name.startswith(PREFIX) and hasattr(self, "solver")}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        if nested:
            self.solver = changed_solver(self.solver, {k.removeprefix(PREFIX): v for k, v in nested.items()})
        return self

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training data; only models of arrays and tables have it."""
        columns = getattr(getattr(self, "encoder_", None), "given", None)
        if not columns:
            raise AttributeError(f"this {type(self).__name__} has no n_features_in_: it is not fitted to columns")
        return len(columns)

    def __sklearn_tags__(self) -> Any:
        """Tags of scikit-learn: the input is a list of sequences, not one table."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = tags.input_tags.dict = True
        return tags


def changed_solver(solver: str | Solver, options: dict[str, Any]) -> Solver:
    """Return a copy of the solver, given as an object or by name, with other options."""
    found: Any = solver_of(solver)
    known = [field.name for field in fields(found)] if is_dataclass(found) else []
    for name in options:
        if name not in known:
            raise ValueError(f"Invalid parameter {name!r} for solver {found!r}, expected one of {known}")
    changed: Solver = replace(found, **options)
    return changed
