// Passes over vectors as long as the weights: each pass does all that it can with what it has read.
#pragma once
#include <cstddef>

#include "sets.h"

namespace hscrf {

struct Vectors {
    // total += part, and zeros in the place of part.
    void (*add_and_clear)(double* total, double* part, size_t size);
    // result = scale * (result + factor * vector); returns its inner product with other.
    double (*add_and_multiply)(double* result, double factor, const double* vector, double scale, const double* other,
                               size_t size);
};

HSCRF_DISPATCH(Vectors, vectors)

}  // namespace hscrf
