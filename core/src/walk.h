// Runs of one trie through time, R of them side by side, forward and backward.
//
// One step goes down, lives and goes up, as in docs/theory.md:
//
//     descend    a node starts because its parent does (init) or because a sibling has ended (trans)
//     live       a leaf that starts, or goes on, meets its tokens; with segments, one that started earlier ends
//     ascend     a node ends because one of its children does (end)
//
// ``up`` holds what ends at a step (G), or lives there; ``down`` what starts there (P). Bars are derivatives of log Z.
#pragma once
#include "groups.h"
#include "lags.h"
#include "rows.h"
#include "scales.h"
#include "tail.h"

namespace hscrf::ISA {

template <class A, class Kind>
struct Walk {
    static constexpr int R = Kind::rows, CHUNK = 16;
    using V = Vector<R>;
    static constexpr int W = lanes<V>;
    const Trie& trie;
    Kind& kind;
    Space& space;
    const double* pot;  // tables of the first step, and from one step to the next; 0: they are constant
    size_t stride;
    const bool keep;  // have all steps a place of their own, for a way back
    const int steps;
    const size_t all, inner, leaves;  // numbers of one step: of all nodes, of inner ones, of leaves
    bool stops, starts;               // have leaves that may go on potentials of last, or first, steps
    double *up, *down, *alive, *fresh;
    double *entered, *waiting;        // SEGMENTS: leaves that start, as they were, and on the scale of the latest step
    double *gain, *scale, *exponent;  // (steps, R): what a row was multiplied by; (R); (steps, R): sum of its powers
    uint8_t *rescaled, *raised;
    std::unique_ptr<Tail<A, R>> tail;  // of open segments

    Walk(Kind& kind, Space& space, const double* pot, size_t stride, bool keep)
        : trie(kind.trie),
          kind(kind),
          space(space),
          pot(pot + kind.start * stride),
          stride(stride),
          keep(keep),
          steps(kind.steps),
          all(size_t(trie.nodes) * R),
          inner(size_t(trie.inner) * R),
          leaves(all - inner),
          stops(lives_on() && kind.has(STOP, trie.depth)),
          starts(lives_on() && kind.has(START, trie.depth)) {
        const size_t places = keep ? steps : 2;
        up = space.get(UP, places * all + PAD * R);
        std::fill_n(up + places * all, PAD * R, A::zero);  // is read as padding
        down = space.get(DOWN, places * inner);
        alive = stops ? space.get(ALIVE, places * leaves) : nullptr;
        fresh = lives_on() ? space.get(FRESH, (keep ? steps : 1) * leaves) : nullptr;
        if (over_segments())
            entered = space.get(ENTERED, steps * leaves),
            waiting = is_linear<A> ? space.get(ENTERED_NOW, steps * leaves) : entered;
        gain = space.get(GAIN, 2 * steps * R), exponent = gain + steps * R;
        scale = space.filled(SCALE, R, 0.0);
        rescaled = space.flags(FLAGS, 2 * steps), raised = rescaled + steps;
        if (over_segments() && kind.below->beyond.any)
            tail = std::make_unique<Tail<A, R>>(kind, space, keep, entered, exponent);
    }

    // What the leaves are; a kind of rows may know it beforehand.
    bool over_segments() const { return Kind::over_segments && (!Kind::over_steps || kind.layer.leaf == SEGMENTS); }
    bool lives_on() const { return Kind::over_steps && kind.layer.leaf == MARKOV; }
    bool is_unit() const { return Kind::over_steps && kind.layer.leaf == UNIT; }

    double* up_at(int t) const { return up + (keep ? t : t & 1) * all; }
    double* down_at(int t) const { return down + (keep ? t : t & 1) * inner; }
    double* alive_at(int t) const { return stops ? alive + (keep ? t : t & 1) * leaves : up_at(t) + inner; }
    double* fresh_at(int t) const { return fresh + (keep ? t : 0) * leaves; }
    double* entered_at(int t) const { return entered + t * leaves; }
    double* waiting_at(int t) const { return waiting + t * leaves; }
    double* started_at(int t) const { return started + t * leaves; }
    const double* pot_at(int t) const { return pot + t * stride; }

    // ------------------------------------------------------------------------------------------- up and down

    // Find the nodes that start at a step (back: that end there) from those that ended just before (started just
    // after). Inner ones are stored, leaves are given to give(group, child, row, place, value).
    template <bool back, class Give>
    INLINE void descend(const double* before, double* nodes, bool begins, int t, Give give) {
        for (int level = 1; level <= trie.depth; ++level) {
            const bool opens = !back || kind.closes(level - 1, t);
            const bool crosses = before && kind.crosses(level, back ? t : t - 1);
            const double *now = pot_at(t), *then = back ? now : pot_at(t - (t > 0));
            for (const Group& g : trie.groups[level]) {
                const Family& f = *g.family;
                const double* above = opens && (level > 1 || begins) ? nodes + g.parent * R : nullptr;
                const double *entry = now + (back ? f.end : f.init), *table = then + (back ? f.back : f.trans);
                const double* prior = crosses ? before + g.first * R : nullptr;
                const auto put = [&](int v, int r, V value) ALWAYS { store(nodes + (g.first + v) * R + r, value); };
                const auto hand = [&](int v, int r, V value)
                                      ALWAYS { give(g, v, r, (g.first + v) * R + r - inner, value); };
                if (level < trie.depth)
                    product<A, R>(above, entry, prior, table, f.count, f.width, g.width, put);
                else
                    product<A, R>(above, entry, prior, table, f.count, f.width, g.width, hand);
                if (back && !opens) std::fill(nodes + g.parent * R, nodes + (g.parent + 1) * R, A::zero);
            }
            if (level < trie.depth) {
                if constexpr (back) kind.count_border(STOP, level, t, up_at(t), nodes);
                kind.meet(back ? STOP : START, level, t, nodes);
            }
        }
    }

    // Fill the inner nodes that end at a step (back: that start there) from the leaves.
    template <bool back>
    INLINE void ascend(double* nodes, int t) {
        for (int level = trie.depth; level > 0; --level) {
            const bool closes = back || kind.closes(level - 1, t);
            for (const Group& g : trie.groups[level]) {
                const Family& f = *g.family;
                if (level < trie.depth)
                    std::fill(nodes + (g.first + g.count) * R, nodes + (g.first + g.width) * R, A::zero);
                const double* exit = pot_at(t) + (back ? f.init : f.end);
                if (closes)
                    gather<A, R>(nodes + g.first * R, exit, g.width, nodes + g.parent * R);
                else
                    std::fill(nodes + g.parent * R, nodes + (g.parent + 1) * R, A::zero);
            }
            if (level > 1 && closes) {
                if constexpr (back) kind.count_border(START, level - 1, t, down_at(t), nodes);
                kind.meet(back ? START : STOP, level - 1, t, nodes);
            }
        }
    }

    // ------------------------------------------------------------------------------------------- forward

    void forward() {
        double risk = 0;
        for (int t = 0; t < steps; ++t) {
            kind.prepare(t);
            if (tail) tail->live(t);
            if constexpr (is_linear<A>) {
                const double drop = kind.drop(t);
                if (t > 0 && (over_segments() || risk + drop > STEP)) check(t - 1), risk = 0;
                risk += drop;
                for (int r = 0; over_segments() && r < R; ++r)
                    exponent[t * R + r] = t ? exponent[(t - 1) * R + r] : 0.0;
            }
            double *u = up_at(t), *d = down_at(t);
            const bool begins = kind.born(t, d, scale);
            double* to = is_unit() ? u + inner : lives_on() ? fresh_at(t) : entered_at(t);
            descend<false>(t ? up_at(t - 1) : nullptr, d, begins, t,
                           [&](const Group& g, int v, int r, size_t x, V value)
                               ALWAYS { store(to + x, is_unit() ? A::times(value, kind.token(g, v, r)) : value); });
            if (lives_on()) live(t, u);
            if (over_segments()) end_segments(t, u + inner);
            if (tail) kind.lost |= !tail->leave(t, u + inner), tail->enter(t);
            ascend<false>(u, t);
            kind.closed(t, u, scale);
        }
        if (is_linear<A> && over_segments()) check(steps - 1);
    }

    // Leaves that start at a step, or go on, live through it; those that end meet their last step.
    void live(int t, double* u) {
        double *begin = fresh_at(t), *here = alive_at(t);
        const double* before = t && kind.goes_on(t - 1) ? alive_at(t - 1) : nullptr;
        if (starts) kind.meet(START, trie.depth, t, begin - inner);
        each_leaf([&](const Group& g, int v, int r, size_t x) ALWAYS {
            const V value = before ? A::plus(load<V>(begin + x), load<V>(before + x)) : load<V>(begin + x);
            store(here + x, A::times(value, kind.token(g, v, r)));
        });
        if (stops) std::copy(here, here + leaves, u + inner), kind.meet(STOP, trie.depth, t, u);
    }

    template <class Visit>
    INLINE void each_leaf(Visit visit) const {
        for (const Group& g : trie.groups[trie.depth])
            for (int v = 0; v < g.width; v += siblings<R>)
                for (int r = 0; r < R; r += abreast<R>) visit(g, v, r, size_t(g.first + v) * R + r - inner);
    }

    // The value of a leaf whose segment ends at a step, by its lag, on the scale before this step.
    double lagging(int t, int lag, int x, size_t at) const {
        const size_t line = kind.below->line(kind.start + t, lag) + x;
        double value = entered_at(t - lag)[at];
        if constexpr (is_linear<A>) {
            const double power = exponent_of(t - lag - 1, at % R) - exponent_of(t - 1, at % R);
            if (power != 0.0) value = std::ldexp(value, int(std::clamp(power, -1000.0, 400.0)));
        }
        return times<A>(value, kind.below->mass[line]);
    }

    // The lags of the segments that end at a step.
    std::pair<int, int> lags(int t) const {
        const Columns& c = *kind.below->columns;
        return {c.skip[kind.start + t], std::min(c.until[kind.start + t], t + 1)};
    }

    // The leaves whose segments end at a step.
    void end_segments(int t, double* u) {
        const auto [first, end] = lags(t);
        if (is_linear<A>) std::copy(entered_at(t), entered_at(t + 1), waiting_at(t));
        if (first < end)
            sum_lags<A, R>(waiting_at(t - first), leaves, kind.below->mass + kind.below->line(kind.start + t, first),
                           end - first, trie.leaves(), u);
        else
            std::fill(u, u + leaves, A::zero);
    }

    // LINEAR, see ``rescaling.h``.
    void check(int t);
    int power_for(double next, int power, double high, double most);
    void rescale_waiting(int t, int stage);
    void unscale_waiting(int t, const double* gains);
    int oldest(int t) const { return std::max(0, t + 1 - kind.below->columns->longest); }
    double exponent_of(int t, int r) const { return t < 0 ? 0.0 : exponent[t * R + r]; }

    // ------------------------------------------------------------------------------------------- backward

    double *started = nullptr, *ended = nullptr, *ahead = nullptr;

    // Reverse of ``forward``: add the counts of tables to grad, give posteriors to the kind of rows. Bars of a few
    // steps are kept until they are counted.
    void backward(double* grad, size_t grad_stride) {
        const int chunk = std::clamp<int>((1 << 15) / all, 4, CHUNK);
        double *down_bar = space.get(DOWN_BAR, (chunk + 1) * all), *up_bar = space.get(UP_BAR, chunk * inner);
        ended = space.get(ENDED, leaves), ahead = space.filled(AHEAD, leaves, A::zero);
        if (tail) tail->prepare_back(space);
        if (over_segments()) started = space.filled(STARTED, steps * leaves, A::zero);
        grad += kind.start * grad_stride;
        for (int t0 = (steps - 1) / chunk * chunk; t0 >= 0; t0 -= chunk) {
            const int t1 = std::min(t0 + chunk, steps);
            if (t1 < steps) std::memcpy(down_bar + chunk * all, down_bar, all * sizeof(double));
            for (int t = t1 - 1; t >= t0; --t) step_back(t, up_bar + (t - t0) * inner, down_bar + (t - t0) * all);
            count(t0, t1, down_bar, up_bar, grad, grad_stride);
        }
    }

    INLINE void step_back(int t, double* bar, double* begun) {
        const double *u = up_at(t), *gains = is_linear<A> && rescaled[t] ? gain + t * R : nullptr;
        const V none = splat<V>(A::zero);
        for (size_t k = 0; R == 1 && t >= 8 && k < all; k += 8) __builtin_prefetch(up_at(t - 8) + k);  // from afar
        kind.prepare(t);
        const bool ends = kind.bars(t, u, bar);
        descend<true>(t + 1 < steps ? begun + all : nullptr, bar, ends, t,
                      [&](const Group& g, int v, int r, size_t x, V value) ALWAYS {
                          if (!is_unit()) return store(ended + x, value);
                          const V mass = load<V>(u + inner + x), outside = mass > none ? value : none;
                          leave(g, v, r, t, mass, outside);
                          store(begun + inner + x, before(outside, g, v, r, gains));
                      });
        if (lives_on()) live_back(t, begun, gains);
        if (over_segments()) end_segments_back(t, begun, gains);
        kind.finish(t);
        if (starts) {
            kind.count_border(START, trie.depth, t, fresh_at(t) - inner, begun);
            kind.meet(START, trie.depth, t, begun);
        }
        ascend<true>(begun, t);
    }

    // Note the posterior of a leaf that is alive.
    INLINE void leave(const Group& g, int v, int r, int t, V mass, V outside) {
        const V posterior = A::probability(mass, outside);
        kind.found(g, v, r, posterior);
        if (is_linear<A> && raised[t]) doubt(mass, posterior, r);
    }
    void doubt(V mass, V posterior, int r) {
        for (int k = 0; k < W; ++k)
            if (mass[k] == FLOOR) kind.doubt[R == 1 ? 0 : r + k] += std::fabs(posterior[k]);
    }
    INLINE V before(V outside, const Group& g, int v, int r, const double* gains) const {
        const V value = A::times(outside, kind.token(g, v, r));
        return gains ? A::times(value, R == 1 ? splat<V>(*gains) : load<V>(gains + r)) : value;
    }

    // Reverse of ``live``.
    void live_back(int t, double* begun, const double* gains) {
        const double* here = alive_at(t);
        const bool goes_on = t + 1 < steps && kind.goes_on(t);
        const V none = splat<V>(A::zero);
        kind.count_border(STOP, trie.depth, t, up_at(t), ended - inner);
        if (stops) kind.meet(STOP, trie.depth, t, ended - inner);
        each_leaf([&](const Group& g, int v, int r, size_t x) ALWAYS {
            const V mass = load<V>(here + x),
                    bar = goes_on ? A::plus(load<V>(ended + x), load<V>(ahead + x)) : load<V>(ended + x);
            const V outside = mass > none ? bar : none;
            leave(g, v, r, t, mass, outside);
            const V value = before(outside, g, v, r, gains);
            store(ahead + x, value), store(begun + inner + x, value);
        });
    }

    // Reverse of ``end_segments``: from the bars of leaves that end at a step to those of all that had entered.
    void end_segments_back(int t, double* begun, const double* gains) {
        const double* u = up_at(t) + inner;
        const auto [first, end] = lags(t);
        for (size_t x = 0; x < leaves; ++x) ended[x] = u[x] > A::zero ? ended[x] : A::zero;
        if constexpr (is_linear<A>) {
            if (raised[t])
                for (size_t x = 0; x < leaves; ++x)
                    if (u[x] == FLOOR) kind.doubt[x % R] += std::fabs(u[x] * ended[x]);
            if (gains) unscale_waiting(t, gains);
        }
        if (tail) tail->back(t, ended);
        if constexpr (is_log<A>) {
            std::copy(ended, ended + leaves, started_at(t));
            begin_segments_back(t, begun + inner);
            if (tail) tail->begin(t, begun + inner);
            return;
        }
        if (first < end) {
            const size_t line = kind.below->line(kind.start + t, first);
            spread_lags<R>(waiting_at(t - first), started_at(t - first), leaves, kind.below->mass + line,
                           kind.below->post + line, ended, end - first, trie.leaves());
        }
        const double *bars = started_at(t), *value = waiting_at(t);
        for (size_t x = 0; x < leaves; ++x) begun[inner + x] = value[x] > A::zero ? bars[x] : A::zero;
        if (tail) kind.lost |= !tail->begin(t, begun + inner);
    }

    // LOG. From the bars of leaves that end, in ``started``, to those of leaves that entered at a step, and the
    // posteriors of their segments. One sum for each leaf: ``spread_lags`` would take a logarithm for each segment.
    void begin_segments_back(int t, double* begun) {
        const Columns& c = *kind.below->columns;
        std::vector<std::pair<const double*, size_t>> segments;  // bars where one ends; its line of masses
        for (int k = t; k < std::min(steps, t + c.longest); ++k)
            if (c.skip[kind.start + k] <= k - t && k - t < c.until[kind.start + k])
                segments.push_back({started_at(k), kind.below->line(kind.start + k, k - t)});
        each_leaf([&](const Group&, int, int, size_t at) ALWAYS {
            const size_t x = at / R;
            const V value = load<V>(entered_at(t) + at), none = splat<V>(A::zero);
            const auto bar = [&](int k) ALWAYS {
                return load<V>(segments[k].first + at) + common<R>(kind.below->mass + segments[k].second + x);
            };
            const V total = reduce<A>(none, int(segments.size()), bar);
            store(begun + at, value > none ? total : none);
            for (size_t k = 0; k < segments.size() && any_above(value + total, splat<V>(Log::FAINTEST)); ++k) {
                double* to = kind.below->post + segments[k].second + x;
                const V found = A::count(V{}, value, bar(int(k)), V{});
                if constexpr (R == 1)
                    store(to, load<V>(to) + found);
                else
                    *to += sum(found);
            }
        });
    }

    // Add the counts of init, trans and end of steps t0 .. t1; nothing comes before the first step.
    void count(int t0, int t1, const double* down_bar, const double* up_bar, double* grad, size_t grad_stride) {
        const bool together = stride == 0 && kind.gates.free;
        for (int level = 1; level <= trie.depth; ++level)
            for (const Group& g : trie.groups[level]) {
                const Family& f = *g.family;
                for (int a = t0, b; a < t1; a = b) {
                    b = together ? t1 : a + 1;
                    const double *begun = down_bar + (a - t0) * all + g.first * R, *now = pot_at(a);
                    double* to = grad + a * grad_stride;
                    const int births = level > 1 ? b - a : std::clamp(kind.births() - a, 0, b - a);
                    const int skip = a == 0;
                    const bool pairs = skip < b - a && (together || kind.crosses(level, a - 1));
                    count_row<A, R>(down_at(a) + g.parent * R, inner, begun, all, births, now + f.init, g.width,
                                    to + f.init);
                    count_row<A, R>(up_bar + (a - t0) * inner + g.parent * R, inner, up_at(a) + g.first * R, all, b - a,
                                    now + f.end, g.width, to + f.end);
                    if (pairs)
                        count_pairs<A, R>(up_at(a + skip) - all + g.first * R, all, begun + skip * all, all,
                                          b - a - skip, (together ? now : now - stride) + f.trans, f.count, f.width,
                                          g.width, (together ? to : to - grad_stride) + f.trans);
                }
            }
    }
};

}  // namespace hscrf::ISA

#include "rescaling.h"
