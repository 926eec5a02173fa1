// Leaves that are segments: sums over their lags in R rows, and the counts of the segments.
//
// The value of leaf x in row r lies at x * R + r; that of the step before lies ``step`` numbers earlier. The segments
// that end at a step lie by lag, a line of ``leaves`` masses for each.
#pragma once
#include "arithmetic.h"

namespace hscrf::ISA {

// out[x, r] = the sum over lags < n of entered[x, r] so many steps before * mass[x] of the lag.
template <class A, int R>
void sum_lags(const double* entered, size_t step, const double* mass, int n, int leaves, double* out) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    if constexpr (R == 1 || is_log<A>) {
        for (int x = 0; x < leaves; x += siblings<R>)
            for (int r = 0; r < R; r += W)
                store(out + x * R + r, reduce<A>(splat<V>(A::zero), n, [&](int lag) ALWAYS {
                          return A::times(load<V>(entered + x * R + r - lag * step),
                                          common<R>(mass + size_t(lag) * leaves + x));
                      }));
    } else {
        constexpr int H = R / W, X = 4;  // X leaves at a time
        for (int x = 0; x < leaves; x += X) {
            V total[X][H];
            UNROLL for (int i = 0; i < X; ++i) UNROLL for (int h = 0; h < H; ++h) total[i][h] = splat<V>(A::zero);
            const double *from = entered + x * R, *factor = mass + x;
            for (int lag = 0; lag < n; ++lag, from -= step, factor += leaves)
                UNROLL for (int i = 0; i < X; ++i) UNROLL for (int h = 0; h < H; ++h) total[i][h] =
                    A::plus(total[i][h], A::times(load<V>(from + i * R + h * W), splat<V>(factor[i])));
            UNROLL for (int i = 0; i < X; ++i) UNROLL for (int h = 0; h < H; ++h)
                store(out + (x + i) * R + h * W, total[i][h]);
        }
    }
}

// LINEAR. Reverse of ``sum_lags``: started[x, r] so many steps before += mass[x] * bar[x, r]; and the posterior of each
// segment, post[x] of the lag += the sum over rows of entered * mass * bar.
template <int R>
void spread_lags(const double* entered, double* started, size_t step, const double* mass, double* post,
                 const double* bar, int n, int leaves) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    if constexpr (R == 1) {
        for (int x = 0; x < leaves; x += W) {
            const V out = load<V>(bar + x);
            const double *from = entered + x, *factor = mass + x;
            double *to = started + x, *found = post + x;
            for (int lag = 0; lag < n; ++lag, from -= step, to -= step, factor += leaves, found += leaves) {
                const V pair = load<V>(factor) * out;
                store(to, load<V>(to) + pair);
                store(found, load<V>(found) + load<V>(from) * pair);
            }
        }
    } else {
        constexpr int H = R / W, X = 4;
        for (int x = 0; x < leaves; x += X) {
            V out[X][H];
            UNROLL for (int i = 0; i < X; ++i) UNROLL for (int h = 0; h < H; ++h) out[i][h] =
                load<V>(bar + (x + i) * R + h * W);
            const double *from = entered + x * R, *factor = mass + x;
            double *to = started + x * R, *found = post + x;
            for (int lag = 0; lag < n; ++lag, from -= step, to -= step, factor += leaves, found += leaves) {
                V total[X] = {};
                UNROLL for (int i = 0; i < X; ++i) UNROLL for (int h = 0; h < H; ++h) {
                    const V pair = out[i][h] * splat<V>(factor[i]);
                    double* here = to + i * R + h * W;
                    store(here, load<V>(here) + pair);
                    total[i] += load<V>(from + i * R + h * W) * pair;
                }
                add_sums(total[0], total[1], total[2], total[3], found);
            }
        }
    }
}

}  // namespace hscrf::ISA
