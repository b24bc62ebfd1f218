// The Python face of tables with cell weights.
#include "bind_weights.hpp"

#include "bind_masks.hpp"

namespace a1gm {
namespace {

constexpr int kFurthest = 1 << 14;  // no product is further from 1 than this power of two

nb::tuple observe_weighted(Given parts, Given weights, int n_threads,
                           double weight_scale, int exponent, int64_t table_cells,
                           bool is_exposure) {
  const Table table(parts, 1), of_cells(weights, 1);
  require(of_cells.n_rows == table.n_rows && of_cells.n_cols == table.n_cols,
          "weights must be one number per cell of the table");
  check_threads(n_threads);
  check_scale(weight_scale);
  require(std::abs(exponent) <= kFurthest, "exponent must be within 2^14");
  require(table_cells >= 0, "table_cells must be 0 or more");
  const Options options{n_threads,       1.0,          table_cells, false,
                        &of_cells.parts, weight_scale, exponent,    is_exposure};
  const auto n = static_cast<size_t>(table.n_rows);
  auto [row_sums, row_sums_array] = new_array<double>({n});
  nb::object ids_array = nb::none();
  const IdMemory new_ids = id_memory(n, ids_array);
  Observation o;
  {
    Unlocked unlocked;
    o = observe(table.parts, table.n_rows, 1, row_sums, new_ids, options);
  }
  const auto m = static_cast<size_t>(o.n_cols), k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? wide_tuple(o, n)
             : nb::object(nb::make_tuple(ids_array, to_numpy(std::move(o.weights), {k, m}),
                                         to_numpy(std::move(o.sums), {k, m})));
  const bool is_fit = !o.range.bad && o.negative.count + o.infinite.count == 0;
  return nb::make_tuple(row_sums_array, o.wide, statistics,
                        nb::make_tuple(o.range.least, o.range.most),
                        nb::make_tuple(o.range.least_cell, o.range.most_cell), is_fit);
}

// A mask whose cells have weights.
struct WeightedMask : Margins {
  WeightedMask(Given bits, Given given_weights, Given rows, Given cols)
      : Margins(bits, rows, cols), weights(given_weights, 1) {
    require(weights.n_rows == mask.n && weights.n_cols == mask.m,
            "weights must be one number per cell of the table");
  }
  Table weights;
};

nb::object solve(Given bits, Given weights, Given row_sums, Given col_sums,
                 double tol, int64_t max_sweeps, int n_threads) {
  const WeightedMask g(bits, weights, row_sums, col_sums);
  check_sweeps(tol, max_sweeps);
  check_threads(n_threads);
  return solved([&](Plain& out) {
    return solve_weighted(g.mask, g.weights.parts, g.R, g.C, tol, max_sweeps, n_threads,
                          out);
  });
}

nb::object product(Given bits, Given weights, Given d, Given x, int n_threads) {
  const WeightedMask g(bits, weights, d, x);
  check_threads(n_threads);
  std::vector<double> y;
  {
    Unlocked unlocked;
    weighted_product(g.mask, g.weights.parts, g.R, g.C, n_threads, y);
  }
  return to_numpy(std::move(y));
}

}  // namespace

void bind_weights(nb::module_& m) {
  m.def("observe_weighted", &observe_weighted, nb::arg("parts"), nb::arg("weights"),
        nb::arg("n_threads"), nb::arg("weight_scale"), nb::arg("exponent"),
        nb::arg("table_cells"), nb::arg("is_exposure") = false);
  m.def("solve_weighted", &solve, nb::arg("bits"), nb::arg("weights"),
        nb::arg("row_sums"), nb::arg("col_sums"), nb::arg("tol"), nb::arg("max_sweeps"),
        nb::arg("n_threads"));
  m.def("weighted_product", &product, nb::arg("bits"), nb::arg("weights"),
        nb::arg("row_sums"), nb::arg("col_sums"), nb::arg("n_threads"));
}

}  // namespace a1gm
