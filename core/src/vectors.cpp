#include "vectors.h"

namespace hscrf::ISA {
namespace {

void add_and_clear(double* __restrict total, double* __restrict part, size_t size) {
    for (size_t k = 0; k < size; ++k) {
        total[k] += part[k];
        part[k] = 0.0;
    }
}

double add_and_multiply(double* __restrict result, double factor, const double* __restrict vector, double scale,
                        const double* __restrict other, size_t size) {
    constexpr size_t LANES = 16;  // independent sums, so that no addition waits for the one before
    double sums[LANES] = {};
    size_t k = 0;
    for (; k + LANES <= size; k += LANES)
        for (size_t lane = 0; lane < LANES; ++lane) {
            const double value = scale * (result[k + lane] + factor * vector[k + lane]);
            result[k + lane] = value;
            sums[lane] += value * other[k + lane];
        }
    double total = 0.0;
    for (; k < size; ++k) {
        const double value = scale * (result[k] + factor * vector[k]);
        result[k] = value;
        total += value * other[k];
    }
    for (double sum : sums) total += sum;
    return total;
}

}  // namespace

extern const Vectors vectors = {add_and_clear, add_and_multiply};

}  // namespace hscrf::ISA
