// The Python face of many small tables: solved in one call, handed out one by one.
#include "bind_many.hpp"

#include "bind_arrays.hpp"
#include "pass/patterns.hpp"
#include "scale/solve_many.hpp"

namespace a1gm {
namespace {

struct SmallFits {
  std::vector<SmallFit> fits;

  const SmallFit& at(int64_t k) const {
    require(k >= 0 && k < static_cast<int64_t>(fits.size()), "there is no such table");
    require(fits[k].settled, "this table was not settled");
    return fits[k];
  }
};

template <typename T>
nb::object copy_of(const std::vector<T>& values, std::initializer_list<size_t> shape) {
  return to_numpy(std::vector<T>(values), shape);
}

SmallFits solve_tables(nb::list given, int64_t table_cells, double tol,
                       int64_t max_sweeps, int64_t max_steps, double least,
                       int n_threads) {
  std::vector<Table> tables;
  std::vector<Cells> cells;
  tables.reserve(nb::len(given));
  cells.reserve(nb::len(given));
  for (const nb::handle entries : given) {
    tables.emplace_back(entries, 1);
    cells.push_back({&tables.back().parts, tables.back().n_rows});
  }
  require(table_cells >= 0, "table_cells must be 0 or more");
  check_sweeps(tol, max_sweeps);
  require(max_steps >= 0, "max_steps must be 0 or more");
  check_threads(n_threads);
  const ManyOptions options{table_cells, tol, max_sweeps, max_steps, least, n_threads};
  Unlocked unlocked;
  return {solve_many(cells, options)};
}

nb::object which_are_settled(const SmallFits& many) {
  auto [settled, array] = new_array<bool>({many.fits.size()});
  for (const SmallFit& fit : many.fits) *settled++ = fit.settled;
  return array;
}

nb::tuple factors_of(const SmallFits& many, int64_t k) {
  const SmallFit& fit = many.at(k);
  return nb::make_tuple(
      copy_of(fit.row_factor, {fit.row_factor.size()}),
      copy_of(fit.plain.col_factor, {fit.plain.col_factor.size()}));
}

// The pattern of each row and the pattern table, as `observe` gives them.
nb::tuple statistics_of(const SmallFits& many, int64_t k) {
  const SmallFit& fit = many.at(k);
  const size_t n = fit.row_factor.size(), lines = fit.counts.size();
  nb::object ids = with_id_type(fit.id_width, [&](auto id) {
    auto [numbers, array] = new_array<decltype(id)>({n});
    std::memcpy(numbers, fit.ids.data(), fit.ids.size());
    return array;
  });
  return nb::make_tuple(ids, copy_of(fit.keys, {lines, static_cast<size_t>(fit.words)}),
                        copy_of(fit.counts, {lines}),
                        copy_of(fit.sums, {lines, static_cast<size_t>(fit.n_cols)}));
}

// What `solve_plain` gives.
nb::tuple solution_of(const SmallFits& many, int64_t k) {
  const Plain& plain = many.at(k).plain;
  const size_t lines = plain.line_factor.size();
  return nb::make_tuple(copy_of(plain.line_factor, {lines}),
                        copy_of(plain.line_scale, {lines}),
                        copy_of(plain.col_factor, {plain.col_factor.size()}),
                        plain.n_iter, plain.newton, plain.gap, plain.step);
}

}  // namespace

void bind_many(nb::module_& m) {
  nb::class_<SmallFits>(m, "SmallFits")
      .def_prop_ro("settled", &which_are_settled)
      .def("factors", &factors_of, nb::arg("k"))
      .def("statistics", &statistics_of, nb::arg("k"))
      .def("solution", &solution_of, nb::arg("k"));
  m.def("solve_many", &solve_tables, nb::arg("tables"), nb::arg("table_cells"),
        nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("max_steps"), nb::arg("least"),
        nb::arg("n_threads"));
}

}  // namespace a1gm
