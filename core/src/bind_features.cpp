// Named features: hashes and lookup of names, sums of weights, gradients.
#include <vector>

#include "bind.h"
#include "features.h"
#include "names.h"
#include "packing.h"

namespace hscrf {
namespace {

// Of uint16 or int32, whichever is enough; NewIndex is written.
using Index = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NewIndex = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
const T* values_of(const Array<const T>& data) {
    return data.size() ? data.data() : nullptr;
}

Entries entries_of(const Array<const int64_t>& begin, const Array<const int32_t>& index,
                   const Array<const double>& data) {
    require(begin.size() > 0, "no beginnings of rows");
    require(!data.size() || data.size() == index.size(), "not as many values as entries");
    return {begin.data(), index.data(), values_of(data), begin.size() - 1, index.size()};
}

// Call with the index as an array of its type.
template <class Given, class Call>
void with_type(const Given& index, Call call) {
    constexpr bool read = std::is_same_v<Given, Index>;
    if (index.dtype() == nb::dtype<uint16_t>())
        call(static_cast<std::conditional_t<read, const uint16_t, uint16_t>*>(index.data()));
    else if (index.dtype() == nb::dtype<int32_t>())
        call(static_cast<std::conditional_t<read, const int32_t, int32_t>*>(index.data()));
    else
        throw nb::type_error("expected an array of uint16 or int32");
}

// The hash of a name; Python's own of an object that is no string, and an exception of Python if it has none.
uint64_t hash_of(PyObject* name) {
    Py_ssize_t size;
    if (!PyUnicode_Check(name)) {
        const Py_hash_t own = PyObject_Hash(name);
        if (own == -1 && PyErr_Occurred()) throw nb::python_error();
        return static_cast<uint64_t>(own);
    }
    if (const char* text = PyUnicode_AsUTF8AndSize(name, &size)) return hash_name(text, size);
    PyErr_Clear();  // it has half a pair of surrogates
    const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(name, "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    return hash_name(PyBytes_AsString(bytes.ptr()), PyBytes_Size(bytes.ptr()));
}

// The items of a list or a tuple.
class Items {
  public:
    explicit Items(PyObject* given) : given(given), is_list(PyList_CheckExact(given)) {}
    bool valid() const { return is_list || PyTuple_CheckExact(given); }
    Py_ssize_t size() const { return is_list ? PyList_Size(given) : PyTuple_Size(given); }
    PyObject* operator[](Py_ssize_t k) const { return is_list ? PyList_GetItem(given, k) : PyTuple_GetItem(given, k); }

  private:
    PyObject* given;
    bool is_list;
};

void hash_names_of(nb::list names, Array<uint64_t> hashes) {
    require(names.size() == hashes.size(), "not as many hashes as names");
    for (size_t k = 0; k < hashes.size(); ++k) hashes.data()[k] = hash_of(Items(names.ptr())[k]);
}

// A vector as an array of Python.
template <class T>
nb::object array_of(std::vector<T> values) {
    auto* kept = new std::vector<T>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    const size_t size = kept->size();
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 1, &size, owner));
}

NameTable table_of(const Array<uint64_t>& hashes, const Array<int32_t>& numbers) {
    const size_t slots = hashes.size();
    require(slots == numbers.size() && slots && !(slots & (slots - 1)), "a table needs a power of two of places");
    return {hashes.data(), numbers.data(), slots};
}

void store_names_of(Array<const uint64_t> given, Array<uint64_t> hashes, Array<int32_t> numbers) {
    const NameTable table = table_of(hashes, numbers);
    require(given.size() < table.slots, "more names than places in the table");
    store_names(given.data(), given.size(), table);
}

size_t find_names_of(Array<const uint64_t> given, Array<const int64_t> begin, Array<const double> data,
                     Array<uint64_t> hashes, Array<int32_t> numbers, Array<int64_t> found_begin, Array<int32_t> found,
                     Array<double> found_data) {
    const NameTable table = table_of(hashes, numbers);
    require(found.size() >= given.size() && found_begin.size() == begin.size() && found_data.size() == data.size(),
            "not enough room for what is found");
    const NameRows rows = {given.data(), given.size(), begin.data(), begin.size() - 1, values_of(data)};
    return find_names(rows, table, found_begin.data(), found.data(), found_data.data());
}

// The names in the steps of sequences that are in a table: where each step begins, and their numbers. None if X is not
// all lists of lists of lists.
nb::object find_strings(nb::object X, Array<uint64_t> hashes, Array<int32_t> numbers) {
    constexpr size_t PIECE = 4096;  // hashes that are looked up together
    const NameTable table = table_of(hashes, numbers);
    std::vector<int64_t> indptr{0}, begin{0}, found_begin;
    std::vector<int32_t> found;
    std::vector<uint64_t> given;
    const auto look_up = [&] {
        const size_t before = found.size(), rows = begin.size() - 1;
        found.resize(before + given.size()), found_begin.resize(rows + 1);
        const NameRows names = {given.data(), given.size(), begin.data(), rows, nullptr};
        found.resize(before + find_names(names, table, found_begin.data(), found.data() + before, nullptr));
        for (size_t t = 1; t <= rows; ++t) indptr.push_back(static_cast<int64_t>(before) + found_begin[t]);
        given.clear(), begin.resize(1);
    };
    const Items sequences(X.ptr());
    if (!sequences.valid()) return nb::none();
    for (Py_ssize_t n = 0; n < sequences.size(); ++n) {
        const Items steps(sequences[n]);
        if (!steps.valid()) return nb::none();
        for (Py_ssize_t t = 0; t < steps.size(); ++t) {
            const Items names(steps[t]);
            if (!names.valid()) return nb::none();
            for (Py_ssize_t k = 0, size = names.size(); k < size; ++k) given.push_back(hash_of(names[k]));
            begin.push_back(static_cast<int64_t>(given.size()));
            if (given.size() >= PIECE) look_up();
        }
    }
    look_up();
    return nb::make_tuple(array_of(std::move(indptr)), array_of(std::move(found)));
}

void mark_cells_of(Array<const int64_t> begin, Array<const int32_t> index, Array<const int64_t> steps,
                   Array<const int64_t> cells, int64_t width, Array<bool> seen) {
    require(steps.size() == cells.size(), "not as many cells as steps");
    const Entries x = {begin.data(), index.data(), nullptr, begin.size() - 1, index.size()};
    mark_cells(x, steps.data(), cells.data(), steps.size(), width, seen.data());
}

void divide_entries_of(Array<const int64_t> begin, Array<const int32_t> index, Array<const double> data,
                       Array<int32_t> places, Array<int32_t> found_begin, NewIndex found, Array<int32_t> rare,
                       NewIndex rows, Array<double> divided) {
    const Entries x = entries_of(begin, index, data);
    require(found_begin.size() == begin.size() && found.size() + rare.size() == index.size() &&
                rows.size() == rare.size() && divided.size() == data.size(),
            "not enough room for the parts");
    with_type(found, [&](auto* numbers) {
        with_type(rows, [&](auto* steps) {
            divide_entries(x, places.data(), found_begin.data(), numbers, found.size(), rare.data(), steps,
                           divided.data());
        });
    });
}

void list_pairs_of(Array<const int32_t> names, Index rows, Array<const double> data, Array<const int64_t> at,
                   Array<const int32_t> cell, int32_t width, Array<int32_t> numbers, Array<int32_t> cells,
                   Array<double> values) {
    require(names.size() == rows.size() && numbers.size() == cells.size(), "not as many steps as features");
    require(!data.size() || values.size() == numbers.size(), "not enough room for the values");
    with_type(rows, [&](auto* steps) {
        list_pairs(names.data(), steps, values_of(data), names.size(), {at.data(), cell.data()}, width, numbers.data(),
                   cells.data(), values.data());
    });
}

void score_rows(Array<const int64_t> begin, Array<const int32_t> index, Array<const double> data,
                Array<const int64_t> at, Array<const int32_t> cell, Array<const double> weights, double factor,
                Array<double, 2> out) {
    const Entries x = entries_of(begin, index, data);
    require(out.shape(0) == x.steps && weights.size() == cell.size(), "scores or weights of another size");
    features().score_rows(x, {at.data(), cell.data()}, weights.data(), factor, out.data(), out.shape(1));
}

void pull_rows(Array<const int64_t> begin, Array<const int32_t> index, Array<const double> data,
               Array<const int64_t> at, Array<const int32_t> cell, Array<const double, 2> counts,
               Array<double> gradient, double factor) {
    const Entries x = entries_of(begin, index, data);
    require(counts.shape(0) == x.steps && gradient.size() == cell.size(), "counts or gradient of another size");
    features().pull_rows(x, {at.data(), cell.data()}, counts.data(), counts.shape(1), gradient.data(), factor);
}

void pull_rows_twice(Array<const int64_t> begin, Array<const int32_t> index, Array<const double> data,
                     Array<const int64_t> at, Array<const int32_t> cell, Array<const double, 2> counts,
                     Array<double> first, double factor, Array<double> second, double other) {
    const Entries x = entries_of(begin, index, data);
    require(counts.shape(0) == x.steps && first.size() == cell.size() && second.size() == cell.size(),
            "counts or gradient of another size");
    features().pull_rows_twice(x, {at.data(), cell.data()}, counts.data(), counts.shape(1), first.data(), factor,
                               second.data(), other);
}

FrequentTable frequent(const Array<double>& table, size_t features, size_t cells, size_t width) {
    require(width == 4 || width == 8, "a group of a table is 4 or 8 cells wide");
    require(table.size() == (cells + width - 1) / width * width * features, "a table of another size");
    return {table.data(), features, cells, width};
}

void spread_weights(Array<const int32_t> names, Array<const int64_t> at, Array<const int32_t> cell,
                    Array<const double> weights, double factor, Array<double> table, size_t cells, size_t width) {
    const FrequentTable to = frequent(table, names.size(), cells, width);
    features().spread_weights(names.data(), {at.data(), cell.data()}, weights.data(), factor, to);
}

void gather_counts(Array<const int32_t> names, Array<const int64_t> at, Array<const int32_t> cell, Array<double> table,
                   size_t cells, size_t width, Array<double> gradient, double factor) {
    const FrequentTable from = frequent(table, names.size(), cells, width);
    features().gather_counts(names.data(), {at.data(), cell.data()}, from, gradient.data(), factor);
}

template <class T>
Found<T> found_of(const Array<const int32_t>& begin, const T* index, size_t size, const Array<const double>& data) {
    return {begin.data(), index, values_of(data), begin.size() - 1, size};
}

void score_frequent(Array<const int32_t> begin, Index found, Array<const double> data, size_t number,
                    Array<double> table, size_t width, Array<double, 2> out) {
    const FrequentTable from = frequent(table, number, out.shape(1), width);
    require(begin.size() == out.shape(0) + 1, "scores of another size");
    with_type(found, [&](auto* index) {
        const auto x = found_of(begin, index, found.size(), data);
        if constexpr (sizeof(*index) == 2)
            features().score_frequent_short(x, from, out.data());
        else
            features().score_frequent_long(x, from, out.data());
    });
}

void pull_frequent(Array<const int32_t> begin, Index found, Array<const double> data, size_t number,
                   Array<const double, 2> counts, Array<double> table, size_t width) {
    const FrequentTable to = frequent(table, number, counts.shape(1), width);
    require(begin.size() == counts.shape(0) + 1, "counts of another size");
    with_type(found, [&](auto* index) {
        const auto x = found_of(begin, index, found.size(), data);
        if constexpr (sizeof(*index) == 2)
            features().pull_frequent_short(x, counts.data(), to);
        else
            features().pull_frequent_long(x, counts.data(), to);
    });
}

PairList list_of(const Array<const int32_t>& numbers, const Array<const int32_t>& cells,
                 const Array<const double>& values) {
    require(numbers.size() == cells.size() && (!values.size() || values.size() == cells.size()),
            "lists of different sizes");
    return {numbers.data(), cells.data(), values_of(values), numbers.size()};
}

void score_pairs(Array<const int32_t> numbers, Array<const int32_t> cells, Array<const double> values,
                 Array<const double> weights, double factor, Array<double> out) {
    const PairList pairs = list_of(numbers, cells, values);
    features().score_pairs(pairs, weights.data(), factor, out.data());
}

void pull_pairs(Array<const int32_t> numbers, Array<const int32_t> cells, Array<const double> values,
                Array<const double> counts, Array<double> gradient, double factor) {
    const PairList pairs = list_of(numbers, cells, values);
    features().pull_pairs(pairs, counts.data(), gradient.data(), factor);
}

}  // namespace

void bind_features(nb::module_& module) {
    module.def("hash_names", hash_names_of, nb::arg(), nb::arg().noconvert());
    module.def("find_strings", find_strings, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert());
    define(module, "store_names", store_names_of);
    define(module, "find_names", find_names_of);
    define(module, "mark_cells", mark_cells_of);
    define(module, "divide_entries", divide_entries_of);
    define(module, "list_pairs", list_pairs_of);
    define(module, "score_rows", score_rows);
    define(module, "pull_rows", pull_rows);
    define(module, "pull_rows_twice", pull_rows_twice);
    define(module, "spread_weights", spread_weights);
    define(module, "gather_counts", gather_counts);
    define(module, "score_frequent", score_frequent);
    define(module, "pull_frequent", pull_frequent);
    define(module, "score_pairs", score_pairs);
    define(module, "pull_pairs", pull_pairs);
}

}  // namespace hscrf
