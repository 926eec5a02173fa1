// Memory for what a pass makes and forgets, kept by each thread; large arrays are given back where there is too much.
#pragma once
#include <cstddef>
#include <cstring>
#include <new>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hscrf::ISA {

// Names of arrays; those by level or part take the names that follow.
enum Name {
    UP,
    DOWN,
    ALIVE,
    FRESH,
    ENTERED,
    ENTERED_NOW,
    STARTED,
    GAIN,
    SCALE,
    FLAGS,
    UP_BAR,
    DOWN_BAR,
    ENDED,
    AHEAD,
    MET,
    SUMS,
    BY_STATE,
    STACKED,
    FOUND,
    ENDING,
    PEAK,
    LOWEST,
    MASS,
    POST,
    PATH,
    PASSED,
    SUMMED,
    GAUGE,
    TAIL_SCORES,
    TAIL_POSTS,
    TAIL_FOUND,
    TAIL_ALIVE,
    TAIL_KEPT,
    TAIL_LATE,
    OWN_OF = 40,
    TABLE = 200,
    POSTERIOR = 250,
    FLAT_OF = 300,
    ROWS_OF = 350
};
constexpr int LEVELS_MOST = 45;

struct Space {
    static constexpr size_t HUGE_PAGE = size_t(1) << 21;  // bytes
    static constexpr size_t ALL = size_t(1) << 24;        // numbers of all arrays that are kept: 128 MB
    static constexpr size_t LARGE = size_t(1) << 21;      // of an array that is given back where there are more

    // An array of at least so many numbers, not filled, on a border of the cache.
    double* get(int name, size_t numbers) {
        if (size_t(name) >= held.size()) held.resize(name + 1);
        Held& h = held[name];
        if (h.size < numbers) {
            drop(h);
            h.size = numbers + numbers / 8 + 64;
            h.data = static_cast<double*>(::operator new(h.size * sizeof(double), border(h)));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
            const size_t bytes = h.size * sizeof(double);
            if (bytes >= 2 * HUGE_PAGE) madvise(h.data, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
            if (poisoned) spoil(h);
        }
        return h.data;
    }
    double* filled(int name, size_t numbers, double value) {
        double* data = get(name, numbers);
        for (size_t k = 0; k < numbers; ++k) data[k] = value;
        return data;
    }
    uint8_t* flags(int name, size_t numbers) {
        uint8_t* data = reinterpret_cast<uint8_t*>(get(name, numbers / sizeof(double) + 1));
        std::memset(data, 0, numbers);
        return data;
    }
    // For tests: all that is kept becomes NaN.
    void poison() {
        for (Held& h : held) spoil(h);
    }
    void tidy() {
        size_t total = 0;
        for (const Held& h : held) total += h.size;
        for (Held& h : held)
            if (total > ALL && h.size > LARGE) drop(h);
    }
    Space() = default;
    Space(const Space&) = delete;
    ~Space() {
        for (Held& h : held) drop(h);
    }

    static inline bool poisoned = false;  // for tests: what is used before it is written becomes NaN

  private:
    struct Held {
        double* data = nullptr;
        size_t size = 0;
    };
    std::vector<Held> held;

    static std::align_val_t border(const Held& h) {
        return std::align_val_t(h.size * sizeof(double) >= 2 * HUGE_PAGE ? HUGE_PAGE : 64);
    }
    static void spoil(Held& h) {
        if (h.data) std::memset(h.data, 0xff, h.size * sizeof(double));
    }
    static void drop(Held& h) {
        if (h.data) ::operator delete(h.data, border(h));
        h = Held{};
    }
};

}  // namespace hscrf::ISA
