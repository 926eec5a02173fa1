// One layer: the tables of its parents and children, compact, and the trie of valid stacks below each top state.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "arithmetic.h"
#include "model.h"

namespace hscrf::ISA {

inline int padded(int n) { return (n + PAD - 1) / PAD * PAD; }

inline void exponentiate(double* values, size_t n) {
    size_t k = 0;
    for (; k + W <= n; k += W) store(values + k, exp(load(values + k)));
    for (; k < n; ++k) values[k] = std::exp(values[k]);
}

// One parent state and its children: where their potentials lie. Rows are padded with impossible ones.
struct Family {
    std::vector<int> kids;
    int count, width;
    size_t init, end, trans, back;  // ``back`` is trans transposed

    // Tables (u, v) lie in panels of PAD columns v: a product reads them from the first number to the last.
    size_t cell(int u, int v) const { return (size_t(v / PAD) * width + u) * PAD + v % PAD; }
};

// How far the possible logarithms of each table are above and below zero.
struct Ranges {
    std::vector<std::pair<double, double>> tables;

    // The highest product of one number of each table, or of their inverses, if none is below exp(-clip).
    double reach(double clip) const {
        double total = 0;
        for (const auto& [high, low] : tables) total += std::max(high, std::min(low, clip));
        return total;
    }
    // Infinite if the reach is small enough; if not, a clip that makes it so, if there is one.
    double clip(double widest, double raised) const {
        double clip = INF;
        for (double next = raised; reach(clip) > (clip < INF ? raised : widest) && next > 20; next *= 0.8) clip = next;
        return clip;
    }
};

struct Raised {  // an entry of the tables of a step
    int t;
    size_t place;
};

// The potentials of all families of a layer in one flat array: those that are counted, then trans transposed.
struct Tables {
    struct Entry {
        uint32_t place, index;  // in the flat array, and in the dense table of Python
    };
    int top = 0;
    std::vector<std::vector<Family>> levels;          // [parent's level - top][parent's state]
    std::vector<std::vector<Entry>> entries[EVENTS];  // [part][parent's level - top]
    size_t counted = 0, size = 0;

    Tables(const Topology& topology, int top, int bottom) : top(top), levels(bottom - top) {
        for (auto& part : entries) part.resize(bottom - top);
        for (int d = top; d < bottom; ++d)
            for (int s = 0; s < topology.states[d]; ++s) add(topology, d, s);
        size = counted;
        for (auto& level : levels)
            for (Family& f : level) f.back = size, size += size_t(f.width) * f.width;
    }

    // Fill a flat array with the logarithms of step t; return the range of each table.
    Ranges read(const Values& given, int64_t t, double* flat) const {
        std::fill(flat, flat + counted, -INF);
        Ranges ranges;
        for (int part = 0; part < EVENTS; ++part)
            for (size_t k = 0; k < levels.size(); ++k) {
                const Part& from = given.event[part][top + k];
                double high = 0, low = 0;
                if (!from.data)
                    for (const Entry& e : entries[part][k]) flat[e.place] = 0.0;
                else {
                    const double* row = from.data + (from.rows > 1 ? t : 0) * dense(part, k);
                    for (const Entry& e : entries[part][k]) {
                        const double value = flat[e.place] = row[e.index];
                        if (value > -INF) high = std::max(high, value), low = std::max(low, -value);
                    }
                }
                ranges.tables.push_back({high, low});
            }
        return ranges;
    }

    // LINEAR. From logarithms to numbers. Possible ones below exp(-clip) are raised to that, and noted.
    void exponentiate(double* flat, double clip, int t, std::vector<Raised>& raised) const {
        for (size_t k = 0; k < counted; ++k)
            if (flat[k] > -INF && flat[k] < -clip) flat[k] = -clip, raised.push_back({t, k});
        ISA::exponentiate(flat, counted);
        transpose(flat);
    }

    void transpose(double* flat) const {
        for (const auto& level : levels)
            for (const Family& f : level)
                for (int u = 0; u < f.width; ++u)
                    for (int v = 0; v < f.width; ++v) flat[f.back + f.cell(v, u)] = flat[f.trans + f.cell(u, v)];
    }

    // Add counts, times a weight, to those of Python; ``pot``: they are still to be multiplied by their potentials.
    void write(const Values& given, const double* grad, const double* pot, double weight, int64_t t,
               Counts& counts) const {
        for (int part = 0; part < EVENTS; ++part)
            for (size_t k = 0; k < levels.size(); ++k) {
                double* to = counts.event[part][top + k];
                if (!to) continue;
                to += (given.event[part][top + k].rows > 1 ? t : 0) * dense(part, k);
                for (const Entry& e : entries[part][k])
                    if (grad[e.place] != 0.0)
                        to[e.index] += weight * (pot ? grad[e.place] * pot[e.place] : grad[e.place]);
            }
    }

    bool varies(const Values& given) const {
        for (const auto& part : given.event)
            for (size_t k = 0; k < levels.size(); ++k)
                if (part[top + k].data && part[top + k].rows > 1) return true;
        return false;
    }

  private:
    std::vector<int64_t> below;  // states of each level below

    int64_t dense(int part, size_t k) const {
        return int64_t(levels[k].size()) * below[k] * (part == TRANS ? below[k] : 1);
    }

    void add(const Topology& topology, int d, int s) {
        const int kids = topology.states[d + 1], k = d - top;
        if (s == 0) below.push_back(kids);
        Family f;
        for (int u = 0; u < kids; ++u)
            if (topology.children[d][s * kids + u]) f.kids.push_back(u);
        f.count = int(f.kids.size()), f.width = padded(f.count);
        f.init = counted, f.end = f.init + f.width, f.trans = f.end + f.width;
        counted = f.trans + size_t(f.width) * f.width;
        for (int u = 0; u < f.count; ++u) {
            const uint32_t pair = s * kids + f.kids[u];
            entries[INIT][k].push_back({uint32_t(f.init + u), pair});
            entries[END][k].push_back({uint32_t(f.end + u), pair});
            for (int v = 0; v < f.count; ++v)
                if (topology.successors[d + 1][f.kids[u] * kids + f.kids[v]])
                    entries[TRANS][k].push_back({uint32_t(f.trans + f.cell(u, v)), pair * kids + f.kids[v]});
        }
        levels[k].push_back(f);
    }
};

struct Group {  // siblings
    int parent, first, count, width;
    bool together;  // are the states of the children consecutive
    const Family* family;
};

// The valid stacks below one top state, level by level; the top itself is node 0. Groups of siblings are padded unless
// rows walk side by side, for then vectors hold rows, not siblings.
struct Trie {
    int depth, nodes = 0, inner;
    std::vector<int> level_at;                // first node of each level; the top is level 0
    std::vector<int> state, level;            // of each node; padding has the number of states
    std::vector<std::vector<Group>> groups;   // [level of the children]
    std::vector<const Group*> around, below;  // of each node: the group it is in, and that of its children

    Trie(const Topology& topology, const Tables& tables, int top, int bottom, int s, bool pads = true)
        : depth(bottom - top) {
        groups.resize(depth + 1);
        std::vector<std::pair<int, int>> line{{0, s}};
        level_at.push_back(0);
        nodes = pads ? PAD : 1;
        state.assign(nodes, s);
        for (int level = 1; level <= depth; ++level) {
            std::vector<std::pair<int, int>> next;
            level_at.push_back(nodes);
            for (auto [node, x] : line) {
                const Family& f = tables.levels[level - 1][x];
                const bool together = f.count == 0 || f.kids.back() - f.kids.front() + 1 == f.count;
                const int width = pads ? f.width : f.count;
                groups[level].push_back({node, nodes, f.count, width, together, &f});
                for (int u = 0; u < f.count; ++u) next.push_back({nodes + u, f.kids[u]});
                for (int u = 0; u < width; ++u) state.push_back(u < f.count ? f.kids[u] : topology.states[top + level]);
                nodes += width;
                if (nodes > 1 << 26) throw std::length_error("too many stacks of states");
            }
            line = next;
        }
        inner = level_at[depth];
        level_at.push_back(nodes);
        for (int k = 0; k <= depth; ++k) level.resize(level_at[k + 1], k);
        around.resize(nodes), below.resize(nodes);
        for (const auto& level : groups)
            for (const Group& g : level) {
                below[g.parent] = &g;
                for (int u = 0; u < g.count; ++u) around[g.first + u] = &g;
            }
    }
    Trie(const Trie&) = delete;

    int leaves() const { return nodes - inner; }
    // Whether another trie has the same stacks.
    bool is_like(const Trie& other) const {
        return std::equal(state.begin() + level_at[1], state.end(), other.state.begin() + level_at[1],
                          other.state.end());
    }
};

enum Leaf { UNIT, MARKOV, SEGMENTS };  // a leaf lasts one step, may go on, or is a segment of a table

struct Layer {
    int top, bottom;
    Leaf leaf;
    Tables tables;
    std::vector<std::unique_ptr<Trie>> tries;  // of each top state
    std::vector<int> alike;                    // of each top state: the first one that has the same stacks below it
    std::unique_ptr<Trie> dense;               // of the first, for sequences side by side; nullptr below the root
    int widest = 1;                            // group of siblings
    double spread = 0;                         // logarithm of the most nodes of a trie

    Layer(const Topology& topology, int top, int bottom)
        : top(top),
          bottom(bottom),
          leaf(topology.segmental[bottom] ? SEGMENTS
               : topology.is_unit(bottom) ? UNIT
                                          : MARKOV),
          tables(topology, top, bottom) {
        for (int s = 0; s < topology.states[top]; ++s) {
            tries.push_back(std::make_unique<Trie>(topology, tables, top, bottom, s));
            int like = 0;
            while (!tries[like]->is_like(*tries[s])) ++like;
            alike.push_back(like);
        }
        if (top == 0) dense = std::make_unique<Trie>(topology, tables, top, bottom, 0, false);
        for (const auto& level : tables.levels)
            for (const Family& f : level) widest = std::max(widest, f.count);
        for (const auto& trie : tries) spread = std::max(spread, std::log(double(trie->nodes)));
    }
    int depth() const { return bottom - top; }
    // The levels below the top whose tokens are met step by step.
    int markov() const { return leaf == SEGMENTS ? depth() - 1 : depth(); }
};

struct Model {
    const Topology topology;
    std::vector<std::unique_ptr<Layer>> layers;  // from the root's down

    explicit Model(const Topology& given) : topology(given) {
        for (int d = 0, bottom; d + 1 < topology.depth(); d = bottom) {
            for (bottom = d + 1; bottom + 1 < topology.depth() && !topology.segmental[bottom];) ++bottom;
            layers.push_back(std::make_unique<Layer>(topology, d, bottom));
        }
    }
};

// The tables of a layer that do not change in time, for all sequences of a call, and their counts.
struct Shared {
    bool varies = false;
    double reach = 0;                                    // of the exponentials
    std::vector<Raised> raised;                          // of them
    std::vector<double> logs, exps, counts, log_counts;  // counts of LINEAR are still to be multiplied by ``exps``

    template <class A>
    const double* numbers() const {
        return is_linear<A> ? exps.data() : logs.data();
    }
};

}  // namespace hscrf::ISA
