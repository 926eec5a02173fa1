"""Compiled work on named features: sums of their weights, the transposes, and lookup of names by their hashes."""

from hscrf.engine.kernels.compile import as_written, inlined, kernel, unsigned
from hscrf.engine.kernels.lanes import FOUR, add, load, multiply_add, prefetch, smaller, spread, store

AHEAD, FAR = unsigned(16), unsigned(32)  # entries: what is far apart in memory is asked for before it is needed
ALL, ONES, HIGHEST = unsigned((1 << 64) - 1), unsigned(0x0101010101010101), unsigned(0x8080808080808080)
BETWEEN = unsigned(0x0A0A0A0A0A0A0A0A)  # newlines
PLACES = unsigned(0x0001020304050607)
ODD = unsigned(0x9E3779B97F4A7C15)  # multiplies bits apart


@kernel
def hash_text(text, counts, hashes):
    """Hash names that a newline ends each, counts[t] of each step; a step without any is an empty line.

    Eight bytes at a time: the text goes on for as many after the last name. Returns where that ended.
    """
    at, n = unsigned(0), 0
    for t in range(counts.size):
        if counts[t] == 0:
            at += unsigned(1)
        for _ in range(counts[t]):
            total = ODD
            while True:
                word = word_of(text, at)
                differs = word ^ BETWEEN
                zeros = (differs - ONES) & ~differs & HIGHEST  # the lowest bit of it is in the first newline
                if zeros != unsigned(0):
                    break
                total = mixed(total ^ word)
                at += unsigned(8)
            end = (zeros & (~zeros + unsigned(1))) >> unsigned(7)
            size = ((end * PLACES) & ALL) >> unsigned(56)
            hashes[n] = mixed(mixed(total ^ (word & (end - unsigned(1)))) ^ size)
            at += size + unsigned(1)
            n += 1
    return at


@inlined
def word_of(text, at):
    """Eight bytes as one number."""
    word = unsigned(0)
    for k in range(8):
        word |= unsigned(text[at + unsigned(k)]) << unsigned(8 * k)
    return word


@inlined
def mixed(bits):
    """Let all bits depend on each other."""
    product = (bits * ODD) & ALL
    return product ^ (product >> unsigned(32))


@inlined
def span_of(begins, k):
    """The places of what belongs to k, if that of all lies in order and begins at these places."""
    at = unsigned(k)
    return range(unsigned(begins[at]), unsigned(begins[at + unsigned(1)]))


@kernel
def store_names(given, hashes, numbers):
    """Put the number of each hash into an empty table (number -1) that is at most half full."""
    mask = unsigned(hashes.size - 1)
    for k in range(given.size):
        slot = given[k] & mask
        while numbers[slot] >= 0:
            slot = (slot + unsigned(1)) & mask
        hashes[slot] = given[k]
        numbers[slot] = k


@kernel
def find_names(given, indptr, data, hashes, numbers, found_indptr, found, found_data):
    """The numbers of the hashes of each row that are in the table, and their values; returns how many there are."""
    mask = unsigned(hashes.size - 1)
    n = 0
    found_indptr[0] = 0
    for t in range(indptr.size - 1):
        for k in span_of(indptr, t):
            if k + AHEAD < unsigned(given.size):
                prefetch(hashes, given[k + AHEAD] & mask)
                prefetch(numbers, given[k + AHEAD] & mask)
            slot = given[k] & mask
            while numbers[slot] >= 0 and hashes[slot] != given[k]:
                slot = (slot + unsigned(1)) & mask
            if numbers[slot] >= 0:
                found[n] = numbers[slot]
                if data.size:
                    found_data[n] = data[k]
                n += 1
        found_indptr[t + 1] = n
    return n


@as_written
def mark_cells(indptr, indices, steps, cells, width, seen):
    """Set seen[feature * width + cells[k]] for all features of steps[k]. Cost O(entries of the steps)."""
    for k in range(steps.size):
        for e in span_of(indptr, steps[k]):
            seen[indices[e] * width + cells[k]] = True


@kernel
def count_features(indices, counts):
    """Add to counts[f] the number of entries of feature f."""
    for e in range(indices.size):
        counts[indices[e]] += 1


@as_written
def divide_entries(indptr, indices, data, places, begin, found, rare, rows, divided_data):
    """Entries of frequent features by row, as they come, and those of rare ones by feature; see ``Divided``.

    ``places`` holds -1 - k for the k-th frequent feature, and for a rare one the place of its next entry.
    """
    n = 0
    begin[0] = 0
    for t in range(indptr.size - 1):
        for e in span_of(indptr, t):
            feature = indices[e]
            place = places[feature]
            if place < 0:
                found[n] = -1 - place
                place = n
                n += 1
            else:
                places[feature] = place + 1
                rare[place] = feature
                rows[place] = t
                place += found.size
            if data.size:
                divided_data[place] = data[e]
        begin[t + 1] = n


@kernel
def score_rows(indptr, indices, data, pair_at, pair_state, weights, factor, out):
    """Add to out (N, S) the scores of the features of each row, times a factor. Cost O(entries x pairs of each)."""
    for t in range(out.shape[0]):
        for e in span_of(indptr, t):
            if e + FAR < unsigned(indices.size):
                prefetch(pair_at, unsigned(indices[e + FAR]))
                soon = unsigned(pair_at[unsigned(indices[e + AHEAD])])
                prefetch(pair_state, soon)
                prefetch(weights, soon)
            value = factor * data[e] if data.size else factor
            for q in span_of(pair_at, indices[e]):
                out[t, unsigned(pair_state[q])] += value * weights[q]


@kernel
def pull_rows(indptr, indices, data, pair_at, pair_state, counts, gradient, factor):
    """Reverse of ``score_rows``: add to the gradient (pairs,) the counts (N, S) of the rows, times a factor."""
    for t in range(counts.shape[0]):
        for e in span_of(indptr, t):
            value = factor * data[e] if data.size else factor
            for q in span_of(pair_at, indices[e]):
                gradient[q] += value * counts[t, unsigned(pair_state[q])]


@kernel
def pull_rows_twice(indptr, indices, data, pair_at, pair_state, counts, first, factor, second, other):
    """``pull_rows`` into two vectors (pairs,), each with a factor of its own; rows without counts are passed over."""
    for t in range(counts.shape[0]):
        if not any_count(counts, t):
            continue
        for e in span_of(indptr, t):
            value = data[e] if data.size else 1.0
            for q in span_of(pair_at, indices[e]):
                pulled = value * counts[t, unsigned(pair_state[q])]
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
def spread_weights(names, pair_at, pair_cell, weights, factor, table, width):
    """Put the weights of some features, times a factor, into a table (groups, features, width), flat, of their cells.

    The width of it is 4 or 8.
    """
    for k in range(table.size):
        table[k] = 0.0
    for k in range(names.size):
        for q in span_of(pair_at, names[k]):
            table[cell_of(names.size, width, k, pair_cell[q])] = factor * weights[q]


@kernel
def gather_counts(names, pair_at, pair_cell, table, width, gradient, factor):
    """Reverse of ``spread_weights``: add the table, times a factor, to the gradient."""
    for k in range(names.size):
        for q in span_of(pair_at, names[k]):
            gradient[q] += factor * table[cell_of(names.size, width, k, pair_cell[q])]


@inlined
def cell_of(features, width, number, cell):
    """Where a cell of a feature lies in a flat table."""
    bits = unsigned(2) if width == 4 else unsigned(3)
    line = (unsigned(cell) >> bits) * unsigned(features) + unsigned(number)
    return (line << bits) + (unsigned(cell) & unsigned(width - 1))


@kernel
def score_frequent(begin, found, data, features, table, width, out, room):
    """Add to each row of out (N, cells) the lines of its entries in the table; ``room`` has eight numbers."""
    width, number = unsigned(width), unsigned(features)
    for first in range(unsigned(0), unsigned(out.shape[1]), width):
        cells, base = smaller(width, unsigned(out.shape[1]) - first), first * number
        for t in range(out.shape[0]):
            low, high = spread(0.0), spread(0.0)
            entries = span_of(begin, t)
            if data.size:
                for e in entries:
                    at, value = base + unsigned(found[e]) * width, spread(data[e])
                    low = multiply_add(value, load(table, at), low)
                    high = multiply_add(value, load(table, at + width - FOUR), high)
            elif cells > FOUR:
                for e in entries:
                    at = base + unsigned(found[e]) * width
                    low = add(low, load(table, at))
                    high = add(high, load(table, at + FOUR))
            else:
                for e in entries:
                    low = add(low, load(table, base + unsigned(found[e]) * width))
            store(low, room, unsigned(0))
            store(high, room, FOUR)
            for c in range(cells):
                out[t, first + c] += room[c]


@kernel
def pull_frequent(begin, found, data, features, counts, table, width, room):
    """Reverse of ``score_frequent``: set each line of the table to the sum of the counts of its entries."""
    width, number = unsigned(width), unsigned(features)
    for k in range(table.size):
        table[k] = 0.0
    for first in range(unsigned(0), unsigned(counts.shape[1]), width):
        cells, base = smaller(width, unsigned(counts.shape[1]) - first), first * number
        for t in range(counts.shape[0]):
            for c in range(cells):
                room[c] = counts[t, first + c]
            low, high = load(room, unsigned(0)), load(room, FOUR)
            entries = span_of(begin, t)
            if data.size:
                for e in entries:
                    at, value = base + unsigned(found[e]) * width, spread(data[e])
                    store(multiply_add(value, low, load(table, at)), table, at)
                    if cells > FOUR:
                        store(multiply_add(value, high, load(table, at + FOUR)), table, at + FOUR)
            elif cells > FOUR:
                for e in entries:
                    at = base + unsigned(found[e]) * width
                    store(add(low, load(table, at)), table, at)
                    store(add(high, load(table, at + FOUR)), table, at + FOUR)
            else:
                for e in entries:
                    at = base + unsigned(found[e]) * width
                    store(add(low, load(table, at)), table, at)


@as_written
def list_pairs(features, rows, data, pair_at, pair_cell, width, numbers, cells, values):
    """The number of the pair of each entry and pair, its cell in a table of rows of that width, and its value."""
    n = 0
    for k in range(rows.size):
        for q in span_of(pair_at, features[k]):
            numbers[n] = q
            cells[n] = rows[k] * width + pair_cell[q]
            if data.size:
                values[n] = data[k]
            n += 1


@kernel
def score_pairs(numbers, cells, values, weights, factor, out):
    """Add the weight of each pair, times its value and a factor, to its cell of out (N x cells,)."""
    if values.size:
        for k in range(numbers.size):
            out[unsigned(cells[k])] += factor * values[k] * weights[unsigned(numbers[k])]
    else:
        for k in range(numbers.size):
            out[unsigned(cells[k])] += factor * weights[unsigned(numbers[k])]


@kernel
def pull_pairs(numbers, cells, values, counts, gradient, factor):
    """Reverse of ``score_pairs``."""
    if values.size:
        for k in range(numbers.size):
            gradient[unsigned(numbers[k])] += factor * values[k] * counts[unsigned(cells[k])]
    else:
        for k in range(numbers.size):
            gradient[unsigned(numbers[k])] += factor * counts[unsigned(cells[k])]
