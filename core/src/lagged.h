// LOG: sums over the lags of segments, in linear numbers without the gauge of the masses (``Below``).
#pragma once
#include "below.h"
#include "logs.h"

namespace hscrf::ISA {

// Some steps of leaves in R rows: logarithms, and linear numbers around the highest of the steps at hand.
template <int R>
struct Window {
    static constexpr int H = R == 1 ? 1 : R / W, S = R == 1 ? W : R;
    const double* logs;     // (steps, numbers)
    double *lifted, *ends;  // (steps, numbers); (steps, 2, S): highest and lowest, without the gauge
    size_t numbers;
    V shift[H] = {};
    bool deep = false;  // are some of the numbers faint

    Window(const double* logs, double* lifted, double* ends, size_t numbers)
        : logs(logs), lifted(lifted), ends(ends), numbers(numbers) {}
    const double* at(int t) const { return lifted + t * numbers; }

    // Add step t, whose logarithms are to lose gauge(t), to the steps from .. to - 1, of which it is one.
    template <class Gauge>
    void add(int t, int from, int to, double depth, Gauge gauge) {
        V high[H], low[H], most[H], least[H];
        log_extremes<R>(logs + t * numbers, numbers, high, low);
        double* end = ends + size_t(t) * 2 * S;
        UNROLL for (int h = 0; h < H; ++h) {
            store(end + h * W, high[h] - gauge(t)), store(end + S + h * W, low[h] - gauge(t));
            most[h] = splat(-INF), least[h] = splat(INF);
        }
        for (int k = from; k < to; ++k) UNROLL for (int h = 0; h < H; ++h) {
                most[h] = larger(most[h], load(ends + size_t(k) * 2 * S + h * W));
                least[h] = smaller(least[h], load(ends + size_t(k) * 2 * S + S + h * W));
            }
        bool moves = false;
        deep = false;
        UNROLL for (int h = 0; h < H; ++h) {
            const V drift = most[h] - shift[h], none = splat(-INF);
            moves |= any((most[h] > none) & ((drift > splat(SLACK)) | (drift < splat(-SLACK))));
        }
        if (moves) {
            UNROLL for (int h = 0; h < H; ++h) shift[h] = finite(most[h]);
            for (int k = from; k < to; ++k) raise(k, gauge(k));
        } else
            raise(t, gauge(t));
        UNROLL for (int h = 0; h < H; ++h) deep |= any(shift[h] - least[h] > splat(DEEP - depth));
    }

  private:
    void raise(int t, double gauge) {
        V around[H];
        UNROLL for (int h = 0; h < H; ++h) around[h] = shift[h] + gauge;
        lift<R>(logs + t * numbers, numbers, around, lifted + t * numbers);
    }
};

// The leaves of a walk over segments.
template <int R>
struct Lagged {
    static constexpr int H = R == 1 ? 1 : R / W, S = R == 1 ? W : R;
    Below<Log>& below;
    const int start, steps, leaves;
    const size_t numbers;
    double* ended;  // (steps, numbers): bars of leaves that end
    Window<R> entered, bars;
    std::vector<size_t> lines;
    std::vector<int> which;

    template <class Kind>
    Lagged(Kind& kind, Space& space, const double* logs, double* lifted)
        : below(*kind.below),
          start(kind.start),
          steps(kind.steps),
          leaves(kind.trie.leaves()),
          numbers(size_t(leaves) * R),
          ended(space.get(STARTED, steps * numbers)),
          entered(logs, lifted, space.get(RANGES, size_t(steps) * 2 * S), numbers),
          bars(ended, space.get(BARRED, steps * numbers), entered.ends, numbers) {}

    // The leaves that end at t, after ``lags`` from first to end - 1.
    void end(int t, int first, int end, double* out) {
        const auto gauge = [&](int k) { return below.gained[start + k]; };
        entered.add(t, std::max(0, t + 1 - below.columns->longest), t + 1, below.depth, gauge);
        if (first >= end) return std::fill(out, out + numbers, -INF);
        const size_t line = below.line(start + t, first);
        sum_lags<Linear, R>(entered.at(t - first), numbers, below.mass + line, end - first, leaves, out);
        V back[H];
        UNROLL for (int h = 0; h < H; ++h) back[h] = entered.shift[h] + below.gained[start + t + 1];
        finish(entered.deep, back, out, [&](int x, size_t at) ALWAYS {
            return exact_sum(splat(-INF), end - first, [&](int k) ALWAYS {
                return load(entered.logs + (t - first - k) * numbers + at) +
                       mass(below.logs, line + size_t(k) * leaves + x);
            });
        });
    }

    // Reverse of ``end`` for leaves that started at t: their bars, given those that end there; posteriors of segments.
    void begin(int t, double* begun) {
        const Columns& c = *below.columns;
        const int until = std::min(steps, t + c.longest);
        bars.add(t, t, until, below.depth, [&](int k) { return -below.gained[start + k + 1]; });
        lines.clear(), which.clear();
        for (int k = t; k < until; ++k)
            if (c.skip[start + k] <= k - t && k - t < c.until[start + k])
                lines.push_back(below.line(start + k, k - t)), which.push_back(k);
        const int n = int(lines.size());
        const double* from = entered.logs + t * numbers;
        constexpr int X = R == 1 ? W : 1, Y = R == 1 ? 1 : 4;  // leaves of a vector; and at a time
        V back[H];
        UNROLL for (int h = 0; h < H; ++h) back[h] = bars.shift[h] - below.gained[start + t];
        for (int x = 0; x < leaves; x += X * Y) {
            V total[Y][H] = {};
            for (int k = 0; k < n; ++k) {
                const double *bar = bars.at(which[k]) + size_t(x) * R, *factor = below.mass + lines[k] + x;
                UNROLL for (int y = 0; y < Y; ++y) UNROLL for (int h = 0; h < H; ++h) total[y][h] +=
                    load(bar + y * R + h * W) * (R == 1 ? load(factor) : splat(factor[y]));
            }
            UNROLL for (int y = 0; y < Y; ++y) UNROLL for (int h = 0; h < H; ++h)
                store(begun + size_t(x + y) * R + h * W, total[y][h]);
        }
        finish(bars.deep, back, begun, [&](int x, size_t at) ALWAYS {
            return exact_sum(splat(-INF), n, [&](int k) ALWAYS {
                return load(ended + which[k] * numbers + at) + mass(below.logs, lines[k] + x);
            });
        });
        for (int x = 0; x < leaves; x += X * Y) {
            V value[Y][H], most = splat(-INF);
            UNROLL for (int y = 0; y < Y; ++y) UNROLL for (int h = 0; h < H; ++h) {
                const V alive = load(from + size_t(x + y) * R + h * W) + back[h];
                double* to = begun + size_t(x + y) * R + h * W;
                store(to, alive > splat(-INF) ? load(to) : splat(-INF));
                most = larger(most, alive), value[y][h] = exp(smaller(alive, splat(UPMOST)));
            }
            if (highest(most) > UPMOST) {
                for (int y = 0; y < Y; ++y) note_exactly(x + y, t, n);
                continue;
            }
            for (int k = 0; k < n && highest(most) > -INF; ++k) {
                const double *bar = bars.at(which[k]) + size_t(x) * R, *factor = below.mass + lines[k] + x;
                double* to = below.post + lines[k] + x;
                if constexpr (R == 1)
                    store(to, load(to) + value[0][0] * load(bar) * load(factor));
                else {
                    V found[4] = {};
                    UNROLL for (int y = 0; y < 4; ++y) UNROLL for (int h = 0; h < H; ++h) found[y] +=
                        value[y][h] * load(bar + y * R + h * W);
                    UNROLL for (int y = 0; y < 4; ++y) found[y] *= splat(factor[y]);
                    add_sums(found[0], found[1], found[2], found[3], to);
                }
            }
        }
    }

  private:
    static INLINE V mass(const double* masses, size_t at) { return R == 1 ? load(masses + at) : splat(masses[at]); }

    // From linear sums to logarithms; exact(leaf, place) if something was lost.
    template <class Exact>
    INLINE void finish(bool deep, const V* back, double* out, Exact exact) {
        for (size_t x = 0; x < numbers; x += H * W) UNROLL for (int h = 0; h < H; ++h) {
                const V total = load(out + x + h * W);
                V value = log(total) + back[h];
                if (__builtin_expect(deep, 0) && any(total < splat(TINY)))
                    value = total < splat(TINY) ? exact(int(x / R), x + h * W) : value;
                store(out + x + h * W, value);
            }
    }

    // The posteriors of the segments of a leaf, or of a vector of leaves, that started at t.
    void note_exactly(int x, int t, int n) {
        for (int k = 0; k < n; ++k)
            for (size_t r = 0; r < R; r += R == 1 ? 1 : W) {
                const size_t at = size_t(x) * R + r;
                const V value = load(entered.logs + t * numbers + at) + load(ended + which[k] * numbers + at) +
                                mass(below.logs, lines[k] + x);
                if (!any(value > splat(Log::FAINTEST))) continue;
                const V found = exp(value);
                double* to = below.post + lines[k] + x;
                if constexpr (R == 1)
                    store(to, load(to) + found);
                else
                    *to += sum(found);
            }
    }
};

}  // namespace hscrf::ISA
