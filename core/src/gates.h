// Which events evidence allows at each step of a sequence; and what a thread keeps between calls.
#pragma once
#include "segments.h"

namespace hscrf::ISA {

// Which levels of a layer may end, or go on, after each step of a sequence. Without evidence all may (``free``).
struct Gates {
    bool free = true;
    int steps = 0;
    std::vector<uint8_t> closing, crossing, going;

    // May a node of a level end at t with one of its children; may it do so for a sibling; may a leaf go on.
    bool closes(int level, int t) const { return free || closing[size_t(level) * steps + t]; }
    bool crosses(int level, int t) const { return free || crossing[size_t(level) * steps + t]; }
    bool goes_on(int t) const { return free || going[t]; }

    void plan(const Batch& batch, const Layer& layer, int64_t first, int length) {
        steps = length, free = true;
        if (!batch.evidence.may_end) return;
        const int depth = layer.depth();
        const auto at = [&](const uint8_t* flags, int level, int t) {
            return flags[(layer.top + level) * batch.steps() + first + t] != 0;
        };
        closing.assign(size_t(depth) * steps, 1), crossing.assign(size_t(depth + 1) * steps, 1), going.assign(steps, 1);
        for (int t = 0; t < steps; ++t) {
            const bool leaf = layer.leaf == SEGMENTS || at(batch.evidence.may_end, depth, t);
            bool above = true;  // do all levels above go on
            for (int k = 1; k <= depth; ++k) {
                if (k < depth) closing[size_t(k) * steps + t] = at(batch.evidence.may_end, k, t);
                crossing[size_t(k) * steps + t] = above && at(batch.evidence.may_follow, k, t) && (k < depth || leaf);
                above &= at(batch.evidence.may_go_on, k, t);
            }
            closing[size_t(depth - 1) * steps + t] &= leaf;
            going[t] = above;
            if (t + 1 < steps)
                for (int k = 1; k <= depth; ++k) free &= crossing[size_t(k) * steps + t] != 0;
            for (int k = 0; k < depth; ++k) free &= closing[size_t(k) * steps + t] != 0;
            free &= going[t] || layer.leaf != MARKOV || t + 1 == steps;
        }
    }
};

// What a thread keeps between calls.
struct Workshop {
    Space space;
    std::vector<Columns> columns;            // [level], of the sequence at hand
    std::vector<Gates> gates;                // [layer]
    std::vector<std::vector<double>> grads;  // [layer]
};

}  // namespace hscrf::ISA
