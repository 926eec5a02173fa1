"""Estimators that learn nested labels and predict them."""

from hscrf.estimator.hscrf import HSCRF

__all__ = ["HSCRF"]
