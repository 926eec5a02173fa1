#include "features.h"

#include <algorithm>
#include <cstring>

namespace hscrf::ISA {
namespace {

constexpr int64_t AHEAD = 16, FAR = 32;  // entries: what lies far apart in memory is asked for before it is needed

void score_rows(Entries x, Pairs pairs, const double* weights, double factor, double* out, size_t cells) {
    for (size_t t = 0; t < x.steps; ++t) {
        double* __restrict row = out + t * cells;
        for (int64_t e = x.begin[t]; e < x.begin[t + 1]; ++e) {
            if (e + FAR < static_cast<int64_t>(x.entries)) {
                __builtin_prefetch(pairs.at + x.index[e + FAR]);
                const int64_t soon = pairs.at[x.index[e + AHEAD]];
                __builtin_prefetch(pairs.cell + soon);
                __builtin_prefetch(weights + soon);
            }
            const double value = x.data ? factor * x.data[e] : factor;
            for (int64_t q = pairs.at[x.index[e]]; q < pairs.at[x.index[e] + 1]; ++q)
                row[pairs.cell[q]] += value * weights[q];
        }
    }
}

void pull_rows(Entries x, Pairs pairs, const double* counts, size_t cells, double* __restrict gradient, double factor) {
    for (size_t t = 0; t < x.steps; ++t) {
        const double* row = counts + t * cells;
        for (int64_t e = x.begin[t]; e < x.begin[t + 1]; ++e) {
            const double value = x.data ? factor * x.data[e] : factor;
            for (int64_t q = pairs.at[x.index[e]]; q < pairs.at[x.index[e] + 1]; ++q)
                gradient[q] += value * row[pairs.cell[q]];
        }
    }
}

void pull_rows_twice(Entries x, Pairs pairs, const double* counts, size_t cells, double* first, double factor,
                     double* second, double other) {
    for (size_t t = 0; t < x.steps; ++t) {
        const double* row = counts + t * cells;
        if (std::all_of(row, row + cells, [](double count) { return count == 0.0; })) continue;
        for (int64_t e = x.begin[t]; e < x.begin[t + 1]; ++e) {
            const double value = x.data ? x.data[e] : 1.0;
            for (int64_t q = pairs.at[x.index[e]]; q < pairs.at[x.index[e] + 1]; ++q) {
                const double pulled = value * row[pairs.cell[q]];
                first[q] += factor * pulled;
                second[q] += other * pulled;
            }
        }
    }
}

// Where a cell of a feature lies in a table.
size_t place_of(const FrequentTable& table, size_t feature, size_t cell) {
    return (cell / table.width * table.features + feature) * table.width + cell % table.width;
}

size_t size_of(const FrequentTable& table) {
    return (table.cells + table.width - 1) / table.width * table.width * table.features;
}

void spread_weights(const int32_t* names, Pairs pairs, const double* weights, double factor, FrequentTable table) {
    std::fill_n(table.values, size_of(table), 0.0);
    for (size_t k = 0; k < table.features; ++k)
        for (int64_t q = pairs.at[names[k]]; q < pairs.at[names[k] + 1]; ++q)
            table.values[place_of(table, k, pairs.cell[q])] = factor * weights[q];
}

void gather_counts(const int32_t* names, Pairs pairs, FrequentTable table, double* gradient, double factor) {
    for (size_t k = 0; k < table.features; ++k)
        for (int64_t q = pairs.at[names[k]]; q < pairs.at[names[k] + 1]; ++q)
            gradient[q] += factor * table.values[place_of(table, k, pairs.cell[q])];
}

// Four numbers side by side; they may lie anywhere in memory.
using Four = double __attribute__((vector_size(32)));

inline Four load(const double* from) {
    Four four;
    std::memcpy(&four, from, sizeof four);
    return four;
}

inline void store(double* to, const Four& four) { std::memcpy(to, &four, sizeof four); }

// The first CELLS cells of a group of lines that are WIDTH cells wide; VALUED: entries have values.
template <int WIDTH, int CELLS, bool VALUED, class Index>
struct Group {
    const Found<Index>& x;
    double* lines;
    size_t first, cells, stride;  // of a row of scores or counts

    void score(double* out) const {
        for (size_t t = 0; t < x.steps; ++t) {
            Four low = {}, high = {};
            for (int32_t e = x.begin[t]; e < x.begin[t + 1]; ++e) {
                const double* line = lines + static_cast<size_t>(x.index[e]) * WIDTH;
                const double value = VALUED ? x.data[e] : 1.0;
                low += value * load(line);
                if (CELLS > 4) high += value * load(line + WIDTH - 4);
            }
            double sums[8];
            store(sums, low);
            store(sums + 4, high);
            for (size_t c = 0; c < cells; ++c) out[t * stride + first + c] += sums[c];
        }
    }

    void pull(const double* counts) const {
        for (size_t t = 0; t < x.steps; ++t) {
            double row[8] = {};
            for (size_t c = 0; c < cells; ++c) row[c] = counts[t * stride + first + c];
            const Four low = load(row), high = load(row + 4);
            for (int32_t e = x.begin[t]; e < x.begin[t + 1]; ++e) {
                double* line = lines + static_cast<size_t>(x.index[e]) * WIDTH;
                const double value = VALUED ? x.data[e] : 1.0;
                store(line, load(line) + value * low);
                if (CELLS > 4) store(line + WIDTH - 4, load(line + WIDTH - 4) + value * high);
            }
        }
    }
};

// Call with each group of a table, as the type that fits it.
template <bool VALUED, class Index, class Call>
void each_group(const Found<Index>& x, const FrequentTable& table, Call call) {
    for (size_t first = 0; first < table.cells; first += table.width) {
        double* lines = table.values + first * table.features;
        const size_t cells = std::min(table.width, table.cells - first);
        if (table.width == 4)
            call(Group<4, 4, VALUED, Index>{x, lines, first, cells, table.cells});
        else if (cells <= 4)
            call(Group<8, 4, VALUED, Index>{x, lines, first, cells, table.cells});
        else
            call(Group<8, 8, VALUED, Index>{x, lines, first, cells, table.cells});
    }
}

template <class Index, class Call>
void each_group(const Found<Index>& x, const FrequentTable& table, Call call) {
    if (x.data)
        each_group<true>(x, table, call);
    else
        each_group<false>(x, table, call);
}

template <class Index>
void score_frequent(Found<Index> x, FrequentTable table, double* out) {
    each_group(x, table, [&](const auto& group) { group.score(out); });
}

template <class Index>
void pull_frequent(Found<Index> x, const double* counts, FrequentTable table) {
    std::fill_n(table.values, size_of(table), 0.0);
    each_group(x, table, [&](const auto& group) { group.pull(counts); });
}

void score_pairs(PairList pairs, const double* weights, double factor, double* __restrict out) {
    if (pairs.value)
        for (size_t k = 0; k < pairs.size; ++k)
            out[pairs.cell[k]] += factor * pairs.value[k] * weights[pairs.number[k]];
    else
        for (size_t k = 0; k < pairs.size; ++k) out[pairs.cell[k]] += factor * weights[pairs.number[k]];
}

void pull_pairs(PairList pairs, const double* counts, double* __restrict gradient, double factor) {
    if (pairs.value)
        for (size_t k = 0; k < pairs.size; ++k)
            gradient[pairs.number[k]] += factor * pairs.value[k] * counts[pairs.cell[k]];
    else
        for (size_t k = 0; k < pairs.size; ++k) gradient[pairs.number[k]] += factor * counts[pairs.cell[k]];
}

}  // namespace

extern const Features features = {
    score_rows,
    pull_rows,
    pull_rows_twice,
    spread_weights,
    gather_counts,
    score_frequent<uint16_t>,
    score_frequent<int32_t>,
    pull_frequent<uint16_t>,
    pull_frequent<int32_t>,
    score_pairs,
    pull_pairs,
};

}  // namespace hscrf::ISA
