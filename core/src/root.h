// The segment of the root, which lasts as long as its sequence: its own score, and its counts.
#pragma once
#include "model.h"
#include "simd.h"

namespace hscrf::ISA {

// The own score of root state s over sequence k; -inf where it is impossible.
inline double own_of_root(const Topology& topology, const Batch& batch, int k, int s) {
    const int64_t first = batch.offsets[k], steps = batch.offsets[k + 1] - first, states = topology.states[0];
    const Evidence& known = batch.evidence;
    const auto part = [&](int which) -> const Part& { return batch.values.own[which][0]; };
    const auto at = [&](int which, int64_t row) { return part(which).data ? part(which).data[row * states + s] : 0.0; };
    if (steps > topology.longest[0][s] || steps < topology.shortest[0][s]) return -INF;
    if (part(DURATION).data && steps > part(DURATION).rows) return -INF;
    if (part(SEGMENT).data && steps > part(SEGMENT).lags) return -INF;
    if (known.may_end && !known.may_end[first + steps - 1]) return -INF;
    double total = at(START, first) + at(STOP, first + steps - 1) + at(DURATION, steps - 1);
    total += at(SEGMENT, first * part(SEGMENT).lags + steps - 1);
    const uint8_t* allowed = known.allowed.empty() ? nullptr : known.allowed[0];
    for (int64_t t = first; allowed && t < first + steps; ++t)
        if (!allowed[t * states + s]) return -INF;
    for (int64_t t = first; known.may_go_on && t + 1 < first + steps; ++t)
        if (!known.may_go_on[t]) return -INF;
    for (int64_t t = first; part(TOKEN).data && t < first + steps; ++t) total += at(TOKEN, t);
    return total;
}

// Add the posterior of root state s, times a weight, to the counts of sequence k.
inline void count_root(const Topology& topology, const Batch& batch, int k, int s, double found, Counts& counts) {
    const int64_t first = batch.offsets[k], last = batch.offsets[k + 1] - 1, states = topology.states[0];
    const auto add = [&](double* to, int64_t row) {
        if (to) to[row * states + s] += found;
    };
    for (int64_t t = first; t <= last; ++t) add(counts.state[0], t);
    counts.ending[0][last] += found;
    add(counts.own[START][0], first), add(counts.own[STOP][0], last), add(counts.own[DURATION][0], last - first);
    add(counts.own[SEGMENT][0], first * counts.lags[0] + last - first);
    add(counts.segments[0], first * counts.longest[0] + last - first);
}

}  // namespace hscrf::ISA
