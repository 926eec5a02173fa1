// One sequence in one arithmetic: inside from the lowest level to the root, and outside back down.
#pragma once
#include "root.h"
#include "walk.h"

namespace hscrf::ISA {

template <class A>
struct Pass {
    const Model& model;
    const Batch& batch;
    const std::vector<Shared>& shared;
    Workshop& work;
    Space& space;
    Counts* counts;
    const int number;  // of the sequence
    const int64_t first;
    const int steps;
    bool lost = false, unsure = false;  // LINEAR: has it failed; was anything raised
    double doubt = 0;                   // the posterior mass of that
    std::vector<double> roots;          // log masses under each root state, own scores included
    double log_z = -INF;

    Pass(const Model& model, const Batch& batch, const std::vector<Shared>& shared, Workshop& work, Counts* counts,
         int k)
        : model(model),
          batch(batch),
          shared(shared),
          work(work),
          space(work.space),
          counts(counts),
          number(k),
          first(batch.offsets[k]),
          steps(int(batch.offsets[k + 1] - batch.offsets[k])) {}

    // Find the admissible segments. Once for a sequence, whatever the arithmetic.
    void plan() {
        work.columns.resize(model.topology.depth()), work.gates.resize(model.layers.size());
        for (size_t n = 0; n < model.layers.size(); ++n) {
            work.gates[n].plan(batch, *model.layers[n], first, steps);
            for (int d : {model.layers[n]->top, model.layers[n]->bottom})
                if (d && model.topology.segmental[d]) work.columns[d].plan(model.topology, batch, d, first, steps);
        }
    }

    double* table(int d) { return space.get(TABLE + d, work.columns[d].size()); }
    double* posterior(int d) { return space.get(POSTERIOR + d, work.columns[d].size()); }

    // ------------------------------------------------------------------------------------------------ inside

    // The log masses of all segments below the root.
    void inside() {
        for (size_t n = model.layers.size(); n-- > 0 && !lost;) {
            const Layer& layer = *model.layers[n];
            if (layer.leaf == SEGMENTS && layer.bottom + 1 == model.topology.depth()) fill_table(layer.bottom, 0.0);
            if (layer.top == 0) break;
            std::fill_n(table(layer.top), work.columns[layer.top].size(), -INF);
            sweep(n, false);
            add_own(work.columns[layer.top], batch.values, layer.top, space, table(layer.top));
        }
    }

    void fill_table(int d, double value) {
        const Columns& c = work.columns[d];
        double* lines = table(d);
        for (int64_t n = 0; n < c.lines; ++n, lines += c.wide) {
            std::fill(lines, lines + c.states, value);
            std::fill(lines + c.states, lines + c.wide, -INF);
        }
        add_own(c, batch.values, d, space, table(d));
    }

    // The numbers of the tables of a layer, from the first step on, and from one step to the next.
    std::pair<const double*, size_t> numbers(size_t n) {
        const Tables& tables = model.layers[n]->tables;
        if (!shared[n].varies) return {shared[n].template numbers<A>(), 0};
        double* flat = space.get(FLAT_OF + n, tables.size * steps);
        for (int t = 0; t < steps; ++t) {
            double* row = flat + t * tables.size;
            const Ranges ranges = tables.read(batch.values, first + t, row);
            if (!is_linear<A>) {
                tables.transpose(row);
                continue;
            }
            const double clip = ranges.clip(WIDE - model.layers[n]->spread, RAISED);
            tables.exponentiate(row, clip, t, raised), reach = std::max(reach, ranges.reach(clip));
        }
        return {flat, tables.size};
    }
    double reach = 0;            // of the tables of the layer at hand, and of the number of its nodes
    std::vector<Raised> raised;  // of these tables

    // Have the numbers of a layer at hand; LINEAR: can it hold them.
    bool prepare(size_t n) {
        reach = shared[n].reach, raised = shared[n].raised;
        std::tie(pot, stride) = numbers(n);
        reach += model.layers[n]->spread, unsure |= is_linear<A> && !raised.empty();
        return !(lost |= is_linear<A> && reach > WIDE);
    }
    const double* pot = nullptr;
    size_t stride = 0;
    double* grad(size_t n) { return work.grads[n].data(); }
    size_t grad_stride(size_t n) const { return stride ? model.layers[n]->tables.counted : 0; }
    // LINEAR: note the posterior mass of what was raised in the tables at hand.
    void judge_tables(size_t n) {
        for (const Raised& e : raised)
            if (is_linear<A>) doubt += std::fabs(grad(n)[e.t * grad_stride(n) + e.place] * pot[e.t * stride + e.place]);
    }

    // Walk all starts under all states of a segmental level; with ``back``, from the posteriors of its segments to
    // counts.
    void sweep(size_t n, bool back) {
        const Layer& layer = *model.layers[n];
        if (!prepare(n)) return;
        Tokens<A, 1> tokens(model.topology, batch, layer, space, 1, &first, &steps, true, reach);
        tokens.prepare(0);
        for (int s = 0; s < model.topology.states[layer.top]; ++s)
            if (layer.alike[s] == s) sweep_alike(n, s, tokens, back);
        if (back) judge_tables(n);
        lost |= tokens.lost, unsure |= tokens.faint[0];
    }

    // The same under all states that have the same stacks as one.
    void sweep_alike(size_t n, int s, Tokens<A, 1>& tokens, bool back) {
        const Layer& layer = *model.layers[n];
        const bool over_segments = layer.leaf == SEGMENTS;
        const Trie& stacks = *layer.tries[s];
        Below<A> below;
        if (over_segments) {
            below.read(stacks, work.columns[layer.bottom], tokens.levels, table(layer.bottom), space,
                       back ? posterior(layer.bottom) : nullptr, reach);
            unsure |= below.unsure();
        }
        const double* stacked = over_segments ? nullptr : stack(tokens, stacks, space);
        double* found = back && stacked ? space.filled(SUMS, size_t(steps) * stacks.leaves(), 0.0) : nullptr;
        const auto walk_all = [&](auto rows_of, int state, int used, const int* starts, const int* lasts) {
            using Kind = Starts<A, decltype(rows_of)::value>;
            Kind kind(layer, *layer.tries[state], work.gates[n], space, back ? counts : nullptr,
                      stacked ? nullptr : &below, reach, tokens, stacked, found, work.columns[layer.top],
                      back ? posterior(layer.top) : table(layer.top), state, used, starts, lasts);
            if (back && !kind.read()) return;
            Walk<A, Kind> walk(kind, space, pot, stride, back);
            walk.forward();
            if (!back) kind.write();
            if constexpr (!std::is_same_v<A, Max>)
                if (back) walk.backward(grad(n), grad_stride(n));
            judge(kind);
        };
        if (over_segments)
            windows<OVER_SEGMENTS>(layer, s, walk_all);
        else
            windows<OVER_STEPS>(layer, s, walk_all);
        if (found) unstack(tokens, stacks, found);
        if (back && over_segments)
            doubt += below.leave(posterior(layer.bottom), tokens.levels, space, states_of(layer));
    }

    template <class Kind>
    void judge(const Kind& kind) {
        for (int r = 0; r < Kind::rows; ++r) unsure |= kind.unsure[r], doubt += kind.doubt[r];
        lost |= kind.lost;
    }

    // Call with<rows>(state, number, starts, lengths) for the starts of states that are alike, side by side where
    // enough of them are alive. In the order of starts, because the states of a segment lie next to each other in
    // tables.
    template <int R, class With>
    void windows(const Layer& layer, int like, With with) {
        struct Window {
            int state, used;
            size_t at;
        };
        const Columns& c = work.columns[layer.top];
        std::vector<int> starts, lasts;
        std::vector<Window> found;
        for (int s = like; s < c.states; ++s) {
            if (layer.alike[s] != like) continue;
            size_t k = starts.size();
            int longest = 0;
            for (int t = 0; t < steps; ++t)
                if (const int lasting = c.reach[size_t(t) * c.states + s])
                    starts.push_back(t), lasts.push_back(lasting), longest = std::max(longest, lasting);
            const bool worth = longest >= layer.widest / (layer.leaf == SEGMENTS ? 4 : 2);
            while (k < starts.size()) {
                const int used = int(std::min<size_t>(R, starts.size() - k));
                int64_t alive = 0;
                for (int r = 0; r < used; ++r) alive += lasts[k + r];
                const int64_t computed = starts[k + used - 1] + lasts[k + used - 1] - starts[k];
                found.push_back({s, worth && alive * 4 >= computed * R ? used : 1, k});
                k += found.back().used;
            }
        }
        std::stable_sort(found.begin(), found.end(),
                         [&](const Window& a, const Window& b) { return starts[a.at] < starts[b.at]; });
        for (const auto& [state, used, at] : found)
            if (used > 1)
                with(std::integral_constant<int, R>(), state, used, &starts[at], &lasts[at]);
            else
                with(std::integral_constant<int, 1>(), state, 1, &starts[at], &lasts[at]);
    }

    // The products (T, leaves) of the tokens of leaves and of all above them.
    const double* stack(const Tokens<A, 1>& tokens, const Trie& trie, Space& space) {
        const int leaves = trie.leaves();
        double* stacked = space.get(STACKED, size_t(steps) * leaves);
        std::vector<double> met(trie.nodes);
        for (int t = 0; t < steps; ++t) {
            met[0] = A::one;
            for (int k = 1; k <= trie.depth; ++k)
                for (const Group& g : trie.groups[k]) {
                    const double* row = tokens.own[TOKEN][k] ? tokens.at(TOKEN, k, t) : nullptr;
                    for (int x = g.first; x < g.first + g.count; ++x)
                        met[x] = row ? times<A>(met[g.parent], row[trie.state[x]]) : met[g.parent];
                    std::fill(&met[g.first] + g.count, &met[g.first] + g.width, A::zero);
                }
            std::copy(met.begin() + trie.inner, met.end(), stacked + size_t(t) * leaves);
        }
        return stacked;
    }

    // Reverse of ``stack``: from the posteriors of leaves to those of all states above them.
    void unstack(const Tokens<A, 1>& tokens, const Trie& trie, const double* found) {
        const Layer& layer = tokens.layer;
        std::vector<double> by_node(trie.nodes);
        for (int t = 0; t < steps; ++t) {
            std::fill(by_node.begin(), by_node.end(), 0.0);
            std::copy(found + size_t(t) * trie.leaves(), found + size_t(t + 1) * trie.leaves(),
                      by_node.begin() + trie.inner);
            for (int k = trie.depth; k > 0; --k)
                for (const Group& g : trie.groups[k])
                    for (int x = g.first; x < g.first + g.count; ++x) {
                        const int states = tokens.levels[k].states, s = trie.state[x];
                        counts->state[layer.top + k][(first + t) * states + s] += by_node[x];
                        by_node[g.parent] += by_node[x];
                        if (is_linear<A> && tokens.faint[0] && tokens.own[TOKEN][k] &&
                            tokens.at(TOKEN, k, t)[s] == tokens.clipped)
                            doubt += std::fabs(by_node[x]);
                    }
            if (layer.leaf == UNIT) counts->ending[layer.bottom][first + t] += by_node[0];
        }
    }

    std::vector<double*> states_of(const Layer& layer) const {
        std::vector<double*> states;
        for (int d = layer.top; d <= layer.bottom; ++d) states.push_back(counts->state[d]);
        return states;
    }

    // ------------------------------------------------------------------------------------------------ the root

    // Walk the whole sequence under root state s, and let use(walk, kind) go on from there; the log mass.
    template <class Use>
    double under(int s, bool keep, Tokens<A, 1>& tokens, Below<A>& below, Use use) {
        const Layer& layer = *model.layers[0];
        const Trie& stacks = *layer.tries[layer.alike[s]];
        if (layer.leaf == SEGMENTS && below.trie != &stacks) {
            below.read(stacks, work.columns[layer.bottom], tokens.levels, table(layer.bottom), space,
                       counts ? posterior(layer.bottom) : nullptr, reach);
            unsure |= below.unsure();
        }
        Sequences<A, 1> kind(layer, *layer.tries[s], work.gates[0], space, counts,
                             layer.leaf == SEGMENTS ? &below : nullptr, reach, tokens, 1);
        Walk<A, Sequences<A, 1>> walk(kind, space, pot, stride, keep);
        kind.adds = model.topology.states[0] > 1;
        walk.forward();
        use(walk, kind);
        judge(kind);
        unsure |= tokens.faint[0], lost |= tokens.lost;
        return kind.total[0];
    }

    // Log Z from the tables of all levels below; with counts, also outside.
    void root() {
        const int states = model.topology.states[0];
        if (!prepare(0)) return;
        std::vector<double> own(states), post(states, 1.0);
        roots.assign(states, -INF);
        for (int s = 0; s < states; ++s) own[s] = own_of_root(model.topology, batch, number, s);
        Tokens<A, 1> tokens(model.topology, batch, *model.layers[0], space, 1, &first, &steps, false, reach);
        Below<A> below;
        const bool single = counts && states == 1;
        for (int s = 0; s < states; ++s)
            if (own[s] > -INF)
                roots[s] = own[s] + under(s, single, tokens, below, [&](auto& walk, auto& kind) {
                               if (single && kind.total[0] > -INF) back(walk, below);
                           });
        const double high = *std::max_element(roots.begin(), roots.end());
        double total = 0;
        for (double value : roots) total += high > -INF ? std::exp(value - high) : 0.0;
        log_z = high > -INF && !std::is_same_v<A, Max> ? high + std::log(total) : high;
        if (!counts || log_z == -INF) return;
        for (int s = 0; s < states && !single; ++s) {
            post[s] = std::exp(roots[s] - log_z);
            if (post[s] > 0.0)
                under(s, true, tokens, below, [&](auto& walk, auto& kind) {
                    kind.weight[0] = post[s];
                    back(walk, below);
                });
        }
        roots_found = post;
        judge_tables(0);
    }
    std::vector<double> roots_found;  // posteriors of the root states

    template <class W>
    void back(W& walk, Below<A>& below) {
        const Layer& layer = *model.layers[0];
        if constexpr (!std::is_same_v<A, Max>) {
            walk.backward(grad(0), grad_stride(0));
            if (layer.leaf == SEGMENTS)
                doubt += below.leave(posterior(layer.bottom), walk.kind.tokens.levels, space, states_of(layer));
        }
    }

    // ------------------------------------------------------------------------------------------------ outside

    // Log Z and, with counts, all expected counts into ``work.grads`` and the arrays of Python; false if LINEAR failed.
    bool run(bool again) {
        if (counts) clear(again);
        inside();
        if (!lost) root();
        if (!counts || log_z == -INF || lost) return !lost;
        for (size_t n = 1; n < model.layers.size() && !lost; ++n) sweep(n, true);
        return !lost && doubt <= DOUBT;
    }

    // No counts yet: of tables, of segments, and in the rows of the sequence.
    void clear(bool again) {
        work.grads.resize(model.layers.size());
        for (size_t n = 0; n < model.layers.size(); ++n)
            work.grads[n].assign(model.layers[n]->tables.counted * (shared[n].varies ? steps : 1), 0.0);
        for (const auto& layer : model.layers)
            if (layer->leaf == SEGMENTS) {
                const Columns& c = work.columns[layer->bottom];
                std::fill_n(posterior(layer->bottom), c.size(), 0.0);
                if (c.open) space.filled(TAIL_FOUND, 3 * size_t(c.steps) * c.wide, 0.0);
            }
        if (again) each_markov_row([](double* from, double* to) { std::fill(from, to, 0.0); });
    }

    // The rows of this sequence in arrays of Markov levels, which are filled as the pass goes.
    template <class Visit>
    void each_markov_row(Visit visit) {
        for (int d = 1; d < model.topology.depth(); ++d) {
            if (model.topology.segmental[d]) continue;
            for (double* array : {counts->state[d], counts->own[START][d], counts->own[STOP][d]})
                if (array)
                    visit(array + first * model.topology.states[d], array + (first + steps) * model.topology.states[d]);
            visit(counts->ending[d] + first, counts->ending[d] + first + steps);
        }
    }

    // Add what was found, times a weight, to the counts of all sequences.
    void commit(double weight, std::vector<Shared>& totals) {
        if (weight != 1.0)
            each_markov_row([&](double* from, double* to) {
                for (; from < to; ++from) *from *= weight;
            });
        if (log_z == -INF) return;
        for (size_t n = 0; n < model.layers.size(); ++n) {
            const Layer& layer = *model.layers[n];
            const std::vector<double>& found = work.grads[n];
            if (shared[n].varies) {
                const double* flat = numbers(n).first;
                for (int t = 0; t < steps; ++t)
                    layer.tables.write(batch.values, grad(n) + t * layer.tables.counted,
                                       is_linear<A> ? flat + t * layer.tables.size : nullptr, weight, first + t,
                                       *counts);
            } else {
                std::vector<double>& to = is_linear<A> ? totals[n].counts : totals[n].log_counts;
                for (size_t k = 0; k < found.size(); ++k) to[k] += weight * found[k];
            }
            if (layer.leaf != SEGMENTS) continue;
            const Columns& c = work.columns[layer.bottom];
            count_own(c, layer.bottom, space, posterior(layer.bottom), weight, *counts);
            if (c.open) count_beyond(c, layer.bottom, space.get(TAIL_FOUND, 0), weight, *counts);
        }
        for (int s = 0; s < model.topology.states[0]; ++s)
            count_root(model.topology, batch, number, s, weight * roots_found[s], *counts);
    }
};

}  // namespace hscrf::ISA
