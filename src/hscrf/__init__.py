"""Hierarchical semi-Markov conditional random fields: label a sequence at several nested levels at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hscrf.errors import InfeasibleError
    from hscrf.estimator import HSCRF
    from hscrf.families import HHMM, ChainCRF, DynamicCRF, Pair, SemiCRF
    from hscrf.features import Duration, End, Init, Segment, Start, Stop, Token, Trans
    from hscrf.inference import Marginals, decode, entropy, k_best, log_partition, marginals, sample, score
    from hscrf.labels import Labels, learn_topology
    from hscrf.loading import load
    from hscrf.potentials import Potentials
    from hscrf.solvers import LBFGS, SGD, Perceptron
    from hscrf.topology import Topology
    from hscrf.versions import show_versions

__version__ = "0.2.0"

_ROOMS: dict[str, tuple[str, ...]] = {  # room -> the public names it gives; each is imported when first used
    "potentials": ("Potentials",),
    "errors": ("InfeasibleError",),
    "topology": ("Topology",),
    "labels": ("Labels", "learn_topology"),
    "inference": ("Marginals", "decode", "entropy", "k_best", "log_partition", "marginals", "sample", "score"),
    "features": ("Duration", "End", "Init", "Segment", "Start", "Stop", "Token", "Trans"),
    "solvers": ("LBFGS", "SGD", "Perceptron"),
    "estimator": ("HSCRF",),
    "versions": ("show_versions",),
    "families": ("HHMM", "ChainCRF", "DynamicCRF", "Pair", "SemiCRF"),
    "loading": ("load",),
    **dict.fromkeys(
        ("datasets", "io", "metrics", "plots", "scale", "stacking", "streaming", "studio", "torch"), ()
    ),  # rooms that are public themselves
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

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
    "learn_topology",
    "load",
    "log_partition",
    "marginals",
    "sample",
    "score",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"hscrf.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"hscrf.{name}")
    raise AttributeError(f"module 'hscrf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(room for room, names in _ROOMS.items() if not names)]
