#include "names.h"

#include <cstring>

namespace hscrf {
namespace {

constexpr uint64_t ODD = 0x9E3779B97F4A7C15;  // multiplies bits apart
constexpr uint64_t NEWLINES = 0x0A0A0A0A0A0A0A0A, ONES = 0x0101010101010101, HIGHEST = 0x8080808080808080;
constexpr size_t AHEAD = 16;  // hashes: their places in the table are asked for before they are needed

// Let all bits depend on each other.
uint64_t mixed(uint64_t bits) {
    const uint64_t product = bits * ODD;
    return product ^ (product >> 32);
}

// Eight bytes as one number, the first one lowest.
uint64_t word_at(const uint8_t* text) {
    uint64_t word;
    std::memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

}  // namespace

size_t hash_text(const uint8_t* text, size_t size, const int64_t* counts, size_t steps, uint64_t* hashes) {
    size_t at = 0;
    for (size_t t = 0; t < steps; ++t) {
        if (counts[t] == 0) ++at;
        for (int64_t k = 0; k < counts[t]; ++k) {
            uint64_t total = ODD, word, zeros;
            while (true) {
                if (at + 8 > size) return size;
                word = word_at(text + at);
                const uint64_t differs = word ^ NEWLINES;
                zeros = (differs - ONES) & ~differs & HIGHEST;  // the lowest bit of it is in the first newline
                if (zeros) break;
                total = mixed(total ^ word);
                at += 8;
            }
            const uint64_t length = static_cast<uint64_t>(__builtin_ctzll(zeros)) / 8;
            const uint64_t before = (uint64_t{1} << (8 * length)) - 1;
            *hashes++ = mixed(mixed(total ^ (word & before)) ^ length);
            at += length + 1;
        }
    }
    return at;
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
