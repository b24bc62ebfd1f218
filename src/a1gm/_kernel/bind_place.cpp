// The Python face of placing rows by column factors.
#include "bind.hpp"
#include "place/place.hpp"

namespace a1gm {
namespace {

// The columns of arrays to write to; None stands for a column.
std::vector<Target> targets_of(const nb::list& arrays) {
  std::vector<Target> targets;
  for (const nb::handle array : arrays) {
    if (array.is_none()) {
      targets.emplace_back();
      continue;
    }
    const auto cells = nb::cast<nb::ndarray<double, nb::ndim<2>, nb::device::cpu>>(array, false);
    for (int64_t j = 0; j < static_cast<int64_t>(cells.shape(1)); ++j)
      targets.push_back({cells.data() + j * cells.stride(1), cells.stride(0)});
  }
  return targets;
}

Placing placing(const Table& table, const Doubles& h, bool takes_negatives,
                int n_threads) {
  return {table.parts, table.n_rows, table.n_cols, h.data(), takes_negatives, n_threads};
}

nb::object row_factors_of(nb::handle parts, const Doubles& h, bool takes_negatives,
                          int n_threads) {
  const Table table(parts);
  const Placing job = placing(table, h, takes_negatives, n_threads);
  auto factors = new_array<double>({static_cast<size_t>(job.n_rows)});
  const bool holds = unlocked([&] { return row_factors(job, factors.first); });
  return holds ? factors.second : nb::none();
}

nb::object fill_rows_of(nb::handle parts, const Doubles& h, const Doubles& otherwise,
                        const nb::list& arrays, bool takes_negatives, int n_threads) {
  const Table table(parts);
  const Placing job = placing(table, h, takes_negatives, n_threads);
  const std::vector<Target> targets = targets_of(arrays);
  Holes holes;
  const bool holds =
      unlocked([&] { return fill_rows(job, otherwise.data(), targets, holes); });
  if (!holds) return nb::none();
  const size_t n_cols = holes.columns.size();
  return nb::make_tuple(holes.n_empty, holes.first_empty,
                        to_numpy(std::move(holes.columns), {n_cols}));
}

// The sums that `measure` finds, or None.
nb::object sum_of(nb::handle parts, const Doubles& h, bool takes_negatives, int n_threads,
                  bool (*measure)(const Placing&, Sums&)) {
  const Table table(parts);
  const Placing job = placing(table, h, takes_negatives, n_threads);
  Sums sums;
  const bool holds = unlocked([&] { return measure(job, sums); });
  return holds ? nb::object(nb::make_tuple(sums.cells, sums.factors)) : nb::none();
}

nb::object square_sums_of(nb::handle parts, const Doubles& row_sums,
                          const In<int32_t, 1>& lines, int64_t n_lines, int n_threads) {
  const Table table(parts);
  const Squares job{table.parts,  table.n_rows, table.n_cols, row_sums.data(),
                    lines.data(), n_lines,      n_threads};
  std::vector<double> sums = unlocked([&] { return square_sums(job); });
  return to_numpy(std::move(sums), {static_cast<size_t>(n_lines),
                                    static_cast<size_t>(table.n_cols)});
}

}  // namespace

void bind_place(nb::module_& m) {
  m.def("row_factors", &row_factors_of);
  m.def("fill_rows", &fill_rows_of);
  m.def("divergence", [](nb::handle parts, const Doubles& h, int n_threads) {
    return sum_of(parts, h, false, n_threads, divergence);
  });
  m.def("pearson", [](nb::handle parts, const Doubles& h, bool signs, int n_threads) {
    return sum_of(parts, h, signs, n_threads, pearson);
  });
  m.def("square_sums", &square_sums_of);
}

}  // namespace a1gm
