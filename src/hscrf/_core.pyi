"""The compiled core; see ``core/src``. Arrays must be C-contiguous and of the type shown: none is converted."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints
from hscrf.engine.evidence import Evidence
from hscrf.potentials import Arrays, Key

Index = NDArray[np.integer[Any]]
Hashes = NDArray[np.uint64]

instruction_set: str  # "baseline", "avx2" or "avx512"
compiler: str

# Named features: what each does is said in hscrf/observations/plain.py, which has the same functions in NumPy.

def hash_names(names: list[Any], hashes: Hashes) -> None: ...
def find_strings(X: Any, hashes: Hashes, numbers: NDArray[np.int32]) -> tuple[Ints, NDArray[np.int32]] | None: ...
def store_names(given: Hashes, hashes: Hashes, numbers: NDArray[np.int32]) -> None: ...
def find_names(
    given: Hashes,
    indptr: Ints,
    data: Floats,
    hashes: Hashes,
    numbers: NDArray[np.int32],
    found_indptr: Ints,
    found: NDArray[np.int32],
    found_data: Floats,
) -> int: ...
def mark_cells(indptr: Ints, indices: Index, steps: Ints, cells: Ints, width: int, seen: NDArray[np.bool_]) -> None: ...
def divide_entries(
    indptr: Ints,
    indices: Index,
    data: Floats,
    places: NDArray[np.int32],
    begin: NDArray[np.int32],
    found: Index,
    rare: NDArray[np.int32],
    rows: Index,
    divided_data: Floats,
) -> None: ...
def score_rows(
    indptr: Ints,
    indices: Index,
    data: Floats,
    pair_at: Ints,
    pair_cell: Index,
    weights: Floats,
    factor: float,
    out: Floats,
) -> None: ...
def pull_rows(
    indptr: Ints,
    indices: Index,
    data: Floats,
    pair_at: Ints,
    pair_cell: Index,
    counts: Floats,
    gradient: Floats,
    factor: float,
) -> None: ...
def pull_rows_twice(
    indptr: Ints,
    indices: Index,
    data: Floats,
    pair_at: Ints,
    pair_cell: Index,
    counts: Floats,
    first: Floats,
    factor: float,
    second: Floats,
    other: float,
) -> None: ...
def spread_weights(
    names: Index, pair_at: Ints, pair_cell: Index, weights: Floats, factor: float, table: Floats, cells: int, width: int
) -> None: ...
def gather_counts(
    names: Index,
    pair_at: Ints,
    pair_cell: Index,
    table: Floats,
    cells: int,
    width: int,
    gradient: Floats,
    factor: float,
) -> None: ...
def score_frequent(
    begin: Index, found: Index, data: Floats, features: int, table: Floats, width: int, out: Floats
) -> None: ...
def pull_frequent(
    begin: Index, found: Index, data: Floats, features: int, counts: Floats, table: Floats, width: int
) -> None: ...
def list_pairs(
    features: Index,
    rows: Index,
    data: Floats,
    pair_at: Ints,
    pair_cell: Index,
    width: int,
    numbers: Index,
    cells: Index,
    values: Floats,
) -> None: ...
def score_pairs(numbers: Index, cells: Index, values: Floats, weights: Floats, factor: float, out: Floats) -> None: ...
def pull_pairs(
    numbers: Index, cells: Index, values: Floats, counts: Floats, gradient: Floats, factor: float
) -> None: ...
def poison(poisoned: bool) -> None:
    """For tests: work space is full of NaN, so that what is read before it is written shows."""

class Engine:
    """The recursion for one topology; ``segmental`` says which levels have a table of segments."""

    def __init__(
        self,
        states: list[int],
        children: list[NDArray[Any]],
        successors: list[NDArray[Any]],
        shortest: list[NDArray[Any]],
        longest: list[NDArray[Any]],
        segmental: list[bool],
        unit_bottom: bool,
    ) -> None: ...
    def log_partition(self, values: Arrays, offsets: Ints, evidence: Evidence | None) -> tuple[Floats, int]:
        """Log Z of each sequence, and how many of them needed logarithms."""

    def expectations(
        self, values: Arrays, offsets: Ints, evidence: Evidence | None, weights: Floats | None, segments: bool
    ) -> tuple[Floats, dict[Key, Floats], list[Floats], list[Floats], dict[int, Floats], int]:
        """Log Z, counts, states, endings, segments of all segmental levels if wanted, how many needed logarithms."""

    def best(
        self, values: Arrays, offsets: Ints, evidence: Evidence | None
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]: ...
    def draw(
        self, values: Arrays, offsets: Ints, evidence: Evidence | None, draws: int, seed: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], Floats]: ...
    def runs(self, values: Arrays, offsets: Ints, evidence: Evidence | None) -> Runs: ...

class Runs:
    """The tables of one sequence, for the k best."""

    def roots(self) -> list[float]: ...
    def run(self, layer: int, state: int, start: int) -> Run: ...

class Run:
    """Everything below one segment, from its start on."""

    def incoming(self, kind: int, node: int, t: int) -> tuple[list[float], list[int]]:
        """The candidates of an item, best first: loss against the best; kind, node and time, one after the other."""

    def level_of(self, node: int) -> int: ...
    def states_of(self, leaf: int) -> list[int]: ...
