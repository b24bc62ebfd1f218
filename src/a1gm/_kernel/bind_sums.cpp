// The Python face of a pattern table that grows: what a pass has found is added to it.
#include "bind_sums.hpp"

#include "bind_arrays.hpp"
#include "pass/patterns.hpp"

namespace a1gm {
namespace {

// An array that is written where it lies.
template <typename T, int kDims>
struct Out {
  using Array = nb::ndarray<T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
  Out(nb::handle given, const char* name) {
    const bool fits = nb::try_cast(given, array, false) &&
                      reinterpret_cast<uintptr_t>(array.data()) % alignof(T) == 0;
    if (!fits)
      throw std::invalid_argument(std::string(name) +
                                  " must be a writable contiguous array of " +
                                  kTypeName<T>);
  }
  int64_t rows() const { return static_cast<int64_t>(array.shape(0)); }
  Array array;
};

struct Growing {
  Growing(nb::handle given_hi, nb::handle given_lo, nb::handle given_counts,
          nb::handle given_zero_counts)
      : hi(given_hi, "hi"),
        lo(given_lo, "lo"),
        counts(given_counts, "counts"),
        zero_counts(given_zero_counts, "zero_counts"),
        n_cols(static_cast<int64_t>(hi.array.shape(1))) {
    require(lo.rows() == hi.rows() && lo.array.shape(1) == hi.array.shape(1) &&
                counts.rows() == hi.rows() && zero_counts.rows() == hi.rows(),
            "lo, counts and zero_counts must have the rows of hi");
  }
  Out<double, 2> hi, lo;
  Out<int64_t, 1> counts, zero_counts;
  int64_t n_cols;
};

// Notes where the rows went, and which of them are zero.
template <typename Id, typename Line>
void name_rows(const Id* ids, const double* row_sums, int64_t n, const int64_t* place,
               int64_t n_places, int64_t* zero_counts, Line* lines) {
  const std::vector<Line> line(place, place + n_places);
  const Line* const names = line.data();
  for (int64_t i = 0; i < n; ++i) lines[i] = names[ids[i]];
  bool has_zero = false;
  for (int64_t i = 0; i < n; ++i) has_zero |= row_sums[i] == 0.0;
  if (!has_zero) return;
  for (int64_t i = 0; i < n; ++i) zero_counts[place[ids[i]]] += row_sums[i] == 0.0;
}

nb::object add_patterns(nb::handle hi, nb::handle lo, nb::handle counts,
                        nb::handle zero_counts, nb::handle given_places,
                        nb::handle given_sums, nb::handle given_counts,
                        nb::handle pattern_id, nb::handle given_row_sums) {
  Growing table(hi, lo, counts, zero_counts);
  Vector<int64_t> places(given_places, "places"), more(given_counts, "new_counts");
  Matrix<double> sums(given_sums, "sums");
  Vector<double> row_sums(given_row_sums, "row_sums");
  AnyArray ids;
  const bool is_flat = nb::try_cast(pattern_id, ids, false) && ids.ndim() == 1 &&
                       (ids.shape(0) <= 1 || ids.stride(0) == 1) &&
                       reinterpret_cast<uintptr_t>(ids.data()) % ids.itemsize() == 0;
  const auto is_of = [&](nb::dlpack::dtype type) { return is_flat && ids.dtype() == type; };
  const int width = is_of(nb::dtype<uint8_t>())    ? 1
                    : is_of(nb::dtype<uint16_t>()) ? 2
                    : is_of(nb::dtype<int32_t>())  ? 4
                                                   : 0;
  require(width != 0, "pattern_id must be a contiguous array of uint8, uint16 or int32");
  const int64_t k = places.rows(), n = row_sums.rows(), m = table.n_cols;
  require(sums.rows() == k && sums.cols() == m && more.rows() == k,
          "sums and new_counts must be one row per place");
  require(static_cast<int64_t>(ids.shape(0)) == n, "pattern_id must be one number per row");
  const int64_t *const place = places.data(), *const new_counts = more.data();
  std::vector<char> taken(static_cast<size_t>(table.hi.rows()), 0);
  for (int64_t a = 0; a < k; ++a)
    require(place[a] >= 0 && place[a] < table.hi.rows() && !taken[place[a]]++,
            "places must be different rows of the table");
  with_id_type(width, [&](auto id) {
    require(range_of(static_cast<const decltype(id)*>(ids.data()), n).is_below(k),
            "a pattern number must be 0 or more and below the number of places");
  });

  const double *const S = sums.data(), *const R = row_sums.data();
  for (int64_t a = 0; a < k; ++a) {
    double* const own_hi = table.hi.array.data() + place[a] * m;
    double* const own_lo = table.lo.array.data() + place[a] * m;
    for (int64_t j = 0; j < m; ++j) two_sum(S[a * m + j], own_hi[j], own_lo[j]);
    table.counts.array.data()[place[a]] += new_counts[a];
  }
  const auto number = [&](auto line) {
    auto [lines, array] = new_array<decltype(line)>({static_cast<size_t>(n)});
    auto* const out = lines;
    with_id_type(width, [&](auto id) {
      name_rows(static_cast<const decltype(id)*>(ids.data()), R, n, place, k,
                table.zero_counts.array.data(), out);
    });
    return array;
  };
  // Narrow numbers: fresh memory takes longer than the work on it.
  return table.hi.rows() <= 256 ? number(uint8_t{}) : number(int32_t{});
}

}  // namespace

void bind_sums(nb::module_& m) {
  m.def("add_patterns", &add_patterns, nb::arg("hi"), nb::arg("lo"), nb::arg("counts"),
        nb::arg("zero_counts"), nb::arg("places"), nb::arg("sums"), nb::arg("new_counts"),
        nb::arg("pattern_id"), nb::arg("row_sums"));
}

}  // namespace a1gm
