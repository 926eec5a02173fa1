// What Python gives and gets: plain pointers, the same for all instruction sets.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace hscrf {

enum Own { TOKEN, START, STOP, DURATION, SEGMENT, TAIL };  // parts of a level's own segments
enum Event { INIT, TRANS, END };  // parts of a parent and its children, named by the parent's level
constexpr int OWN = 6, EVENTS = 3;

struct Topology {
    std::vector<int> states;                              // of each level, the root's first
    std::vector<std::vector<uint8_t>> children;           // [level] (S, U)
    std::vector<std::vector<uint8_t>> successors;         // [level] (S, S)
    std::vector<std::vector<int64_t>> shortest, longest;  // [level] (S,) durations
    std::vector<std::vector<uint8_t>> open;               // [level] (S,) may segments be longer than ``longest``
    std::vector<uint8_t> segmental;                       // [level] has it a table of segments; the root always has
    bool unit_bottom = true;

    int depth() const { return int(states.size()); }
    bool is_unit(int d) const { return unit_bottom && d + 1 == depth(); }
};

// Log-potentials of one part of one level. nullptr: absent.
struct Part {
    const double* data = nullptr;
    int64_t rows = 0;  // steps of the time axis, 1 or N; of durations their number
    int64_t lags = 0;  // of segments: the length of the second axis
};

struct Values {
    std::vector<Part> own[OWN], event[EVENTS];  // [part][level]
};

// Expected counts of the same shapes, all zero at first; nullptr: not wanted.
struct Counts {
    std::vector<double*> own[OWN], event[EVENTS];
    std::vector<double*> state, ending;  // [level] (N, S), (N,)
    std::vector<double*> segments;       // [level] (N, longest, S) by start and length
    std::vector<int64_t> lags,
        longest;  // [level] length of the second axis of the part ``segment``, and of ``segments``
};

// What is known: (D, N) flags and (N, S) sets of states. nullptr: nothing.
struct Evidence {
    const uint8_t *may_end = nullptr, *may_go_on = nullptr, *may_follow = nullptr;
    std::vector<const uint8_t*> allowed;
};

struct Batch {
    const Values& values;
    const Evidence& evidence;
    int sequences;
    const int64_t* offsets;  // sequence k has the steps offsets[k] .. offsets[k + 1]

    int64_t steps() const { return offsets[sequences]; }
};

// One run of the k best: everything below a segment of a layer's top level that starts at a step, kept in MAX.
struct Run {
    virtual ~Run() = default;
    virtual bool has_node(int node) const = 0;
    virtual bool has(int kind, int node, int t) const = 0;  // an item of the way back
    // The candidates of an item of the way back: weights, and three numbers each, see ``trace.h``.
    virtual void incoming(int kind, int node, int t, std::vector<double>& weight, std::vector<int>& where) = 0;
    virtual int level_of(int node) const = 0;
    virtual std::vector<int> states_of(int leaf) const = 0;  // of the levels below the top
};

// The tables of one sequence in MAX, for the k best.
struct Runs {
    virtual ~Runs() = default;
    virtual std::vector<double> roots() const = 0;                          // the best score under each root state
    virtual std::unique_ptr<Run> run(int layer, int state, int start) = 0;  // nullptr: nothing can start there
};

struct Engine {
    virtual ~Engine() = default;
    // Return how many sequences needed logarithms.
    virtual int log_partition(const Batch&, double* log_z) const = 0;
    virtual int expectations(const Batch&, const double* weights, double* log_z, Counts&) const = 0;
    virtual void best(const Batch&, double* score, int32_t* states, int8_t* ends) const = 0;
    virtual void draw(const Batch&, int draws, uint64_t seed, double* log_z, int32_t* states, int8_t* ends) const = 0;
    virtual std::unique_ptr<Runs> runs(const Batch&) const = 0;
    // The longest admissible segment of a level.
    virtual int64_t longest(const Batch&, int level) const = 0;
};

}  // namespace hscrf
