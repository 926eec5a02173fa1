// LOG in R rows: sums are taken in linear numbers around the highest of each row.
//
// A sum over n children costs n multiply-adds, one exponential for each child and one logarithm for each sum. Numbers
// below exp(-708) of the highest are lost on the way. Wherever that could matter, a sum is taken again, term by term.
#pragma once
#include "groups.h"
#include "lags.h"
#include "trie.h"

namespace hscrf::ISA {

constexpr double DEEP = 450;        // sums of terms within exp(-DEEP) of each other lose nothing
constexpr double TINY = 1e-190;     // to larger sums, what was lost adds nothing
constexpr double UPMOST = 500;      // logarithm of the largest factor; times exp(SLACK) it is a number
constexpr double SLACK = 200;       // how far the highest of a window may drift before it is lifted anew
constexpr double NEGLIGIBLE = -45;  // terms so far below the highest add nothing

// The sum over k < n of exp(term(k)), and of exp(first), term by term. Exponentials of faint terms are skipped.
template <class Term>
__attribute__((noinline)) V exact_sum(V first, int n, Term term) {
    V high = first;
    for (int k = 0; k < n; ++k) high = larger(high, term(k));
    const V shift = high > splat(-INF) ? high : V{}, least = splat(NEGLIGIBLE);
    V total = exp(first - shift);
    for (int k = 0; k < n; ++k) {
        const V value = term(k) - shift;
        if (any(value > least)) total += exp(value);
    }
    return shift + log(total);
}

// The highest of some numbers in each row and the lowest above -inf; R = 1: the same in all lanes.
template <int R, int H = R == 1 ? 1 : R / W>
INLINE void log_extremes(const double* values, size_t numbers, V* high, V* low) {
    UNROLL for (int h = 0; h < H; ++h) high[h] = splat(-INF), low[h] = splat(INF);
    for (size_t x = 0; x < numbers; x += H * W) UNROLL for (int h = 0; h < H; ++h) {
            const V value = load(values + x + h * W);
            high[h] = larger(high[h], value);
            low[h] = smaller(low[h], value > splat(-INF) ? value : low[h]);
        }
    if (R == 1) high[0] = splat(highest(high[0])), low[0] = splat(-highest(-low[0]));
}

// to = exp(values - shift) in each row.
template <int R, int H = R == 1 ? 1 : R / W>
INLINE void lift(const double* values, size_t numbers, const V* shift, double* to) {
    for (size_t x = 0; x < numbers; x += H * W)
        UNROLL for (int h = 0; h < H; ++h) store(to + x + h * W, exp(load(values + x + h * W) - shift[h]));
}
INLINE V finite(V value) { return value > splat(-INF) ? value : V{}; }

// As ``product``, of logarithms. ``room``: for a number, and for each child, in each row.
template <int R, class Put>
INLINE void log_product(const double* above, const Lifted& entry, const double* before, const Lifted& table, int count,
                        int width, int size, double* room, Put put) {
    constexpr int H = R == 1 ? 1 : R / W;
    V shift[H], low[H], up[H], around[H];
    if (before)
        log_extremes<R>(before, size_t(size) * R, shift, low);
    else
        UNROLL for (int h = 0; h < H; ++h) shift[h] = splat(-INF), low[h] = splat(INF);
    bool deep = false;
    UNROLL for (int h = 0; h < H; ++h) {
        up[h] = !above ? splat(-INF) : (R == 1 ? splat(*above) : load(above + h * W)) + entry.high;
        shift[h] = finite(larger(shift[h] + table.high, up[h]));
        low[h] = smaller(low[h] + (table.high - table.depth), up[h] > splat(-INF) ? up[h] - entry.depth : splat(INF));
        deep |= any(shift[h] - low[h] > splat(DEEP));
        if (R == 1)
            room[0] = exp(up[h] - shift[h])[0];
        else
            store(room + h * W, exp(up[h] - shift[h]));
        around[h] = shift[h] - table.high;
    }
    double* lifted = room + (R == 1 ? W : R);
    if (before) lift<R>(before, size_t(size) * R, around, lifted);
    const int panel = width * PAD;
    product<Linear, R>(above ? room : nullptr, entry.exps, before ? lifted : nullptr, table.exps, count, width, size,
                       [&](int v, int r, V total) ALWAYS {
                           V value = shift[R == 1 ? 0 : r / W] + log(total);
                           if (__builtin_expect(deep, 0) && any(total < splat(TINY))) {
                               const double* column = table.logs + v / PAD * panel + v % PAD;
                               V first = splat(-INF);
                               if (above)
                                   first = R == 1 ? splat(*above) + load(entry.logs + v)
                                                  : load(above + r) + splat(entry.logs[v]);
                               const V exact = exact_sum(first, before ? count : 0, [&](int u) ALWAYS {
                                   return R == 1 ? splat(before[u]) + load(column + u * PAD)
                                                 : load(before + u * R + r) + splat(column[u * PAD]);
                               });
                               value = total < splat(TINY) ? exact : value;
                           }
                           put(v, r, value);
                       });
}

// As ``gather``, of logarithms.
template <int R>
INLINE void log_gather(const double* value, const double* exit, int width, double* out) {
    if constexpr (R == 1) {
        V high = splat(-INF), total = V{};
        for (int u = 0; u < width; u += W) high = larger(high, load(value + u) + load(exit + u));
        const V shift = finite(splat(highest(high)));
        for (int u = 0; u < width; u += W) total += exp(load(value + u) + load(exit + u) - shift);
        *out = (shift + log(splat(sum(total))))[0];
    } else
        gather<Log, R>(value, exit, width, out);
}

// Steps of one group whose events are counted.
struct Counted {
    const double *up, *begun;    // children that end, and bars of those that start, at the first step
    const double *parent, *bar;  // the parent that starts, and the bar of the one that ends
    size_t all, inner;           // from one step to the next: of nodes, of inner nodes
    int steps, births, skip;     // how many; of them, parents may start; at the first, nothing goes before
    bool crosses;                // may siblings follow
    Lifted init, trans, end;
    int count, width, size;
};

// Add the counts of init and end to grad, which has the order of a ``Family``, and those of trans to theirs.
template <int R>
void log_count(const Counted& c, double* room, double* grad, double* grad_trans) {
    constexpr int H = R == 1 ? 1 : R / W, S = R == 1 ? W : R;
    const size_t row = size_t(c.size) * R;
    const int from = c.crosses ? c.skip - 1 : 0;
    double *ended = room, *started = ended + (c.steps + 1) * row, *pairs = started + c.steps * row;
    double *opens = pairs + c.steps * row, *closes = opens + c.steps * S, *found = closes + c.steps * S;
    const size_t numbers = size_t(c.width) * (c.width + 2);
    V before[H] = {}, most = splat(-INF), low[H];
    for (int t = from; t < c.steps; ++t) {
        V high[H], bars[H];
        log_extremes<R>(c.up + t * ptrdiff_t(c.all), row, high, low);
        UNROLL for (int h = 0; h < H; ++h) high[h] = finite(high[h]);
        lift<R>(c.up + t * ptrdiff_t(c.all), row, high, ended + (t + 1) * row);
        if (t >= 0) {
            log_extremes<R>(c.begun + t * c.all, row, bars, low);
            UNROLL for (int h = 0; h < H; ++h) {
                bars[h] = finite(bars[h]);
                const double *parent = c.parent + t * c.inner + h * W, *bar = c.bar + t * c.inner + h * W;
                V open = splat(-INF);
                if (t < c.births) open = (R == 1 ? splat(*parent) : load(parent)) + bars[h] + c.init.high;
                const V close = (R == 1 ? splat(*bar) : load(bar)) + high[h] + c.end.high;
                most = larger(most, larger(open, close));
                store(opens + t * S + h * W, exp(smaller(open, splat(UPMOST))));
                store(closes + t * S + h * W, exp(smaller(close, splat(UPMOST))));
            }
            lift<R>(c.begun + t * c.all, row, bars, started + t * row);
            if (c.crosses && t >= c.skip) {
                V factor[H];
                UNROLL for (int h = 0; h < H; ++h) {
                    const V pair = before[h] + bars[h] + c.trans.high;
                    most = larger(most, pair), factor[h] = exp(smaller(pair, splat(UPMOST)));
                }
                for (size_t x = 0; x < row; x += H * W)
                    UNROLL for (int h = 0; h < H; ++h)
                        store(pairs + t * row + x + h * W, load(ended + t * row + x + h * W) * factor[h]);
            }
        }
        UNROLL for (int h = 0; h < H; ++h) before[h] = high[h];
    }
    const int across = c.crosses ? c.steps - c.skip : 0;
    if (any(most > splat(UPMOST))) {  // a factor would not be a number
        count_row<Log, R>(c.parent, c.inner, c.begun, c.all, c.births, c.init.logs, c.size, grad);
        count_row<Log, R>(c.bar, c.inner, c.up, c.all, c.steps, c.end.logs, c.size, grad + c.width);
        if (across > 0)
            count_pairs<Log, R>(c.up + (c.skip - 1) * ptrdiff_t(c.all), c.all, c.begun + c.skip * c.all, c.all, across,
                                c.trans.logs, c.count, c.width, c.size, grad_trans);
        return;
    }
    std::fill(found, found + numbers, 0.0);
    count_row<Linear, R>(opens, S, started, row, c.births, c.init.exps, c.size, found);
    count_row<Linear, R>(closes, S, ended + row, row, c.steps, c.end.exps, c.size, found + c.width);
    if (across > 0)
        count_pairs<Linear, R>(pairs + c.skip * row, row, started + c.skip * row, row, across, c.trans.exps, c.count,
                               c.width, c.size, found + 2 * c.width);
    const auto add = [&](const double* some, const double* factor, size_t n, double* to) {
        for (size_t x = 0; x < n; x += W) store(to + x, load(to + x) + load(some + x) * load(factor + x));
    };
    add(found, c.init.exps, c.width, grad), add(found + c.width, c.end.exps, c.width, grad + c.width);
    if (across > 0) add(found + 2 * c.width, c.trans.exps, size_t(c.width) * c.width, grad_trans);
}
// The numbers that ``log_count`` needs.
inline size_t room_to_count(int steps, int width, int R) {
    return size_t(3 * steps + 1) * width * R + 2 * size_t(steps) * std::max(R, W) + size_t(width) * (width + 2) + 2 * W;
}

}  // namespace hscrf::ISA
