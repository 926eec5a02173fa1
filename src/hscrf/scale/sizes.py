"""The sizes by which data are packed and read again."""

from __future__ import annotations

from dataclasses import dataclass

from hscrf.objective.workers import CUTS, Cuts
from hscrf.observations.sieve import SLOTS


@dataclass(frozen=True)
class Sizes:
    """How much is packed at a time, and the sizes from which other ways of packing pay."""

    cuts: Cuts = CUTS
    batch: int = 1 << 15  # steps of named features that are packed at a time; feature dicts take much memory
    names: int = 10_000_000  # about 150 bytes each; with more, an extra pass finds the rare ones
    slots: int = SLOTS  # counters of that pass
    reading: int = 32 << 20  # from this number of bytes on, several processes read files
    writing: int = 1 << 19  # from this number of steps on, several processes write shards
    labelled: int = 1 << 16  # steps of a file of sequences to be labelled


SIZES = Sizes()
