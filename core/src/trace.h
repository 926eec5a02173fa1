// The way back through a walk, item by item: the best one, a draw, or the candidates of the k best.
#pragma once
#include "walk.h"

namespace hscrf::ISA {

// An item of the way back: a node ends at a step, lives there, starts there, or starts with the run.
enum ItemKind { ENDS, LIVES, STARTS, FRESH_RUN };

struct Item {
    int kind, node, t;
};

// Where configurations are written: (D, N) for each draw.
struct Written {
    int32_t* states;
    int8_t* ends;
    int64_t steps;

    void end(int from, int to, int64_t t) const {
        for (int d = from; d <= to; ++d) ends[d * steps + t] = 1;
    }
};

// Random numbers of one call (splitmix64): the same on every machine.
struct Random {
    uint64_t state;

    double uniform() {
        uint64_t z = (state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return double((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
    }
};

// The first of the best, or one drawn in proportion to its weight.
template <class A>
int choose(double* weight, int n, Random* random) {
    int best = 0;
    for (int k = 1; k < n; ++k)
        if (weight[k] > weight[best]) best = k;
    if (n == 1 || !random) return best;
    double total = 0;
    const double high = weight[best];
    for (int k = 0; k < n; ++k) total += weight[k] = is_linear<A> ? weight[k] : std::exp(weight[k] - high);
    double left = random->uniform() * total;
    for (int k = 0; k < n; ++k)
        if ((left -= weight[k]) < 0.0) return k;
    return best;
}

// The first u < count with the highest a[u] + b[u], and that value; b lies in panels of PAD numbers.
inline std::pair<int, double> first_best(const double* a, const double* b, size_t panel, int count) {
    V high = splat(-INF);
    for (int u = 0; u < count; u += PAD, b += panel)
        for (int k = 0; k < PAD; k += W) high = larger(high, load(a + u + k) + load(b + k));
    const double best = highest(high);
    b -= (count + PAD - 1) / PAD * panel;
    int u = 0;
    while (u + 1 < count && !(a[u] + b[u / PAD * panel + u % PAD] >= best)) ++u;
    return {u, best};
}

template <class A, class Kind>
struct Trace {
    static constexpr int R = Kind::rows;
    Walk<A, Kind>& walk;
    const Trie& trie = walk.trie;
    std::vector<double> weight = std::vector<double>(size_t(walk.steps) + trie.nodes + 2);
    std::vector<Item> where = std::vector<Item>(weight.size());

    // List the candidates of an item in row r: the items that may come next on the way back, weighted by their values
    // times that of the step. The order breaks ties: siblings in the topology's order, a start before going on, the
    // shortest segment first, a level's own transition before its parent's start.
    // ``best``: keep only the first of the best.
    template <bool best>
    INLINE int incoming(const Item& item, int r) {
        const auto [kind, node, t] = item;
        const bool is_leaf = node >= trie.inner;
        const size_t x = size_t(node) * R + r - (is_leaf ? walk.inner : 0);
        int n = 0;
        double highest = -INF;
        Item first{};
        const auto put = [&](double value, int what, int of, int at) {
            if (!best)
                weight[n] = value, where[n++] = {what, of, at};
            else if (n++ == 0 || value > highest)
                highest = value, first = {what, of, at};
        };
        if (kind == ENDS && is_leaf) {
            put(A::one, LIVES, node, t);
        } else if (kind == ENDS) {
            const Group& g = *trie.below[node];
            const double* exit = walk.pot_at(t) + g.family->end;
            if constexpr (best && R == 1) {
                const auto [u, value] = first_best(walk.up_at(t) + g.first, exit, PAD, g.count);
                put(value, ENDS, g.first + u, t);
            } else
                for (int u = 0; u < g.count; ++u)
                    put(times<A>(value_of(walk.up_at(t), g.first + u, r), exit[u]), ENDS, g.first + u, t);
        } else if (kind == LIVES && walk.over_segments()) {
            const auto [first, end] = walk.lags(t);
            for (int lag = first; lag < end; ++lag)
                put(walk.lagging(t, lag, node - trie.inner, x), STARTS, node, t - lag);
            const auto start = [&](int since, double value) { put(value, STARTS, node, since); };
            if (walk.tail) walk.tail->each_start(t, node - trie.inner, r, start);
        } else if (kind == LIVES) {
            put(walk.is_unit() ? A::one : walk.fresh_at(t)[x], STARTS, node, t);
            if (walk.lives_on() && t > 0 && walk.kind.goes_on(t - 1)) put(walk.alive_at(t - 1)[x], LIVES, node, t - 1);
        } else if (t == 0) {
            put(A::one, FRESH_RUN, node, t);
        } else {
            const Group& g = *trie.around[node];
            const int level = trie.level[node], v = node - g.first;
            if (walk.kind.crosses(level, t - 1)) {
                const Family& f = *g.family;
                if constexpr (best && R == 1) {
                    const double* table = walk.pot_at(t - 1) + f.back + f.cell(0, 0) + v * PAD;
                    const auto [u, value] = first_best(walk.up_at(t - 1) + g.first, table, f.width * PAD, g.count);
                    put(value, ENDS, g.first + u, t - 1);
                } else {
                    const double* table = walk.pot_at(t - 1) + f.trans + f.cell(0, v);
                    for (int u = 0; u < g.count; ++u)
                        put(times<A>(value_of(walk.up_at(t - 1), g.first + u, r), table[u * PAD]), ENDS, g.first + u,
                            t - 1);
                }
            }
            if (level > 1)
                put(times<A>(value_of(walk.down_at(t), g.parent, r), walk.pot_at(t)[g.family->init + v]), STARTS,
                    g.parent, t);
        }
        if (best) where[0] = first;
        return n;
    }

    // Write the configuration of row r that ends at a step of its run, which begins at a packed step.
    void follow(int r, int last, int64_t begin, int top, Random* random, const Written& to) {
        Item item = end_of(last, begin, top, to);
        while (item.kind != FRESH_RUN) item = next(item, r, begin, top, random, to);
    }

    // The first item of the way back of a run.
    Item end_of(int last, int64_t begin, int top, const Written& to) const {
        to.end(top + 1, top + trie.depth, begin + last);
        return {ENDS, 0, last};
    }

    // Write what an item says, and return the one that comes next on the way back.
    INLINE Item next(const Item& item, int r, int64_t begin, int top, Random* random, const Written& to) {
        constexpr bool best = std::is_same_v<A, Max>;
        const int n = incoming<best>(item, r), bottom = top + trie.depth;
        const Item next = where[best ? 0 : choose<A>(weight.data(), n, random)];
        if (item.kind == LIVES)
            record(item.node, begin + next.t, begin + item.t, bottom, to);
        else if (item.kind == STARTS && next.kind == ENDS)
            to.end(top + trie.level[item.node], bottom, begin + next.t);
        return next;
    }

  private:
    double value_of(const double* values, int node, int r) const { return values[size_t(node) * R + r]; }

    // Write the states of a leaf and of all above it.
    void record(int node, int64_t first, int64_t last, int level, const Written& to) {
        for (; node > 0; node = trie.around[node]->parent, --level)
            for (int64_t t = first; t <= last; ++t) to.states[level * to.steps + t] = trie.state[node];
    }
};

}  // namespace hscrf::ISA
