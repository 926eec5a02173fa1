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
    if (n == 1) return 0;
    if constexpr (!is_linear<A>) {
        const double* best = std::max_element(weight, weight + n);
        if (!random) return int(best - weight);
        const double high = *best;
        for (int k = 0; k < n; ++k) weight[k] = std::exp(weight[k] - high);
    }
    V total = {};
    int k = 0;
    for (; k + W <= n; k += W) total += load(weight + k);
    double left = sum(total);
    for (; k < n; ++k) left += weight[k];
    left *= random->uniform();
    for (k = 0; k + 1 < n && (left -= weight[k]) >= 0.0;) ++k;
    while (k > 0 && weight[k] == 0.0) --k;  // rounding went too far
    return k;
}

// The first u < count with the highest a[u * R] + b[u], and that value. b lies in panels of PAD numbers and is padded
// with -inf; behind a there may be any numbers but NaN.
template <int R>
INLINE std::pair<int, double> first_best(const double* a, const double* b, size_t panel, int count) {
    V high = splat(-INF), place = {}, lane;
    for (int k = 0; k < W; ++k) lane[k] = k;
    for (int u = 0; u < count; u += PAD, b += panel)
        for (int k = 0; k < PAD; k += W) {
            V value;
            UNROLL for (int i = 0; i < W; ++i) value[i] = a[(u + k + i) * R];
            value += load(b + k);
            place = value > high ? splat(u + k) : place;
            high = larger(high, value);
        }
    const double best = highest(high);
    return {int(-highest(high >= splat(best) ? -(place + lane) : splat(-INF))), best};
}

template <class A, class Kind>
struct Trace {
    static constexpr int R = Kind::rows;
    Walk<A, Kind>& walk;
    const Trie& trie = walk.trie;
    std::vector<double> weight = {};
    std::vector<Item> where = {};

    // List the candidates of an item in row r, see ``each_before``; return their number.
    INLINE int list(const Item& item, int r) {
        weight.resize(size_t(walk.steps) + trie.nodes + 2), where.resize(weight.size());
        int n = 0;
        const auto put = [&](double value, int kind, int node, int t) {
            weight[n] = value, where[n++] = {kind, node, t};
        };
        each_before(item, r, put, [&](const Group& g, const double* values, const double* table, size_t panel, int t) {
            for (int u = 0; u < g.count; ++u)
                put(times<A>(values[u * R], table[u / PAD * panel + u % PAD]), ENDS, g.first + u, t);
        });
        return n;
    }

    // Write the configuration of row r that ends at a step of its run, which begins at a packed step.
    void follow(int r, int last, int64_t begin, int top, Random* random, const Written& to) {
        for (Item leaf = end_of(r, last, begin, top, random, to); leaf.t >= 0;)
            leaf = next(leaf, r, begin, top, random, to);
    }

    // The leaf with which a run ends.
    Item end_of(int r, int last, int64_t begin, int top, Random* random, const Written& to) {
        to.end(top + 1, top + trie.depth, begin + last);
        return leaf_of({ENDS, 0, last}, r, random);
    }

    // From a leaf that ends at a step to the one that ends before it starts, at step -1 if there is none; write what is
    // between them.
    INLINE Item next(const Item& leaf, int r, int64_t begin, int top, Random* random, const Written& to) {
        Item item{walk.is_unit() ? STARTS : LIVES, leaf.node, leaf.t};
        while (item.kind == LIVES) item = pick({LIVES, item.node, item.t}, r, random);
        record(leaf.node, begin + item.t, begin + leaf.t, top + trie.depth, to);
        if (item.t == 0) return {ENDS, 0, -1};
        int node = item.node;
        while ((item = pick({STARTS, node, item.t}, r, random)).kind == STARTS) node = item.node;
        to.end(top + trie.level[node], top + trie.depth, begin + item.t);
        return leaf_of(item, r, random);
    }

  private:
    // Visit the items that may come next on the way back, weighted by their values times that of the step. The order
    // breaks ties: siblings in the topology's order, a start before going on, the shortest segment first, a level's own
    // transition before its parent's start. Siblings that end at a step are visited together: values and a table.
    template <class Visit, class Siblings>
    INLINE void each_before(const Item& item, int r, Visit visit, Siblings siblings) const {
        const auto [kind, node, t] = item;
        const bool is_leaf = node >= trie.inner;
        const size_t x = size_t(node) * R + r - (is_leaf ? walk.inner : 0);
        const auto value_of = [&](const double* values, int of) { return values[size_t(of) * R + r]; };
        if (kind == ENDS && is_leaf) {
            visit(A::one, LIVES, node, t);
        } else if (kind == ENDS) {
            const Group& g = *trie.below[node];
            siblings(g, &walk.up_at(t)[g.first * R + r], walk.pot_at(t) + g.family->end, PAD, t);
        } else if (kind == LIVES && walk.over_segments()) {
            const auto [first, end] = walk.lags(t);
            for (int lag = first; lag < end; ++lag)
                visit(walk.lagging(t, lag, node - trie.inner, x), STARTS, node, t - lag);
            const auto start = [&](int since, double value) { visit(value, STARTS, node, since); };
            if (walk.tail) walk.tail->each_start(t, node - trie.inner, r, start);
        } else if (kind == LIVES) {
            visit(walk.is_unit() ? A::one : walk.fresh_at(t)[x], STARTS, node, t);
            if (walk.lives_on() && t > 0 && walk.kind.goes_on(t - 1))
                visit(walk.alive_at(t - 1)[x], LIVES, node, t - 1);
        } else if (t == 0) {
            visit(A::one, FRESH_RUN, node, t);
        } else {
            const Group& g = *trie.around[node];
            const int v = node - g.first;
            if (walk.kind.crosses(trie.level[node], t - 1))
                siblings(g, &walk.up_at(t - 1)[g.first * R + r], walk.pot_at(t - 1) + g.family->back + v * PAD,
                         g.family->width * PAD, t - 1);
            if (g.parent > 0)
                visit(times<A>(value_of(walk.down_at(t), g.parent), walk.pot_at(t)[g.family->init + v]), STARTS,
                      g.parent, t);
        }
    }

    // The first of the best (MAX), or one drawn in proportion to its weight.
    INLINE Item pick(const Item& item, int r, Random* random) {
        if constexpr (!std::is_same_v<A, Max>) return where[choose<A>(weight.data(), list(item, r), random)];
        double highest = -INF;
        Item first{-1, 0, 0};
        const auto visit = [&](double value, int kind, int node, int t) ALWAYS {
            if (first.kind < 0 || value > highest) highest = value, first = {kind, node, t};
        };
        const auto siblings = [&](const Group& g, const double* values, const double* table, size_t panel, int t)
                                  ALWAYS {
                                      const auto [u, value] = first_best<R>(values, table, panel, g.count);
                                      visit(value, ENDS, g.first + u, t);
                                  };
        each_before(item, r, visit, siblings);
        return first;
    }

    INLINE Item leaf_of(Item item, int r, Random* random) {
        while (item.node < trie.inner) item = pick({ENDS, item.node, item.t}, r, random);
        return item;
    }

    // Write the states of a leaf and of all above it.
    void record(int node, int64_t first, int64_t last, int level, const Written& to) {
        for (; node > 0; node = trie.around[node]->parent, --level)
            for (int64_t t = first; t <= last; ++t) to.states[level * to.steps + t] = trie.state[node];
    }
};

}  // namespace hscrf::ISA
