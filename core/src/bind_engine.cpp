// The engine for Python: dicts of arrays in, arrays out. The GIL is free while it computes.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "bind.h"
#include "engine.h"

namespace hscrf {
namespace {

using Floats = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::c_contig, nb::device::cpu>;
using Steps = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
constexpr const char* OWN_NAMES[OWN] = {"token", "start", "stop", "duration", "segment", "tail"};
constexpr const char* EVENT_NAMES[EVENTS] = {"init", "trans", "end"};

// A new array of zeros that belongs to Python.
template <class T>
nb::object zeros(std::vector<size_t> shape, T*& data) {
    size_t size = 1;
    for (size_t n : shape) size *= n;
    data = static_cast<T*>(std::calloc(size ? size : 1, sizeof(T)));
    if (!data) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr size_t page = 4096, large = size_t(1) << 22;  // as numpy does
    const size_t lead = page - reinterpret_cast<size_t>(data) % page;
    if (size * sizeof(T) >= large)
        madvise(reinterpret_cast<char*>(data) + lead, size * sizeof(T) - lead, MADV_HUGEPAGE);
#endif
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
}

// What was given for a batch of sequences, checked, with the arrays that hold it.
struct Given {
    std::vector<Floats> arrays;
    std::vector<Flags> flags;
    Steps offsets;
    Values values;
    Evidence evidence;
    std::vector<std::pair<int, int>> own, event;  // (part, level) of what is there
    size_t steps;

    Given(const Topology& topology, const nb::dict& given, const Steps& offsets, const nb::object& known)
        : offsets(offsets) {
        const int depth = topology.depth();
        require(offsets.size() >= 1 && offsets.data()[0] == 0, "offsets must begin with 0");
        for (size_t k = 0; k + 1 < offsets.size(); ++k)
            require(offsets.data()[k] < offsets.data()[k + 1],
                    "offsets must increase: a sequence has at least one step");
        steps = offsets.data()[offsets.size() - 1];
        for (auto& part : values.own) part.resize(depth);
        for (auto& part : values.event) part.resize(depth);
        for (auto [key, value] : given) {
            const auto name = nb::cast<std::string>(key[0]);
            const int d = nb::cast<int>(key[1]);
            arrays.push_back(nb::cast<Floats>(value));
            read(topology, name, d, arrays.back());
        }
        if (!known.is_none()) read_evidence(topology, known);
    }

    Batch batch() const { return {values, evidence, int(offsets.size()) - 1, offsets.data()}; }

  private:
    static void wrong(const std::string& name, int d) {
        throw nb::value_error(
            ("the part '" + name + "' of level " + std::to_string(d) + " has the wrong shape").c_str());
    }

    void read(const Topology& topology, const std::string& name, int d, const Floats& array) {
        if (d < 0 || d >= topology.depth()) wrong(name, d);
        const size_t S = topology.states[d], U = d + 1 < topology.depth() ? topology.states[d + 1] : 0;
        const size_t rows = name == OWN_NAMES[TAIL] ? 1 : array.ndim() ? array.shape(0) : 0;
        for (int part = 0; part < OWN; ++part)
            if (name == OWN_NAMES[part]) {
                const bool timed = part != DURATION && part != TAIL;
                const size_t lags = part == SEGMENT && array.ndim() == 3 ? array.shape(1) : 1;
                if (array.size() != rows * lags * S || rows < 1 || (timed && rows != steps)) wrong(name, d);
                values.own[part][d] = {array.data(), int64_t(rows), int64_t(lags)};
                own.push_back({part, d});
            }
        for (int part = 0; part < EVENTS; ++part)
            if (name == EVENT_NAMES[part]) {
                if (!U || array.size() != rows * S * U * (part == TRANS ? U : 1) || (rows != 1 && rows != steps))
                    wrong(name, d);
                values.event[part][d] = {array.data(), int64_t(rows), 0};
                event.push_back({part, d});
            }
    }

    const uint8_t* keep(const nb::object& array, size_t size) {
        flags.push_back(nb::cast<Flags>(array));
        require(flags.back().size() == size, "the evidence has another number of steps than the sequences");
        return reinterpret_cast<const uint8_t*>(flags.back().data());
    }

    void read_evidence(const Topology& topology, const nb::object& known) {
        evidence.may_end = keep(known.attr("may_end"), topology.depth() * steps);
        evidence.may_go_on = keep(known.attr("may_go_on"), topology.depth() * steps);
        evidence.may_follow = keep(known.attr("may_follow"), topology.depth() * steps);
        int d = 0;
        for (nb::handle sets : known.attr("allowed")) {
            require(d < topology.depth(), "the evidence has another number of levels than the topology");
            evidence.allowed.push_back(sets.is_none() ? nullptr : keep(nb::borrow(sets), steps * topology.states[d]));
            ++d;
        }
    }
};

// The candidates of one run of the k best.
struct PyRun {
    std::unique_ptr<Run> run;
    std::vector<double> weight;
    std::vector<int> where;

    // Candidates that are possible, best first: how much worse than the best each is, and kind, node and
    // step to which each leads, one after the other.
    nb::tuple incoming(int kind, int node, int t) {
        require(run->has(kind, node, t), "a run has no such item");
        run->incoming(kind, node, t, weight, where);
        std::vector<int> order;
        for (size_t k = 0; k < weight.size(); ++k)
            if (weight[k] > -std::numeric_limits<double>::infinity()) order.push_back(int(k));
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weight[a] > weight[b]; });
        nb::list losses, places;
        for (int k : order) {
            losses.append(weight[order[0]] - weight[k]);
            for (int part = 0; part < 3; ++part) places.append(where[3 * k + part]);
        }
        return nb::make_tuple(losses, places);
    }
    int level_of(int node) const {
        require(run->has_node(node), "a run has no such node");
        return run->level_of(node);
    }
    std::vector<int> states_of(int leaf) const {
        require(run->has_node(leaf), "a run has no such node");
        return run->states_of(leaf);
    }
};

struct PyRuns {
    std::shared_ptr<Given> given;
    std::unique_ptr<Runs> runs;
};

struct PyEngine {
    Topology topology;
    std::unique_ptr<Engine> engine;

    PyEngine(std::vector<int> states, std::vector<Flags> children, std::vector<Flags> successors,
             std::vector<Steps> shortest, std::vector<Steps> longest, std::vector<bool> segmental, bool unit_bottom,
             std::vector<Flags> open) {
        const size_t depth = states.size();
        const auto wrong = [](const auto& tables, size_t levels, auto size) {
            if (tables.size() != levels) return true;
            for (size_t d = 0; d < levels; ++d)
                if (tables[d].size() != size(d)) return true;
            return false;
        };
        const auto squared = [&](size_t d) { return size_t(states[d]) * states[d]; };
        const auto single = [&](size_t d) { return size_t(states[d]); };
        require(depth >= 2 && depth <= 45, "a topology has 2 to 45 levels, the root included");
        for (size_t d = 0; d < depth; ++d)
            require(states[d] >= 1 && double(states[d ? d - 1 : 0]) * states[d] * states[d] < INT32_MAX,
                    "a level has no states, or too many for a table of transitions");
        require(segmental.size() == depth && !(unit_bottom && segmental.back()),
                "wrong levels with tables of segments");
        require(!wrong(children, depth - 1, [&](size_t d) { return size_t(states[d]) * states[d + 1]; }) &&
                    !wrong(successors, depth, squared),
                "children or successors of another shape");
        require(!wrong(shortest, depth, single) && !wrong(longest, depth, single) && !wrong(open, depth, single),
                "durations of another shape");
        for (const auto& durations : {shortest, longest})
            for (const auto& a : durations)
                require(std::all_of(a.data(), a.data() + a.size(), [](int64_t n) { return n >= 1; }),
                        "durations begin with 1");
        topology.states = states, topology.unit_bottom = unit_bottom;
        topology.segmental.assign(segmental.begin(), segmental.end());
        for (auto& a : children) topology.children.emplace_back(a.data(), a.data() + a.size());
        for (auto& a : successors) topology.successors.emplace_back(a.data(), a.data() + a.size());
        for (auto& a : shortest) topology.shortest.emplace_back(a.data(), a.data() + a.size());
        for (auto& a : longest) topology.longest.emplace_back(a.data(), a.data() + a.size());
        for (auto& a : open) topology.open.emplace_back(a.data(), a.data() + a.size());
        engine = engines().make(topology);
    }

    nb::tuple log_partition(const nb::dict& values, const Steps& offsets, const nb::object& known) const {
        const Given given(topology, values, offsets, known);
        double* log_z;
        nb::object found = zeros<double>({offsets.size() - 1}, log_z);
        int logs;
        {
            nb::gil_scoped_release free;
            logs = engine->log_partition(given.batch(), log_z);
        }
        return nb::make_tuple(found, logs);
    }

    // Log Z, counts, states, endings, segments of all segmental levels if they are wanted, and how many needed LOG.
    nb::tuple expectations(const nb::dict& values, const Steps& offsets, const nb::object& known,
                           const nb::object& weights, bool segments) const {
        const Given given(topology, values, offsets, known);
        const size_t n = offsets.size() - 1, depth = topology.states.size();
        Floats weight;
        if (!weights.is_none()) weight = nb::cast<Floats>(weights);
        require(weights.is_none() || weight.size() == n, "there must be one weight for each sequence");
        Counts counts;
        for (auto& part : counts.own) part.assign(depth, nullptr);
        for (auto& part : counts.event) part.assign(depth, nullptr);
        counts.state.resize(depth), counts.ending.resize(depth), counts.segments.assign(depth, nullptr);
        counts.lags.assign(depth, 0), counts.longest.assign(depth, 0);
        nb::dict by_part, by_level;
        nb::list state, ending;
        for (size_t d = 0; d < depth; ++d) {
            const size_t S = topology.states[d];
            state.append(zeros<double>({given.steps, S}, counts.state[d]));
            ending.append(zeros<double>({given.steps}, counts.ending[d]));
            if (segments && topology.segmental[d]) {
                counts.longest[d] = engine->longest(given.batch(), int(d));
                by_level[nb::int_(d)] = zeros<double>({given.steps, size_t(counts.longest[d]), S}, counts.segments[d]);
            }
        }
        for (auto [part, d] : given.own) {
            const Part& from = given.values.own[part][d];
            std::vector<size_t> shape{size_t(from.rows), size_t(topology.states[d])};
            if (part == TAIL) shape.erase(shape.begin());
            if (part == SEGMENT) shape.insert(shape.begin() + 1, size_t(from.lags)), counts.lags[d] = from.lags;
            const nb::tuple key = nb::make_tuple(OWN_NAMES[part], d);
            if (part == TOKEN)
                by_part[key] = state[d];
            else
                by_part[key] = zeros<double>(shape, counts.own[part][d]);
        }
        for (auto [part, d] : given.event) {
            const size_t S = topology.states[d], U = topology.states[d + 1];
            std::vector<size_t> shape{size_t(given.values.event[part][d].rows), S, U};
            if (part == TRANS) shape.push_back(U);
            by_part[nb::make_tuple(EVENT_NAMES[part], d)] = zeros<double>(shape, counts.event[part][d]);
        }
        double* log_z;
        nb::object found = zeros<double>({n}, log_z);
        int logs;
        {
            nb::gil_scoped_release free;
            logs = engine->expectations(given.batch(), weights.is_none() ? nullptr : weight.data(), log_z, counts);
            if (topology.unit_bottom) copy_unit(given, counts);
        }
        return nb::make_tuple(found, by_part, state, ending, by_level, logs);
    }

    nb::tuple best(const nb::dict& values, const Steps& offsets, const nb::object& known) const {
        const Given given(topology, values, offsets, known);
        double* score;
        int32_t* states;
        int8_t* ends;
        nb::object scores = zeros<double>({offsets.size() - 1}, score);
        nb::object by_level = zeros<int32_t>({topology.states.size(), given.steps}, states);
        nb::object ending = zeros<int8_t>({topology.states.size(), given.steps}, ends);
        {
            nb::gil_scoped_release free;
            engine->best(given.batch(), score, states, ends);
        }
        return nb::make_tuple(by_level, ending, scores);
    }

    nb::tuple draw(const nb::dict& values, const Steps& offsets, const nb::object& known, int draws,
                   uint64_t seed) const {
        require(draws >= 0, "a negative number of draws");
        const Given given(topology, values, offsets, known);
        double* log_z;
        int32_t* states;
        int8_t* ends;
        nb::object found = zeros<double>({offsets.size() - 1}, log_z);
        nb::object by_level = zeros<int32_t>({size_t(draws), topology.states.size(), given.steps}, states);
        nb::object ending = zeros<int8_t>({size_t(draws), topology.states.size(), given.steps}, ends);
        {
            nb::gil_scoped_release free;
            engine->draw(given.batch(), draws, seed, log_z, states, ends);
        }
        return nb::make_tuple(by_level, ending, found);
    }

    PyRuns runs(const nb::dict& values, const Steps& offsets, const nb::object& known) const {
        require(offsets.size() == 2, "the k best are those of a single sequence");
        auto given = std::make_shared<Given>(topology, values, offsets, known);
        auto made = engine->runs(given->batch());
        return {given, std::move(made)};
    }

  private:
    // All parts of a unit bottom are like tokens: they have the counts of its states.
    void copy_unit(const Given& given, Counts& counts) const {
        const int d = topology.depth() - 1, S = topology.states[d];
        const double* state = counts.state[d];
        for (size_t t = 0; t < given.steps; ++t)
            for (int s = 0; s < S; ++s) {
                const double found = state[t * S + s];
                if (counts.own[START][d]) counts.own[START][d][t * S + s] = found;
                if (counts.own[STOP][d]) counts.own[STOP][d][t * S + s] = found;
                if (counts.own[DURATION][d]) counts.own[DURATION][d][s] += found;
                if (counts.own[SEGMENT][d]) counts.own[SEGMENT][d][t * counts.lags[d] * S + s] = found;
            }
    }
};

}  // namespace

void bind_engine(nb::module_& module) {
    module.def("poison", [](bool poisoned) { engines().poison(poisoned); });
    nb::class_<PyEngine>(module, "Engine")
        .def(nb::init<std::vector<int>, std::vector<Flags>, std::vector<Flags>, std::vector<Steps>, std::vector<Steps>,
                      std::vector<bool>, bool, std::vector<Flags>>())
        .def("log_partition", &PyEngine::log_partition, nb::arg("values"), nb::arg("offsets"),
             nb::arg("evidence").none())
        .def("expectations", &PyEngine::expectations, nb::arg("values"), nb::arg("offsets"), nb::arg("evidence").none(),
             nb::arg("weights").none(), nb::arg("segments"))
        .def("best", &PyEngine::best, nb::arg("values"), nb::arg("offsets"), nb::arg("evidence").none())
        .def("draw", &PyEngine::draw, nb::arg("values"), nb::arg("offsets"), nb::arg("evidence").none(),
             nb::arg("draws"), nb::arg("seed"))
        .def("runs", &PyEngine::runs, nb::arg("values"), nb::arg("offsets"), nb::arg("evidence").none(),
             nb::keep_alive<0, 1>());
    nb::class_<PyRun>(module, "Run")
        .def("incoming", &PyRun::incoming)
        .def("level_of", &PyRun::level_of)
        .def("states_of", &PyRun::states_of);
    nb::class_<PyRuns>(module, "Runs")
        .def("roots", [](const PyRuns& self) { return self.runs->roots(); })
        .def(
            "run",
            [](PyRuns& self, int layer, int state, int start) {
                auto run = self.runs->run(layer, state, start);
                require(run != nullptr, "no run can start there");
                return PyRun{std::move(run), {}, {}};
            },
            nb::keep_alive<0, 1>());
}

}  // namespace hscrf
