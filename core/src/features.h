// Sums of the weights of named features, and their transposes.
//
// A pair is a feature and a cell of a row of scores; weights belong to pairs. The pairs of feature f are at[f] ..
// at[f + 1], their cells are `cell`. Each function adds to what is there; `factor` multiplies what it adds.
#pragma once
#include <cstddef>
#include <cstdint>

#include "sets.h"

namespace hscrf {

struct Pairs {
    const int64_t* at;
    const int32_t* cell;
};

// Features of steps: the entries of step t are begin[t] .. begin[t + 1]; data is nullptr if every value is one.
template <class Begin, class Index>
struct Rows {
    const Begin* begin;
    const Index* index;
    const double* data;
    size_t steps, entries;
};
using Entries = Rows<int64_t, int32_t>;
template <class Index>
using Found = Rows<int32_t, Index>;  // of frequent features: `index` counts these only

// Weights of frequent features, in groups of 4 or 8 cells: (groups, features, width).
struct FrequentTable {
    double* values;
    size_t features, cells, width;
};

// A single pair for each entry: its number, the place of its cell in all rows, and its value (nullptr: one).
struct PairList {
    const int32_t *number, *cell;
    const double* value;
    size_t size;
};

struct Features {
    // Scores (steps, cells) of the features of each step, and the gradient (pairs,) from counts (steps, cells).
    void (*score_rows)(Entries, Pairs, const double* weights, double factor, double* out, size_t cells);
    void (*pull_rows)(Entries, Pairs, const double* counts, size_t cells, double* gradient, double factor);
    // pull_rows into two vectors, each with a factor of its own; steps without counts are passed over.
    void (*pull_rows_twice)(Entries, Pairs, const double* counts, size_t cells, double* first, double factor,
                            double* second, double other);
    // Put the weights of some features into a table, and add a table of counts to the gradient.
    void (*spread_weights)(const int32_t* names, Pairs, const double* weights, double factor, FrequentTable);
    void (*gather_counts)(const int32_t* names, Pairs, FrequentTable, double* gradient, double factor);
    // Add to each step of out (steps, cells) the lines of its entries; set each line to the sum of the counts of its
    // entries.
    void (*score_frequent_short)(Found<uint16_t>, FrequentTable, double* out);
    void (*score_frequent_long)(Found<int32_t>, FrequentTable, double* out);
    void (*pull_frequent_short)(Found<uint16_t>, const double* counts, FrequentTable);
    void (*pull_frequent_long)(Found<int32_t>, const double* counts, FrequentTable);
    void (*score_pairs)(PairList, const double* weights, double factor, double* out);
    void (*pull_pairs)(PairList, const double* counts, double* gradient, double factor);
};

HSCRF_DISPATCH(Features, features)

}  // namespace hscrf
