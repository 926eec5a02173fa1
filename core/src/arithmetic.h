// Three arithmetics: sums of products (scaled), log-sum-exp, and the best.
#pragma once
#include <cmath>

#include "simd.h"

namespace hscrf::ISA {

struct Linear {
    static constexpr double zero = 0.0, one = 1.0;
    template <class V>
    static INLINE V times(V a, V b) {
        return a * b;
    }
    template <class V>
    static INLINE V plus(V a, V b) {
        return a + b;
    }
    template <class V>
    static INLINE V probability(V value, V bar) {
        return value * bar;
    }
    // Counts of pairs are multiplied by their potential p once, at the end.
    template <class V>
    static INLINE V count(V total, V a, V b, V) {
        return total + a * b;
    }
    static double read(double log_value) { return std::exp(log_value); }
    static double log(double value) { return value > 0 ? std::log(value) : -INF; }
};

struct Max {
    static constexpr double zero = -INF, one = 0.0;
    template <class V>
    static INLINE V times(V a, V b) {
        return a + b;
    }
    template <class V>
    static INLINE V plus(V a, V b) {
        return larger(a, b);
    }
    static double read(double log_value) { return log_value; }
    static double log(double value) { return value; }
};

struct Log {
    static constexpr double FAINTEST = -60;    // fainter posteriors add nothing to counts
    static constexpr double NEGLIGIBLE = -45;  // terms so far below the highest add nothing to a sum
    static constexpr double zero = -INF, one = 0.0;
    template <class V>
    static INLINE V times(V a, V b) {
        return a + b;
    }
    template <class V>
    static __attribute__((noinline)) V plus(V a, V b) {
        const V high = larger(a, b), low = smaller(a, b);
        return high > splat<V>(-INF) ? high + ISA::log(1.0 + exp(low - high)) : high;
    }
    template <class V>
    static __attribute__((noinline)) V exp(V value) {
        return ISA::exp(value);  // rarely called, in many places
    }
    template <class V>
    static INLINE V probability(V value, V bar) {
        return exp(value + bar);
    }
    template <class V>
    static INLINE V count(V total, V a, V b, V p) {
        const V value = a + b + p;
        return any_above(value, splat<V>(FAINTEST)) ? total + exp(value) : total;
    }
    static double read(double log_value) { return log_value; }
    static double log(double value) { return value; }
};

template <class A>
constexpr bool is_linear = A::zero == 0.0;
template <class A>
constexpr bool is_log = std::is_same_v<A, Log>;

// The sum over k < n of term(k), and of ``first``. Log finds the highest term first, and skips the exponentials of
// terms that add nothing to it.
template <class A, class V, class Term>
INLINE V reduce(V first, int n, Term term) {
    if constexpr (is_log<A>) {
        V even = first, odd = first;
        int k = 0;
        for (; k + 2 <= n; k += 2) even = larger(even, term(k)), odd = larger(odd, term(k + 1));
        const V high = larger(k < n ? larger(even, term(k)) : even, odd);
        const V shift = high > splat<V>(-INF) ? high : V{}, least = shift + Log::NEGLIGIBLE;
        V total = Log::exp(first - shift);
        for (k = 0; k < n; ++k) {
            const V value = term(k);
            if (any_above(value, least)) total += Log::exp(value - shift);
        }
        return shift + log(total);
    } else {
        V even = first, odd = splat<V>(A::zero);
        int k = 0;
        for (; k + 2 <= n; k += 2) even = A::plus(even, term(k)), odd = A::plus(odd, term(k + 1));
        if (k < n) even = A::plus(even, term(k));
        return A::plus(even, odd);
    }
}

// The sum of the lanes of a vector.
template <class A, class V>
INLINE double lanes_sum(V value) {
    if constexpr (is_linear<A>) return sum(value);
    const double high = highest(value);
    if (!is_log<A> || !(high > -INF)) return high;
    return high + std::log(sum(exp(value - high)));
}

template <class A>
INLINE double times(double a, double b) {
    return is_linear<A> ? a * b : a + b;
}

template <class A>
INLINE double probability(double value, double bar) {
    return is_linear<A> ? value * bar : std::exp(value + bar);
}

}  // namespace hscrf::ISA
