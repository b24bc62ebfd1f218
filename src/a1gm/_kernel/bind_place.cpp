// The Python face of placing rows by column factors.
#include "bind_place.hpp"

#include "bind_arrays.hpp"
#include "place/place.hpp"
#include "place/squares.hpp"

namespace a1gm {
namespace {

// A table and the factors by which its rows are placed.
struct Given {
  Given(nb::handle entries, nb::handle col_factor, bool takes_negatives, int n_threads)
      : table(entries, 1), h(col_factor, "h") {
    require(h.rows() == table.n_cols, "h must be one number per column of the table");
    check_threads(n_threads);
    threads = n_threads;
    signs = takes_negatives;
  }
  Placing job() {
    return {table.parts, table.n_rows, table.n_cols, h.data(), signs, threads};
  }
  Table table;
  Vector<double> h;
  bool signs;
  int threads;
};

// Columns to write to, held while they are written.
struct Targets {
  Targets(const nb::list& entries, int64_t n_rows, int64_t n_cols) {
    for (const nb::handle entry : entries) {
      if (entry.is_none())
        list.emplace_back();
      else
        add(entry, n_rows);
    }
    int64_t n_found = 0;
    for (const Target& target : list) n_found += target.n_cols;
    require(n_found == n_cols, "targets must have the columns of the table");
  }
  std::vector<Target> list;

 private:
  using Writable = nb::ndarray<nb::device::cpu>;

  void add(nb::handle entry, int64_t n_rows) {
    Writable array;
    const bool is_table = nb::try_cast(entry, array, false) && array.ndim() == 2;
    const bool is_double = is_table && array.dtype() == nb::dtype<double>();
    require(is_double || (is_table && array.dtype() == nb::dtype<float>()),
            "a target must be None or a writable two-dimensional array of float64 or "
            "float32");
    require(static_cast<int64_t>(array.shape(0)) == n_rows,
            "a target must have the rows of the table");
    const auto item = static_cast<int64_t>(array.itemsize());
    require(reinterpret_cast<uintptr_t>(array.data()) % static_cast<uintptr_t>(item) == 0,
            "a target must lie at a multiple of its item's size");
    Target target{static_cast<char*>(array.data()), !is_double,
                  static_cast<int64_t>(array.shape(1)), array.stride(0) * item,
                  array.stride(1) * item};
    kept_.push_back(std::move(array));
    // Columns that lie one after another are written four at a time.
    const bool by_columns = is_double && target.row_stride == 8 && target.col_stride != 8;
    const int64_t n = by_columns ? target.n_cols : 1;
    if (by_columns) target.n_cols = 1;
    for (int64_t j = 0; j < n; ++j, target.data += target.col_stride)
      list.push_back(target);
  }
  std::vector<Writable> kept_;
};

nb::object row_factors_of(nb::handle parts, nb::handle h, bool takes_negatives,
                          int n_threads) {
  Given given(parts, h, takes_negatives, n_threads);
  const Placing job = given.job();
  auto [factors, array] = new_array<double>({static_cast<size_t>(job.n_rows)});
  bool holds = false;
  {
    Unlocked unlocked;
    holds = row_factors(job, factors);
  }
  return holds ? array : nb::none();
}

nb::object fill_rows_of(nb::handle parts, nb::handle h, nb::handle given_otherwise,
                        const nb::list& given_targets, bool takes_negatives,
                        int n_threads) {
  Given given(parts, h, takes_negatives, n_threads);
  const Placing job = given.job();
  Vector<double> otherwise(given_otherwise, "otherwise");
  require(otherwise.rows() == job.n_cols,
          "otherwise must be one number per column of the table");
  const Targets targets(given_targets, job.n_rows, job.n_cols);
  const double* const values = otherwise.data();
  EmptyRows empty;
  bool holds = false;
  {
    Unlocked unlocked;
    holds = fill_rows(job, values, targets.list, empty);
  }
  if (!holds) return nb::none();
  return nb::make_tuple(empty.count, empty.first);
}

nb::object sum_of(Given& given, bool (*measure)(const Placing&, Sums&)) {
  const Placing job = given.job();
  Sums sums;
  bool holds = false;
  {
    Unlocked unlocked;
    holds = measure(job, sums);
  }
  if (!holds) return nb::none();
  return nb::make_tuple(sums.cells, sums.factors);
}

nb::object divergence_of(nb::handle parts, nb::handle h, int n_threads) {
  Given given(parts, h, false, n_threads);
  return sum_of(given, divergence);
}

nb::object pearson_of(nb::handle parts, nb::handle h, bool takes_negatives,
                      int n_threads) {
  Given given(parts, h, takes_negatives, n_threads);
  return sum_of(given, pearson);
}

nb::object square_sums_of(nb::handle parts, nb::handle given_sums,
                          nb::handle given_lines, int64_t n_lines, double scale,
                          int n_threads) {
  Table table(parts, 1);
  Vector<double> row_sums(given_sums, "row_sums");
  Vector<int32_t> lines(given_lines, "lines");
  require(row_sums.rows() == table.n_rows, "row_sums must be one number per row");
  require(lines.rows() == table.n_rows, "lines must be one number per row");
  check_scale(scale);
  check_threads(n_threads);
  check_lines(n_lines, table.n_cols);
  require(range_of(lines.data(), table.n_rows).is_below(n_lines),
          "lines must be 0 or more and below n_lines");
  const Squares job{table.parts,  table.n_rows, table.n_cols, row_sums.data(),
                    lines.data(), n_lines,      scale,        n_threads};
  std::vector<double> sums;
  {
    Unlocked unlocked;
    sums = square_sums(job);
  }
  return to_numpy(std::move(sums), {static_cast<size_t>(n_lines),
                                    static_cast<size_t>(table.n_cols)});
}

}  // namespace

void bind_place(nb::module_& m) {
  m.def("row_factors", &row_factors_of, nb::arg("parts"), nb::arg("h"),
        nb::arg("takes_negatives"), nb::arg("n_threads"));
  m.def("fill_rows", &fill_rows_of, nb::arg("parts"), nb::arg("h"), nb::arg("otherwise"),
        nb::arg("targets"), nb::arg("takes_negatives"), nb::arg("n_threads"));
  m.def("divergence", &divergence_of, nb::arg("parts"), nb::arg("h"),
        nb::arg("n_threads"));
  m.def("pearson", &pearson_of, nb::arg("parts"), nb::arg("h"),
        nb::arg("takes_negatives"), nb::arg("n_threads"));
  m.def("square_sums", &square_sums_of, nb::arg("parts"), nb::arg("row_sums"),
        nb::arg("lines"), nb::arg("n_lines"), nb::arg("scale"), nb::arg("n_threads"));
}

}  // namespace a1gm
