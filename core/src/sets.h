// Instruction sets: which ones the module holds, and which one is in use.
//
// A file of FAST (see CMakeLists.txt) is compiled once for each set. It defines its functions in the namespace
// hscrf::ISA and collects pointers to them in one constant. A header declares that constant for every set and a
// function that returns the one of the set in use; see features.h.
#pragma once

// A module holds all sets of x86-64, elsewhere the baseline, or the one set that CMake's option HSCRF_ONLY names.
#if !defined(__x86_64__) && !defined(HSCRF_ONLY)
#define HSCRF_ONLY baseline
#endif
#ifdef HSCRF_ONLY
#define HSCRF_SETS(X) X(HSCRF_ONLY)
#else
#define HSCRF_SETS(X) X(baseline) X(avx2) X(avx512)
#endif

namespace hscrf {

#define HSCRF_MEMBER(set) set,
enum class Set { HSCRF_SETS(HSCRF_MEMBER) };  // from the lowest to the highest
#undef HSCRF_MEMBER

const char* name_of(Set);

// The highest set that the processor has, but none above the one that the environment variable HSCRF_ISA names.
// Read once. A name that this module does not hold is no limit (native.py checks the names).
Set set_in_use();

// HSCRF_DISPATCH(Features, features) declares the constant `features` of every set, and the function features() that
// returns the one of the set in use.
#ifndef HSCRF_ONLY
#define HSCRF_DISPATCH(type, name)                                               \
    namespace baseline { extern const type name; }                               \
    namespace avx2 { extern const type name; }                                   \
    namespace avx512 { extern const type name; }                                 \
    inline const type& name() {                                                  \
        const type* const all[] = {&baseline::name, &avx2::name, &avx512::name}; \
        return *all[static_cast<int>(set_in_use())];                             \
    }
#else
#define HSCRF_DISPATCH(type, name)                   \
    namespace HSCRF_ONLY { extern const type name; } \
    inline const type& name() { return HSCRF_ONLY::name; }
#endif

}  // namespace hscrf
