// The engine: the choice of the arithmetic. Compiled once for each instruction set (ISA).
//
// LINEAR raises what is too faint for its numbers. It vouches for a sequence if nothing was raised, or, after the way
// back, if what was raised has no posterior. Other sequences run again in LOG.
#include "engine.h"

#include "bundle.h"
#include "kept.h"

namespace hscrf::ISA {

namespace {

Workshop& workshop() {
    thread_local Workshop work;
    if (Space::poisoned) work.space.poison();
    return work;
}

// Arrays for counts that were not requested.
struct NoCounts : Counts {
    std::vector<std::vector<double>> rooms;

    NoCounts(const Topology& topology, int64_t steps) {
        const size_t depth = topology.states.size();
        for (auto& part : own) part.assign(depth, nullptr);
        for (auto& part : event) part.assign(depth, nullptr);
        segments.assign(depth, nullptr), lags.assign(depth, 0), longest.assign(depth, 0);
        for (int states : topology.states) {
            rooms.emplace_back(size_t(steps) * states), state.push_back(rooms.back().data());
            rooms.emplace_back(size_t(steps)), ending.push_back(rooms.back().data());
        }
    }
};

struct Native final : Engine {
    const Model model;

    explicit Native(const Topology& topology) : model(topology) {}

    // Read the tables that do not change in time.
    std::vector<Shared> read(const Batch& batch, bool linear, bool counted) const {
        std::vector<Shared> shared(model.layers.size());
        for (size_t n = 0; n < shared.size(); ++n) {
            const Tables& tables = model.layers[n]->tables;
            Shared& s = shared[n];
            s.varies = tables.varies(batch.values);
            if (counted) s.counts.assign(tables.counted, 0.0), s.log_counts.assign(tables.counted, 0.0);
            if (s.varies) continue;
            s.logs.resize(tables.size);
            const Ranges ranges = tables.read(batch.values, 0, s.logs.data());
            if (linear) {
                const double clip = ranges.clip(WIDE - model.layers[n]->spread, RAISED);
                s.exps = s.logs, s.reach = ranges.reach(clip);
                tables.exponentiate(s.exps.data(), clip, 0, s.raised);
            }
            tables.transpose(s.logs.data());
        }
        return shared;
    }

    void write(const Batch& batch, const std::vector<Shared>& shared, Counts& counts) const {
        for (size_t n = 0; n < shared.size(); ++n) {
            if (shared[n].varies) continue;
            const Tables& tables = model.layers[n]->tables;
            tables.write(batch.values, shared[n].counts.data(), shared[n].exps.data(), 1.0, 0, counts);
            tables.write(batch.values, shared[n].log_counts.data(), nullptr, 1.0, 0, counts);
        }
    }

    static std::vector<int> all(const Batch& batch) {
        std::vector<int> numbers(batch.sequences);
        std::iota(numbers.begin(), numbers.end(), 0);
        return numbers;
    }

    // ---------------------------------------------------------------------------------- log Z and counts

    int log_partition(const Batch& batch, double* log_z) const override {
        Workshop& work = workshop();
        std::vector<Shared> shared = read(batch, true, false);
        std::vector<int> unsure, lost;
        const std::vector<int> alone =
            each_bundle<Linear>(model, batch, shared, work, all(batch), [&](int rows, const int* which) {
                const Bundle<Linear> bundle(model, batch, shared[0], work, nullptr, rows, which, false);
                for (int r = 0; r < rows; ++r) {
                    log_z[which[r]] = bundle.log_z[r];
                    if (bundle.unsure(r)) unsure.push_back(which[r]);
                }
            });
        for (int k : alone)
            if (!sum<Linear>(batch, shared, work, k, log_z)) unsure.push_back(k);
        if (!unsure.empty()) {
            shared = read(batch, true, true);
            NoCounts counts(model.topology, batch.steps());
            lost = count_linear(batch, unsure, nullptr, shared, work, log_z, counts);
        }
        const auto together = [&](int rows, const int* which) {
            const Bundle<Log> bundle(model, batch, shared[0], work, nullptr, rows, which, false);
            for (int r = 0; r < rows; ++r) log_z[which[r]] = bundle.log_z[r];
        };
        for (int k : each_bundle<Log>(model, batch, shared, work, lost, together))
            sum<Log>(batch, shared, work, k, log_z);
        work.space.tidy();
        return int(lost.size());
    }

    // Log Z of a sequence; whether it is sure.
    template <class A>
    bool sum(const Batch& batch, const std::vector<Shared>& shared, Workshop& work, int k, double* log_z) const {
        Pass<A> pass(model, batch, shared, work, nullptr, k);
        pass.plan();
        const bool held = pass.run(false);
        log_z[k] = pass.log_z;
        return held && !pass.unsure;
    }

    int expectations(const Batch& batch, const double* weights, double* log_z, Counts& counts) const override {
        Workshop& work = workshop();
        std::vector<Shared> shared = read(batch, true, true);
        std::vector<int> lost = count_linear(batch, all(batch), weights, shared, work, log_z, counts);
        // The bars of a bundle have weights, and negative numbers have no logarithm.
        const auto negative =
            std::partition(lost.begin(), lost.end(), [&](int k) { return !weights || weights[k] >= 0; });
        std::vector<int> alone =
            each_bundle<Log>(model, batch, shared, work, {lost.begin(), negative}, [&](int rows, const int* which) {
                count_bundle<Log>(batch, weights, shared, work, rows, which, log_z, counts);
            });
        alone.insert(alone.end(), negative, lost.end());
        for (int k : alone) count<Log>(batch, weights, shared, work, k, log_z, counts, true);
        write(batch, shared, counts);
        work.space.tidy();
        return int(lost.size());
    }

    // Log Z and counts of some sequences in LINEAR; those that it cannot hold.
    std::vector<int> count_linear(const Batch& batch, const std::vector<int>& some, const double* weights,
                                  std::vector<Shared>& shared, Workshop& work, double* log_z, Counts& counts) const {
        std::vector<int> unsure, lost;
        const auto together = [&](int rows, const int* which) {
            if (!count_bundle<Linear>(batch, weights, shared, work, rows, which, log_z, counts))
                unsure.insert(unsure.end(), which, which + rows);
        };
        for (int k : each_bundle<Linear>(model, batch, shared, work, some, together))
            if (!count<Linear>(batch, weights, shared, work, k, log_z, counts, false)) lost.push_back(k);
        for (int k : unsure)
            if (!count<Linear>(batch, weights, shared, work, k, log_z, counts, true)) lost.push_back(k);
        return lost;
    }

    // Log Z and counts of a bundle; whether they are sure.
    template <class A>
    bool count_bundle(const Batch& batch, const double* weights, std::vector<Shared>& shared, Workshop& work, int rows,
                      const int* which, double* log_z, Counts& counts) const {
        Bundle<A> bundle(model, batch, shared[0], work, &counts, rows, which, true);
        for (int r = 0; r < rows; ++r) log_z[which[r]] = bundle.log_z[r];
        work.grads.resize(model.layers.size());
        return bundle.count(weights, work.grads[0], counts, is_linear<A> ? shared[0].counts : shared[0].log_counts);
    }

    // Log Z and counts of a sequence; whether they are sure. ``again``: there may be other counts in their places.
    template <class A>
    bool count(const Batch& batch, const double* weights, std::vector<Shared>& shared, Workshop& work, int k,
               double* log_z, Counts& counts, bool again) const {
        Pass<A> pass(model, batch, shared, work, &counts, k);
        pass.plan();
        const bool held = pass.run(again);
        log_z[k] = pass.log_z;
        if (held) pass.commit(weights ? weights[k] : 1.0, shared);
        return held;
    }

    // ---------------------------------------------------------------------------------- the way back

    void best(const Batch& batch, double* score, int32_t* states, int8_t* ends) const override {
        Workshop& work = workshop();
        const std::vector<Shared> shared = read(batch, false, false);
        const Written to{states, ends, batch.steps()};
        const auto together = [&](int rows, const int* which) {
            Bundle<Max> bundle(model, batch, shared[0], work, nullptr, rows, which, true);
            for (int r = 0; r < rows; ++r) score[which[r]] = bundle.log_z[r];
            trace_all(bundle, to);
        };
        for (int k : each_bundle<Max>(model, batch, shared, work, all(batch), together)) {
            Ways<Max> ways(model, batch, shared, work, nullptr, k);
            ways.plan();
            ways.trace(1, nullptr, to);
            score[k] = ways.log_z;
        }
        work.space.tidy();
    }

    // The ways back of all rows together, step by step: their numbers lie next to each other.
    static void trace_all(Bundle<Max>& bundle, const Written& to) {
        Trace<Max, Bundle<Max>::Kind> way{bundle.walk};
        Item leaf[Bundle<Max>::R];
        const int64_t* first = bundle.sequences.first;
        for (int r = 0; r < bundle.rows; ++r) {
            leaf[r] = {ENDS, 0, -1};
            if (bundle.log_z[r] == -INF) continue;
            const int last = bundle.sequences.length[r] - 1;
            to.end(0, 0, first[r] + last);
            leaf[r] = way.end_of(r, last, first[r], 0, nullptr, to);
        }
        for (int t = bundle.walk.steps - 1; t >= 0; --t)
            for (int r = 0; r < bundle.rows; ++r)
                if (leaf[r].t == t) leaf[r] = way.next(leaf[r], r, first[r], 0, nullptr, to);
    }

    void draw(const Batch& batch, int draws, uint64_t seed, double* log_z, int32_t* states,
              int8_t* ends) const override {
        Workshop& work = workshop();
        const std::vector<Shared> shared = read(batch, true, false);
        const Written to{states, ends, batch.steps()};
        for (int k = 0; k < batch.sequences; ++k) {
            Random random{seed + 0x9E3779B97F4A7C15u * uint64_t(k + 1)}, same = random;
            Ways<Linear> ways(model, batch, shared, work, nullptr, k);
            ways.plan();
            bool held = ways.trace(draws, &random, to);
            log_z[k] = ways.log_z;
            if (held) continue;
            for (int d = 0; d < draws * model.topology.depth(); ++d) {
                std::fill_n(states + d * batch.steps() + batch.offsets[k], ways.steps, 0);
                std::fill_n(ends + d * batch.steps() + batch.offsets[k], ways.steps, 0);
            }
            Ways<Log> safe(model, batch, shared, work, nullptr, k);
            safe.trace(draws, &same, to);
            log_z[k] = safe.log_z;
        }
        work.space.tidy();
    }

    int64_t longest(const Batch& batch, int level) const override {
        int64_t most = 1;
        Columns columns;
        for (int k = 0; k < batch.sequences; ++k) {
            const int length = int(batch.offsets[k + 1] - batch.offsets[k]);
            if (level) columns.plan(model.topology, batch, level, batch.offsets[k], length);
            most = std::max<int64_t>(most, level ? columns.longest : length);
        }
        return most;
    }

    std::unique_ptr<Runs> runs(const Batch& batch) const override {
        return std::make_unique<KeptRuns>(model, batch, read(batch, false, false));
    }
};

}  // namespace

const Engines engines = {
    [](const Topology& topology) -> std::unique_ptr<Engine> { return std::make_unique<Native>(topology); },
    [](bool poisoned) { Space::poisoned = poisoned; },
};

}  // namespace hscrf::ISA
