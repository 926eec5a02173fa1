// Named features put in order before they are scored: done once, so for no instruction set in particular.
#pragma once
#include "features.h"

namespace hscrf {

// Set seen[feature * width + cells[k]] for all features of steps[k].
inline void mark_cells(Entries x, const int64_t* steps, const int64_t* cells, size_t events, int64_t width,
                       bool* seen) {
    for (size_t k = 0; k < events; ++k)
        for (int64_t e = x.begin[steps[k]]; e < x.begin[steps[k] + 1]; ++e) seen[x.index[e] * width + cells[k]] = true;
}

// Entries of frequent features by step, as they come, then those of rare ones by feature. places[f] is -1 - k for the
// k-th frequent feature, and for a rare one the place of its next entry, which is counted up.
template <class Index, class Step>
void divide_entries(Entries x, int32_t* places, int32_t* begin, Index* found, size_t frequent, int32_t* rare,
                    Step* rows, double* data) {
    int32_t n = 0;
    begin[0] = 0;
    for (size_t t = 0; t < x.steps; ++t) {
        for (int64_t e = x.begin[t]; e < x.begin[t + 1]; ++e) {
            const int32_t feature = x.index[e];
            size_t place;
            if (places[feature] < 0) {
                found[n] = static_cast<Index>(-1 - places[feature]);
                place = static_cast<size_t>(n++);
            } else {
                place = static_cast<size_t>(places[feature]++);
                rare[place] = feature;
                rows[place] = static_cast<Step>(t);
                place += frequent;
            }
            if (x.data) data[place] = x.data[e];
        }
        begin[t + 1] = n;
    }
}

// The pairs of each entry of rare features: number, place of the cell in an array (steps, width), and value.
template <class Step>
void list_pairs(const int32_t* names, const Step* rows, const double* data, size_t size, Pairs pairs, int32_t width,
                int32_t* numbers, int32_t* cells, double* values) {
    size_t n = 0;
    for (size_t k = 0; k < size; ++k)
        for (int64_t q = pairs.at[names[k]]; q < pairs.at[names[k] + 1]; ++q, ++n) {
            numbers[n] = static_cast<int32_t>(q);
            cells[n] = static_cast<int32_t>(rows[k]) * width + pairs.cell[q];
            if (data) values[n] = data[k];
        }
}

}  // namespace hscrf
