"""The hierarchical hidden Markov model."""

from hscrf.families.hhmm.emissions import Categorical, Gaussian
from hscrf.families.hhmm.model import HHMM, hhmm_potentials

__all__ = ["HHMM", "Categorical", "Gaussian", "hhmm_potentials"]
