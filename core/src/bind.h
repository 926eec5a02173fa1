// What all bindings share: arrays of Python, and one function for each file of bindings.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <type_traits>

namespace hscrf {

namespace nb = nanobind;

// C-contiguous arrays in memory, one dimension unless said otherwise. Nothing is copied or converted: an array of
// another type or layout is a TypeError.
template <class T, int dimensions = 1>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

template <class Argument>
auto argument() {
    if constexpr (std::is_arithmetic_v<Argument>)
        return nb::arg();
    else
        return nb::arg().noconvert();
}

// Define a function that runs without the GIL, and of which no argument but numbers is converted.
template <class Result, class... Arguments>
void define(nb::module_& module, const char* name, Result (*function)(Arguments...)) {
    module.def(name, function, nb::call_guard<nb::gil_scoped_release>(), argument<Arguments>()...);
}

inline void require(bool fits, const char* what) {
    if (!fits) throw nb::value_error(what);
}

void bind_engine(nb::module_& module);
void bind_features(nb::module_& module);

}  // namespace hscrf
