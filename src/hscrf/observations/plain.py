"""The functions of ``kernels`` in NumPy: for installations without the compiled core, and for comparison in tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hscrf.arrays import Floats, Ints, ranges

ODD = np.uint64(0x9E3779B97F4A7C15)  # an odd factor that spreads bits
ALL = (1 << 64) - 1
Index = NDArray[np.integer[Any]]
Hashes = NDArray[np.uint64]


def hash_names(names: Sequence[Any], hashes: Hashes) -> None:
    """The hash of each name, of its bytes in UTF-8; Python's own for one that is no string."""
    words = [name.encode(errors="surrogatepass") if isinstance(name, str) else b"" for name in names]
    text = np.frombuffer(b"".join([*words, bytes(8)]), dtype=np.uint8)
    left = np.array(list(map(len, words)), dtype=np.int64)
    at = np.cumsum(left) - left
    total = np.full(at.size, ODD)
    word = np.zeros(at.size, dtype=np.uint64)
    going = np.arange(at.size)
    while going.size:  # eight bytes of every name that has at least eight left
        of_bytes = text[at[going, None] + np.arange(8)]
        of_bytes = np.where(np.arange(8) < left[going, None], of_bytes, 0).astype(np.uint64)
        word[going] = (of_bytes << (np.uint64(8) * np.arange(8, dtype=np.uint64))).sum(axis=1, dtype=np.uint64)
        going = going[left[going] >= 8]
        total[going] = mixed(total[going] ^ word[going])
        at[going] += 8
        left[going] -= 8
    hashes[:] = mixed(mixed(total ^ word) ^ left.astype(np.uint64))
    for k, name in enumerate(names):
        if not isinstance(name, str):
            hashes[k] = hash(name) & ALL


def mixed(bits: Hashes) -> Hashes:
    """Let all bits depend on each other."""
    product = bits * ODD
    return product ^ (product >> np.uint64(32))


def store_names(given: Hashes, hashes: Hashes, numbers: NDArray[np.int32]) -> None:
    """Put the number of each hash into an empty table (number -1) that is at most half full."""
    slot, left = slots_of(given, hashes), np.arange(given.size)
    while left.size:  # the first of several names takes a place; the others try the next place
        free = left[numbers[slot[left]] < 0]
        _, first = np.unique(slot[free], return_index=True)
        winners = free[first]
        hashes[slot[winners]] = given[winners]
        numbers[slot[winners]] = winners
        left = np.setdiff1d(left, winners, assume_unique=True)
        slot[left] = (slot[left] + 1) % hashes.size


def slots_of(given: Hashes, hashes: Hashes) -> Ints:
    """The places in the table where the search begins."""
    return (given & np.uint64(hashes.size - 1)).astype(np.int64)


def find_names(
    given: Hashes,
    indptr: Ints,
    data: Floats,
    hashes: Hashes,
    numbers: NDArray[np.int32],
    found_indptr: Ints,
    found: NDArray[np.int32],
    found_data: Floats,
) -> int:
    """The numbers of the hashes of each row that are in the table, and their values; returns how many there are."""
    slot, left = slots_of(given, hashes), np.arange(given.size)
    while left.size:
        left = left[(numbers[slot[left]] >= 0) & (hashes[slot[left]] != given[left])]
        slot[left] = (slot[left] + 1) % hashes.size
    number = numbers[slot]
    known = number >= 0
    n = int(known.sum())
    found[:n] = number[known]
    if data.size:
        found_data[:n] = data[known]
    found_indptr[:] = np.append(0, np.cumsum(known))[indptr]
    return n


def find_strings(X: Sequence[Any], hashes: Hashes, numbers: NDArray[np.int32]) -> tuple[Ints, NDArray[np.int32]] | None:
    """The names in the steps of sequences that are in the table: where each step begins, and their numbers.

    None if X is not all lists of lists of lists.
    """
    if not all(isinstance(x, (list, tuple)) for x in [X, *X]):
        return None
    steps = list(chain.from_iterable(X))
    if not all(isinstance(step, (list, tuple)) for step in steps):
        return None
    names = list(chain.from_iterable(steps))
    given = np.empty(len(names), dtype=np.uint64)
    hash_names(names, given)
    indptr = np.append(0, np.cumsum(list(map(len, steps)), dtype=np.int64))
    begin, found = np.empty_like(indptr), np.empty(given.size, dtype=np.int32)
    n = find_names(given, indptr, np.empty(0), hashes, numbers, begin, found, np.empty(0))
    return begin, found[:n]


def mark_cells(indptr: Ints, indices: Index, steps: Ints, cells: Ints, width: int, seen: NDArray[np.bool_]) -> None:
    """Set seen[feature * width + cells[k]] for all features of steps[k]."""
    counts = indptr[steps + 1] - indptr[steps]
    seen[indices[ranges(indptr[steps], counts)].astype(np.int64) * width + np.repeat(cells, counts)] = True


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
) -> None:
    """Entries of frequent features by row, as they come, and those of rare ones by feature; see ``Divided``.

    ``places`` holds -1 - k for the k-th frequent feature; rare ones have numbers from 0 on.
    """
    place = places[indices]
    frequent = place < 0
    by_feature = np.flatnonzero(~frequent)
    by_feature = by_feature[np.argsort(indices[by_feature], kind="stable")]
    begin[:] = np.append(0, np.cumsum(frequent))[indptr]
    found[:] = -1 - place[frequent]
    rare[:] = indices[by_feature]
    rows[:] = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))[by_feature]
    if data.size:
        divided_data[:] = np.concatenate([data[frequent], data[by_feature]])


def all_pairs(begin: Index, indices: Index, data: Floats, pair_at: Ints) -> tuple[Ints, Ints, Floats | float]:
    """For each pair of each entry: its row, its number, and the value of the entry."""
    counts = pair_at[indices + 1] - pair_at[indices]
    rows = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    return np.repeat(rows, counts), ranges(pair_at[indices], counts), np.repeat(data, counts) if data.size else 1.0


def score_rows(
    indptr: Ints,
    indices: Index,
    data: Floats,
    pair_at: Ints,
    pair_cell: Index,
    weights: Floats,
    factor: float,
    out: Floats,
) -> None:
    """Add to out (N, S) the scores of the features of each row, times a factor."""
    rows, pairs, value = all_pairs(indptr, indices, data, pair_at)
    np.add.at(out, (rows, pair_cell[pairs]), factor * value * weights[pairs])


def pull_rows(
    indptr: Ints,
    indices: Index,
    data: Floats,
    pair_at: Ints,
    pair_cell: Index,
    counts: Floats,
    gradient: Floats,
    factor: float,
) -> None:
    """Reverse of ``score_rows``: add to the gradient (pairs,) the counts (N, S) of the rows, times a factor."""
    rows, pairs, value = all_pairs(indptr, indices, data, pair_at)
    np.add.at(gradient, pairs, factor * value * counts[rows, pair_cell[pairs]])


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
) -> None:
    """``pull_rows`` into two vectors (pairs,), each with a factor of its own."""
    pull_rows(indptr, indices, data, pair_at, pair_cell, counts, first, factor)
    pull_rows(indptr, indices, data, pair_at, pair_cell, counts, second, other)


def pair_places(names: Index, pair_at: Ints, pair_cell: Index, width: int) -> tuple[Ints, Ints]:
    """The pairs of some features, and their places in a table (groups, features, width), flat."""
    counts = pair_at[names + 1] - pair_at[names]
    pairs, feature = ranges(pair_at[names], counts), np.repeat(np.arange(names.size), counts)
    cell = pair_cell[pairs].astype(np.int64)
    return pairs, (cell // width * names.size + feature) * width + cell % width


def spread_weights(
    names: Index, pair_at: Ints, pair_cell: Index, weights: Floats, factor: float, table: Floats, cells: int, width: int
) -> None:
    """Put the weights of some features, times a factor, into a table of their cells; the rest of it is zero."""
    pairs, places = pair_places(names, pair_at, pair_cell, width)
    table[:] = 0.0
    table[places] = factor * weights[pairs]


def gather_counts(
    names: Index,
    pair_at: Ints,
    pair_cell: Index,
    table: Floats,
    cells: int,
    width: int,
    gradient: Floats,
    factor: float,
) -> None:
    """Reverse of ``spread_weights``: add the table, times a factor, to the gradient."""
    pairs, places = pair_places(names, pair_at, pair_cell, width)
    gradient[pairs] += factor * table[places]


def score_frequent(
    begin: Index, found: Index, data: Floats, features: int, table: Floats, width: int, out: Floats
) -> None:
    """Add to each row of out (N, cells) the lines of its entries in the table."""
    rows = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    for group, lines in enumerate(table.reshape(-1, features, width)):
        cells = slice(group * width, min((group + 1) * width, out.shape[1]))
        terms = lines[found, : cells.stop - cells.start]
        np.add.at(out[:, cells], rows, terms * data[:, None] if data.size else terms)


def pull_frequent(
    begin: Index, found: Index, data: Floats, features: int, counts: Floats, table: Floats, width: int
) -> None:
    """Reverse of ``score_frequent``: set each line of the table to the sum of the counts of its entries."""
    rows = np.repeat(np.arange(begin.size - 1), np.diff(begin))
    table[:] = 0.0
    for group, lines in enumerate(table.reshape(-1, features, width)):
        terms = counts[rows, group * width : (group + 1) * width]
        np.add.at(lines[:, : terms.shape[1]], found, terms * data[:, None] if data.size else terms)


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
) -> None:
    """The number of the pair of each entry and pair, its cell in a table of rows of that width, and its value."""
    counts = pair_at[features + 1] - pair_at[features]
    numbers[:] = ranges(pair_at[features], counts)
    cells[:] = np.repeat(rows.astype(np.int64), counts) * width + pair_cell[numbers]
    if data.size:
        values[:] = np.repeat(data, counts)


def score_pairs(numbers: Index, cells: Index, values: Floats, weights: Floats, factor: float, out: Floats) -> None:
    """Add the weight of each pair, times its value and a factor, to its cell of out (N x cells,)."""
    np.add.at(out, cells, factor * (values if values.size else 1.0) * weights[numbers])


def pull_pairs(numbers: Index, cells: Index, values: Floats, counts: Floats, gradient: Floats, factor: float) -> None:
    """Reverse of ``score_pairs``."""
    np.add.at(gradient, numbers, factor * (values if values.size else 1.0) * counts[cells])
