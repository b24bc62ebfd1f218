// The Python face of the pass over the rows, and of a pattern table that grows by it.
#include "bind.hpp"
#include "pass/observe.hpp"
#include "pass/patterns.hpp"

namespace a1gm {
namespace {

// Memory for the pattern of each row, which `array` will hold.
IdMemory id_memory(size_t n_rows, nb::object& array) {
  return [&array, n_rows](int width) -> void* {
    Locked locked;
    return with_id_type(width, [&](auto id) -> void* {
      auto [ids, made] = new_array<decltype(id)>({n_rows});
      array = made;
      return ids;
    });
  };
}

nb::object wide_tuple(Observation& o, size_t n_rows) {
  const auto words = static_cast<size_t>(o.words);
  return nb::make_tuple(to_numpy(std::move(o.bits), {n_rows, words}),
                        to_numpy(std::move(o.positive), {n_rows, words}),
                        to_numpy(std::move(o.col_sums)), o.has_zero);
}

nb::tuple fault_tuple(const Fault& f) {
  return nb::make_tuple(f.count, f.row, f.col, f.value);
}

nb::tuple observe_parts(nb::handle parts, int64_t n_groups, int n_threads, double scale,
                        int64_t table_cells, bool keep_table) {
  const Table table(parts);
  const Options options{n_threads, scale, table_cells, keep_table};
  const auto n = static_cast<size_t>(table.n_rows);
  auto row_sums = new_array<double>({static_cast<size_t>(n_groups), n});
  nb::object ids = nb::none();
  const IdMemory new_ids = id_memory(n, ids);
  Observation o = unlocked([&] {
    return observe(table.parts, table.n_rows, row_sums.first, new_ids, options);
  });
  const auto m = static_cast<size_t>(o.n_cols), words = static_cast<size_t>(o.words);
  const auto k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? wide_tuple(o, n)
             : nb::object(nb::make_tuple(ids, to_numpy(std::move(o.keys), {k, words}),
                                         to_numpy(std::move(o.counts)),
                                         to_numpy(std::move(o.sums), {k, m})));
  return nb::make_tuple(row_sums.second, o.wide, statistics, o.total, o.overflow,
                        fault_tuple(o.negative), fault_tuple(o.infinite));
}

nb::tuple observe_weighted(nb::handle parts, nb::handle weights, int n_threads,
                           double weight_scale, int exponent, int64_t table_cells,
                           bool is_exposure) {
  const Table table(parts), of_cells(weights);
  const Options options{n_threads,       1.0,          table_cells, false,
                        &of_cells.parts, weight_scale, exponent,    is_exposure};
  const auto n = static_cast<size_t>(table.n_rows);
  auto row_sums = new_array<double>({n});
  nb::object ids = nb::none();
  const IdMemory new_ids = id_memory(n, ids);
  Observation o = unlocked([&] {
    return observe(table.parts, table.n_rows, row_sums.first, new_ids, options);
  });
  const auto m = static_cast<size_t>(o.n_cols), k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? wide_tuple(o, n)
             : nb::object(nb::make_tuple(ids, to_numpy(std::move(o.weights), {k, m}),
                                         to_numpy(std::move(o.sums), {k, m})));
  const bool is_fit = !o.range.bad && o.negative.count + o.infinite.count == 0;
  return nb::make_tuple(row_sums.second, o.wide, statistics,
                        nb::make_tuple(o.range.least, o.range.most),
                        nb::make_tuple(o.range.least_cell, o.range.most_cell), is_fit);
}

void expand_in_place(InOut<double, 1> row_sums, const Ids& ids, const Doubles& scale,
                     int n_threads) {
  with_id_type(static_cast<int>(ids.itemsize()), [&](auto id) {
    const auto* const numbers = static_cast<const decltype(id)*>(ids.data());
    unlocked([&] {
      expand_rows(row_sums.data(), numbers, scale.data(), rows_of(ids), n_threads);
    });
  });
}

// Notes which pattern of the table the rows have, and how many rows are zero.
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

// Adds the patterns of a piece to those of a table, in place, whose sums are pairs hi +
// lo. Returns the pattern in the table of each row of the piece.
nb::object add_patterns(InOut<double, 2> hi, InOut<double, 2> lo, InOut<int64_t, 1> counts,
                        InOut<int64_t, 1> zero_counts, const In<int64_t, 1>& places,
                        const In<double, 2>& sums, const In<int64_t, 1>& new_counts,
                        const Ids& ids, const Doubles& row_sums) {
  const int64_t k = rows_of(places), n = rows_of(row_sums);
  const auto m = static_cast<int64_t>(hi.shape(1));
  const int64_t* const place = places.data();
  for (int64_t a = 0; a < k; ++a) {
    double* const own_hi = hi.data() + place[a] * m;
    double* const own_lo = lo.data() + place[a] * m;
    for (int64_t j = 0; j < m; ++j) two_sum(sums.data()[a * m + j], own_hi[j], own_lo[j]);
    counts.data()[place[a]] += new_counts.data()[a];
  }
  const auto number = [&](auto line) {
    auto made = new_array<decltype(line)>({static_cast<size_t>(n)});
    with_id_type(static_cast<int>(ids.itemsize()), [&](auto id) {
      name_rows(static_cast<const decltype(id)*>(ids.data()), row_sums.data(), n, place, k,
                zero_counts.data(), made.first);
    });
    return made.second;
  };
  // Narrow numbers: fresh memory takes longer than the work on it.
  return hi.shape(0) <= 256 ? number(uint8_t{}) : number(int32_t{});
}

}  // namespace

void bind_pass(nb::module_& m) {
  m.def("observe", &observe_parts);
  m.def("observe_weighted", &observe_weighted, nb::arg("parts"), nb::arg("weights"),
        nb::arg("n_threads"), nb::arg("weight_scale"), nb::arg("exponent"),
        nb::arg("table_cells"), nb::arg("is_exposure") = false);
  m.def("expand_rows", &expand_in_place, nb::arg("row_sums").noconvert(),
        nb::arg("pattern_id"), nb::arg("scale"), nb::arg("n_threads"));
  m.def("add_patterns", &add_patterns, nb::arg("hi").noconvert(),
        nb::arg("lo").noconvert(), nb::arg("counts").noconvert(),
        nb::arg("zero_counts").noconvert(), nb::arg("places"), nb::arg("sums"),
        nb::arg("new_counts"), nb::arg("pattern_id"), nb::arg("row_sums"));
}

}  // namespace a1gm
