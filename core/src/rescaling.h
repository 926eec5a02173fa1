// LINEAR: the numbers of a walk stay in range. Rows are multiplied by powers of two, and what is possible but too faint
// is raised.
#pragma once
#include "walk.h"

namespace hscrf::ISA {

// Bring rows whose highest leaf has left the range back into it, and raise what is possible but too faint.
template <class A, class Kind>
void Walk<A, Kind>::check(int t) {
    double high[R], low[R], most[R] = {}, next[R], *here = alive_at(t), *factor = gain + t * R;
    extremes<R>(here, here + leaves, high, low);
    std::fill(next, next + R, -INF);
    if (tail && t + 1 < steps) tail->highest(t + 1, next);
    bool out = false;
    for (int r = 0; r < R; ++r) {
        next[r] -= CENTER * LN2;
        out |= high[r] > 0.0 && !(LOW < high[r] && high[r] < HIGH);
        out |= next[r] > RANGE || (next[r] > -INF && next[r] < -RANGE && high[r] == 0.0);
    }
    if (out && over_segments()) {  // what waits for its end must not be lifted too far
        double least[R];
        extremes<R>(waiting_at(oldest(t)), waiting_at(t + 1), most, least);
        for (int r = 0; r < R; ++r) high[r] = high[r] > 0.0 ? std::max(high[r], 1e-20 * most[r]) : high[r];
    }
    if (out) {  // all rows at once: they grow alike
        for (int r = 0; r < R; ++r) {
            int power = 0;
            if (high[r] > 0.0) std::frexp(high[r], &power), power -= CENTER;
            if (next[r] > -INF) power = power_for(next[r], power, high[r], most[r]);
            factor[r] = std::ldexp(1.0, std::clamp(-power, -1000, 1000)), scale[r] += power * LN2;
            if (over_segments()) exponent[t * R + r] += power;
            low[r] *= factor[r];
        }
        multiply<R>(up_at(t), up_at(t) + all, factor);
        if (stops) multiply<R>(here, here + leaves, factor);
        rescaled[t] = true;
        if (over_segments()) rescale_waiting(t, t);
    }
    for (int r = 0; r < R; ++r) {
        raised[t] |= low[r] < FLOOR;
        kind.unsure[r] |= low[r] < (over_segments() ? SAFE : FLOOR) && kind.alive(t, r);
    }
    if (raised[t])
        for (size_t x = 0; x < leaves; ++x) here[x] = here[x] > 0.0 && here[x] < FLOOR ? FLOOR : here[x];
}

// LINEAR: the power of two to take off a row for what leaves a tail at the next step, given by its logarithm.
template <class A, class Kind>
int Walk<A, Kind>::power_for(double next, int power, double high, double most) {
    const double wanted = std::ceil(next / LN2);
    double found = high > 0.0 ? std::max(wanted, double(power)) : wanted;
    if (most > 0.0) found = std::max(found, std::ceil(std::log2(most) - CENTER - 66));
    const double held = std::clamp(found, -1000.0, 1000.0);
    const bool matters = high > 0.0 || most > 0.0;
    kind.lost |= held != found && matters;
    return int(matters ? held : found);
}

// Put what waits at a step on the scale after another one; what was there when rows were rescaled last is raised.
template <class A, class Kind>
void Walk<A, Kind>::rescale_waiting(int t, int stage) {
    int last = stage;
    while (last >= 0 && !rescaled[last]) --last;
    for (int i = oldest(t); i <= t; ++i) {
        double factor[R];
        for (int r = 0; r < R; ++r) {
            const double power = exponent_of(i - 1, r) - exponent_of(stage, r);
            factor[r] = std::ldexp(1.0, int(std::clamp(power, -1000.0, 400.0)));
        }
        const double* from = entered_at(i);
        double* to = waiting_at(i);
        for (size_t x = 0; x < leaves; ++x) {
            const double value = from[x] * factor[x % R];
            const bool faint = i <= last && value < FLOOR && from[x] > 0.0;
            to[x] = faint ? FLOOR : value;
        }
    }
}
// Go back to the time before the leaves of a step were rescaled.
template <class A, class Kind>
void Walk<A, Kind>::unscale_waiting(int t, const double* gains) {
    for (int i = oldest(t); i <= t; ++i)
        for (size_t x = 0; x < leaves; ++x)
            if (waiting_at(i)[x] == FLOOR) kind.doubt[x % R] += std::fabs(FLOOR * started_at(i)[x]);
    rescale_waiting(t, t - 1);
    multiply<R>(started_at(oldest(t)), started_at(t + 1), gains);
    multiply<R>(ended, ended + leaves, gains);
}

}  // namespace hscrf::ISA
