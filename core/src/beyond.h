// Segments of open states beyond their longest explicit duration L: scores of their steps as the leaves of a trie meet
// them, and posteriors. All scores are logarithms.
#pragma once
#include "segments.h"

namespace hscrf::ISA {

struct Beyond {
    bool any = false;
    int leaves = 0;
    std::vector<int> lasts;                                      // L of each leaf, 0: it is not open
    double *inject = nullptr, *step = nullptr, *stop = nullptr;  // (T, leaves): first L steps, from there on; one
                                                                 // step more; the end
    double *injected = nullptr, *stepped = nullptr, *stopped = nullptr;  // posteriors of the same

    // ``above(t, x)`` gives the tokens of the Markov states above a leaf.
    template <class Above>
    void read(const Trie& trie, const Columns& c, const Observed& own, Space& space, bool counted, Above above) {
        any = c.open, leaves = trie.leaves();
        if (!any) return;
        const size_t all = size_t(c.steps) * leaves;
        inject = space.filled(TAIL_SCORES, 3 * all, -INF), step = inject + all, stop = step + all;
        if (counted)
            injected = space.filled(TAIL_POSTS, 3 * all, 0.0), stepped = injected + all, stopped = stepped + all;
        lasts.assign(leaves, 0);
        const int *state = &trie.state[trie.inner], S = c.states;
        for (int x = 0; x < leaves; ++x)
            if (state[x] < S && (*c.opened)[state[x]]) lasts[x] = c.limit[state[x]];
        const auto at = [&](int part, int64_t row, int s) {
            return own.own[part] ? own.own[part]->data[row * S + s] : 0.0;
        };
        std::vector<double> room(S), met(all, 0.0);
        for (int t = 0; t < c.steps; ++t) {
            const double* tokens = own.has(TOKEN) ? own.row(TOKEN, c.first + t, room.data()) : nullptr;
            for (int x = 0; x < leaves; ++x) {
                if (!lasts[x]) continue;
                const size_t k = size_t(t) * leaves + x;
                met[k] = above(t, x) + (tokens ? tokens[state[x]] : 0.0);
                if (t && c.going[t - 1]) step[k] = met[k] + at(TAIL, 0, state[x]);
                if (c.may_end[t]) stop[k] = at(STOP, c.first + t, state[x]);
            }
        }
        for (int t = 0; t < c.steps; ++t)
            for (int x = 0; x < leaves; ++x) {
                const int last = lasts[x], s = state[x];
                if (!last || c.reach[size_t(t) * S + s] < last) continue;
                double& total = inject[size_t(t) * leaves + x];
                total = at(START, c.first + t, s) + at(DURATION, last - 1, s);
                if (own.own[SEGMENT]) total += at(SEGMENT, (c.first + t) * own.own[SEGMENT]->lags + last - 1, s);
                for (int k = t; k < t + last; ++k) total += met[size_t(k) * leaves + x];
            }
    }

    // Add the posteriors of leaves to those of states: ``found`` has three tables (T, wide).
    void leave(const Trie& trie, const Columns& c, double* found) {
        const size_t wide = size_t(c.steps) * c.wide;
        for (int t = 0; t < c.steps; ++t)
            for (int x = 0; x < leaves; ++x)
                if (lasts[x]) {
                    const size_t from = size_t(t) * leaves + x, to = size_t(t) * c.wide + trie.state[trie.inner + x];
                    found[to] += injected[from], found[wide + to] += stepped[from],
                        found[2 * wide + to] += stopped[from];
                }
    }
    void forget(const Columns& c) { std::fill(injected, injected + 3 * size_t(c.steps) * leaves, 0.0); }
};

// From the posteriors of segments beyond L to states, endings and counts, each times a weight.
inline void count_beyond(const Columns& c, int d, const double* found, double weight, Counts& counts) {
    const size_t wide = size_t(c.steps) * c.wide;
    const auto add = [&](int part, size_t place, double amount) {
        if (counts.own[part][d]) counts.own[part][d][place] += amount;
    };
    for (int t = 0; t < c.steps; ++t)
        for (int s = 0; s < c.states; ++s) {
            if (!(*c.opened)[s]) continue;
            const size_t from = size_t(t) * c.wide + s, here = size_t(c.first + t) * c.states + s;
            const double injected = weight * found[from], stepped = weight * found[wide + from];
            const double stopped = weight * found[2 * wide + from];
            const int last = c.limit[s];
            for (int k = 0; injected != 0.0 && k < last; ++k) counts.state[d][here + size_t(k) * c.states] += injected;
            counts.state[d][here] += stepped;
            counts.ending[d][c.first + t] += stopped;
            add(START, here, injected), add(STOP, here, stopped), add(TAIL, s, stepped);
            add(DURATION, size_t(last - 1) * c.states + s, injected);
            add(SEGMENT, (size_t(c.first + t) * counts.lags[d] + last - 1) * c.states + s, injected);
        }
}

}  // namespace hscrf::ISA
