// The Python face of the pass over the rows, and of a pattern table that grows by it.
#include "bind.hpp"
#include "pass/observe.hpp"
#include "pass/patterns.hpp"

namespace a1gm {
namespace {

// Runs the pass; the sum and the pattern of each row go to new arrays.
struct Pass {
  Pass(const Table& table, const Options& options)
      : n(static_cast<size_t>(table.n_rows)),
        row_sums(new_array<double>({n})),
        ids(new_array<int32_t>({n})),
        found(unlocked([&] {
          return observe(table.parts, table.n_rows, row_sums.first, ids.first, options);
        })) {}
  size_t n;
  std::pair<double*, nb::object> row_sums;
  std::pair<int32_t*, nb::object> ids;
  Observed found;
};

nb::tuple wide_tuple(Observed& o, size_t n_rows) {
  const auto words = static_cast<size_t>(o.words);
  return nb::make_tuple(to_numpy(std::move(o.bits), {n_rows, words}),
                        to_numpy(std::move(o.positive), {n_rows, words}),
                        to_numpy(std::move(o.col_sums)), o.has_zero);
}

nb::tuple fault_tuple(const Fault& f) {
  return nb::make_tuple(f.count, f.row, f.col, f.value);
}

nb::tuple observe_parts(nb::handle parts, int n_threads, int64_t table_cells,
                        bool keep_table) {
  const Table table(parts);
  Pass pass(table, {n_threads, table_cells, keep_table});
  Observed& o = pass.found;
  const auto m = static_cast<size_t>(o.n_cols), words = static_cast<size_t>(o.words);
  const auto k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? wide_tuple(o, pass.n)
             : nb::make_tuple(pass.ids.second, to_numpy(std::move(o.keys), {k, words}),
                              to_numpy(std::move(o.counts)),
                              to_numpy(std::move(o.sums), {k, m}));
  return nb::make_tuple(pass.row_sums.second, o.wide, statistics, o.is_in_range,
                        fault_tuple(o.negative), fault_tuple(o.infinite));
}

nb::tuple observe_weighted(nb::handle parts, nb::handle weights, int n_threads,
                           int64_t table_cells, bool is_exposure) {
  const Table table(parts), of_cells(weights);
  Pass pass(table, {n_threads, table_cells, false, &of_cells.parts, is_exposure});
  Observed& o = pass.found;
  const auto m = static_cast<size_t>(o.n_cols), k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? wide_tuple(o, pass.n)
             : nb::make_tuple(pass.ids.second, to_numpy(std::move(o.weights), {k, m}),
                              to_numpy(std::move(o.sums), {k, m}));
  const bool is_fit = !o.range.bad && o.negative.count + o.infinite.count == 0;
  return nb::make_tuple(pass.row_sums.second, o.wide, statistics,
                        nb::make_tuple(o.range.least, o.range.most),
                        nb::make_tuple(o.range.least_cell, o.range.most_cell), is_fit);
}

void expand_in_place(InOut<double, 1> row_sums, const In<int32_t, 1>& ids,
                     const Doubles& scale, int n_threads) {
  Unlocked unlocked;
  expand_rows(row_sums.data(), ids.data(), scale.data(), rows_of(ids), n_threads);
}

// Adds the patterns of a piece to those of a table, in place, whose sums are pairs hi +
// lo, and counts the rows of zeros. Returns the pattern in the table of each row.
nb::object add_patterns(InOut<double, 2> hi, InOut<double, 2> lo, InOut<int64_t, 1> counts,
                        InOut<int64_t, 1> zero_counts, const In<int64_t, 1>& places,
                        const In<double, 2>& sums, const In<int64_t, 1>& new_counts,
                        const In<int32_t, 1>& ids, const Doubles& row_sums) {
  const auto m = static_cast<int64_t>(hi.shape(1)), n = rows_of(row_sums);
  const int64_t* const place = places.data();
  for (int64_t a = 0; a < rows_of(places); ++a) {
    double* const own_hi = hi.data() + place[a] * m;
    double* const own_lo = lo.data() + place[a] * m;
    for (int64_t j = 0; j < m; ++j) two_sum(sums.data()[a * m + j], own_hi[j], own_lo[j]);
    counts.data()[place[a]] += new_counts.data()[a];
  }
  auto found = new_array<int32_t>({static_cast<size_t>(n)});
  for (int64_t i = 0; i < n; ++i) {
    found.first[i] = static_cast<int32_t>(place[ids.data()[i]]);
    if (row_sums.data()[i] == 0.0) ++zero_counts.data()[found.first[i]];
  }
  return found.second;
}

}  // namespace

void bind_pass(nb::module_& m) {
  m.def("observe", &observe_parts);
  m.def("observe_weighted", &observe_weighted, nb::arg("parts"), nb::arg("weights"),
        nb::arg("n_threads"), nb::arg("table_cells"), nb::arg("is_exposure") = false);
  m.def("expand_rows", &expand_in_place, nb::arg("row_sums").noconvert(),
        nb::arg("pattern_id"), nb::arg("scale"), nb::arg("n_threads"));
  m.def("add_patterns", &add_patterns, nb::arg("hi").noconvert(),
        nb::arg("lo").noconvert(), nb::arg("counts").noconvert(),
        nb::arg("zero_counts").noconvert(), nb::arg("places"), nb::arg("sums"),
        nb::arg("new_counts"), nb::arg("pattern_id"), nb::arg("row_sums"));
}

}  // namespace a1gm
