// A vector of W doubles (GCC and Clang vector extensions), its exponential and its logarithm.
#pragma once
#include <cstdint>
#include <limits>
#if defined(__AVX__)
#include <immintrin.h>
#endif

// Eight lanes of AVX-512 are slower: groups of siblings are padded to eight. Its set has four, and more registers.
#if defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif

namespace hscrf::ISA {

constexpr int W = LANES;
constexpr int PAD = 4;  // groups of siblings are padded to multiples of this
constexpr double INF = std::numeric_limits<double>::infinity();
#define INLINE inline __attribute__((always_inline))
#define ALWAYS __attribute__((always_inline))  // of lambdas
#define UNROLL _Pragma("GCC unroll 16")        // loops of constant length whose numbers stay in registers

typedef double V __attribute__((vector_size(W * 8)));
typedef double Loose __attribute__((vector_size(W * 8), aligned(8)));
typedef int64_t I __attribute__((vector_size(W * 8)));

INLINE V load(const double* p) { return *reinterpret_cast<const Loose*>(p); }
INLINE void store(double* p, V v) { *reinterpret_cast<Loose*>(p) = v; }
INLINE V splat(double x) {
#if LANES == 4
    return V{x, x, x, x};
#else
    return V{x, x};
#endif
}
INLINE V larger(V a, V b) { return a > b ? a : b; }
INLINE V smaller(V a, V b) { return a < b ? a : b; }
// Whether a lane of a comparison is true.
INLINE bool any(I mask) {
#if LANES == 4
    return _mm256_movemask_pd((__m256d)mask) != 0;
#else
    return (mask[0] | mask[1]) != 0;
#endif
}
INLINE double sum(V a) {
    double total = 0;
    for (int k = 0; k < W; ++k) total += a[k];
    return total;
}
INLINE double highest(V a) {
    double best = a[0];
    for (int k = 1; k < W; ++k) best = a[k] > best ? a[k] : best;
    return best;
}

// Add the sums of four vectors to four numbers that lie next to each other.
INLINE void add_sums(V a, V b, V c, V d, double* to) {
#if LANES == 4
    const V ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const V cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
    store(to, load(to) + (__builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7)));
#else
    to[0] += sum(a), to[1] += sum(b), to[2] += sum(c), to[3] += sum(d);
#endif
}

INLINE V polynomial(const double (&c)[12], V x) {
    const V square = x * x, fourth = square * square;
    const V low = c[0] + c[1] * x + (c[2] + c[3] * x) * square;
    const V middle = c[4] + c[5] * x + (c[6] + c[7] * x) * square;
    const V high = c[8] + c[9] * x + (c[10] + c[11] * x) * square;
    return low + middle * fourth + high * (fourth * fourth);
}

// exp of numbers up to 709; 0 below -708.
INLINE V exp(V value) {
    constexpr double C[12] = {1. / 2,     1. / 6,      1. / 24,      1. / 120,      1. / 720,       1. / 5040,
                              1. / 40320, 1. / 362880, 1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800};
    const V lowest = splat(-708.0), x = larger(value, lowest);
    const V shifted = x * 1.4426950408889634 + 1.5 * 4503599627370496.0, k = shifted - 1.5 * 4503599627370496.0;
    const V r = x - k * 0.693145751953125 - k * 1.4286068203094172e-06;
    const V power = (V)(((I)shifted + 1023) << 52);
    const V result = (1.0 + (r + r * r * polynomial(C, r))) * power;
    return value < lowest ? V{} : result;
}

// log of normal numbers; -inf of zero.
INLINE V log(V value) {
    constexpr double C[12] = {2.,      2. / 3,  2. / 5,  2. / 7,  2. / 9,  2. / 11,
                              2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21, 2. / 23};
    const I bits = (I)value, power = ((bits + 0x00095F619980C433) & INT64_MAX) >> 52;
    const V m = (V)(bits - ((power - 1023) << 52)), z = (m - 1.0) / (m + 1.0);
    const V k = (V)(power | 0x4330000000000000) - (4503599627370496.0 + 1023.0);
    const V result = k * 0.693145751953125 + (k * 1.4286068203094172e-06 + z * polynomial(C, z * z));
    return value > V{} ? result : splat(-INF);
}

}  // namespace hscrf::ISA
