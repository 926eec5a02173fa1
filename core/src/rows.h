// What the rows of a walk are: whole sequences, each with its own tokens, or starts of one sequence under one top
// state.
//
// A kind of rows says when they begin and end, what their nodes meet at a step, and where their posteriors go.
#pragma once
#include "below.h"
#include "gates.h"

namespace hscrf::ISA {

// What both kinds know of their run.
template <class A, int R>
struct Rows {
    using V = Vector<R>;
    static constexpr int rows = R, W = lanes<V>;
    static constexpr double NEW = is_linear<A> ? 0x1p200 : A::one;  // what a run begins with; LINEAR: 2^CENTER
    static constexpr double SCALE_OF_NEW = is_linear<A> ? -CENTER * LN2 : 0.0;
    const Layer& layer;
    const Trie& trie;
    const Gates& gates;
    Space& space;
    Counts* counts;
    Below<A>* below = nullptr;  // leaves that are segments
    double reach = 0;           // of the tables, and of the number of nodes
    int steps = 0, start = 0;   // and the step of the sequence at which they begin
    bool lost = false;          // LINEAR has lost something for good
    bool unsure[R] = {};        // something was raised
    double doubt[R] = {};       // the posterior mass of that

    Rows(const Layer& layer, const Trie& trie, const Gates& gates, Space& space, Counts* counts, Below<A>* below,
         double reach)
        : layer(layer), trie(trie), gates(gates), space(space), counts(counts), below(below), reach(reach) {}

    bool closes(int level, int t) const { return gates.closes(level, start + t); }
    bool crosses(int level, int t) const { return gates.crosses(level, start + t); }
    bool goes_on(int t) const { return gates.goes_on(start + t); }
};

// Whole sequences under one root state, side by side (R > 1: without evidence about ends) or alone.
template <class A, int R>
struct Sequences : Rows<A, R> {
    using V = Vector<R>;
    static constexpr int W = lanes<V>;
    static constexpr bool over_steps = true, over_segments = R == 1;
    using Base = Rows<A, R>;
    using Base::counts, Base::trie, Base::layer, Base::space, Base::below, Base::steps, Base::doubt, Base::unsure;
    Tokens<A, R>& tokens;
    int used;                                            // rows
    double peak[R] = {}, total[R] = {}, weight[R] = {};  // sum of the highest tokens; log mass; of the counts
    bool adds = false;                                   // are there counts of other root states already
    double *now = nullptr, *met, *sums, *by_state;

    Sequences(const Layer& layer, const Trie& trie, const Gates& gates, Space& space, Counts* counts, Below<A>* below,
              double reach, Tokens<A, R>& tokens, int used)
        : Base(layer, trie, gates, space, counts, below, reach), tokens(tokens), used(used) {
        steps = tokens.steps;
        int widest = 0;
        for (int k = 1; k <= layer.depth(); ++k) widest = std::max(widest, tokens.stride(k));
        met = space.get(MET, size_t(trie.inner) * R), sums = space.get(SUMS, size_t(trie.inner) * R);
        by_state = space.get(BY_STATE, size_t(widest) * R);
        std::fill(total, total + R, -INF), std::fill(weight, weight + R, 1.0);
    }

    bool has(int part, int level) const { return tokens.own[part][level] != nullptr; }
    int since_of(int) const { return 0; }
    int births() const { return 1; }  // steps in which rows may begin

    bool born(int t, double* top, double* scale) {
        std::fill(top, top + R, t == 0 ? Base::NEW : A::zero);
        if (t == 0) std::fill(scale, scale + R, Base::SCALE_OF_NEW);
        return t == 0;
    }
    double drop(int t) const { return Base::reach + tokens.low[t - tokens.begin] + (below ? below->drop : 0.0); }

    // Have the tokens of a step at hand, and those of inner nodes and of all above them multiplied.
    void prepare(int t) {
        tokens.prepare(t);
        const int bottom = trie.depth;
        now = has(TOKEN, bottom) ? tokens.at(TOKEN, bottom, t) : nullptr;
        if (!tokens.inner) return;
        std::fill(met, met + R, A::one);
        for (int level = 1; level < bottom; ++level)
            for (const Group& g : trie.groups[level])
                for (int x = g.first; x < g.first + g.count; ++x) {
                    std::copy(met + g.parent * R, met + g.parent * R + R, met + x * R);
                    if (has(TOKEN, level)) multiply(met, x, tokens.at(TOKEN, level, t));
                }
    }

    INLINE void multiply(double* values, int x, const double* factors) {
        double* value = values + x * R;
        const double* factor = factors + trie.state[x] * R;
        for (int r = 0; r < R; r += abreast<R>) set<R>(value + r, A::times(get<R>(value + r), get<R>(factor + r)));
    }

    // Multiply the nodes of a level by what they meet when they start, or stop, at a step.
    void meet(int part, int level, int t, double* values) {
        if (!has(part, level)) return;
        for (int x = trie.level_at[level]; x < trie.level_at[level + 1]; ++x)
            multiply(values, x, tokens.at(part, level, t));
    }

    INLINE V token(const Group& g, int v, int r) const {
        V value = splat<V>(A::one);
        if constexpr (R == 1) {
            if (now && g.together) value = load<V>(now + g.family->kids[0] + v);
            if (now && !g.together)
                for (int k = 0; k < W; ++k) value[k] = now[trie.state[g.first + v + k]];
            return tokens.inner ? A::times(value, splat<V>(met[g.parent])) : value;
        } else {
            if (now) value = load<V>(now + trie.state[g.first + v] * R + r);
            return tokens.inner ? A::times(value, load<V>(met + g.parent * R + r)) : value;
        }
    }

    void closed(int t, const double* top, const double* scale) {
        const double* peaks = tokens.peak + size_t(t - tokens.begin) * R;
        for (int r = 0; is_linear<A> && r < used; ++r)
            if (t < tokens.length[r]) peak[r] += peaks[r] + (below ? below->peak[t] : 0.0);
        for (int r = 0; r < used; ++r)
            if (tokens.length[r] == t + 1) total[r] = is_linear<A> ? Linear::log(top[r]) + scale[r] + peak[r] : top[r];
    }

    bool alive(int t, int r) const { return r < used && t < tokens.length[r]; }

    // ------------------------------------------------------------------------------------------------ backward

    bool bars(int t, const double* top, double* bar) {
        bool any = false;
        for (int r = 0; r < R; ++r) {
            const bool ends = r < used && tokens.length[r] == t + 1 && top[r] > A::zero && weight[r] != 0.0;
            bar[r] = !ends ? A::zero : is_linear<A> ? weight[r] / top[r] : std::log(weight[r]) - top[r];
            any |= ends;
        }
        std::fill(sums, sums + size_t(trie.inner) * R, 0.0);
        std::fill(by_state, by_state + size_t(tokens.stride(trie.depth)) * R, 0.0);
        return any;
    }

    INLINE void found(const Group& g, int v, int r, V posterior) {
        if constexpr (R == 1) {
            if (g.together) {
                double* to = by_state + g.family->kids[0] + v;
                store(to, load<V>(to) + posterior);
            } else
                for (int k = 0; k < W; ++k) by_state[trie.state[g.first + v + k]] += posterior[k];
            sums[g.parent] += sum(posterior);
        } else {
            double *to = by_state + trie.state[g.first + v] * R + r, *above = sums + g.parent * R + r;
            store(to, load<V>(to) + posterior), store(above, load<V>(above) + posterior);
        }
    }

    // Write the posteriors of all states at a step.
    void finish(int t) {
        if (below) return;
        write(counts->state[layer.bottom], trie.depth, t);
        note_raised(trie.depth, t);
        for (int level = trie.depth - 1; level > 0; --level) {
            std::fill(by_state, by_state + size_t(tokens.stride(level)) * R, 0.0);
            for (const Group& g : trie.groups[level])
                for (int x = g.first; x < g.first + g.count; ++x)
                    for (int r = 0; r < R; ++r) {
                        by_state[trie.state[x] * R + r] += sums[x * R + r];
                        sums[g.parent * R + r] += sums[x * R + r];
                    }
            write(counts->state[layer.top + level], level, t);
            note_raised(level, t);
        }
        if (layer.leaf == UNIT)
            for (int r = 0; r < used; ++r)
                if (t < tokens.length[r]) put(counts->ending[layer.bottom][tokens.first[r] + t], sums[r]);
    }

    // The posteriors that the nodes of a level start or stop at a step, by their values and bars.
    void count_border(int part, int level, int t, const double* values, const double* bars) {
        const bool by_states = has(part, level);
        if (!by_states && part == START) return;
        double ending[R] = {}, post[R];
        if (by_states) std::fill(by_state, by_state + size_t(tokens.stride(level)) * R, 0.0);
        for (const Group& g : trie.groups[level])
            for (int x = g.first; x < g.first + g.count; ++x) {
                if constexpr (R == 1)
                    post[0] = probability<A>(values[x], bars[x]);
                else
                    for (int r = 0; r < R; r += W)
                        store(post + r, A::probability(load<V>(values + x * R + r), load<V>(bars + x * R + r)));
                for (int r = 0; r < R; ++r) {
                    ending[r] += post[r];
                    if (by_states) by_state[trie.state[x] * R + r] += post[r];
                }
            }
        if (by_states) {
            write(counts->own[part][layer.top + level], level, t);
            if (is_linear<A>)
                for (int s = 0; s < tokens.levels[level].states; ++s)
                    for (int r = 0; r < R; ++r)
                        if (tokens.faint[r] && tokens.at(part, level, t)[s * R + r] == tokens.clipped)
                            doubt[r] += std::fabs(by_state[s * R + r]);
            std::fill(by_state, by_state + size_t(tokens.stride(trie.depth)) * R, 0.0);
        }
        if (part == STOP)
            for (int r = 0; r < used; ++r)
                if (t < tokens.length[r]) put(counts->ending[layer.top + level][tokens.first[r] + t], ending[r]);
    }

  private:
    void put(double& to, double value) const { to = adds ? to + value : value; }
    // Write what was found for the states of a level.
    void write(double* target, int level, int t) {
        const int states = tokens.levels[level].states;
        for (int r = 0; target && r < used; ++r)
            for (int s = 0; t < tokens.length[r] && s < states; ++s)
                put(target[(tokens.first[r] + t) * states + s], by_state[s * R + r]);
    }
    void note_raised(int level, int t) {
        if (!is_linear<A> || !has(TOKEN, level)) return;
        const double* own = tokens.at(TOKEN, level, t);
        for (int r = 0; r < used; ++r)
            for (int s = 0; tokens.faint[r] && s < tokens.levels[level].states; ++s)
                if (own[s * R + r] == tokens.clipped) doubt[r] += std::fabs(by_state[s * R + r]);
    }
};

constexpr int OVER_STEPS = 16, OVER_SEGMENTS = 8;  // starts side by side, over leaves without and with segments

// Starts of one sequence under one state of a segmental level, in order: they share their tokens, and may end at every
// step.
template <class A, int R>
struct Starts : Rows<A, R> {
    using V = Vector<R>;
    static constexpr int W = lanes<V>;
    static constexpr bool over_steps = R != OVER_SEGMENTS, over_segments = R != OVER_STEPS;
    using Base = Rows<A, R>;
    using Base::counts, Base::trie, Base::layer, Base::space, Base::below, Base::steps, Base::doubt, Base::unsure,
        Base::start;
    Tokens<A, 1>& tokens;                 // of the whole sequence
    const double* stacked;                // (T, leaves): tokens of whole stacks; nullptr if leaves are segments
    double* posteriors;                   // the same of posteriors, or nullptr
    const Columns& columns;               // of the top's segments
    double* table;                        // their log masses, written, or posteriors, read
    int state, used, since[R], until[R];  // of the rows, steps of the bundle
    const bool writes;
    const double* now = nullptr;
    double *post, *ending;  // (leaves, R); (steps, R): what ``table`` has for the segments that end at a step

    Starts(const Layer& layer, const Trie& trie, const Gates& gates, Space& space, Counts* counts, Below<A>* below,
           double reach, Tokens<A, 1>& tokens, const double* stacked, double* posteriors, const Columns& columns,
           double* table, int state, int used, const int* starts, const int* lasts)
        : Base(layer, trie, gates, space, counts, below, reach),
          tokens(tokens),
          stacked(stacked),
          posteriors(posteriors),
          columns(columns),
          table(table),
          state(state),
          used(used),
          writes(table && !counts) {
        start = starts[0];
        for (int r = 0; r < R; ++r) {
            since[r] = r < used ? starts[r] - start : INT32_MAX;
            until[r] = r < used ? since[r] + lasts[r] : INT32_MAX;
            if (r < used) steps = std::max(steps, until[r]);
        }
        post = space.get(FOUND, size_t(trie.leaves()) * R);
        ending = space.get(ENDING, size_t(steps) * R);
    }

    bool has(int part, int level) const { return part != TOKEN && tokens.own[part][level] != nullptr; }
    int since_of(int r) const { return r < used ? since[r] : 0; }
    int births() const { return since[used - 1] + 1; }

    bool born(int t, double* top, double* scale) {
        std::fill(top, top + R, A::zero);
        while (last < used && since[last] == t) top[last] = Base::NEW, scale[last++] = Base::SCALE_OF_NEW;
        return last > 0 && since[last - 1] == t;
    }
    int last = 0;  // rows before it have begun
    bool alive(int t, int r) const { return since[r] <= t && t < until[r]; }
    bool closes(int level, int t) const { return Base::closes(level, t) && (level > 0 || columns.ends(start + t)); }
    double drop(int t) const { return Base::reach + tokens.low[start + t] + (below ? below->drop : 0.0); }
    void prepare(int t) {
        if (stacked) now = stacked + size_t(start + t) * trie.leaves() - trie.inner;
    }
    INLINE V token(const Group& g, int v, int) const { return common<R>(now + g.first + v); }

    void meet(int part, int level, int t, double* values) {
        if (!has(part, level)) return;
        const double* factor = tokens.at(part, level, start + t);
        for (int x = trie.level_at[level]; x < trie.level_at[level + 1]; ++x)
            for (int r = 0; r < R; r += abreast<R>) {
                double* value = values + x * R + r;
                set<R>(value, A::times(get<R>(value), splat<V>(factor[trie.state[x]])));
            }
    }

    void closed(int t, const double* top, double* scale) {
        const int time = start + t;
        const double peak = is_linear<A> ? tokens.peak[time] + (below ? below->peak[time] : 0.0) : 0.0;
        for (int r = 0; is_linear<A> && r < R; r += abreast<R>) set<R>(scale + r, get<R>(scale + r) + peak);
        for (int r = 0; writes && columns.ends(time) && r < R; r += abreast<R>)
            set<R>(ending + t * R + r, is_linear<A> ? log(get<R>(top + r)) + get<R>(scale + r) : get<R>(top + r));
    }

    // Visit the places of all segments, in the table and in ``ending``. Their lines in the table are far from each
    // other, so this is done before or after the walk.
    template <class Visit>
    INLINE void each_segment(Visit visit) const {
        for (int t = 0, first = 0, last = 0; t < steps; ++t) {
            while (first < used && until[first] <= t) ++first;
            while (last < used && since[last] <= t) ++last;
            double* line = table + columns.line(start + t, t) + state;
            for (int r = first; columns.ends(start + t) && r < last; ++r)
                visit(line[-int64_t(since[r]) * columns.wide], ending[t * R + r]);
        }
    }
    void write() const {
        each_segment([](double& place, double value) { place = value; });
    }
    // Whether any segment has a posterior.
    bool read() const {
        bool any = false;
        std::fill_n(ending, size_t(steps) * R, 0.0);
        each_segment([&](double place, double& value) { value = place, any |= place > 0.0; });
        return any;
    }

    // ------------------------------------------------------------------------------------------------ backward

    bool bars(int t, const double* top, double* bar) {
        for (int r = 0; r < R; r += abreast<R>) {
            const V mass = get<R>(top + r), found = get<R>(ending + t * R + r), none = splat<V>(A::zero);
            set<R>(bar + r, mass > none ? (is_linear<A> ? found / mass : log(found) - mass) : none);
        }
        return columns.ends(start + t);
    }
    INLINE void found(const Group& g, int v, int r, V posterior) {
        store(post + (g.first + v - trie.inner) * R + r, posterior);
    }

    void finish(int t) {
        if (below) return;
        const int leaves = trie.leaves();
        double* to = posteriors + size_t(start + t) * leaves;
        if constexpr (R == 1)
            for (int k = 0; k < leaves; k += W) store(to + k, load<V>(to + k) + load<V>(post + k));
        else
            for (int k = 0; k < leaves; k += 4)
                for (int r = 0; r < R; r += W) {
                    const double* p = post + k * R + r;
                    add_sums(load<V>(p), load<V>(p + R), load<V>(p + 2 * R), load<V>(p + 3 * R), to + k);
                }
    }

    void count_border(int part, int level, int t, const double* values, const double* bars) {
        const int64_t time = tokens.first[0] + start + t;
        const bool met = has(part, level);
        double ending = 0, *to = met ? counts->own[part][layer.top + level] : nullptr;  // nullptr too if not asked for
        if (!met && part == START) return;
        for (const Group& g : trie.groups[level])
            for (int x = g.first; x < g.first + g.count; ++x) {
                double total = 0;
                for (int r = 0; r < R; ++r) total += probability<A>(values[x * R + r], bars[x * R + r]);
                ending += total;
                if (to) to[time * tokens.levels[level].states + trie.state[x]] += total;
                if (is_linear<A> && met && tokens.faint[0] &&
                    tokens.at(part, level, start + t)[trie.state[x]] == tokens.clipped)
                    doubt[0] += std::fabs(total);
            }
        if (part == STOP) counts->ending[layer.top + level][time] += ending;
    }
};

}  // namespace hscrf::ISA
