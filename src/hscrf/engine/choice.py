"""Select the engine: the compiled core, or the NumPy reference where the core is missing.

The environment variable ``HSCRF_ENGINE`` chooses: ``compiled`` or ``reference``. Both give the same numbers to about
ten digits; the reference is slower, and easier to read and to debug.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hscrf import native
from hscrf.arrays import Floats, Ints
from hscrf.engine.evidence import Evidence
from hscrf.engine.expectations import Expectations
from hscrf.engine.lengthened import Lengthened
from hscrf.potentials import Arrays
from hscrf.topology import Topology

ENGINES = {
    "compiled": ("hscrf.engine.compiled", "Compiled"),
    "reference": ("hscrf.engine.reference", "Reference"),
}


class Engine(Protocol):
    """The methods of an engine; :class:`hscrf.engine.Batch` documents their results."""

    def log_partition(self, values: Arrays) -> Floats: ...

    def expectations(
        self, values: Arrays, weights: Floats | None = None, explicit: Sequence[int] | None = None
    ) -> Expectations: ...

    def best(self, values: Arrays) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]: ...

    def k_best(self, values: Arrays, k: int) -> list[tuple[float, NDArray[np.int32], NDArray[np.int8]]]: ...

    def draw(
        self, values: Arrays, draws: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]: ...


def make_engine(topology: Topology, offsets: Ints, evidence: Evidence | None) -> Engine:
    """The engine in use, for a topology that may have open durations."""
    engine = choose_engine()
    if not topology.open_levels:
        return engine(topology, offsets, evidence)
    core = engine(topology, offsets, evidence) if getattr(engine, "has_tails", False) else None
    return Lengthened(engine, topology, offsets, evidence, core)


def choose_engine() -> Callable[[Topology, Ints, Evidence | None], Engine]:
    """The class of the engine in use.

    Raises
    ------
    ValueError
        If HSCRF_ENGINE does not name an engine, or names the compiled core where it is missing.
    """
    has_core = hasattr(native.core, "Engine")
    name = os.environ.get("HSCRF_ENGINE") or ("compiled" if has_core else "reference")
    if name not in ENGINES:
        raise ValueError(f"HSCRF_ENGINE is {name!r}, expected one of {', '.join(ENGINES)}")
    if name == "compiled" and not has_core:
        raise ValueError(f"HSCRF_ENGINE is 'compiled', but the compiled core is missing: {native.why_not or 'too old'}")
    module, engine = ENGINES[name]
    found: Callable[[Topology, Ints, Evidence | None], Engine] = getattr(import_module(module), engine)
    return found
