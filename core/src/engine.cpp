// The engine: bundles of sequences, and the choice of the arithmetic. Compiled once for each instruction set (ISA).
#include "engine.h"

#include <numeric>

#include "kept.h"

namespace hscrf::ISA {

namespace {

Workshop& workshop() {
    thread_local Workshop work;
    if (Space::poisoned) work.space.poison();
    return work;
}

struct Native final : Engine {
    static constexpr int R = 8;  // sequences side by side
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
            s.reach = tables.read(batch.values, 0, s.logs.data());
            if (linear) {
                s.exps = s.logs;
                exponentiate(s.exps.data(), tables.counted);
                tables.transpose(s.exps.data());
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

    // ---------------------------------------------------------------------------------- sequences side by side

    // Call with(number, which) for bundles of some sequences of like length that may walk side by side; return the
    // others.
    template <class With>
    std::vector<int> bundles(const Batch& batch, const std::vector<Shared>& shared, Workshop& work,
                             const std::vector<int>& some, With with) const {
        std::vector<int> which, alone;
        const auto length = [&](int k) { return batch.offsets[k + 1] - batch.offsets[k]; };
        const bool able = model.layers.size() == 1 && model.layers[0]->leaf != SEGMENTS && !shared[0].varies &&
                          some.size() * 3 >= R * 2 && model.topology.states[0] == 1;
        work.gates.resize(model.layers.size());
        for (int k : some) {
            bool free = able && length(k) * model.layers[0]->tries[0]->nodes <= 1 << 16;
            if (free && batch.evidence.may_end) {
                work.gates[0].plan(batch, *model.layers[0], batch.offsets[k], int(length(k)));
                free = work.gates[0].free;
            }
            (free ? which : alone).push_back(k);
        }
        std::stable_sort(which.begin(), which.end(), [&](int a, int b) { return length(a) < length(b); });
        work.gates[0].free = true;
        for (size_t k = 0; k < which.size();) {
            const int rows = int(std::min<size_t>(R, which.size() - k));
            if (rows * 3 >= R * 2)
                with(rows, &which[k]), k += rows;
            else
                alone.push_back(which[k++]);
        }
        return alone;
    }
    std::vector<int> all(const Batch& batch) const {
        std::vector<int> numbers(batch.sequences);
        std::iota(numbers.begin(), numbers.end(), 0);
        return numbers;
    }

    // Walk some sequences side by side and let use(walk, kind) go on; false if LINEAR cannot hold them.
    template <class A, class Use>
    bool side_by_side(const Batch& batch, const std::vector<Shared>& shared, Workshop& work, Counts* counts, int rows,
                      const int* which, bool keep, Use use) const {
        const Layer& layer = *model.layers[0];
        const double reach = shared[0].reach + std::log(double(layer.dense->nodes));
        if (is_linear<A> && reach > WIDE) return false;
        int64_t first[R];
        int length[R];
        for (int r = 0; r < rows; ++r)
            first[r] = batch.offsets[which[r]], length[r] = int(batch.offsets[which[r] + 1] - first[r]);
        Tokens<A, R> tokens(model.topology, batch, layer, work.space, rows, first, length, false, reach);
        Sequences<A, R> kind(layer, *layer.dense, work.gates[0], work.space, counts, nullptr, reach, tokens, rows);
        Walk<A, Sequences<A, R>> walk(kind, work.space, shared[0].numbers<A>(), 0, keep);
        walk.forward();
        use(walk, kind);
        return !tokens.lost;
    }

    // ---------------------------------------------------------------------------------- log Z and counts

    int log_partition(const Batch& batch, double* log_z) const override {
        Workshop& work = workshop();
        const std::vector<Shared> shared = read(batch, true, false);
        const std::vector<int> doubtful = sum<Linear>(batch, shared, work, all(batch), log_z);
        sum<Log>(batch, shared, work, doubtful, log_z);
        work.space.tidy();
        return int(doubtful.size());
    }

    // Log Z of some sequences. Return the sequences whose result LINEAR does not vouch for.
    template <class A>
    std::vector<int> sum(const Batch& batch, const std::vector<Shared>& shared, Workshop& work,
                         const std::vector<int>& some, double* log_z) const {
        std::vector<int> doubtful;
        const std::vector<int> alone = bundles(batch, shared, work, some, [&](int rows, const int* which) {
            bool sure[R] = {};
            const bool held = side_by_side<A>(batch, shared, work, nullptr, rows, which, false, [&](auto&, auto& kind) {
                for (int r = 0; r < rows; ++r) {
                    log_z[which[r]] = with_root<A>(batch, shared, work, which[r], kind.total[r]);
                    sure[r] = !kind.unsure[r] && !kind.tokens.faint[r];
                }
            });
            for (int r = 0; r < rows; ++r)
                if (!held || !sure[r]) doubtful.push_back(which[r]);
        });
        for (int k : alone) {
            Pass<A> pass(model, batch, shared, work, nullptr, k);
            pass.plan();
            if (!pass.run(false) || pass.unsure) doubtful.push_back(k);
            log_z[k] = pass.log_z;
        }
        return doubtful;
    }

    template <class A>
    double with_root(const Batch& batch, const std::vector<Shared>& shared, Workshop& work, int k, double total) const {
        return total + Pass<A>(model, batch, shared, work, nullptr, k).own_of_root(0);
    }

    int expectations(const Batch& batch, const double* weights, double* log_z, Counts& counts) const override {
        Workshop& work = workshop();
        std::vector<Shared> shared = read(batch, true, true);
        const auto [doubtful, again] = count<Linear>(batch, weights, shared, work, all(batch), log_z, counts, false);
        const auto [more, none] = count<Linear>(batch, weights, shared, work, again, log_z, counts, true);
        std::vector<int> unsure = doubtful;
        unsure.insert(unsure.end(), more.begin(), more.end());
        count<Log>(batch, weights, shared, work, unsure, log_z, counts, true);
        write(batch, shared, counts);
        work.space.tidy();
        return int(unsure.size());
    }

    // Log Z and counts of some sequences. Return the sequences whose result LINEAR does not vouch for, and those that
    // were walked next to them: their counts are missing. ``again``: there may be other counts in their places.
    template <class A>
    std::pair<std::vector<int>, std::vector<int>> count(const Batch& batch, const double* weights,
                                                        std::vector<Shared>& shared, Workshop& work,
                                                        const std::vector<int>& some, double* log_z, Counts& counts,
                                                        bool again) const {
        std::vector<int> doubtful, next_to;
        const auto weight_of = [&](int k) { return weights ? weights[k] : 1.0; };
        const auto one = [&](int k) {
            Pass<A> pass(model, batch, shared, work, &counts, k);
            pass.plan();
            const bool held = pass.run(again);
            log_z[k] = pass.log_z;
            if (held)
                pass.commit(weight_of(k), shared);
            else
                doubtful.push_back(k);
        };
        const std::vector<int> alone = bundles(batch, shared, work, some, [&](int rows, const int* which) {
            if (is_log<A> && std::any_of(which, which + rows, [&](int k) { return !(weight_of(k) > 0.0); }))
                return std::for_each(which, which + rows, one), void();  // a bar is the logarithm of a weight
            work.grads.resize(1), work.grads[0].assign(model.layers[0]->tables.counted, 0.0);
            bool sure[R] = {};
            const auto back = [&](auto& walk, auto& kind) {
                for (int r = 0; r < rows; ++r) {
                    log_z[which[r]] = with_root<A>(batch, shared, work, which[r], kind.total[r]);
                    kind.weight[r] = log_z[which[r]] == -INF ? 0.0 : weight_of(which[r]);
                }
                walk.backward(work.grads[0].data(), 0);
                for (int r = 0; r < rows; ++r) {
                    const bool raised = kind.unsure[r] || kind.tokens.faint[r];
                    sure[r] = kind.doubt[r] <= DOUBT * std::fabs(kind.weight[r]) &&
                              (kind.weight[r] != 0.0 || !raised || log_z[which[r]] == -INF);
                }
            };
            const bool held = side_by_side<A>(batch, shared, work, &counts, rows, which, true, back);
            if (!is_log<A> && !(held && std::all_of(sure, sure + rows, [](bool yes) { return yes; }))) {
                for (int r = 0; r < rows; ++r) (held && sure[r] ? next_to : doubtful).push_back(which[r]);
                return;
            }
            std::vector<double>& to = is_linear<A> ? shared[0].counts : shared[0].log_counts;
            for (size_t k = 0; k < to.size(); ++k) to[k] += work.grads[0][k];
            for (int r = 0; r < rows; ++r) {
                Pass<A> pass(model, batch, shared, work, &counts, which[r]);
                pass.roots_found.assign(1, 1.0);
                if (log_z[which[r]] > -INF) pass.count_roots(weight_of(which[r]));
            }
        });
        std::for_each(alone.begin(), alone.end(), one);
        return {doubtful, next_to};
    }

    // ---------------------------------------------------------------------------------- the way back

    void best(const Batch& batch, double* score, int32_t* states, int8_t* ends) const override {
        Workshop& work = workshop();
        const std::vector<Shared> shared = read(batch, false, false);
        const Written to{states, ends, batch.steps()};
        const std::vector<int> alone = bundles(batch, shared, work, all(batch), [&](int rows, const int* which) {
            side_by_side<Max>(batch, shared, work, nullptr, rows, which, true, [&](auto& walk, auto& kind) {
                Trace<Max, Sequences<Max, R>> way{walk};
                Item item[R];
                for (int r = 0; r < rows; ++r) {
                    const int k = which[r];
                    score[k] = kind.total[r] + Pass<Max>(model, batch, shared, work, nullptr, k).own_of_root(0);
                    item[r] = {FRESH_RUN, 0, -1};
                    if (score[k] == -INF) continue;
                    to.end(0, 0, batch.offsets[k + 1] - 1);
                    item[r] = way.end_of(kind.tokens.length[r] - 1, batch.offsets[k], 0, to);
                }
                for (int t = walk.steps - 1; t >= 0; --t)  // all rows together: their numbers lie next to each other
                    for (int r = 0; r < rows; ++r)
                        while (item[r].t == t && item[r].kind != FRESH_RUN)
                            item[r] = way.next(item[r], r, batch.offsets[which[r]], 0, nullptr, to);
            });
        });
        for (int k : alone) {
            Ways<Max> ways(model, batch, shared, work, nullptr, k);
            ways.plan();
            ways.trace(1, nullptr, to);
            score[k] = ways.log_z;
        }
        work.space.tidy();
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
