// The admissible segments of one level in one sequence: where they lie in tables, their own scores, and the counts of
// these.
#pragma once
#include "space.h"
#include "tokens.h"

namespace hscrf::ISA {

// A table has a line of ``wide`` states for each segment that may exist: first those that end at step 0, then at 1,
// ..., each by lag, the number of steps between first and last. The line of a segment is base[last] + lag.
struct Columns {
    static constexpr int64_t NOWHERE = INT64_MIN / 2;
    int steps = 0, states = 0, wide = 0, longest = 1;
    int64_t first = 0, lines = 0;  // packed step of the sequence; lines of a table
    std::vector<int> reach, most;  // (T, S), (T): the longest admissible segment from each step, 0: none
    std::vector<int64_t> base;     // (T)
    std::vector<int> skip, until;  // (T): lags skip .. until - 1 have lines
    const std::vector<int64_t>* shortest = nullptr;
    const std::vector<uint8_t>* opened = nullptr;  // (S): states with segments beyond their limit
    std::vector<int> limit;                        // (S): the longest explicit duration
    std::vector<uint8_t> may_end, going;           // (T), if any state is open: may a segment end, or go on
    bool open = false;
    bool ragged = false;  // are some of the lines inadmissible for some states

    size_t size() const { return size_t(lines) * wide; }
    size_t line(int t, int lag) const { return size_t(base[t] + lag) * wide; }
    bool ends(int t) const { return until[t] > 0; }

    void plan(const Topology& topology, const Batch& batch, int d, int64_t begin, int length) {
        first = begin, steps = length, states = topology.states[d], wide = padded(states);
        shortest = &topology.shortest[d];
        limit.assign(states, 0), opened = &topology.open[d];
        open = std::any_of(opened->begin(), opened->end(), [](uint8_t yes) { return yes; });
        for (int s = 0; s < states; ++s) {
            int64_t most_of = std::min<int64_t>(topology.longest[d][s], steps);
            if (batch.values.own[DURATION][d].data) most_of = std::min(most_of, batch.values.own[DURATION][d].rows);
            if (batch.values.own[SEGMENT][d].data) most_of = std::min(most_of, batch.values.own[SEGMENT][d].lags);
            limit[s] = int(most_of);
        }
        find_reach(batch, d);
        find_lines(batch, d);
        if (!open) return;
        const uint8_t *ends = flags(batch.evidence.may_end, batch, d), *on = flags(batch.evidence.may_go_on, batch, d);
        may_end.assign(steps, 1), going.assign(steps, 1);
        if (ends) std::copy(ends, ends + steps, may_end.begin()), std::copy(on, on + steps, going.begin());
    }

  private:
    void find_reach(const Batch& batch, int d) {
        const uint8_t* allowed = batch.evidence.allowed.empty() ? nullptr : batch.evidence.allowed[d];
        const uint8_t *may_end = flags(batch.evidence.may_end, batch, d),
                      *goes_on = flags(batch.evidence.may_go_on, batch, d);
        reach.resize(size_t(steps) * states), most.resize(steps);
        std::vector<int> lasts(states, 0);  // of the step after
        ragged = *std::max_element(shortest->begin(), shortest->end()) > 1;
        for (int t = steps - 1; t >= 0; --t) {
            const bool may_start = t == 0 || !may_end || may_end[t - 1], may_last = !goes_on || goes_on[t];
            int least = steps, highest = 0;
            for (int s = 0; s < states; ++s) {
                lasts[s] = allowed && !allowed[(first + t) * states + s] ? 0 : may_last ? 1 + lasts[s] : 1;
                const int here = reach[size_t(t) * states + s] = may_start ? std::min(lasts[s], limit[s]) : 0;
                highest = std::max(highest, here), least = std::min(least, here);
            }
            most[t] = highest, ragged |= least < highest;
        }
    }

    const uint8_t* flags(const uint8_t* all, const Batch& batch, int d) const {
        return all ? all + d * batch.steps() + first : nullptr;
    }

    void find_lines(const Batch& batch, int d) {
        const uint8_t* may_end = flags(batch.evidence.may_end, batch, d);
        base.assign(steps, NOWHERE), skip.assign(steps, 0), until.assign(steps, 0);
        lines = 0, longest = 1;
        for (int t = 0, since = 0; t < steps; ++t) {
            while (since < t && since + most[since] <= t) ++since;
            if ((may_end && !may_end[t]) || since + most[since] <= t) continue;
            int latest = t;
            while (latest + most[latest] <= t) --latest;
            skip[t] = t - latest, until[t] = t - since + 1;
            base[t] = lines - skip[t], lines += until[t] - skip[t];
            longest = std::max(longest, until[t]);
        }
    }
};

// A copy (rows, wide) of an array of states, padded with zeros; nullptr if there is none.
inline double* widened(const double* from, int64_t rows, const Columns& c, Space& space, int name) {
    if (!from) return nullptr;
    double* to = space.get(name, size_t(rows) * c.wide);
    for (int64_t t = 0; t < rows; ++t) {
        std::copy(from + t * c.states, from + (t + 1) * c.states, to + t * c.wide);
        std::fill(to + t * c.wide + c.states, to + (t + 1) * c.wide, 0.0);
    }
    return to;
}

// Add the own scores of all segments to their log masses; -inf where a segment is not admissible.
inline void add_own(const Columns& c, const Values& given, int d, Space& space, double* table) {
    const auto part = [&](int which) { return given.own[which][d].data; };
    const auto by_step = [&](int which) { return part(which) ? part(which) + c.first * c.states : nullptr; };
    const double* token = widened(by_step(TOKEN), c.steps, c, space, ROWS_OF);
    const double* start = widened(by_step(START), c.steps, c, space, ROWS_OF + 1);
    const double* stop = widened(by_step(STOP), c.steps, c, space, ROWS_OF + 2);
    const double* duration =
        widened(part(DURATION), std::min<int64_t>(given.own[DURATION][d].rows, c.longest), c, space, ROWS_OF + 3);
    const double* segment = part(SEGMENT);
    const int64_t lags = given.own[SEGMENT][d].lags;
    for (int t = 0; t < c.steps; ++t) {
        double* lines = table + c.line(t, 0);
        if (c.ends(t) && (token || start || stop || duration))
            for (int x = 0; x < c.wide; x += W) {
                V total = stop ? load(stop + size_t(t) * c.wide + x) : V{};
                for (int lag = token ? 0 : c.skip[t]; lag < c.until[t]; ++lag) {
                    const size_t begin = size_t(t - lag) * c.wide + x;
                    if (token) total += load(token + begin);
                    if (lag < c.skip[t]) continue;
                    double* to = lines + lag * c.wide + x;
                    V value = load(to) + total;
                    if (start) value += load(start + begin);
                    if (duration) value += load(duration + lag * c.wide + x);
                    store(to, value);
                }
            }
        for (int lag = c.skip[t]; segment && lag < c.until[t]; ++lag)
            for (int s = 0; s < c.states; ++s)
                lines[lag * c.wide + s] += segment[((c.first + t - lag) * lags + lag) * c.states + s];
        for (int lag = c.skip[t]; c.ragged && lag < c.until[t]; ++lag)
            for (int s = 0; s < c.states; ++s)
                if (lag >= c.reach[size_t(t - lag) * c.states + s] || lag + 1 < (*c.shortest)[s])
                    lines[lag * c.wide + s] = -INF;
    }
}

// Add a weight times (rows, wide) numbers to an array of states.
inline void narrowed(const double* from, int64_t rows, const Columns& c, double weight, double* to) {
    for (int64_t t = 0; to && t < rows; ++t)
        for (int s = 0; s < c.states; ++s) to[t * c.states + s] += weight * from[t * c.wide + s];
}

// Reverse of ``add_own``: from the posteriors of segments to states, endings and counts, each times a weight.
inline void count_own(const Columns& c, int d, Space& space, const double* post, double weight, Counts& counts) {
    const size_t all = size_t(c.steps) * c.wide;
    double *state = space.filled(ROWS_OF, all, 0.0), *start = space.filled(ROWS_OF + 1, all, 0.0);
    double *stop = space.filled(ROWS_OF + 2, all, 0.0),
           *duration = space.filled(ROWS_OF + 3, size_t(c.longest) * c.wide, 0.0);
    double *segment = counts.own[SEGMENT][d], *by_start = counts.segments[d];
    const int64_t lags = counts.lags[d], places = counts.longest[d];
    for (int t = 0; t < c.steps; ++t) {
        if (!c.ends(t)) continue;
        const double* lines = post + c.line(t, 0);
        for (int x = 0; x < c.wide; x += W) {
            V alive = V{};
            for (int lag = c.until[t] - 1; lag >= 0; --lag) {
                const size_t begin = size_t(t - lag) * c.wide + x;
                if (lag >= c.skip[t]) {
                    const V here = load(lines + lag * c.wide + x);
                    alive += here;
                    store(start + begin, load(start + begin) + here);
                    store(duration + lag * c.wide + x, load(duration + lag * c.wide + x) + here);
                }
                store(state + begin, load(state + begin) + alive);
            }
            store(stop + size_t(t) * c.wide + x, alive);
        }
        for (int s = 0; s < c.states; ++s) counts.ending[d][c.first + t] += weight * stop[size_t(t) * c.wide + s];
        for (int lag = c.skip[t]; (segment || by_start) && lag < c.until[t]; ++lag)
            for (int s = 0; s < c.states; ++s) {
                const double here = weight * lines[lag * c.wide + s];
                if (segment) segment[((c.first + t - lag) * lags + lag) * c.states + s] += here;
                if (by_start) by_start[((c.first + t - lag) * places + lag) * c.states + s] += here;
            }
    }
    const auto by_step = [&](double* to) { return to ? to + c.first * c.states : nullptr; };
    narrowed(state, c.steps, c, weight, by_step(counts.state[d]));
    narrowed(start, c.steps, c, weight, by_step(counts.own[START][d]));
    narrowed(stop, c.steps, c, weight, by_step(counts.own[STOP][d]));
    narrowed(duration, c.longest, c, weight, counts.own[DURATION][d]);
}

}  // namespace hscrf::ISA
