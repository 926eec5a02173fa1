// What the nodes of Markov levels meet step by step: tokens, and potentials of first and last steps.
#pragma once
#include "space.h"
#include "trie.h"

namespace hscrf::ISA {

// LINEAR. Rows are rescaled so that their highest number is near 2^CENTER. They are rescaled before they could fall, or
// grow, by exp(STEP) without being looked at; what is possible but fainter than FLOOR is then raised to that. Whatever
// is raised, or clipped, is noted: it has to have no posterior, or LOG takes over. Tables may reach no further than
// WIDE, so that HIGH * exp(STEP) times any table is a number, and FLOOR * exp(-STEP) times any, and its inverse.
constexpr int CENTER = 200;
constexpr double FLOOR = 1e-60, STEP = 340, WIDE = 170;
constexpr double RAISED = 140;  // how far tables reach of which something was raised
constexpr double SAFE = 1e-40;  // to numbers above it, what was raised to FLOOR, or clipped, adds nothing
constexpr double LOW = 0x1p134, HIGH = 0x1p266;  // rows are rescaled when their highest leaves this range
constexpr double RANGE = 46;                     // logarithm of half of it
constexpr double LN2 = 0.6931471805599453;
constexpr size_t CACHED = size_t(1) << 18;  // so many exponentials are kept for the way back
constexpr double DOUBT = 1e-13;             // the posterior mass of what was raised may be so much

// The log-potentials of a level at each step. All that a unit bottom has is like tokens; so is a set of allowed states.
struct Observed {
    const Part* own[OWN] = {};
    const uint8_t* allowed = nullptr;
    int states = 0;
    bool unit = false;

    Observed() = default;
    Observed(const Topology& topology, const Batch& batch, int d)
        : states(topology.states[d]), unit(topology.is_unit(d)) {
        for (int part = 0; part < OWN; ++part)
            if (batch.values.own[part][d].data) own[part] = &batch.values.own[part][d];
        if (!batch.evidence.allowed.empty()) allowed = batch.evidence.allowed[d];
    }
    bool has(int part) const {
        if (part != TOKEN) return own[part] && !unit;
        bool any = own[TOKEN] || allowed;
        for (int other = START; unit && other < OWN; ++other) any |= own[other] != nullptr;
        return any;
    }
    // The row of a packed step; ``room`` holds it unless it can be read where it is.
    const double* row(int part, int64_t t, double* room) const {
        if (part != TOKEN) return own[part]->data + t * states;
        bool plain = own[TOKEN] && !allowed;
        for (int other = START; unit && other < OWN; ++other) plain &= !own[other];
        if (plain) return own[TOKEN]->data + t * states;
        for (int s = 0; s < states; ++s) room[s] = own[TOKEN] ? own[TOKEN]->data[t * states + s] : 0.0;
        if (unit) {
            for (int border : {START, STOP})
                for (int s = 0; own[border] && s < states; ++s) room[s] += own[border]->data[t * states + s];
            for (int s = 0; own[DURATION] && s < states; ++s) room[s] += own[DURATION]->data[s];
            for (int s = 0; own[SEGMENT] && s < states; ++s)
                room[s] += own[SEGMENT]->data[t * own[SEGMENT]->lags * states + s];
        }
        for (int s = 0; allowed && s < states; ++s)
            if (!allowed[t * states + s]) room[s] = -INF;
        return room;
    }
};

// The tokens, starts and stops of R sequences, rows innermost, in blocks of steps; LINEAR: exponentials, of tokens
// without the highest of each step.
template <class A, int R>
struct Tokens {
    using V = Vector<R>;
    static constexpr int W = lanes<V>, H = R == 1 ? 1 : R / W;
    static constexpr int BORDERS = 3;
    const Layer& layer;
    Space& space;
    std::vector<Observed> levels;  // [level - top]
    int64_t first[R] = {};
    int length[R] = {}, steps = 0;
    int block, begin = 0, end = 0;      // steps of a block, and which of them are there
    std::vector<double*> own[BORDERS];  // [part][level - top]
    double *low, *peak;                 // (block), (block, R): how far below the highest a token is; the highest
    double clip, clipped;               // what is further below is raised to exp(-clip)
    bool inner = false;                 // have levels above the leaves tokens
    bool lost = false, faint[R] = {};   // can LINEAR not hold them at all; was any of them raised
    int sources = 0;
    double *nowhere, *room;

    // ``all``: have all steps at hand, not block by block; ``reach``: of the tables.
    Tokens(const Topology& topology, const Batch& batch, const Layer& layer, Space& space, int rows,
           const int64_t* firsts, const int* lengths, bool all, double reach)
        : layer(layer), space(space), levels(layer.depth() + 1) {
        for (int r = 0; r < rows; ++r) first[r] = firsts[r], length[r] = lengths[r], steps = std::max(steps, length[r]);
        for (auto& part : own) part.assign(layer.depth() + 1, nullptr);
        size_t widest = 0, numbers = 1;
        for (int k = 1; k <= layer.depth(); ++k) {
            levels[k] = Observed(topology, batch, layer.top + k);
            widest = std::max(widest, size_t(stride(k))), numbers += size_t(stride(k)) * R;
        }
        block = all || steps * numbers <= CACHED ? steps : std::min(steps, R == 1 ? 64 : 16);
        for (int k = 1; k <= layer.markov(); ++k)
            for (int part = TOKEN; part < BORDERS; ++part) {
                if (!levels[k].has(part)) continue;
                if (layer.leaf == SEGMENTS && part == TOKEN) continue;  // met with the segments, see ``Below``
                own[part][k] = space.get(OWN_OF + BORDERS * k + part, size_t(block) * stride(k) * R);
                inner |= part == TOKEN && k < layer.depth();
                ++sources;
            }
        clip = std::max(STEP - reach, 1.0) / std::max(sources, 1), clipped = ISA::exp(splat<V>(-clip))[0];
        low = space.get(LOWEST, block), peak = space.get(PEAK, size_t(block) * R);
        nowhere = space.filled(SUMMED, widest * (R + 1), -INF), room = nowhere + widest;
    }

    int stride(int k) const { return padded(levels[k].states + PAD); }
    double* at(int part, int k, int t) const { return own[part][k] + size_t(t - begin) * stride(k) * R; }

    // Have the block of a step at hand.
    INLINE void prepare(int t) {
        if (t < begin || t >= end) fill(t / block * block);
    }

  private:
    void fill(int from) {
        begin = from, end = std::min(from + block, steps);
        std::fill(low, low + (end - begin), 0.0);
        std::fill(peak, peak + size_t(end - begin) * R, 0.0);
        for (int k = 1; k <= layer.markov(); ++k)
            for (int part = TOKEN; part < BORDERS; ++part)
                if (own[part][k]) read(part, k);
    }

    void read(int part, int k) {
        const int states = levels[k].states, wide = stride(k);
        for (int since = begin; since < end; since += 8) {  // steps at a time: a load waits for stores of parts of it
            const int until = std::min(since + 8, end);
            for (int t = since; t < until; ++t) {
                double* to = at(part, k, t);
                const double* from[R];
                for (int r = 0; r < R; ++r)
                    from[r] = t < length[r] ? levels[k].row(part, first[r] + t, room + size_t(r) * wide) : nowhere;
                for (int s = 0; s < states; ++s)
                    for (int r = 0; r < R; ++r) to[s * R + r] = from[r][s];
                std::fill(to + states * R, to + padded(states) * R, -INF);
                std::fill(to + padded(states) * R, to + wide * R, A::zero);
            }
            for (int t = since; is_linear<A> && t < until; ++t) raise(part, t, at(part, k, t), padded(states));
        }
    }

    // Take the exponentials of a step; tokens without their highest, which goes to ``peak``.
    INLINE void raise(int part, int t, double* to, int states) {
        V high[H], least[H];
        UNROLL for (int h = 0; h < H; ++h) high[h] = splat<V>(-INF), least[h] = splat<V>(0.0);
        for (int x = 0; x < states * R; x += H * W)
            UNROLL for (int h = 0; h < H; ++h) high[h] = larger(high[h], load<V>(to + x + h * W));
        if (R == 1) high[0] = splat<V>(highest(high[0]));
        double* peaks = peak + size_t(t - begin) * R;
        UNROLL for (int h = 0; h < H; ++h) {
            if (part != TOKEN) {
                lost |= highest(high[h]) > clip;
                least[h] = -larger(high[h], V{}), high[h] = V{};
            }
            high[h] = high[h] > splat<V>(-INF) ? high[h] : V{};
            if (R == 1)
                peaks[0] += high[0][0];
            else
                store(peaks + h * W, load<V>(peaks + h * W) + high[h]);
        }
        const V lowest = splat<V>(-clip), impossible = splat<V>(-INF);
        for (int x = 0; x < states * R; x += H * W) UNROLL for (int h = 0; h < H; ++h) {
                const V value = load<V>(to + x + h * W) - high[h];
                least[h] = smaller(least[h], value > impossible ? value : least[h]);
                store(to + x + h * W, exp(value > impossible ? larger(value, lowest) : value));
            }
        double drop = 0;
        UNROLL for (int h = 0; h < H; ++h) drop = std::max(drop, highest(-least[h]));
        if (drop > clip) {
            for (int r = 0; r < R; ++r) faint[r] |= R == 1 || least[r / W][r % W] < -clip;
            drop = clip;
        }
        low[t - begin] += drop;
    }
};

}  // namespace hscrf::ISA
