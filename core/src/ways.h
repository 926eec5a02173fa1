// The ways back of one sequence, from the root down: the best configuration, or draws.
#pragma once
#include "passes.h"
#include "trace.h"

namespace hscrf::ISA {

template <class A>
struct Ways : Pass<A> {
    using Base = Pass<A>;
    using Base::Base, Base::model, Base::batch, Base::work, Base::space, Base::first, Base::steps, Base::lost,
        Base::unsure, Base::roots, Base::log_z, Base::reach, Base::pot, Base::stride;

    // Write the best configuration (MAX), or ``draws`` of them; false if LINEAR failed. ``to`` is of the first draw.
    bool trace(int draws, Random* random, const Written& to) {
        const int states = model.topology.states[0], depth = model.topology.depth();
        const auto drawn = [&](int k) {
            return Written{to.states + k * depth * to.steps, to.ends + k * depth * to.steps, to.steps};
        };
        Base::inside();
        if (!lost && states > 1) Base::root();  // a lone root state needs no choice
        if (states == 1) roots.assign(1, 0.0), log_z = own_of_root(model.topology, batch, Base::number, 0);
        if (lost || unsure || log_z == -INF) return !lost && !unsure;
        std::vector<std::vector<int>> by_root(states);
        std::vector<double> weight(states);
        for (int k = 0; k < draws; ++k) {
            for (int s = 0; s < states; ++s)
                weight[s] = is_linear<A> && states > 1 ? std::exp(roots[s] - log_z) : roots[s];
            by_root[choose<A>(weight.data(), states, random)].push_back(k);
        }
        if (!Base::prepare(0)) return false;
        Tokens<A, 1> tokens(model.topology, batch, *model.layers[0], space, 1, &first, &steps, false, reach);
        Below<A> below;
        for (int s = 0; s < states; ++s)
            if (!by_root[s].empty())
                Base::under(s, true, tokens, below, [&](auto& walk, auto& kind) {
                    if (states == 1) log_z += kind.total[0];
                    if (log_z == -INF) return;
                    Trace<A, Sequences<A, 1>> way{walk};
                    for (int k : by_root[s]) {
                        const Written here = drawn(k);
                        std::fill_n(here.states + first, steps, s);
                        here.end(0, 0, first + steps - 1);
                        way.follow(0, steps - 1, first, 0, random, here);
                    }
                });
        for (size_t n = 1; n < model.layers.size() && log_z > -INF; ++n) trace_below(n, draws, random, drawn);
        return !unsure && !lost;
    }

    struct Traced {
        int state, start, last, draw;
    };

    // Write the configurations below all segments of a layer's top that were written; equal starts share a walk.
    template <class Drawn>
    void trace_below(size_t n, int draws, Random* random, Drawn drawn) {
        const Layer& layer = *model.layers[n];
        std::vector<Traced> segments;
        for (int k = 0; k < draws; ++k) {
            const Written here = drawn(k);
            for (int t = 0, start = 0; t < steps; ++t)
                if (here.ends[layer.top * here.steps + first + t]) {
                    segments.push_back({here.states[layer.top * here.steps + first + t], start, t, k});
                    start = t + 1;
                }
        }
        std::stable_sort(segments.begin(), segments.end(), [](const Traced& a, const Traced& b) {
            return a.state != b.state ? a.state < b.state : a.start < b.start;
        });
        Base::prepare(n);
        Tokens<A, 1> tokens(model.topology, batch, layer, space, 1, &first, &steps, true, reach);
        tokens.prepare(0);
        Below<A> below;
        const double* stacked = nullptr;
        for (size_t k = 0, next; k < segments.size(); k = next) {
            const auto [s, start, last, draw] = segments[k];
            const Trie& trie = *layer.tries[s];
            const Trie& stacks = *layer.tries[layer.alike[s]];
            if (layer.leaf == SEGMENTS && below.trie != &stacks)
                below.read(stacks, work.columns[layer.bottom], tokens.levels, Base::table(layer.bottom), space, nullptr,
                           reach);
            if (layer.leaf != SEGMENTS && (k == 0 || layer.alike[segments[k - 1].state] != layer.alike[s]))
                stacked = Base::stack(tokens, stacks, space);
            int until = last;
            for (next = k; next < segments.size() && segments[next].state == s && segments[next].start == start; ++next)
                until = std::max(until, segments[next].last);
            const int length = until - start + 1;
            Starts<A, 1> kind(layer, trie, work.gates[n], space, nullptr, stacked ? nullptr : &below, reach, tokens,
                              stacked, nullptr, work.columns[layer.top], nullptr, s, 1, &start, &length);
            Walk<A, Starts<A, 1>> walk(kind, space, pot, stride, true);
            walk.forward();
            Base::judge(kind);
            Trace<A, Starts<A, 1>> way{walk};
            for (; k < next; ++k)
                way.follow(0, segments[k].last - start, first + start, layer.top, random, drawn(segments[k].draw));
        }
        unsure |= tokens.faint[0] || below.unsure(), lost |= tokens.lost;
    }
};

}  // namespace hscrf::ISA
