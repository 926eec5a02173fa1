// Vectors of doubles (GCC and Clang vector extensions), their exponential and their logarithm.
#pragma once
#include <cstdint>
#include <limits>
#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace hscrf::ISA {

// Vectors of siblings have four lanes at most, since groups are padded to whole vectors; those of rows have all.
#if defined(__AVX512F__)
constexpr int SIBLINGS = 4, ROWS = 8;
#elif defined(__AVX__)
constexpr int SIBLINGS = 4, ROWS = 4;
#else
constexpr int SIBLINGS = 2, ROWS = 2;
#endif
constexpr int PAD = 4;  // groups of siblings are padded to multiples of this
constexpr double INF = std::numeric_limits<double>::infinity();
#define INLINE inline __attribute__((always_inline))
#define ALWAYS __attribute__((always_inline))  // of lambdas
#define UNROLL _Pragma("GCC unroll 16")        // loops of constant length whose numbers stay in registers

template <int lanes>
struct Lanes {
    typedef double Type __attribute__((vector_size(lanes * 8)));
    typedef double Loose __attribute__((vector_size(lanes * 8), aligned(8)));
    typedef int64_t Bits __attribute__((vector_size(lanes * 8)));
};
// R rows side by side are walked in vectors of rows, one row in vectors of siblings.
template <int R>
constexpr int width = R == 1 ? SIBLINGS : ROWS;
template <int R>
using Vector = typename Lanes<width<R>>::Type;
constexpr int W = SIBLINGS;
using V = Vector<1>;

template <class V>
constexpr int lanes = sizeof(V) / sizeof(double);
template <class V>
using Bits = typename Lanes<lanes<V>>::Bits;

template <class V = ISA::V>
INLINE V load(const double* p) {
    return *reinterpret_cast<const typename Lanes<lanes<V>>::Loose*>(p);
}
template <class V>
INLINE void store(double* p, V v) {
    *reinterpret_cast<typename Lanes<lanes<V>>::Loose*>(p) = v;
}
template <class V = ISA::V>
INLINE V splat(double x) {
    return x - V{};
}
// One number of each row from r on: a vector of rows, or the number of the only row.
template <int R>
constexpr int abreast = R == 1 ? 1 : lanes<Vector<R>>;
template <int R>
INLINE Vector<R> get(const double* p) {
    return R == 1 ? splat<Vector<R>>(*p) : load<Vector<R>>(p);
}
template <int R>
INLINE void set(double* p, Vector<R> v) {
    if constexpr (R == 1)
        *p = v[0];
    else
        store(p, v);
}
// What rows share, of children from v on: of the next children for the only row, of one child for a vector of rows.
template <int R>
constexpr int siblings = R == 1 ? SIBLINGS : 1;
template <int R>
INLINE Vector<R> common(const double* p) {
    return R == 1 ? load<Vector<R>>(p) : splat<Vector<R>>(*p);
}
template <class V>
INLINE V larger(V a, V b) {
    return a > b ? a : b;
}
template <class V>
INLINE V smaller(V a, V b) {
    return a < b ? a : b;
}
// Whether a lane of one is above that of another.
template <class V>
INLINE bool any_above(V a, V b) {
#if defined(__AVX512F__)
    if constexpr (lanes<V> == 8) return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ) != 0;
#endif
    const auto mask = a > b;
#if defined(__AVX__)
    if constexpr (lanes<V> == 4) return _mm256_movemask_pd((__m256d)mask) != 0;
#endif
    return (mask[0] | mask[1]) != 0;
}
// The lanes of a vector, two by two, until one number is left.
template <class V, class Both>
INLINE double fold(V a, Both both) {
    if constexpr (lanes<V> == 8)
        return fold(both(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(a, a, 4, 5, 6, 7)), both);
    else if constexpr (lanes<V> == 4)
        return fold(both(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(a, a, 2, 3)), both);
    else
        return both(a[0], a[1]);
}
template <class V>
INLINE double sum(V a) {
    return fold(a, [](auto x, auto y) ALWAYS { return x + y; });
}
template <class V>
INLINE double highest(V a) {
    return fold(a, [](auto x, auto y) ALWAYS { return x > y ? x : y; });
}

// Add the sums of four vectors to four numbers that lie next to each other.
template <class V>
INLINE void add_sums(V a, V b, V c, V d, double* to) {
    if constexpr (lanes<V> == 8) {
        const auto halves = [](V v) ALWAYS {
            return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
        };
        add_sums(halves(a), halves(b), halves(c), halves(d), to);
    } else if constexpr (lanes<V> == 4) {
        const V ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
        const V cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
        const V low = __builtin_shufflevector(ab, cd, 0, 1, 4, 5), high = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        store(to, load<V>(to) + (low + high));
    } else
        to[0] += sum(a), to[1] += sum(b), to[2] += sum(c), to[3] += sum(d);
}

template <class V>
INLINE V polynomial(const double (&c)[12], V x) {
    const V square = x * x, fourth = square * square;
    const V low = c[0] + c[1] * x + (c[2] + c[3] * x) * square;
    const V middle = c[4] + c[5] * x + (c[6] + c[7] * x) * square;
    const V high = c[8] + c[9] * x + (c[10] + c[11] * x) * square;
    return low + middle * fourth + high * (fourth * fourth);
}

// exp of numbers up to 709; 0 below -708.
template <class V>
INLINE V exp(V value) {
    constexpr double C[12] = {1. / 2,     1. / 6,      1. / 24,      1. / 120,      1. / 720,       1. / 5040,
                              1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800};
    const V lowest = splat<V>(-708.0), x = larger(value, lowest);
    const V shifted = x * 1.4426950408889634 + 1.5 * 4503599627370496.0, k = shifted - 1.5 * 4503599627370496.0;
    const V r = x - k * 0.693145751953125 - k * 1.4286068203094172e-06;
    const V power = (V)(((Bits<V>)shifted + 1023) << 52);
    const V result = (1.0 + (r + r * r * polynomial(C, r))) * power;
    return value < lowest ? V{} : result;
}

// log of normal numbers; -inf of zero.
template <class V>
INLINE V log(V value) {
    constexpr double C[12] = {2.,      2. / 3,  2. / 5,  2. / 7,  2. / 9,  2. / 11,
                              2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21, 2. / 23};
    const Bits<V> bits = (Bits<V>)value, power = ((bits + 0x00095F619980C433) & INT64_MAX) >> 52;
    const V m = (V)(bits - ((power - 1023) << 52)), z = (m - 1.0) / (m + 1.0);
    const V k = (V)(power | 0x4330000000000000) - (4503599627370496.0 + 1023.0);
    const V result = k * 0.693145751953125 + (k * 1.4286068203094172e-06 + z * polynomial(C, z * z));
    return value > V{} ? result : splat<V>(-INF);
}

}  // namespace hscrf::ISA
