// The Python face of lists of cells.
#include "bind.hpp"
#include "cells/cells.hpp"

namespace a1gm {
namespace {

using Levels = In<int32_t, 2>;

// Levels, starts of the groups and weights, held by the caller.
struct Given {
  const Levels& level;
  const In<int64_t, 1>& starts;
  const std::optional<Doubles>& v;
  Cells cells() const {
    return {level.data(), static_cast<int64_t>(level.shape(1)),
            static_cast<int>(level.shape(0)), starts.data(), v ? v->data() : nullptr};
  }
};

nb::object scale(const Levels& level, const In<int64_t, 1>& starts,
                 const std::optional<Doubles>& v, const Doubles& sums,
                 const InOut<double, 1>& t, double tol, int64_t max_sweeps,
                 int64_t patience, int n_threads) {
  const Cells cells = Given{level, starts, v}.cells();
  const Swept swept = unlocked([&] {
    return scale_cells(cells, sums.data(), t.data(), tol, max_sweeps, patience,
                       n_threads);
  });
  return nb::make_tuple(swept.n_sweeps, swept.gap);
}

nb::object fit(const Levels& level, const In<int64_t, 1>& starts,
               const std::optional<Doubles>& v, const Doubles& t, int n_threads) {
  const Cells cells = Given{level, starts, v}.cells();
  auto f = new_array<double>({static_cast<size_t>(cells.n_cells)});
  auto margins = new_array<double>({static_cast<size_t>(cells.n_levels())});
  unlocked([&] { fit_cells(cells, t.data(), f.first, margins.first, n_threads); });
  return nb::make_tuple(f.second, margins.second);
}

nb::object multiply(const Levels& level, const In<int64_t, 1>& starts, const Doubles& f,
                    const Doubles& x, int n_threads) {
  const Cells cells = Given{level, starts, std::nullopt}.cells();
  auto y = new_array<double>({static_cast<size_t>(cells.n_levels())});
  unlocked([&] { multiply_cells(cells, f.data(), x.data(), y.first, n_threads); });
  return y.second;
}

}  // namespace

void bind_cells(nb::module_& m) {
  m.def("scale_cells", &scale, nb::arg("level"), nb::arg("starts"),
        nb::arg("v").none(), nb::arg("sums"), nb::arg("t").noconvert(), nb::arg("tol"),
        nb::arg("max_sweeps"), nb::arg("patience"), nb::arg("n_threads"));
  m.def("fit_cells", &fit, nb::arg("level"), nb::arg("starts"), nb::arg("v").none(),
        nb::arg("t"), nb::arg("n_threads"));
  m.def("multiply_cells", &multiply);
}

}  // namespace a1gm
