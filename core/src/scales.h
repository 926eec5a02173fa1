// LINEAR: numbers in rows, and their range.
#pragma once
#include "arithmetic.h"

namespace hscrf::ISA {

// The highest of some numbers in each row, and the lowest above zero.
template <int R>
INLINE void extremes(const double* begin, const double* end, double* high, double* low) {
    using V = Vector<R>;
    constexpr int W = lanes<V>, H = R == 1 ? 1 : R / W;
    UNROLL for (int h = 0; h < H; ++h) {
        V most = splat<V>(0.0), least = splat<V>(INF);
        for (const double* x = begin + h * W; x < end; x += H * W) {
            const V value = load<V>(x);
            most = larger(most, value);
            least = smaller(least, value > V{} ? value : least);
        }
        if (R == 1)
            high[0] = highest(most), low[0] = -highest(-least);
        else
            store(high + h * W, most), store(low + h * W, least);
    }
}

template <int R>
INLINE void multiply(double* begin, double* end, const double* factor) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    if constexpr (R == 1)
        for (; begin < end; ++begin) *begin *= *factor;
    else
        for (; begin < end; begin += R)
            for (int r = 0; r < R; r += W) store(begin + r, load<V>(begin + r) * load<V>(factor + r));
}

}  // namespace hscrf::ISA
