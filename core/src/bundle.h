// Sequences side by side: whole sequences of a model of one layer, whose tables do not change in time.
#pragma once
#include <numeric>

#include "passes.h"

namespace hscrf::ISA {

template <class A>
struct Bundle {
    static constexpr int R = 8;
    using Kind = Sequences<A, R>;
    const Model& model;
    const Batch& batch;
    const Shared& shared;
    const int rows, *which;  // number of sequences, and their places in the batch
    struct Steps {
        int64_t first[R];
        int length[R];

        Steps(const Batch& batch, int rows, const int* which) {
            for (int r = 0; r < rows; ++r)
                first[r] = batch.offsets[which[r]], length[r] = int(batch.offsets[which[r] + 1] - first[r]);
        }
    } sequences;
    Tokens<A, R> tokens;
    Kind kind;
    Walk<A, Kind> walk;
    double log_z[R];

    Bundle(const Model& model, const Batch& batch, const Shared& shared, Workshop& work, Counts* counts, int rows,
           const int* which, bool keep)
        : model(model),
          batch(batch),
          shared(shared),
          rows(rows),
          which(which),
          sequences(batch, rows, which),
          tokens(model.topology, batch, *model.layers[0], work.space, rows, sequences.first, sequences.length, false,
                 shared.reach + model.layers[0]->spread),
          kind(*model.layers[0], *model.layers[0]->dense, work.gates[0], work.space, counts, nullptr,
               shared.reach + model.layers[0]->spread, tokens, rows),
          walk(kind, work.space, shared.template numbers<A>(), 0, keep) {
        walk.forward();
        for (int r = 0; r < rows; ++r) log_z[r] = kind.total[r] + own_of_root(model.topology, batch, which[r], 0);
    }

    // LINEAR: was anything raised in a row, or lost.
    bool unsure(int r) const {
        return is_linear<A> && (tokens.lost || kind.unsure[r] || tokens.faint[r] || !shared.raised.empty());
    }

    // Walk back, and add weighted counts to the arrays of Python and to those of the tables; false if it is not sure
    // that nothing was raised that matters.
    bool count(const double* weights, std::vector<double>& grad, Counts& counts, std::vector<double>& total) {
        for (int r = 0; r < rows; ++r) kind.weight[r] = log_z[r] == -INF ? 0.0 : weights ? weights[which[r]] : 1.0;
        grad.assign(model.layers[0]->tables.counted, 0.0);
        walk.backward(grad.data(), 0);
        double of_tables = 0;  // the posterior mass of what was raised in them
        for (const Raised& e : shared.raised)
            if (is_linear<A>) of_tables += std::fabs(grad[e.place] * shared.exps[e.place]);
        for (int r = 0; r < rows; ++r) {
            const double weight = kind.weight[r];
            if (tokens.lost || kind.doubt[r] + of_tables > DOUBT * std::fabs(weight)) return false;
            if (weight == 0.0 && log_z[r] > -INF && unsure(r)) return false;
        }
        for (size_t k = 0; k < total.size(); ++k) total[k] += grad[k];
        for (int r = 0; r < rows; ++r) count_root(model.topology, batch, which[r], 0, kind.weight[r], counts);
        return true;
    }
};

// Call with(number, which) for bundles of sequences of like length; return the sequences that walk alone.
template <class A, class With>
std::vector<int> each_bundle(const Model& model, const Batch& batch, const std::vector<Shared>& shared, Workshop& work,
                             const std::vector<int>& all, With with) {
    constexpr int R = Bundle<Max>::R;
    std::vector<int> which, alone;
    const Layer& layer = *model.layers[0];
    const auto length = [&](int k) { return batch.offsets[k + 1] - batch.offsets[k]; };
    const auto enough = [](size_t rows) { return rows * 3 >= R * 2; };
    const bool able = model.layers.size() == 1 && layer.leaf != SEGMENTS && !shared[0].varies &&
                      (!is_linear<A> || shared[0].reach + layer.spread <= WIDE) && model.topology.states[0] == 1;
    work.gates.resize(model.layers.size());
    for (int k : all) {
        bool free = able && enough(all.size()) && length(k) * layer.tries[0]->nodes <= 1 << 16;
        if (free && batch.evidence.may_end) {
            work.gates[0].plan(batch, layer, batch.offsets[k], int(length(k)));
            free = work.gates[0].free;
        }
        (free ? which : alone).push_back(k);
    }
    std::stable_sort(which.begin(), which.end(), [&](int a, int b) { return length(a) < length(b); });
    work.gates[0].free = true;
    for (size_t k = 0; k < which.size(); k += R) {
        const size_t rows = std::min<size_t>(R, which.size() - k);
        if (enough(rows))
            with(int(rows), &which[k]);
        else
            alone.insert(alone.end(), which.begin() + k, which.end());
    }
    return alone;
}

}  // namespace hscrf::ISA
