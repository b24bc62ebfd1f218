// The Python face of the compiled kernel: `a1gm._kernel._native`. Every function has
// a NumPy twin of the same name and signature in reference/, and refuses what that one
// refuses, in the same words.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "bind_arrays.hpp"
#include "bind_arrow.hpp"
#include "bind_flow.hpp"
#include "bind_many.hpp"
#include "bind_masks.hpp"
#include "bind_place.hpp"
#include "bind_sums.hpp"
#include "bind_weights.hpp"
#include "checks.hpp"
#include "pass/observe.hpp"
#include "pass/patterns.hpp"
#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"
#include "scale/nested.hpp"
#include "scale/solve.hpp"
#include "scale/sweeps.hpp"

using namespace a1gm;

namespace {

// ------------------------------------------------------------------------- the pass
nb::tuple observe_parts(Given entries, int64_t n_groups, int n_threads,
                        double scale, int64_t table_cells, bool keep_table) {
  const Table table(entries, n_groups);
  check_threads(n_threads);
  check_scale(scale);
  require(table_cells >= 0, "table_cells must be 0 or more");
  const Options options{n_threads, scale, table_cells, keep_table};
  const auto n = static_cast<size_t>(table.n_rows);
  auto [row_sums, row_sums_array] =
      new_array<double>({static_cast<size_t>(n_groups), n});
  nb::object ids_array = nb::none();
  const IdMemory new_ids = id_memory(n, ids_array);
  Observation o;
  {
    Unlocked unlocked;
    o = observe(table.parts, table.n_rows, n_groups, row_sums, new_ids, options);
  }
  const auto m = static_cast<size_t>(o.n_cols), words = static_cast<size_t>(o.words);
  const auto k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? wide_tuple(o, n)
             : nb::object(nb::make_tuple(ids_array,
                                         to_numpy(std::move(o.keys), {k, words}),
                                         to_numpy(std::move(o.counts)),
                                         to_numpy(std::move(o.sums), {k, m})));
  return nb::make_tuple(row_sums_array, o.wide, statistics, o.total, o.overflow,
                        fault_tuple(o.negative), fault_tuple(o.infinite));
}

template <typename Id>
void expand(double* row_sums, const AnyArray& ids, Vector<double>& scale, int n_threads) {
  const double* factors = scale.data();
  Unlocked unlocked;
  require(expand_rows(row_sums, static_cast<const Id*>(ids.data()), factors,
                      static_cast<int64_t>(ids.shape(0)), scale.rows(), n_threads),
          "a pattern number must be 0 or more and below the number of scales");
}

bool is_aligned(const void* data, size_t size) {
  return reinterpret_cast<uintptr_t>(data) % size == 0;
}

void expand_in_place(Given row_sums, Given pattern_id, Given scale, int n_threads) {
  nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> sums;
  AnyArray ids;
  require(nb::try_cast(row_sums, sums, false) && is_aligned(sums.data(), 8),
          "row_sums must be a writable contiguous array of float64");
  const bool is_flat = nb::try_cast(pattern_id, ids, false) && ids.ndim() == 1 &&
                       (ids.shape(0) <= 1 || ids.stride(0) == 1) &&
                       is_aligned(ids.data(), ids.itemsize());
  const auto is_of = [&](nb::dlpack::dtype type) { return is_flat && ids.dtype() == type; };
  const bool is_byte = is_of(nb::dtype<uint8_t>()), is_short = is_of(nb::dtype<uint16_t>());
  require(is_byte || is_short || is_of(nb::dtype<int32_t>()),
          "pattern_id must be a contiguous array of uint8, uint16 or int32");
  require(ids.shape(0) == sums.shape(0), "pattern_id must be one number per row");
  Vector<double> factors(scale, "scale");
  check_threads(n_threads);
  auto* const run = is_byte ? expand<uint8_t> : is_short ? expand<uint16_t> : expand<int32_t>;
  run(sums.data(), ids, factors, n_threads);
}

// --------------------------------------------------------------------------- masks
// Keys and sums of a pattern table.
struct Patterns {
  Patterns(Given given_keys, Given given_sums)
      : keys(given_keys, "keys"),
        sums(given_sums, "sums"),
        mask(mask_of(keys, sums.cols())) {
    require(sums.rows() == mask.n, "sums must be one row per key");
    S = sums.data();
  }
  Matrix<uint64_t> keys;
  Matrix<double> sums;
  BitMask mask;
  const double* S;
};

// -------------------------------------------------------------------------- reduce
std::optional<Reduced> reduce_mask(Given bits, Given row_sums, Given col_sums,
                                   bool rows_distinct, bool force) {
  const Margins g(bits, row_sums, col_sums);
  Reduced out;
  Unlocked unlocked;
  if (!merge_twins(g.mask, g.R, g.C, rows_distinct, force, out)) return std::nullopt;
  return out;
}

Reduced reduce_table(Given keys, Given sums) {
  const Patterns g(keys, sums);
  Unlocked unlocked;
  return peel_table(g.mask, g.S);
}

Reduced reduce_pairs(Given ptr, Given cols, Given sums, Given weights, int64_t n_cols) {
  Pairs pairs(ptr, cols, sums, weights, n_cols);
  Unlocked unlocked;
  pairs.check();
  return peel_pairs(pairs.view);
}

// --------------------------------------------------------------------------- solve
nb::object solve_table(Given keys, Given sums, double tol, int64_t max_sweeps,
                       int64_t max_steps) {
  const Patterns g(keys, sums);
  check_sweeps(tol, max_sweeps);
  require(max_steps >= 0, "max_steps must be 0 or more");
  return solved([&](Plain& out) {
    return solve_plain(g.mask, g.S, tol, max_sweeps, max_steps, out);
  });
}

nb::object solve_mask(Given bits, Given row_sums, Given col_sums, double tol,
                      int64_t max_sweeps, int n_threads) {
  const Margins g(bits, row_sums, col_sums);
  check_sweeps(tol, max_sweeps);
  check_threads(n_threads);
  return solved([&](Plain& out) {
    return solve_wide(g.mask, g.R, g.C, tol, max_sweeps, n_threads, out);
  });
}

nb::object solve_nested(Given given_bits, Given entries, Given given_col_sums,
                        double scale, int n_threads) {
  const Table table(entries, 1);
  Matrix<uint64_t> bits(given_bits, "bits");
  Vector<double> col_sums(given_col_sums, "col_sums");
  const BitMask mask = mask_of(bits, col_sums.rows());
  require(mask.n == table.n_rows, "bits must be one row per row of the table");
  require(mask.m == table.n_cols, "col_sums must be one number per column of the table");
  check_scale(scale);
  check_threads(n_threads);
  const double* C = col_sums.data();
  std::vector<double> h(static_cast<size_t>(mask.m)), reach;
  bool nested = false;
  {
    Unlocked unlocked;
    Nesting nesting;
    nested = find_nesting(mask, nesting);
    if (nested) {
      const std::vector<double> before =
          sum_before_steps(table.parts, mask.n, nesting, scale, n_threads);
      nested_factors(nesting, before.data(), C, mask.m, h.data());
      const std::vector<double> steps = reach_of_steps(nesting, h.data());
      for (const int32_t depth : nesting.depth) reach.push_back(steps[depth]);
    }
  }
  if (!nested) return nb::none();
  return nb::make_tuple(to_numpy(std::move(h)), to_numpy(std::move(reach)));
}

// ------------------------------------------------------------------------ the core
nb::tuple scale_from(const Reduced& r, Given h_start, double tol, int64_t max_sweeps,
                     int64_t patience, int n_threads) {
  Vector<double> start(h_start, "h");
  require(start.rows() == static_cast<int64_t>(r.C.size()),
          "h must be one number per column of the core");
  check_sweeps(tol, max_sweeps);
  require(patience >= 0, "patience must be 0 or more");
  check_threads(n_threads);
  auto [w, w_array] = new_array<double>({r.R.size()});
  auto [h, h_array] = new_array<double>({r.C.size()});
  std::copy_n(start.data(), r.C.size(), h);
  std::fill_n(w, r.R.size(), 0.0);
  Sweeps s;
  {
    Unlocked unlocked;
    s = scale_core(r, w, h, {tol, max_sweeps, patience}, n_threads);
  }
  return nb::make_tuple(w_array, h_array, s.n, s.gap, s.done);
}

struct Labels {
  explicit Labels(const Reduced& r)
      : row(new_array<int32_t>({static_cast<size_t>(r.n_rows)})),
        col(new_array<int32_t>({static_cast<size_t>(r.n_cols)})) {}
  std::pair<int32_t*, nb::object> row, col;
};

double cheap_step_of(const Reduced& r, Given given_w, Given given_h, double gap,
                     int n_threads) {
  CoreNumbers<double> core(r, given_w, given_h, "core_w", "core_h");
  check_threads(n_threads);
  const double *w = core.of_rows.data(), *h = core.of_cols.data();
  Unlocked unlocked;
  return cheap_step(r, w, h, gap, n_threads);
}

nb::tuple settle(const Reduced& r, Given w, Given h, Given given_cells,
                 int64_t max_steps) {
  CoreNumbers<double> core(r, w, h, "core_w", "core_h");
  const size_t n = r.R.size(), m = r.C.size();
  std::optional<Matrix<double>> cells;
  if (!given_cells.is_none()) cells.emplace(given_cells, "cells");
  require(!cells || (cells->rows() == static_cast<int64_t>(n) &&
                     cells->cols() == static_cast<int64_t>(m)),
          "cells must be one number per cell of the core");
  require(n > 0 && m > 0, "the core is empty");
  require(max_steps >= 0, "max_steps must be 0 or more");
  auto [w_out, w_array] = new_array<double>({n});
  auto [h_out, h_array] = new_array<double>({m});
  std::copy_n(core.of_rows.data(), n, w_out);
  std::copy_n(core.of_cols.data(), m, h_out);
  const double* sums = cells ? cells->data() : nullptr;
  Edges e;
  {
    Unlocked unlocked;
    e = settle_by_edges(r, sums, w_out, h_out, max_steps);
  }
  return nb::make_tuple(w_array, h_array, e.n, e.step, e.gap,
                        nb::make_tuple(r.core_cols[e.low], r.core_cols[e.high]));
}

nb::object core_product_of(const Reduced& r, Given given_d, Given given_x) {
  CoreNumbers<double> given(r, given_d, given_x, "core_w", "core_h");
  auto [y, y_array] = new_array<double>({r.C.size()});
  const double *d = given.of_rows.data(), *x = given.of_cols.data();
  {
    Unlocked unlocked;
    core_product(r, d, x, y);
  }
  return nb::object(y_array);
}

nb::object mask_product(Given given_bits, Given given_d, Given given_x, int n_threads) {
  Matrix<uint64_t> bits(given_bits, "bits");
  Vector<double> d(given_d, "d"), x(given_x, "x");
  const BitMask mask = mask_of(bits, x.rows());
  require(d.rows() == mask.n, "d must be one number per row");
  check_threads(n_threads);
  const double *rows = d.data(), *cols = x.data();
  std::vector<double> y;
  {
    Unlocked unlocked;
    wide_product(mask, rows, cols, n_threads, y);
  }
  return to_numpy(std::move(y));
}

nb::tuple places_of(const Reduced& r) {
  auto [rows, row_array] = new_array<int32_t>({static_cast<size_t>(r.n_rows)});
  auto [cols, col_array] = new_array<int32_t>({static_cast<size_t>(r.n_cols)});
  core_places(r, rows, cols);
  return nb::make_tuple(row_array, col_array);
}

nb::tuple replay_log(const Reduced& r, Given given_w, Given given_h) {
  CoreNumbers<double> core(r, given_w, given_h, "core_w", "core_h");
  const auto n = static_cast<size_t>(r.n_rows), m = static_cast<size_t>(r.n_cols);
  auto [w, w_array] = new_array<double>({n});
  auto [h, h_array] = new_array<double>({m});
  Labels label(r);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::fill_n(w, n, nan);
  std::fill_n(h, m, nan);
  const double *from_w = core.of_rows.data(), *from_h = core.of_cols.data();
  for (size_t k = 0; k < r.core_rows.size(); ++k) w[r.core_rows[k]] = from_w[k];
  for (size_t k = 0; k < r.core_cols.size(); ++k) h[r.core_cols[k]] = from_h[k];
  const bool exact = replay(r, w, h, label.row.first, label.col.first);
  return nb::make_tuple(w_array, h_array, label.row.second, label.col.second, exact);
}

// Mantissas and exponents as two arrays.
nb::tuple apart(const std::vector<Wide>& numbers) {
  auto [mantissa, mantissas] = new_array<double>({numbers.size()});
  auto [exponent, exponents] = new_array<int64_t>({numbers.size()});
  for (size_t k = 0; k < numbers.size(); ++k) {
    mantissa[k] = numbers[k].mantissa;
    exponent[k] = numbers[k].exponent;
  }
  return nb::make_tuple(mantissas, exponents);
}

nb::tuple replay_wide(const Reduced& r, Given core_w, Given core_h, Given row_exponent,
                      Given col_exponent) {
  CoreNumbers<double> core(r, core_w, core_h, "core_w", "core_h");
  CoreNumbers<int64_t> power(r, row_exponent, col_exponent, "row_exponent",
                             "col_exponent");
  const Wide nan(std::numeric_limits<double>::quiet_NaN());
  std::vector<Wide> w(static_cast<size_t>(r.n_rows), nan);
  std::vector<Wide> h(static_cast<size_t>(r.n_cols), nan);
  const double *from_w = core.of_rows.data(), *from_h = core.of_cols.data();
  const int64_t *a = power.of_rows.data(), *b = power.of_cols.data();
  for (size_t k = 0; k < r.core_rows.size(); ++k) w[r.core_rows[k]] = {from_w[k], a[k]};
  for (size_t k = 0; k < r.core_cols.size(); ++k) h[r.core_cols[k]] = {from_h[k], b[k]};
  Labels label(r);
  replay(r, w.data(), h.data(), label.row.first, label.col.first);
  return nb::make_tuple(apart(w), apart(h), label.row.second, label.col.second);
}

Reduced rescale(const Reduced& r, Given row_exponent, Given col_exponent,
                int64_t lift) {
  CoreNumbers<int64_t> power(r, row_exponent, col_exponent, "row_exponent",
                             "col_exponent");
  return rescaled(r, power.of_rows.data(), power.of_cols.data(), lift);
}

template <typename T>
nb::object copy_of(const std::vector<T>& values) {
  return to_numpy(std::vector<T>(values));
}

nb::tuple core_mask(const Reduced& r) {
  return nb::make_tuple(copy_of(r.rows.ptr), copy_of(r.rows.index),
                        r.rows.lists_missing,
                        r.rows.weight.empty() ? nb::none() : copy_of(r.rows.weight));
}

}  // namespace

NB_MODULE(_native, m) {
  bind_arrow(m);
  bind_many(m);
  bind_place(m);
  bind_sums(m);
  bind_weights(m);
  m.def("observe", &observe_parts, nb::arg("parts"), nb::arg("n_groups"),
        nb::arg("n_threads"), nb::arg("scale"), nb::arg("table_cells"),
        nb::arg("keep_table"));
  m.def("expand_rows", &expand_in_place, nb::arg("row_sums"), nb::arg("pattern_id"),
        nb::arg("scale"), nb::arg("n_threads"));
  m.def("solve_nested", &solve_nested, nb::arg("bits"), nb::arg("parts"),
        nb::arg("col_sums"), nb::arg("scale"), nb::arg("n_threads"));
  m.def("solve_plain", &solve_table, nb::arg("keys"), nb::arg("sums"), nb::arg("tol"),
        nb::arg("max_sweeps"), nb::arg("max_steps"));
  m.def("solve_wide", &solve_mask, nb::arg("bits"), nb::arg("row_sums"),
        nb::arg("col_sums"), nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("n_threads"));
  m.def("mask_product", &mask_product, nb::arg("bits"), nb::arg("d"), nb::arg("x"),
        nb::arg("n_threads"));
  m.def("reduce_mask", &reduce_mask, nb::arg("bits"), nb::arg("row_sums"),
        nb::arg("col_sums"), nb::arg("rows_distinct"), nb::arg("force"));
  m.def("reduce_table", &reduce_table, nb::arg("keys"), nb::arg("sums"));
  m.def("reduce_pairs", &reduce_pairs, nb::arg("ptr"), nb::arg("cols"),
        nb::arg("sums"), nb::arg("weights").none(), nb::arg("n_cols"));
  nb::class_<Reduced>(m, "Reduced")
      .def_prop_ro("core_shape",
                   [](const Reduced& r) {
                     return nb::make_tuple(r.core_rows.size(), r.core_cols.size());
                   })
      .def_prop_ro("n_roots",
                   [](const Reduced& r) {
                     int64_t n = 0;
                     for (const LogEntry& e : r.log) n += e.step == Step::root;
                     return n;
                   })
      .def_prop_ro("n_core_blocks", [](const Reduced& r) { return r.n_core_blocks; })
      .def_prop_ro("n_listed", [](const Reduced& r) { return r.rows.index.size(); })
      .def_prop_ro("lists_missing", [](const Reduced& r) { return r.rows.lists_missing; })
      .def_prop_ro("longest_sum", &longest_sum)
      .def_prop_ro("core_row_sums", [](const Reduced& r) { return copy_of(r.R); })
      .def_prop_ro("core_col_sums", [](const Reduced& r) { return copy_of(r.C); })
      .def_prop_ro("core_row_block", [](const Reduced& r) { return copy_of(r.row_label); })
      .def_prop_ro("core_col_block", [](const Reduced& r) { return copy_of(r.col_label); })
      .def_prop_ro("core_mask", &core_mask)
      .def("scale", &scale_from, nb::arg("h"), nb::arg("tol"), nb::arg("max_sweeps"),
           nb::arg("patience"), nb::arg("n_threads") = 1)
      .def("sweep", &sweep_of, nb::arg("h"))
      .def("product", &core_product_of, nb::arg("d"), nb::arg("x"))
      .def_prop_ro("start", [](const Reduced& r) { return to_numpy(start_of(r)); })
      .def_prop_ro("core_places", &places_of)
      .def_prop_ro("edges_are_cheap", &edges_are_cheap)
      .def("cheap_step", &cheap_step_of, nb::arg("core_w"), nb::arg("core_h"),
           nb::arg("gap"), nb::arg("n_threads") = 1)
      .def("settle", &settle, nb::arg("core_w"), nb::arg("core_h"),
           nb::arg("cells").none(), nb::arg("max_steps"))
      .def("settle_sparse", &settle_sparse_of, nb::arg("core_w"), nb::arg("core_h"),
           nb::arg("ptr"), nb::arg("cols"), nb::arg("sums"), nb::arg("tol"),
           nb::arg("max_steps"), nb::arg("most_work"))
      .def("replay", &replay_log, nb::arg("core_w"), nb::arg("core_h"))
      .def("replay_wide", &replay_wide, nb::arg("core_w"), nb::arg("core_h"),
           nb::arg("row_exponent"), nb::arg("col_exponent"))
      .def("rescaled", &rescale, nb::arg("row_exponent"), nb::arg("col_exponent"),
           nb::arg("lift"));
  bind_flow(m);
}
