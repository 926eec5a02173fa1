#include "bind.h"
#include "vectors.h"

namespace hscrf {
namespace {

void check_sizes(size_t size, size_t other) { require(size == other, "vectors of different sizes"); }

void add_and_clear(Array<double> total, Array<double> part) {
    check_sizes(total.size(), part.size());
    nb::gil_scoped_release free;
    vectors().add_and_clear(total.data(), part.data(), total.size());
}

double add_and_multiply(Array<double> result, double factor, Array<const double> vector, double scale,
                        Array<const double> other) {
    check_sizes(result.size(), vector.size());
    check_sizes(result.size(), other.size());
    nb::gil_scoped_release free;
    return vectors().add_and_multiply(result.data(), factor, vector.data(), scale, other.data(), result.size());
}

}  // namespace

void bind_vectors(nb::module_& module) {
    define(module, "add_and_clear", add_and_clear);
    define(module, "add_and_multiply", add_and_multiply);
}

}  // namespace hscrf
