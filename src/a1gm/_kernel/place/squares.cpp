#include "place/squares.hpp"

#include <algorithm>
#include <limits>

#include "interrupt.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

constexpr int64_t kRows = 64;  // read at a time, where they cannot be used as they lie

// Adds the squares of a row to pairs of high and low parts.
void add_row(const double* x, int64_t cols, double sum, double* hi, double* lo) {
  for (int64_t j = 0; j < cols; ++j) {
    const double square = x[j] * (x[j] / sum);
    two_sum(x[j] == x[j] ? square : 0.0, hi[j], lo[j]);
  }
}

bool is_zero(const double* x, int64_t cols) {
  return std::all_of(x, x + cols, [](double cell) { return !(cell < 0.0 || cell > 0.0); });
}

// The sums over the rows from `begin` to `end`.
void add_rows(const Squares& job, int64_t begin, int64_t end, double* hi, double* lo) {
  const bool in_place =
      job.scale == 1.0 && job.parts.size() == 1 && lies_as<double>(job.parts[0]);
  std::vector<double> scratch;
  if (!in_place) scratch.resize(static_cast<size_t>(kRows * job.n_cols));
  Poll poll;
  for (int64_t row = begin; row < end; row += kRows) {
    const int64_t rows = std::min(kRows, end - row);
    poll.worked(rows * job.n_cols);
    const double* x = scratch.data();
    int64_t stride = job.n_cols;
    if (in_place) {
      const Part& part = job.parts[0];
      x = reinterpret_cast<const double*>(part.data + row * part.row_stride);
      stride = part.row_stride / 8;
    } else {
      load_tile(job.parts, row, rows, job.n_cols, job.scale, scratch.data());
    }
    for (int64_t i = 0; i < rows; ++i, x += stride) {
      const double sum = job.row_sums[row + i];
      const int64_t at = job.lines[row + i] * job.n_cols;
      if (sum > 0.0)
        add_row(x, job.n_cols, sum, hi + at, lo + at);
      else if (!is_zero(x, job.n_cols))
        std::fill_n(hi + at, job.n_cols, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

}  // namespace

std::vector<double> square_sums(const Squares& job) {
  const auto size = static_cast<size_t>(job.n_lines * job.n_cols);
  // Each thread has sums of its own, which must not be larger than what it reads.
  const int64_t n_cells = job.n_rows * job.n_cols;
  const auto most = std::max<int64_t>(kCellsPerThread, 4 * static_cast<int64_t>(size));
  const int threads = useful_threads(job.n_threads, n_cells, most);
  std::vector<std::vector<double>> found(static_cast<size_t>(threads));
  run_on_threads(threads, [&](int t) {
    auto& sums = found[static_cast<size_t>(t)];
    sums.assign(2 * size, 0.0);
    add_rows(job, job.n_rows * t / threads, job.n_rows * (t + 1) / threads, sums.data(),
             sums.data() + size);
  });
  std::vector<double>& total = found[0];
  for (size_t t = 1; t < found.size(); ++t) {
    for (size_t k = 0; k < size; ++k) {
      two_sum(found[t][k], total[k], total[size + k]);
      total[size + k] += found[t][size + k];
    }
  }
  for (size_t k = 0; k < size; ++k) total[k] += total[size + k];
  total.resize(size);
  return total;
}

}  // namespace a1gm
