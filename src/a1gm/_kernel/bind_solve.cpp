// Bindings of the steps from statistics to factors: `Reduced` is a peeled table, `Flow`
// the network of its core's columns.
#include <algorithm>
#include <limits>

#include "bind.hpp"
#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"
#include "scale/flow.hpp"
#include "scale/solve.hpp"
#include "scale/sweeps.hpp"

namespace a1gm {
namespace {

PairView pairs_of(const In<int64_t, 1>& ptr, const In<int32_t, 1>& cols,
                  const Doubles& sums, const std::optional<Doubles>& weights,
                  int64_t n_cols) {
  return {rows_of(ptr) - 1, n_cols,      ptr.data(),
          cols.data(),      sums.data(), weights ? weights->data() : nullptr};
}

// ---------------------------------------------------------------- in one call
// The result of `solve`, which runs without the interpreter's lock; None if it declines.
template <typename F>
nb::object solved(F&& solve) {
  Plain plain;
  if (!unlocked([&] { return solve(plain); })) return nb::none();
  return nb::make_tuple(to_numpy(std::move(plain.pattern_factor)),
                        to_numpy(std::move(plain.pattern_scale)),
                        to_numpy(std::move(plain.col_factor)), plain.n_iter,
                        plain.newton, plain.gap, plain.step, plain.is_whole);
}

nb::object solve_table(const Bits& keys, const In<double, 2>& sums, double tol,
                       int64_t max_sweeps, int64_t max_steps) {
  const BitMask mask = mask_of(keys, static_cast<int64_t>(sums.shape(1)));
  return solved([&](Plain& out) {
    return solve_plain(mask, sums.data(), tol, max_sweeps, max_steps, out);
  });
}

// A table of weights, where there is one.
std::optional<Table> table_of(nb::handle weights) {
  return weights.is_none() ? std::nullopt : std::optional<Table>(std::in_place, weights);
}

nb::object solve_mask(const Bits& bits, nb::handle weights, const Doubles& row_sums,
                      const Doubles& col_sums, double tol, int64_t max_sweeps,
                      int n_threads) {
  const BitMask mask = mask_of(bits, rows_of(col_sums));
  const std::optional<Table> table = table_of(weights);
  const double *const R = row_sums.data(), *const C = col_sums.data();
  return solved([&](Plain& out) {
    return table ? solve_weighted_bits(mask, table->parts, R, C, tol, max_sweeps, n_threads,
                                       out)
                 : solve_bits(mask, R, C, tol, max_sweeps, n_threads, out);
  });
}

nb::object bits_product(const Bits& bits, nb::handle weights, const Doubles& d,
                        const Doubles& x, int n_threads) {
  const BitMask mask = mask_of(bits, rows_of(x));
  const std::optional<Table> table = table_of(weights);
  return to_numpy(unlocked([&] {
    return product_of_bits(mask, table ? &table->parts : nullptr, d.data(), x.data(),
                           n_threads);
  }));
}

nb::object reach_of(const Bits& bits, const Doubles& x, int n_threads) {
  const BitMask mask = mask_of(bits, rows_of(x));
  return to_numpy(unlocked([&] { return reach_of_bits(mask, x.data(), n_threads); }));
}

nb::object collect_of(const Bits& bits, const Doubles& d, int64_t n_cols, int64_t n_levels,
                      int64_t inner, int n_threads) {
  const BitMask mask = mask_of(bits, n_cols);
  return to_numpy(
      unlocked([&] { return collect_bits(mask, d.data(), n_levels, inner, n_threads); }));
}

nb::object solve_staircase(const Bits& bits, nb::handle parts, const Doubles& col_sums,
                           int n_threads) {
  const Table table(parts);
  const BitMask mask = mask_of(bits, rows_of(col_sums));
  std::vector<double> h, reach;
  const bool is_nested = unlocked([&] {
    return solve_nested(mask, table.parts, col_sums.data(), n_threads, h, reach);
  });
  if (!is_nested) return nb::none();
  return nb::make_tuple(to_numpy(std::move(h)), to_numpy(std::move(reach)));
}

// -------------------------------------------------------------------- peeling
std::optional<Reduced> reduce_mask(const Bits& bits, const Doubles& row_sums,
                                   const Doubles& col_sums, bool rows_distinct,
                                   bool force) {
  Unlocked unlocked;
  Reduced out;
  if (!merge_twins(mask_of(bits, rows_of(col_sums)), row_sums.data(), col_sums.data(),
                   rows_distinct, force, out))
    return std::nullopt;
  return out;
}

Reduced reduce_table(const Bits& keys, const In<double, 2>& sums) {
  Unlocked unlocked;
  const BitMask mask = mask_of(keys, static_cast<int64_t>(sums.shape(1)));
  return peel_pairs(PairTable(mask, sums.data()).view());
}

Reduced reduce_pairs(const In<int64_t, 1>& ptr, const In<int32_t, 1>& cols,
                     const Doubles& sums, const std::optional<Doubles>& weights,
                     int64_t n_cols) {
  Unlocked unlocked;
  return peel_pairs(pairs_of(ptr, cols, sums, weights, n_cols));
}

nb::tuple core_mask(const Reduced& r) {
  return nb::make_tuple(copy_of(r.rows.ptr), copy_of(r.rows.index),
                        r.rows.lists_missing,
                        r.rows.weight.empty() ? nb::none() : copy_of(r.rows.weight));
}

nb::tuple places_of(const Reduced& r) {
  auto rows = new_array<int32_t>({static_cast<size_t>(r.n_rows)});
  auto cols = new_array<int32_t>({static_cast<size_t>(r.n_cols)});
  core_places(r, rows.first, cols.first);
  return nb::make_tuple(rows.second, cols.second);
}

// The steps of the peeling: kind, side, gone and kept; and the sums of the last two.
nb::tuple log_of(const Reduced& r) {
  auto steps = new_array<int32_t>({r.log.size(), 4});
  auto sums = new_array<double>({r.log.size(), 2});
  for (size_t k = 0; k < r.log.size(); ++k) {
    const LogEntry& e = r.log[k];
    const int32_t step[] = {static_cast<int32_t>(e.step), e.is_row, e.gone, e.kept};
    std::copy(step, step + 4, steps.first + 4 * k);
    sums.first[2 * k] = e.sum_gone;
    sums.first[2 * k + 1] = e.sum_kept;
  }
  return nb::make_tuple(steps.second, sums.second);
}

nb::tuple replay_log(const Reduced& r, const Doubles& core_w, const Doubles& core_h) {
  Factors found = replay(r, core_w.data(), core_h.data());
  return nb::make_tuple(to_numpy(std::move(found.w)), to_numpy(std::move(found.h)),
                        to_numpy(std::move(found.row_label)),
                        to_numpy(std::move(found.col_label)), found.exact);
}

// ------------------------------------------------------------------- the core
std::vector<double> vector_of(const Doubles& values) {
  return {values.data(), values.data() + values.size()};
}

nb::tuple scale_from(const Reduced& r, const Doubles& start, double tol,
                     int64_t max_sweeps, int64_t patience, int n_threads) {
  std::vector<double> w(r.R.size()), h = vector_of(start);
  const Sweeps s = unlocked([&] {
    return scale_core(r, w.data(), h.data(), {tol, max_sweeps, patience}, n_threads);
  });
  return nb::make_tuple(to_numpy(std::move(w)), to_numpy(std::move(h)), s.n, s.gap, s.done);
}

nb::tuple sweep_of(const Reduced& r, const Doubles& h) {
  std::vector<double> w(r.R.size()), fitted(r.C.size());
  unlocked([&] { sweep_core(r, h.data(), w.data(), fitted.data()); });
  return nb::make_tuple(to_numpy(std::move(w)), to_numpy(std::move(fitted)));
}

nb::object core_product_of(const Reduced& r, const Doubles& d, const Doubles& x) {
  auto y = new_array<double>({r.C.size()});
  unlocked([&] { core_product(r, d.data(), x.data(), y.first); });
  return y.second;
}

double cheap_step_of(const Reduced& r, const Doubles& w, const Doubles& h, double gap,
                     int n_threads) {
  Unlocked unlocked;
  return cheap_step(r, w.data(), h.data(), gap, n_threads);
}

// `ptr`, `cols` and `sums` are the observed cells of the table; None: not known.
nb::object settle_core(const Reduced& r, const Doubles& start_w, const Doubles& start_h,
                       const std::optional<In<int64_t, 1>>& ptr,
                       const std::optional<In<int32_t, 1>>& cols,
                       const std::optional<Doubles>& sums, double tol, int64_t max_steps,
                       int64_t most_work) {
  std::vector<double> w = vector_of(start_w), h = vector_of(start_h);
  std::optional<PairView> table;
  if (ptr) table = pairs_of(*ptr, *cols, *sums, std::nullopt, r.n_cols);
  const std::optional<Edges> e = unlocked([&] {
    return settle(r, table ? &*table : nullptr, {tol, max_steps, most_work}, w.data(),
                  h.data());
  });
  if (!e) return nb::none();
  return nb::make_tuple(to_numpy(std::move(w)), to_numpy(std::move(h)), e->n, e->step,
                        e->gap, nb::make_tuple(r.core_cols[e->low], r.core_cols[e->high]));
}

void start_flow(Flow* flow, const Reduced& core, const Doubles& w, const Doubles& h) {
  new (flow) Flow(core, w.data(), h.data());
}

void move_flow(Flow& flow, const Doubles& w, const Doubles& h) {
  Unlocked unlocked;
  flow.move(w.data(), h.data());
}

nb::tuple solve_flow(Flow& flow, const Doubles& y, const std::optional<Doubles>& extra,
                     double least, double share, int64_t factors, int64_t preceded,
                     int64_t max_products) {
  std::vector<double> x(y.size());
  const int64_t n = unlocked([&] {
    return flow.solve(y.data(), extra ? extra->data() : nullptr, {least, share},
                      {factors, preceded}, max_products, x.data());
  });
  return nb::make_tuple(to_numpy(std::move(x)), n);
}

}  // namespace

void bind_solve(nb::module_& m) {
  m.def("solve_nested", &solve_staircase);
  m.def("solve_plain", &solve_table);
  m.def("solve_bits", &solve_mask, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
        nb::arg(), nb::arg(), nb::arg());
  m.def("bits_product", &bits_product, nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
        nb::arg());
  m.def("reach_of_bits", &reach_of);
  m.def("collect_bits", &collect_of);
  m.def("reduce_mask", &reduce_mask);
  m.def("reduce_table", &reduce_table);
  m.def("reduce_pairs", &reduce_pairs);
  nb::class_<Reduced>(m, "Reduced")
      .def_prop_ro("core_shape",
                   [](const Reduced& r) {
                     return nb::make_tuple(r.core_rows.size(), r.core_cols.size());
                   })
      .def_prop_ro("n_roots", &n_roots)
      .def_ro("n_core_blocks", &Reduced::n_core_blocks)
      .def_prop_ro("n_listed", [](const Reduced& r) { return r.rows.index.size(); })
      .def_prop_ro("lists_missing", [](const Reduced& r) { return r.rows.lists_missing; })
      .def_prop_ro("longest_sum", &longest_sum)
      .def_prop_ro("core_row_sums", [](const Reduced& r) { return copy_of(r.R); })
      .def_prop_ro("core_col_sums", [](const Reduced& r) { return copy_of(r.C); })
      .def_prop_ro("core_row_block", [](const Reduced& r) { return copy_of(r.row_label); })
      .def_prop_ro("core_col_block", [](const Reduced& r) { return copy_of(r.col_label); })
      .def_prop_ro("core_mask", &core_mask)
      .def_prop_ro("core_places", &places_of)
      .def_prop_ro("steps", &log_of)
      .def_prop_ro("start", [](const Reduced& r) { return to_numpy(start_of(r)); })
      .def_prop_ro("edges_are_cheap", &edges_are_cheap)
      .def("scale", &scale_from, nb::arg("h"), nb::arg("tol"), nb::arg("max_sweeps"),
           nb::arg("patience"), nb::arg("n_threads") = 1)
      .def("sweep", &sweep_of)
      .def("product", &core_product_of)
      .def("cheap_step", &cheap_step_of, nb::arg("core_w"), nb::arg("core_h"),
           nb::arg("gap"), nb::arg("n_threads") = 1)
      .def("settle", &settle_core, nb::arg("core_w"), nb::arg("core_h"),
           nb::arg("ptr").none(), nb::arg("cols").none(), nb::arg("sums").none(),
           nb::arg("tol"), nb::arg("max_steps"), nb::arg("most_work"))
      .def("replay", &replay_log);
  nb::class_<Flow>(m, "Flow")
      .def("__init__", &start_flow, nb::keep_alive<1, 2>())  // it refers to the core
      .def("move", &move_flow)
      .def("solve", &solve_flow);
}

}  // namespace a1gm

NB_MODULE(_native, m) {
  a1gm::bind_table(m);
  a1gm::bind_pass(m);
  a1gm::bind_solve(m);
  a1gm::bind_place(m);
  a1gm::bind_cells(m);
}
