"""Compiled work on named features: sums of their weights, the transposes, and lookup of names by their hashes."""

from hscrf.engine.kernels.arithmetic import add_row
from hscrf.engine.kernels.compile import inlined, kernel


@kernel
def store_names(given, hashes, numbers):
    """Put the number of each hash into an empty table (number -1) that is at most half full."""
    mask = hashes.size - 1
    for k in range(given.size):
        slot = given[k] & mask
        while numbers[slot] >= 0:
            slot = (slot + 1) & mask
        hashes[slot] = given[k]
        numbers[slot] = k


@kernel
def find_names(given, indptr, data, hashes, numbers, found_indptr, found, found_data):
    """The numbers of the hashes of each row that are in the table, and their values; returns how many there are."""
    mask = hashes.size - 1
    n = 0
    found_indptr[0] = 0
    for t in range(indptr.size - 1):
        for k in range(indptr[t], indptr[t + 1]):
            slot = given[k] & mask
            while numbers[slot] >= 0 and hashes[slot] != given[k]:
                slot = (slot + 1) & mask
            if numbers[slot] >= 0:
                found[n] = numbers[slot]
                if data.size:
                    found_data[n] = data[k]
                n += 1
        found_indptr[t + 1] = n
    return n


@kernel
def mark_cells(indptr, indices, steps, cells, width, seen):
    """Set seen[feature * width + cells[k]] for all features of steps[k]. Cost O(entries of the steps)."""
    for k in range(steps.size):
        for e in range(indptr[steps[k]], indptr[steps[k] + 1]):
            seen[indices[e] * width + cells[k]] = True


@kernel
def count_features(indices, places):
    """Add to places[f + 1] the number of entries of feature f."""
    for e in range(indices.size):
        places[indices[e] + 1] += 1


@kernel
def sort_by_feature(indptr, indices, data, places, rows, sorted_data):
    """Put the row of each entry, and its value, where its feature has the next place. Entries keep their order."""
    for t in range(indptr.size - 1):
        for e in range(indptr[t], indptr[t + 1]):
            place = places[indices[e]]
            places[indices[e]] = place + 1
            rows[place] = t
            if data.size:
                sorted_data[place] = data[e]


SPARSE = 8  # a single pair takes as long as this many states of a row


@kernel
def score_rows(indptr, indices, data, pair_at, pair_state, weights, factor, out):
    """Add to out (N, S) the scores of the features of each row, times a factor. Cost O(entries x pairs of each)."""
    for t in range(out.shape[0]):
        for e in range(indptr[t], indptr[t + 1]):
            value = factor * data[e] if data.size else factor
            for q in range(pair_at[indices[e]], pair_at[indices[e] + 1]):
                out[t, pair_state[q]] += value * weights[q]


@kernel
def pull_rows(indptr, indices, data, pair_at, pair_state, counts, gradient, factor):
    """Reverse of ``score_rows``: add to the gradient (pairs,) the counts (N, S) of the rows, times a factor."""
    for t in range(counts.shape[0]):
        for e in range(indptr[t], indptr[t + 1]):
            value = factor * data[e] if data.size else factor
            for q in range(pair_at[indices[e]], pair_at[indices[e] + 1]):
                gradient[q] += value * counts[t, pair_state[q]]


@kernel
def pull_rows_twice(indptr, indices, data, pair_at, pair_state, counts, first, factor, second, other):
    """``pull_rows`` into two vectors (pairs,), each with a factor of its own; rows without counts are passed over."""
    for t in range(counts.shape[0]):
        if not any_count(counts, t):
            continue
        for e in range(indptr[t], indptr[t + 1]):
            value = data[e] if data.size else 1.0
            for q in range(pair_at[indices[e]], pair_at[indices[e] + 1]):
                pulled = value * counts[t, pair_state[q]]
                first[q] += factor * pulled
                second[q] += other * pulled


@inlined
def any_count(counts, t):
    """Has row t a count that is not zero."""
    found = False
    for s in range(counts.shape[1]):
        found |= counts[t, s] != 0.0
    return found


@kernel
def score_columns(names, begin, rows, data, pair_at, pair_state, weights, factor, out, dense):
    """``score_rows`` for entries by feature: those of names[k] are begin[k] .. begin[k + 1].

    The pairs of a feature that has many are spread over a row ``dense`` (1, S), which is added as a whole.
    """
    for k in range(names.size):
        first, last = pair_at[names[k]], pair_at[names[k] + 1]
        if is_dense(last - first, begin[k + 1] - begin[k], dense):
            dense[:] = 0.0
            for q in range(first, last):
                dense[0, pair_state[q]] = factor * weights[q]
            for e in range(begin[k], begin[k + 1]):
                add_row(out, rows[e], dense, 0, data[e] if data.size else 1.0)
            continue
        for q in range(first, last):
            state, weight = pair_state[q], factor * weights[q]
            for e in range(begin[k], begin[k + 1]):
                out[rows[e], state] += weight * data[e] if data.size else weight


@kernel
def pull_columns(names, begin, rows, data, pair_at, pair_state, counts, gradient, factor, dense):
    """``pull_rows`` for entries by feature, see ``score_columns``."""
    for k in range(names.size):
        first, last = pair_at[names[k]], pair_at[names[k] + 1]
        if is_dense(last - first, begin[k + 1] - begin[k], dense):
            dense[:] = 0.0
            for e in range(begin[k], begin[k + 1]):
                add_row(dense, 0, counts, rows[e], data[e] if data.size else 1.0)
            for q in range(first, last):
                gradient[q] += factor * dense[0, pair_state[q]]
            continue
        for q in range(first, last):
            state, value = pair_state[q], 0.0
            for e in range(begin[k], begin[k + 1]):
                value += counts[rows[e], state] * data[e] if data.size else counts[rows[e], state]
            gradient[q] += factor * value


@kernel
def pull_columns_twice(names, begin, rows, data, pair_at, pair_state, counts, first, factor, second, other, dense):
    """``pull_columns`` into two vectors (pairs,), each with a factor of its own."""
    for k in range(names.size):
        start, stop = pair_at[names[k]], pair_at[names[k] + 1]
        whole = is_dense(stop - start, begin[k + 1] - begin[k], dense)
        if whole:
            dense[:] = 0.0
            for e in range(begin[k], begin[k + 1]):
                add_row(dense, 0, counts, rows[e], data[e] if data.size else 1.0)
        for q in range(start, stop):
            state, value = pair_state[q], 0.0
            if whole:
                value = dense[0, state]
            else:
                for e in range(begin[k], begin[k + 1]):
                    value += counts[rows[e], state] * data[e] if data.size else counts[rows[e], state]
            first[q] += factor * value
            second[q] += other * value


@inlined
def is_dense(pairs, entries, dense):
    """Is it faster to take whole rows of states than each pair by itself."""
    return entries > 2 and SPARSE * pairs > dense.shape[1]
