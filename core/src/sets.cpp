#include "sets.h"

#include <cstdlib>
#include <cstring>

namespace hscrf {
namespace {

#define HSCRF_TEXT(set) #set
#define HSCRF_NAME(set) HSCRF_TEXT(set),
constexpr const char* NAMES[] = {HSCRF_SETS(HSCRF_NAME)};
#undef HSCRF_NAME
#undef HSCRF_TEXT
constexpr int SETS = sizeof(NAMES) / sizeof(NAMES[0]);

int highest_of_processor() {
#ifndef HSCRF_ONLY
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    return avx2 ? (avx512 ? 2 : 1) : 0;
#else
    return 0;
#endif
}

int highest_allowed() {
    const char* asked = std::getenv("HSCRF_ISA");
    if (!asked || !*asked) return SETS - 1;
    for (int k = 0; k < SETS; ++k)
        if (!std::strcmp(asked, NAMES[k])) return k;
    return SETS - 1;
}

}  // namespace

const char* name_of(Set set) { return NAMES[static_cast<int>(set)]; }

Set set_in_use() {
    static const Set chosen = [] {
        const int has = highest_of_processor(), allowed = highest_allowed();
        return static_cast<Set>(has < allowed ? has : allowed);
    }();
    return chosen;
}

}  // namespace hscrf
