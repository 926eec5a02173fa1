#include "names.h"

#include <cstring>
#include <type_traits>

namespace hscrf {
namespace {

constexpr uint64_t ODD = 0x9E3779B97F4A7C15;  // multiplies bits apart
constexpr size_t AHEAD = 16;                  // hashes: their places in the table are asked for before they are needed

// Let all bits depend on each other.
uint64_t mixed(uint64_t bits) {
    const uint64_t product = bits * ODD;
    return product ^ (product >> 32);
}

// At most eight bytes as one number, the first one lowest.
template <class Size>
uint64_t word_at(const char* text, Size size) {
    uint64_t word = 0;
    std::memcpy(&word, text, size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

using Eight = std::integral_constant<size_t, 8>;  // a size that the compiler knows

// The last bytes of a name, fewer than eight: read with those before them where there are enough.
uint64_t rest_at(const char* text, size_t size, size_t whole) {
    if (size == 0) return 0;
    if (whole >= 8) return word_at(text + size - 8, Eight()) >> (8 * (8 - size));
    uint64_t word = 0;
    for (size_t k = 0; k < size; ++k) word |= uint64_t{static_cast<uint8_t>(text[k])} << (8 * k);
    return word;
}

}  // namespace

uint64_t hash_name(const char* name, size_t size) {
    uint64_t total = ODD;
    size_t left = size;
    for (; left >= 8; left -= 8, name += 8) total = mixed(total ^ word_at(name, Eight()));
    return mixed(mixed(total ^ rest_at(name, left, size)) ^ left);
}

void store_names(const uint64_t* given, size_t size, NameTable table) {
    const size_t mask = table.slots - 1;
    for (size_t k = 0; k < size; ++k) {
        size_t slot = given[k] & mask;
        while (table.numbers[slot] >= 0) slot = (slot + 1) & mask;
        table.hashes[slot] = given[k];
        table.numbers[slot] = static_cast<int32_t>(k);
    }
}

size_t find_names(NameRows rows, NameTable table, int64_t* found_begin, int32_t* found, double* found_data) {
    const size_t mask = table.slots - 1;
    size_t n = 0;
    found_begin[0] = 0;
    for (size_t t = 0; t < rows.rows; ++t) {
        for (int64_t k = rows.begin[t]; k < rows.begin[t + 1]; ++k) {
            if (k + AHEAD < rows.size) {
                __builtin_prefetch(table.hashes + (rows.given[k + AHEAD] & mask));
                __builtin_prefetch(table.numbers + (rows.given[k + AHEAD] & mask));
            }
            const uint64_t wanted = rows.given[k];
            size_t slot = wanted & mask;
            while (table.numbers[slot] >= 0 && table.hashes[slot] != wanted) slot = (slot + 1) & mask;
            if (table.numbers[slot] < 0) continue;
            found[n] = table.numbers[slot];
            if (rows.data) found_data[n] = rows.data[k];
            ++n;
        }
        found_begin[t + 1] = static_cast<int64_t>(n);
    }
    return n;
}

}  // namespace hscrf
