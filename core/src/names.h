// Names of features as hashes of 64 bits, and a table that finds their numbers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hscrf {

// The hash of a name of some bytes.
uint64_t hash_name(const char* name, size_t size);

// An open table of `slots` places (a power of two), number -1 where there is no name, and at most half full.
struct NameTable {
    uint64_t* hashes;
    int32_t* numbers;
    size_t slots;
};

// Put the number of each hash into an empty table.
void store_names(const uint64_t* given, size_t size, NameTable table);

// Rows of hashes, their values (or none), and where each row begins.
struct NameRows {
    const uint64_t* given;
    size_t size;
    const int64_t* begin;
    size_t rows;
    const double* data;  // nullptr: every value is one
};

// The numbers of the hashes of each row that are in the table, and their values; returns how many there are.
size_t find_names(NameRows rows, NameTable table, int64_t* found_begin, int32_t* found, double* found_data);

}  // namespace hscrf
