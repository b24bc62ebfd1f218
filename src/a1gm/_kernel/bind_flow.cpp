// `a1gm._kernel._native.Flow`: the columns of a core as a network.
#include "bind_flow.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "bind_masks.hpp"
#include "scale/flow.hpp"
#include "scale/sparse_edges.hpp"
#include "scale/sweeps.hpp"

namespace a1gm {
namespace {

// A network and the core it is made of.
struct HeldFlow {
  HeldFlow(nb::object given, nb::handle w, nb::handle h)
      : held(given), core(nb::cast<const Reduced&>(given)), flow(made(w, h)) {}

  void move(nb::handle given_w, nb::handle given_h) {
    auto [w, h] = pair_of(given_w, given_h);
    const double *rows = w.data(), *cols = h.data();
    Unlocked unlocked;
    flow.move(rows, cols);
  }

  nb::tuple solve(nb::handle given_y, nb::handle given_extra, double least, double share,
                  int64_t factors, int64_t preceded, int64_t max_products) {
    Vector<double> y(given_y, "y");
    require(y.rows() == core.rows.n_other, "y must be one number per column of the core");
    std::optional<Vector<double>> extra;
    if (!given_extra.is_none()) extra.emplace(given_extra, "extra");
    require(!extra || extra->rows() == y.rows(), "extra must be as long as y");
    require(factors >= 0 && preceded >= 0, "costs must be 0 or more");
    require(max_products >= 0, "max_products must be 0 or more");
    auto [x, x_array] = new_array<double>({core.C.size()});
    const double *currents = y.data(), *more = extra ? extra->data() : nullptr;
    int64_t n = 0;
    {
      Unlocked unlocked;
      n = flow.solve(currents, more, {least, share}, {factors, preceded},
                     max_products, x);
    }
    return nb::make_tuple(x_array, n);
  }

 private:
  std::pair<Vector<double>, Vector<double>> pair_of(nb::handle w, nb::handle h) const {
    std::pair<Vector<double>, Vector<double>> given{{w, "w"}, {h, "h"}};
    require(given.first.rows() == core.rows.n, "w must be one number per row of the core");
    require(given.second.rows() == core.rows.n_other,
            "h must be one number per column of the core");
    return given;
  }
  Flow made(nb::handle given_w, nb::handle given_h) const {
    auto [w, h] = pair_of(given_w, given_h);
    return Flow(core, w.data(), h.data());
  }
  nb::object held;
  const Reduced& core;
  Flow flow;
};

}  // namespace

nb::tuple sweep_of(const Reduced& r, nb::handle given_h) {
  Vector<double> start(given_h, "h");
  require(start.rows() == static_cast<int64_t>(r.C.size()),
          "h must be one number per column of the core");
  auto [w, w_array] = new_array<double>({r.R.size()});
  auto [fitted, fitted_array] = new_array<double>({r.C.size()});
  const double* h = start.data();
  {
    Unlocked unlocked;
    sweep_core(r, h, w, fitted);
  }
  return nb::make_tuple(w_array, fitted_array);
}

nb::object settle_sparse_of(const Reduced& r, nb::handle w, nb::handle h, nb::handle ptr,
                            nb::handle cols, nb::handle sums, double tol,
                            int64_t max_steps, int64_t most_work) {
  CoreNumbers<double> core(r, w, h, "core_w", "core_h");
  Pairs pairs(ptr, cols, sums, nb::none(), r.n_cols);
  require(pairs.view.n_rows == r.n_rows, "ptr must have one row per row of the table");
  require(r.rows.n > 0, "the core is empty");
  check_sweeps(tol, 0);
  require(max_steps >= 0, "max_steps must be 0 or more");
  require(most_work >= 0, "most_work must be 0 or more");
  auto [w_out, w_array] = new_array<double>({r.R.size()});
  auto [h_out, h_array] = new_array<double>({r.C.size()});
  std::copy_n(core.of_rows.data(), r.R.size(), w_out);
  std::copy_n(core.of_cols.data(), r.C.size(), h_out);
  std::optional<Edges> e;
  {
    Unlocked unlocked;
    pairs.check();
    e = settle_by_sparse_edges(r, pairs.view, tol, max_steps, most_work, w_out, h_out);
  }
  if (!e) return nb::none();
  return nb::make_tuple(w_array, h_array, e->n, e->step, e->gap,
                        nb::make_tuple(r.core_cols[e->low], r.core_cols[e->high]));
}

void bind_flow(nb::module_& m) {
  nb::class_<HeldFlow>(m, "Flow")
      .def(nb::init<nb::object, nb::handle, nb::handle>(), nb::arg("core"), nb::arg("w"),
           nb::arg("h"))
      .def("move", &HeldFlow::move, nb::arg("w"), nb::arg("h"))
      .def("solve", &HeldFlow::solve, nb::arg("y"), nb::arg("extra").none(),
           nb::arg("least"), nb::arg("share"), nb::arg("factors"),
           nb::arg("preceded"), nb::arg("max_products"));
}

}  // namespace a1gm
