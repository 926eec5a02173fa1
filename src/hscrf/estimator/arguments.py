"""Constructor arguments as attributes, by the rules of scikit-learn."""

from __future__ import annotations

from inspect import signature
from typing import Any, TypeVar

Self = TypeVar("Self", bound="Arguments")


class Arguments:
    """What ``clone``, ``Pipeline`` and searches ask of an estimator whose constructor only stores its arguments.

    It stands in for scikit-learn's own base class, whose import takes longer, and more memory, than all else that
    training needs.

    >>> class Model(Arguments):
    ...     def __init__(self, c2=1.0, solver="lbfgs"):
    ...         self.c2, self.solver = c2, solver
    >>> Model(c2=0.3).get_params()
    {'c2': 0.3, 'solver': 'lbfgs'}
    >>> Model().set_params(c2=7)
    Model(c2=7)
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Names of the arguments in alphabetical order, and their defaults."""
        found = signature(cls).parameters
        return {name: found[name].default for name in sorted(found)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All arguments by name; no argument has arguments of its own, so that ``deep`` changes nothing."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self: Self, **params: Any) -> Self:
        """Change some arguments."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for {self!r}, expected one of {list(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The arguments that are not the default ones."""
        given, defaults = self.get_params(), self._defaults()
        changed = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn takes every estimator for that says nothing else."""
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)
