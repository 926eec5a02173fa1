"""Hierarchical semi-Markov conditional random fields: label a sequence at several nested levels at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hscrf.inference import Marginals, decode, entropy, k_best, log_partition, marginals, sample, score
from hscrf.labels import InfeasibleError, Labels
from hscrf.potentials import Potentials
from hscrf.topology import Topology

if TYPE_CHECKING:
    from hscrf.estimator import HSCRF, load
    from hscrf.families import ChainCRF, DynamicCRF, Pair, SemiCRF
    from hscrf.features import Duration, End, Init, Segment, Start, Stop, Token, Trans
    from hscrf.hhmm import HHMM
    from hscrf.solvers import LBFGS, SGD, Perceptron

__version__ = "0.1.0"

_LAZY: dict[str, tuple[str, ...]] = {  # imported when first used: the estimator brings scikit-learn
    "estimator": ("HSCRF", "load"),
    "families": ("ChainCRF", "DynamicCRF", "Pair", "SemiCRF"),
    "hhmm": ("HHMM",),
    "features": ("Duration", "End", "Init", "Segment", "Start", "Stop", "Token", "Trans"),
    "solvers": ("LBFGS", "SGD", "Perceptron"),
    **dict.fromkeys(("datasets", "io", "metrics", "plots"), ()),
}
_HOME = {name: module for module, names in _LAZY.items() for name in names}

__all__ = [
    "HHMM",
    "HSCRF",
    "LBFGS",
    "SGD",
    "ChainCRF",
    "Duration",
    "DynamicCRF",
    "End",
    "InfeasibleError",
    "Init",
    "Labels",
    "Marginals",
    "Pair",
    "Perceptron",
    "Potentials",
    "Segment",
    "SemiCRF",
    "Start",
    "Stop",
    "Token",
    "Topology",
    "Trans",
    "decode",
    "entropy",
    "k_best",
    "load",
    "log_partition",
    "marginals",
    "sample",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"hscrf.{_HOME[name]}"), name)
    if name in _LAZY:
        return import_module(f"hscrf.{name}")
    raise AttributeError(f"module 'hscrf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_LAZY]
