// Segments of a layer's bottom level as the leaves of a trie meet them: with the tokens of the Markov levels above
// them.
//
// LINEAR: a gauge is taken off, what the best way through the segments gains at each step. So no mass is above one, and
// sums over lags need no exponentials. What is possible but fainter than exp(-faint) is raised to that.
#pragma once
#include "beyond.h"

namespace hscrf::ISA {

constexpr double FAINT = 390;  // the logarithm of HIGH is 184, of SAFE -92, of the last digit -37
constexpr double SURE = 320;   // their distance: a mass so far down, times HIGH, adds nothing to what is above SAFE

template <class A>
struct Below {
    const Trie* trie = nullptr;
    const Columns* columns = nullptr;
    const double* mass = nullptr;             // (lines, leaves)
    double *post = nullptr, *peak = nullptr;  // posteriors (lines, leaves); the gauge (T)
    std::vector<double> gained;               // (T + 1): the sum of the gauge before each step
    int leaves = 0;
    double drop = 0, faint = FAINT, faintest = 0;  // how far a step may fall because of its segments; exp(-faint)
    bool clipped = false;
    Beyond beyond;
    double reach = 0;  // of the tables, by which what enters may be above HIGH
    // May what was clipped matter to numbers above SAFE. What is below is noted anyway.
    bool unsure() const { return clipped && faint < SURE + reach; }

    // Read the log masses of the bottom's segments; ``levels`` are the layer's, see ``Tokens``; ``found``: where their
    // posteriors go, or nullptr.
    void read(const Trie& given, const Columns& c, const std::vector<Observed>& levels, const double* log_masses,
              Space& space, double* found, double of_tables) {
        reach = of_tables, trie = &given, columns = &c, leaves = given.leaves();
        faint = std::min(FAINT, 550 - 2 * reach);  // FLOOR times it, and two tables, is a normal number

        above.resize(leaves);
        for (int x = 0; x < leaves; ++x) above[x] = parent_of(x);
        find_path(levels, space);
        bool same = leaves == c.wide && given.depth == 1;  // are leaves the states of the table
        for (int x = 0; same && x < leaves; ++x) same = given.state[given.inner + x] == std::min(x, c.states);
        mass = log_masses, lowest = V{};
        if (!same || is_linear<A>) {
            double* to = space.get(MASS, size_t(c.lines) * leaves);
            if (is_linear<A>) peak = space.get(GAUGE, c.steps);
            for (int t = 0; t < c.steps; ++t) {
                if (!same) stack(log_masses, t, to);
                if (is_linear<A>) take_off_gauge(t, same ? log_masses : to, to);
            }
            if (is_linear<A>) sum_gauge();
            mass = to;
        }
        const auto met = [&](int t, int x) { return path ? path[size_t(t) * parents() + above[x]] : 0.0; };
        beyond.read(given, c, levels[given.depth], space, found, met);
        if (found) post = same ? found : space.filled(POST, size_t(c.lines) * leaves, 0.0);
    }

    size_t line(int t, int lag) const { return size_t(columns->base[t] + lag) * leaves; }

    // Add the posteriors that were found to those of the bottom's segments and of the states above them. Return what
    // was found for segments that had been raised.
    double leave(double* found, const std::vector<Observed>& levels, Space& space, const std::vector<double*>& states) {
        const Columns& c = *columns;
        double doubt = 0;
        for (size_t k = 0; is_linear<A> && clipped && k < size_t(c.lines) * leaves; ++k)
            if (mass[k] == faintest) doubt += std::fabs(post[k]);
        const int* state = &trie->state[trie->inner];
        for (int64_t n = 0; post != found && n < c.lines; ++n)
            for (int x = 0; x < leaves; ++x)
                if (state[x] < c.states) found[n * c.wide + state[x]] += post[n * leaves + x];
        if (trie->depth > 1) count_path(levels, space, states);
        if (beyond.any) {
            beyond.leave(*trie, c, space.get(TAIL_FOUND, 3 * size_t(c.steps) * c.wide));
            beyond.forget(c);
        }
        if (post != found) std::fill(post, post + size_t(c.lines) * leaves, 0.0);
        return doubt;
    }

  private:
    double* path = nullptr;  // (T, parents of leaves): log tokens of a parent and of all above it

    int parents() const { return trie->inner - trie->level_at[trie->depth - 1]; }
    int parent_of(int x) const {
        const Group* g = trie->around[trie->inner + x];
        return g ? g->parent - trie->level_at[trie->depth - 1] : -1;
    }

    void find_path(const std::vector<Observed>& levels, Space& space) {
        path = nullptr;
        bool any = false;
        for (int k = 1; k < trie->depth; ++k) any |= levels[k].has(TOKEN);
        if (!any) return;
        path = space.get(PATH, size_t(columns->steps) * parents());
        std::vector<double> met(trie->inner), room;
        for (int t = 0; t < columns->steps; ++t) {
            met[0] = 0.0;
            for (int k = 1; k < trie->depth; ++k) {
                room.resize(levels[k].states);
                const double* row =
                    levels[k].has(TOKEN) ? levels[k].row(TOKEN, columns->first + t, room.data()) : nullptr;
                for (const Group& g : trie->groups[k])
                    for (int x = g.first; x < g.first + g.count; ++x)
                        met[x] = met[g.parent] + (row ? row[trie->state[x]] : 0.0);
            }
            std::copy(met.begin() + trie->level_at[trie->depth - 1], met.end(), path + size_t(t) * parents());
        }
    }

    // Log masses by leaf of the segments that end at a step; what is missing is impossible.
    void stack(const double* logs, int t, double* to) {
        const Columns& c = *columns;
        const int* state = &trie->state[trie->inner];
        passed.assign(parents(), 0.0);
        for (int lag = path ? 0 : c.skip[t]; lag < c.until[t]; ++lag) {
            for (int p = 0; path && p < parents(); ++p) passed[p] += path[size_t(t - lag) * parents() + p];
            if (lag < c.skip[t]) continue;
            const double* from = logs + c.line(t, lag);
            double* here = to + line(t, lag);
            for (int x = 0; x < leaves; ++x) here[x] = state[x] < c.states ? from[state[x]] : -INF;
            for (int x = 0; path && x < leaves; ++x) here[x] += state[x] < c.states ? passed[above[x]] : 0.0;
        }
    }
    std::vector<double> passed;  // log tokens of parents since the start of a segment
    std::vector<int> above;      // of each leaf: its parent

    // From log masses by leaf of the segments that end at a step to their exponentials without the gauge.
    void take_off_gauge(int t, const double* logs, double* masses) {
        const Columns& c = *columns;
        const V impossible = splat(-INF), lifted = splat(-faint);
        peak[t] = 0.0;
        if (!c.ends(t)) return;
        V best = impossible;
        double passed = 0;
        for (int lag = 0; lag < c.until[t]; ++lag) {
            if (lag) passed += peak[t - lag];
            if (lag < c.skip[t]) continue;
            const double* from = logs + line(t, lag);
            for (int x = 0; x < leaves; x += W) best = larger(best, load(from + x) - passed);
        }
        peak[t] = highest(best) > -INF ? highest(best) : 0.0;
        passed = 0;
        for (int lag = 0; lag < c.until[t]; ++lag) {
            passed += peak[t - lag];
            if (lag < c.skip[t]) continue;
            const double* from = logs + line(t, lag);
            double* here = masses + line(t, lag);
            for (int x = 0; x < leaves; x += W) {
                const V value = load(from + x) - passed;
                lowest = smaller(lowest, value > impossible ? value : lowest);
                store(here + x, exp(value > impossible ? larger(value, lifted) : value));
            }
        }
    }
    V lowest = {};  // logarithm of a mass

    void sum_gauge() {
        gained.assign(columns->steps + 1, 0.0);
        for (int t = 0; t < columns->steps; ++t) gained[t + 1] = gained[t] + peak[t];
        drop = highest(-lowest), faintest = exp(splat(-faint))[0];
        clipped = drop > faint;
        drop = std::min(drop, faint) + std::log(double(columns->longest));
    }

    // The Markov states above a segment live through it: differences in time, summed up in the end.
    void count_path(const std::vector<Observed>& levels, Space& space, const std::vector<double*>& states) {
        const Columns& c = *columns;
        double* passed = space.filled(PASSED, size_t(c.steps + 1) * trie->inner, 0.0);
        const int first = trie->level_at[trie->depth - 1];
        for (int t = 0; t < c.steps; ++t)
            for (int lag = c.skip[t]; lag < c.until[t]; ++lag)
                for (int x = 0; x < leaves; ++x)
                    if (above[x] >= 0) {
                        const double found = post[line(t, lag) + x];
                        passed[size_t(t - lag) * trie->inner + first + above[x]] += found;
                        passed[size_t(t + 1) * trie->inner + first + above[x]] -= found;
                    }
        for (int t = 0; beyond.any && t < c.steps; ++t)
            for (int x = 0; x < leaves; ++x)
                if (const int last = beyond.lasts[x]) {
                    const double injected = beyond.injected[size_t(t) * leaves + x];
                    const double stepped = beyond.stepped[size_t(t) * leaves + x];
                    double* to = passed + size_t(t) * trie->inner + first + above[x];
                    to[0] += injected + stepped, to[trie->inner] -= stepped;
                    if (injected != 0.0) to[size_t(last) * trie->inner] -= injected;
                }
        for (int t = 0; t < c.steps; ++t) {
            double* here = passed + size_t(t) * trie->inner;
            for (int k = trie->depth - 1; k > 0; --k)
                for (const Group& g : trie->groups[k])
                    for (int x = g.first; x < g.first + g.count; ++x) {
                        if (t && k == trie->depth - 1) here[x] += here[x - trie->inner];
                        states[k][(c.first + t) * levels[k].states + trie->state[x]] += here[x];
                        if (k > 1) here[g.parent] = x == g.first ? here[x] : here[g.parent] + here[x];
                    }
        }
    }
};

}  // namespace hscrf::ISA
