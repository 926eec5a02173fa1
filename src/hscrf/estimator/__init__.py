"""Estimators that learn nested labels and predict them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hscrf.estimator.hscrf import HSCRF

__all__ = ["HSCRF"]


def __getattr__(name: str) -> Any:
    """``HSCRF``, imported when first used: prediction in the shell needs no scikit-learn, whose import is slow."""
    if name not in __all__:
        raise AttributeError(f"module 'hscrf.estimator' has no attribute {name!r}")
    from hscrf.estimator.hscrf import HSCRF

    return HSCRF
