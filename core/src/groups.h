// One parent and its children in R rows: the value of child k in row r lies at k * R + r.
//
// With R = 1 a vector holds W children, else W rows. Forward and backward use the same functions: a backward step is a
// forward step of the model read from right to left, with init for end and trans transposed.
#pragma once
#include "arithmetic.h"

namespace hscrf::ISA {

// For each child v: put(v, r, above * entry[v] + sum over u of before[u] * table[u, v]) for children v .. v + W - 1
// (R = 1) or rows r .. r + W - 1. Either term may be missing (nullptr). Tables lie in panels, see ``Family::cell``.
template <class A, int N, class Put>
INLINE void product_alone(const double* above, const double* entry, const double* before, const double* table,
                          int count, int panel, int v, Put put) {
    V even[N], odd[N];
    UNROLL for (int k = 0; k < N; ++k) {
        even[k] = above ? A::times(splat(*above), load(entry + v + k * W)) : splat(A::zero);
        odd[k] = splat(A::zero);
    }
    if (before) {
        table += v / PAD * panel;
        int u = 0;
        for (; u + 2 <= count; u += 2, table += 2 * PAD) UNROLL for (int k = 0; k < N; ++k) {
                const double* row = table + k * W / PAD * panel + k * W % PAD;
                even[k] = A::plus(even[k], A::times(splat(before[u]), load(row)));
                odd[k] = A::plus(odd[k], A::times(splat(before[u + 1]), load(row + PAD)));
            }
        if (u < count)
            UNROLL for (int k = 0; k < N; ++k) even[k] =
                A::plus(even[k], A::times(splat(before[u]), load(table + k * W / PAD * panel + k * W % PAD)));
        UNROLL for (int k = 0; k < N; ++k) even[k] = A::plus(even[k], odd[k]);
    }
    UNROLL for (int k = 0; k < N; ++k) put(v + k * W, 0, even[k]);
}

// The same for C children in B of R rows.
template <class A, int R, int B, int C, class Put>
INLINE void product_rows(const double* above, const double* entry, const double* before, const double* table, int count,
                         int panel, int v, int r, Put put) {
    using V = Vector<R>;
    constexpr int W = lanes<V>, H = B / W;
    V total[C][H];
    UNROLL for (int k = 0; k < C; ++k) UNROLL for (int h = 0; h < H; ++h) total[k][h] =
        above ? A::times(load<V>(above + r + h * W), splat<V>(entry[v + k])) : splat<V>(A::zero);
    if (before) {
        const double* x = before + r;
        for (int u = 0; u < count; ++u, table += PAD, x += R)
            UNROLL for (int h = 0; h < H; ++h) UNROLL for (int k = 0; k < C; ++k) total[k][h] =
                A::plus(total[k][h], A::times(load<V>(x + h * W), splat<V>(table[k / PAD * panel + k % PAD])));
    }
    UNROLL for (int k = 0; k < C; ++k) UNROLL for (int h = 0; h < H; ++h) put(v + k, r + h * W, total[k][h]);
}

// ``width``: of the table; ``size``: of the group, which is padded like it or not.
template <class A, int R, class Put>
INLINE void product(const double* above, const double* entry, const double* before, const double* table, int count,
                    int width, int size, Put put) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    const int panel = width * PAD;
    if constexpr (is_log<A>) {
        for (int v = 0; v < size; v += siblings<R>)
            for (int r = 0; r < R; r += abreast<R>) {
                const double* column = table + v / PAD * panel + v % PAD;
                const V first = above ? get<R>(above + r) + common<R>(entry + v) : splat<V>(A::zero);
                const auto term = [&](int u)
                                      ALWAYS { return get<R>(before + u * R + r) + common<R>(column + u * PAD); };
                put(v, r, reduce<A>(first, before ? count : 0, term));
            }
    } else if constexpr (R == 1) {
        constexpr int E = PAD / W;  // vectors of a panel
        int v = 0;
        for (; v + 4 * PAD <= width; v += 4 * PAD)
            product_alone<A, 4 * E>(above, entry, before, table, count, panel, v, put);
        if (width - v == 3 * PAD) product_alone<A, 3 * E>(above, entry, before, table, count, panel, v, put);
        if (width - v == 2 * PAD) product_alone<A, 2 * E>(above, entry, before, table, count, panel, v, put);
        if (width - v == PAD) product_alone<A, E>(above, entry, before, table, count, panel, v, put);
    } else {
        constexpr int B = 8, C = std::max(4, W);  // B rows and C children at a time
        for (int r = 0; r < R; r += B) {
            const auto at = [&](int v) { return table + v / PAD * panel + v % PAD; };
            int v = 0;
            for (; v + C <= size; v += C)
                product_rows<A, R, B, C>(above, entry, before, at(v), count, panel, v, r, put);
            if (C > 4 && size - v >= 4)
                product_rows<A, R, B, 4>(above, entry, before, at(v), count, panel, v, r, put), v += 4;
            if (size - v == 3) product_rows<A, R, B, 3>(above, entry, before, at(v), count, panel, v, r, put);
            if (size - v == 2) product_rows<A, R, B, 2>(above, entry, before, at(v), count, panel, v, r, put);
            if (size - v == 1) product_rows<A, R, B, 1>(above, entry, before, at(v), count, panel, v, r, put);
        }
    }
}

// The parent's value: the sum over u of value[u] * exit[u].
template <class A, int R>
INLINE void gather(const double* value, const double* exit, int width, double* out) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    if constexpr (R == 1)
        *out = lanes_sum<A>(reduce<A>(splat<V>(A::zero), width / W, [&](int u) ALWAYS {
            return A::times(load<V>(value + u * W), load<V>(exit + u * W));
        }));
    else
        UNROLL for (int r = 0; r < R; r += W) store(out + r, reduce<A>(splat<V>(A::zero), width, [&](int u) ALWAYS {
                                                        return A::times(load<V>(value + u * R + r), splat<V>(exit[u]));
                                                    }));
}

// Where four children from v on lie in R rows. Behind the end of a group the last one stands in: what is counted for it
// goes to the padding of the table, which nobody reads.
template <int R>
INLINE void four(int v, int size, size_t* at) {
    UNROLL for (int i = 0; i < 4; ++i) at[i] = size_t(v + i < size ? v + i : size - 1) * R;
}

// grad[v] += the sum over steps and rows of a[step] * b[step][v] (* p[v]); steps lie some numbers apart.
template <class A, int R>
void count_row(const double* a, size_t a_step, const double* b, size_t b_step, int steps, const double* p, int size,
               double* grad) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    for (int v = 0; v < size; v += PAD) {
        if constexpr (R == 1) {
            for (int k = 0; k < PAD; k += W) {
                V total = load<V>(grad + v + k);
                for (int t = 0; t < steps; ++t)
                    total =
                        A::count(total, splat<V>(a[t * a_step]), load<V>(b + t * b_step + v + k), load<V>(p + v + k));
                store(grad + v + k, total);
            }
        } else {
            for (int k = 0; k < PAD && v + k < size; k += 4) {
                V total[4] = {};
                size_t at[4];
                four<R>(v + k, size, at);
                for (int t = 0; t < steps; ++t)
                    UNROLL for (int r = 0; r < R; r += W) UNROLL for (int i = 0; i < 4; ++i) total[i] =
                        A::count(total[i], load<V>(a + t * a_step + r), load<V>(b + t * b_step + at[i] + r),
                                 splat<V>(p[v + k + i]));
                add_sums(total[0], total[1], total[2], total[3], grad + v + k);
            }
        }
    }
}

// grad[u, v] += the sum over steps and rows of a[step][u] * b[step][v] (* p[u, v]), for U children u.
template <class A, int R, int U>
INLINE void count_rows(const double* a, size_t a_step, const double* b, size_t b_step, int steps, const double* p,
                       int width, int size, double* grad) {
    using V = Vector<R>;
    constexpr int W = lanes<V>;
    const int panel = width * PAD;
    for (int v = 0; v < size; v += PAD, grad += panel, p += panel) {
        if constexpr (R == 1) {
            for (int k = 0; k < PAD; k += W) {
                V total[U];
                UNROLL for (int u = 0; u < U; ++u) total[u] = load<V>(grad + u * PAD + k);
                for (int t = 0; t < steps; ++t)
                    UNROLL for (int u = 0; u < U; ++u) total[u] =
                        A::count(total[u], splat<V>(a[t * a_step + u]), load<V>(b + t * b_step + v + k),
                                 load<V>(p + u * PAD + k));
                UNROLL for (int u = 0; u < U; ++u) store(grad + u * PAD + k, total[u]);
            }
        } else {
            for (int k = 0; k < PAD && v + k < size; k += 4) {
                V total[U][4] = {};
                size_t at[4];
                four<R>(v + k, size, at);
                for (int t = 0; t < steps; ++t)
                    UNROLL for (int r = 0; r < R; r += W) UNROLL for (int i = 0; i < 4; ++i)
                        UNROLL for (int u = 0; u < U; ++u) total[u][i] =
                            A::count(total[u][i], load<V>(a + t * a_step + u * R + r),
                                     load<V>(b + t * b_step + at[i] + r), splat<V>(p[u * PAD + k + i]));
                UNROLL for (int u = 0; u < U; ++u)
                    add_sums(total[u][0], total[u][1], total[u][2], total[u][3], grad + u * PAD + k);
            }
        }
    }
}

template <class A, int R>
void count_pairs(const double* a, size_t a_step, const double* b, size_t b_step, int steps, const double* p, int count,
                 int width, int size, double* grad) {
    constexpr int U = R == 1 ? 4 : 3;
    int u = 0;
    for (; u + U <= count; u += U)
        count_rows<A, R, U>(a + u * R, a_step, b, b_step, steps, p + u * PAD, width, size, grad + u * PAD);
    for (; u < count; ++u)
        count_rows<A, R, 1>(a + u * R, a_step, b, b_step, steps, p + u * PAD, width, size, grad + u * PAD);
}

}  // namespace hscrf::ISA
