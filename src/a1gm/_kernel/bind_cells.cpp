// The Python face of lists of cells.
#include "bind.hpp"
#include "cells/cells.hpp"

namespace a1gm {
namespace {

using Ints = In<int64_t, 1>;
template <typename T>
using Maybe = const std::optional<T>&;

// The levels of cells, or of fibres with the steps along them, whose cells have v; held
// by the caller.
Cells cells_of(const In<int32_t, 2>& level, Maybe<Ints> step, const Ints& starts,
               Maybe<Doubles> v) {
  Cells found{level.data(), static_cast<int64_t>(level.shape(1)),
              static_cast<int>(level.shape(0)), starts.data(), v ? v->data() : nullptr};
  if (step && found.n_fibres > 0) {
    found.step = step->data();
    found.length = rows_of(*v) / found.n_fibres;
  }
  return found;
}

nb::object scale(const In<int32_t, 2>& level, Maybe<Ints> step, const Ints& starts,
                 Maybe<Doubles> v, const Doubles& sums, const InOut<double, 1>& t,
                 double tol, int64_t max_sweeps, int64_t patience, int n_threads) {
  const Cells cells = cells_of(level, step, starts, v);
  auto margins = new_array<double>({static_cast<size_t>(cells.n_levels())});
  const int64_t n_sweeps = unlocked([&] {
    return scale_cells(cells, sums.data(), t.data(), margins.first, tol, max_sweeps,
                       patience, n_threads);
  });
  return nb::make_tuple(n_sweeps, margins.second);
}

nb::object fit(const In<int32_t, 2>& level, Maybe<Ints> step, const Ints& starts,
               Maybe<Doubles> v, const Doubles& t, int n_threads) {
  const Cells cells = cells_of(level, step, starts, v);
  auto f = new_array<double>({static_cast<size_t>(cells.n_fibres * cells.length)});
  auto margins = new_array<double>({static_cast<size_t>(cells.n_levels())});
  unlocked([&] { fit_cells(cells, t.data(), -1, f.first, margins.first, n_threads); });
  return nb::make_tuple(f.second, margins.second);
}

nb::object multiply(const In<int32_t, 2>& level, Maybe<Ints> step, const Ints& starts,
                    const Doubles& f, const Doubles& x, int n_threads) {
  const Cells cells = cells_of(level, step, starts, f);
  auto y = new_array<double>({static_cast<size_t>(cells.n_levels())});
  const double most = unlocked([&] {
    return multiply_cells(cells, f.data(), x.data(), y.first, n_threads);
  });
  return nb::make_tuple(y.second, most);
}

}  // namespace

void bind_cells(nb::module_& m) {
  m.def("scale_cells", &scale, nb::arg("level"), nb::arg("step").none(),
        nb::arg("starts"), nb::arg("v").none(), nb::arg("sums"), nb::arg("t").noconvert(),
        nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("patience"), nb::arg("n_threads"));
  m.def("fit_cells", &fit, nb::arg("level"), nb::arg("step").none(), nb::arg("starts"),
        nb::arg("v").none(), nb::arg("t"), nb::arg("n_threads"));
  m.def("multiply_cells", &multiply, nb::arg("level"), nb::arg("step").none(),
        nb::arg("starts"), nb::arg("f"), nb::arg("x"), nb::arg("n_threads"));
}

}  // namespace a1gm
