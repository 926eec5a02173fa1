// Runs that are kept in MAX, for the k best: any item of the way back may be asked for its candidates.
#pragma once
#include <map>

#include "ways.h"

namespace hscrf::ISA {

// What the runs under one top state of a layer have in common.
struct Ground {
    Space space;
    const Layer& layer;
    const Trie& trie;
    Tokens<Max, 1> tokens;
    Below<Max> below;
    const double *stacked = nullptr, *pot;
    size_t stride;

    Ground(Ways<Max>& ways, size_t n, int s)
        : layer(*ways.model.layers[n]),
          trie(*layer.tries[s]),
          tokens(ways.model.topology, ways.batch, layer, space, 1, &ways.first, &ways.steps, true, 0.0) {
        ways.prepare(n);
        pot = ways.pot, stride = ways.stride;
        tokens.prepare(0);
        if (layer.leaf == SEGMENTS)
            below.read(trie, ways.work.columns[layer.bottom], tokens.levels, ways.table(layer.bottom), space, nullptr,
                       0.0);
        else if (n > 0)
            stacked = ways.stack(tokens, trie, space);
    }
    Below<Max>* leaves() { return layer.leaf == SEGMENTS ? &below : nullptr; }
};

// One run with memory of its own.
template <class Kind>
struct KeptRun final : Run {
    Space space;
    const int first;  // its first step
    std::unique_ptr<Kind> kind;
    std::unique_ptr<Walk<Max, Kind>> walk;
    std::unique_ptr<Trace<Max, Kind>> way;

    KeptRun(Ways<Max>& ways, Ground& ground, size_t n, int s, int start) : first(start) {
        const auto& [layer, trie] = std::tie(ground.layer, ground.trie);
        const Gates& gates = ways.work.gates[n];
        if constexpr (std::is_same_v<Kind, Sequences<Max, 1>>) {
            kind = std::make_unique<Kind>(layer, trie, gates, space, nullptr, ground.leaves(), 0.0, ground.tokens, 1);
        } else {
            const Columns& columns = ways.work.columns[layer.top];
            const int lasting = columns.reach[size_t(start) * columns.states + s];
            kind = std::make_unique<Kind>(layer, trie, gates, space, nullptr, ground.leaves(), 0.0, ground.tokens,
                                          ground.stacked, nullptr, columns, nullptr, s, 1, &start, &lasting);
        }
        walk = std::make_unique<Walk<Max, Kind>>(*kind, space, ground.pot, ground.stride, true);
        walk->forward();
        way = std::make_unique<Trace<Max, Kind>>(Trace<Max, Kind>{*walk});
    }

    bool has_node(int node) const override {
        return node == 0 || (node > 0 && node < walk->trie.nodes && walk->trie.around[node]);
    }
    bool has(int item, int node, int t) const override {
        if (t < first || t >= first + walk->steps || !has_node(node)) return false;
        return item == ENDS || (node > 0 && item == STARTS) || (node >= walk->trie.inner && item == LIVES);
    }
    // Steps are those of the sequence.
    void incoming(int item, int node, int t, std::vector<double>& weight, std::vector<int>& where) override {
        const int n = way->list({item, node, t - first}, 0);
        weight.assign(way->weight.begin(), way->weight.begin() + n), where.clear();
        for (int k = 0; k < n; ++k)
            for (int part : {way->where[k].kind, way->where[k].node, way->where[k].t + first}) where.push_back(part);
    }
    int level_of(int node) const override { return walk->trie.level[node]; }
    std::vector<int> states_of(int leaf) const override {
        std::vector<int> states;
        for (; leaf > 0; leaf = walk->trie.around[leaf]->parent) states.insert(states.begin(), walk->trie.state[leaf]);
        return states;
    }
};

// The tables of one sequence.
struct KeptRuns final : Runs {
    const Batch batch;
    const std::vector<Shared> shared;
    Workshop work;
    Ways<Max> ways;
    std::map<std::pair<int, int>, Ground> grounds;  // (layer, state)

    KeptRuns(const Model& model, const Batch& given, std::vector<Shared> read)
        : batch(given), shared(std::move(read)), ways(model, batch, shared, work, nullptr, 0) {
        ways.plan();
        ways.inside();
        ways.root();
    }
    std::vector<double> roots() const override { return ways.roots; }
    std::unique_ptr<Run> run(int layer, int state, int start) override {
        if (layer < 0 || layer >= int(ways.model.layers.size()) || start < 0 || start >= ways.steps) return nullptr;
        const int top = ways.model.layers[layer]->top, states = ways.model.topology.states[top];
        if (state < 0 || state >= states || (layer == 0 && start > 0)) return nullptr;
        if (layer > 0 && !work.columns[top].reach[size_t(start) * states + state]) return nullptr;
        Ground& ground = grounds.try_emplace({layer, state}, ways, layer, state).first->second;
        if (layer == 0) return std::make_unique<KeptRun<Sequences<Max, 1>>>(ways, ground, 0, state, start);
        return std::make_unique<KeptRun<Starts<Max, 1>>>(ways, ground, layer, state, start);
    }
};

}  // namespace hscrf::ISA
