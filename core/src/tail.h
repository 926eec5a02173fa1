// A run of segments beyond their longest explicit duration L, in the rows of a walk over segments; always in
// logarithms.
//
// Beyond L nothing depends on where a segment started: all that have lasted L steps are merged for each leaf.
//
//     living     g(t) = F(t - 1) * one step more           those of more than L steps
//     leaving    g(t) * stop                               is added to what ends at t
//     entering   F(t) = g(t) + entered(t - L + 1) * inject
#pragma once
#include "below.h"

namespace hscrf::ISA {

template <class A, int R>
struct Tail {
    using B = std::conditional_t<std::is_same_v<A, Max>, Max, Log>;
    using V = Vector<R>;
    static constexpr double FAINTEST = -640, MOST = 690;
    Beyond& beyond;
    const int start, steps;
    const size_t leaves;
    const bool keep;
    const double *entered, *exponent;  // of the walk: (steps, leaves, R), (steps, R)
    double *alive, *kept, *late, *bar;
    const double* gained = nullptr;  // LINEAR: the sum of the gauge before each step of the sequence
    double base[R] = {};             // and before the start of each row, without the scale of that

    template <class Kind>
    Tail(Kind& kind, Space& space, bool keep, const double* entered, const double* exponent)
        : beyond(kind.below->beyond),
          start(kind.start),
          steps(kind.steps),
          leaves(size_t(beyond.leaves) * R),
          keep(keep),
          entered(entered),
          exponent(exponent) {
        alive = space.get(TAIL_ALIVE, 2 * leaves), bar = alive + leaves;
        kept = space.get(TAIL_KEPT, (keep ? steps : 1) * leaves);
        std::fill(alive, alive + leaves, -INF);
        if (!is_linear<A>) return;
        gained = kind.below->gained.data();
        for (int r = 0; r < R; ++r) base[r] = gained[start + kind.since_of(r)] - Kind::SCALE_OF_NEW;
    }

    static INLINE double total(V v) { return R == 1 ? v[0] : sum(v); }
    template <class Visit>
    INLINE void each(Visit visit) const {
        for (int x = 0; x < beyond.leaves; ++x)
            for (int r = 0; beyond.lasts[x] && r < R; r += abreast<R>) visit(x, r, size_t(x) * R + r);
    }
    double* living(int t) const { return kept + (keep ? t : 0) * leaves; }
    size_t place(int t, int x) const { return size_t(start + t) * beyond.leaves + x; }

    // LINEAR: logarithm of the scale of what enters at a step; what ends there has the gauge of the step besides.
    INLINE V scale(int t, int r, int gauges) const {
        if constexpr (!is_linear<A>) return V{};
        const V power = t > 0 ? get<R>(exponent + size_t(t - 1) * R + r) * LN2 : V{};
        return power + (gained[start + t + gauges] - get<R>(base + r));
    }
    INLINE V entering(int t, int r, size_t k) const {
        const V value = get<R>(entered + t * leaves + k);
        return is_linear<A> ? log(value) + scale(t, r, 0) : value;
    }

    // ------------------------------------------------------------------------------------------- forward

    void live(int t) {
        double* here = living(t);
        each([&](int x, int, size_t k) {
            set<R>(here + k, t ? get<R>(alive + k) + beyond.step[place(t, x)] : splat<V>(-INF));
        });
    }

    // LINEAR: the highest logarithm of what will leave at a step in each row, on the scale of the walk before it.
    void highest(int t, double* high) const {
        each([&](int x, int r, size_t k) {
            const V value = get<R>(living(t) + k) + beyond.stop[place(t, x)] - scale(t, r, 1);
            set<R>(high + r, larger(get<R>(high + r), value));
        });
    }

    // Add what leaves at a step to the leaves that end there; false if LINEAR cannot hold it.
    bool leave(int t, double* ends) const {
        bool held = true;
        each([&](int x, int r, size_t k) {
            V value = get<R>(living(t) + k) + beyond.stop[place(t, x)];
            if constexpr (is_linear<A>) {
                value = value - scale(t, r, 1);
                held &= ISA::highest(value) < MOST;
                value = value > splat<V>(-INF) ? exp(smaller(larger(value, splat<V>(FAINTEST)), splat<V>(MOST))) : V{};
            }
            set<R>(ends + k, A::plus(get<R>(ends + k), value));
        });
        return held;
    }

    void enter(int t) {
        each([&](int x, int r, size_t k) {
            const int since = t - beyond.lasts[x] + 1;
            V value = get<R>(living(t) + k);
            if (since >= 0) value = B::plus(value, entering(since, r, k) + beyond.inject[place(since, x)]);
            set<R>(alive + k, value);
        });
    }

    // Visit the starts of a leaf that leaves at a step, the latest first: visit(step, value) on the scale of the leaf.
    template <class Visit>
    void each_start(int t, int x, int r, Visit visit) const {
        const int lane = r % abreast<R>, row = r - lane, last = beyond.lasts[x];
        double passed = beyond.stop[place(t, x)] - scale(t, row, 1)[lane];
        for (int since = t - last; last && since >= 0 && passed > -INF; --since) {
            passed += beyond.step[place(since + last, x)];
            const double value =
                passed + beyond.inject[place(since, x)] + entering(since, row, size_t(x) * R + row)[lane];
            visit(since, is_linear<A> ? std::exp(std::min(value, MOST)) : value);
        }
    }

    // ------------------------------------------------------------------------------------------- backward

    void prepare_back(Space& space) {
        late = space.filled(TAIL_LATE, steps * leaves, -INF);
        std::fill(bar, bar + leaves, -INF);
    }

    // From the bars of leaves that end at a step: posteriors, and bars of what entered L steps before.
    void back(int t, const double* ended) {
        each([&](int x, int r, size_t k) {
            V out = get<R>(ended + k);
            if (is_linear<A>) out = log(out) - scale(t, r, 1);
            out = out + beyond.stop[place(t, x)];
            const V after = get<R>(bar + k), mass = get<R>(living(t) + k);
            const int since = t - beyond.lasts[x] + 1;
            if (since >= 0) {
                const V before = after + beyond.inject[place(since, x)];
                set<R>(late + since * leaves + k, before);
                beyond.injected[place(since, x)] += total(exp(entering(since, r, k) + before));
            }
            const V here = B::plus(after, out);
            beyond.stepped[place(t, x)] += total(exp(mass + here));
            beyond.stopped[place(t, x)] += total(exp(mass + out));
            set<R>(bar + k, here + beyond.step[place(t, x)]);
        });
    }

    // Add the bars of what entered at a step; false if LINEAR cannot hold them.
    bool begin(int t, double* begun) const {
        bool held = true;
        each([&](int, int r, size_t k) {
            V value = get<R>(late + t * leaves + k);
            if constexpr (is_linear<A>) {
                value = get<R>(entered + t * leaves + k) > V{} ? value + scale(t, r, 0) : splat<V>(-INF);
                held &= ISA::highest(value) < MOST;
                value = exp(smaller(value, splat<V>(MOST)));
            }
            set<R>(begun + k, A::plus(get<R>(begun + k), value));
        });
        return held;
    }
};

}  // namespace hscrf::ISA
