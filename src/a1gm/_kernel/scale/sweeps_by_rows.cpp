// Alternating scaling of a large sparse mask, one pass over its rows per sweep.
#include <algorithm>
#include <cmath>
#include <vector>

#include "scale/momentum.hpp"
#include "scale/sweeps.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// A column's factor beside the sum it collects: one line of the cache serves both.
struct Column {
  double h, sum;
};

inline void prefetch(const Column* column) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(column, 1);
#else
  (void)column;
#endif
}

// Rows begin to end of one thread: w = R / (P h), and P' w of these rows.
void sweep_rows(const Lines& rows, int64_t begin, int64_t end, const double* R,
                double* w, Column* columns) {
  const int32_t* index = rows.index.data();
  const double* weight = rows.weight.empty() ? nullptr : rows.weight.data();
  constexpr int64_t kAhead = 24;  // cells
  const int64_t last = rows.ptr[end] - 1;
  const bool is_far = rows.n_other > 1 << 16;  // columns are beyond the nearer caches
  Poll poll;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = rows.ptr[i], to = rows.ptr[i + 1];
    poll.worked(to - from);
    double t = 0.0;
    if (weight != nullptr)
      for (int64_t k = from; k < to; ++k) t += weight[k] * columns[index[k]].h;
    else if (is_far)
      for (int64_t k = from; k < to; ++k) {
        prefetch(&columns[index[std::min(k + kAhead, last)]]);
        t += columns[index[k]].h;
      }
    else
      for (int64_t k = from; k < to; ++k) t += columns[index[k]].h;
    const double factor = w[i] = R[i] / t;
    if (weight != nullptr)
      for (int64_t k = from; k < to; ++k) columns[index[k]].sum += weight[k] * factor;
    else
      for (int64_t k = from; k < to; ++k) columns[index[k]].sum += factor;
  }
}

}  // namespace

std::vector<int64_t> shares_of_rows(const Lines& rows, int n_threads) {
  constexpr int64_t kListedPerThread = 1 << 16;
  const auto n_cells = static_cast<int64_t>(rows.index.size());
  const int threads = useful_threads(n_threads, n_cells, kListedPerThread);
  std::vector<int64_t> cut{0};
  for (int t = 1; t < threads; ++t)
    cut.push_back(std::lower_bound(rows.ptr.begin(), rows.ptr.end() - 1,
                                   n_cells * t / threads) -
                  rows.ptr.begin());
  cut.push_back(rows.n);
  return cut;
}

Sweeps scale_by_rows(const Lines& rows, const double* R, const double* C, double* w,
                     double* h, Patience rule, int n_threads) {
  const auto n_cells = static_cast<int64_t>(rows.index.size());
  const std::vector<int64_t> cut = shares_of_rows(rows, n_threads);
  const int threads = static_cast<int>(cut.size()) - 1;
  const auto m = static_cast<size_t>(rows.n_other);
  std::vector<std::vector<Column>> columns(static_cast<size_t>(threads),
                                           std::vector<Column>(m));
  std::vector<double> sums(m);

  Sweeps out;
  rule.polish = false;
  rule.aim = std::min(rule.tol, provable_gap(C, rows.n_other));
  Momentum momentum(m);
  Poll poll;
  for (int64_t k = 1;; ++k) {
    poll.worked(n_cells + rows.n);
    auto work = [&](int t) {
      for (size_t j = 0; j < m; ++j) columns[t][j] = {h[j], 0.0};
      sweep_rows(rows, cut[t], cut[t + 1], R, w, columns[t].data());
    };
    run_on_threads(threads, work);
    // Row margins hold exactly: the certificate is the mismatch of the column margins.
    double gap = 0.0;
    for (size_t j = 0; j < m; ++j) {
      sums[j] = 0.0;
      for (int t = 0; t < threads; ++t) sums[j] += columns[t][j].sum;
      const double off = std::abs(h[j] * sums[j] - C[j]);
      if (off > gap * C[j]) gap = off / C[j];  // seldom: divisions are slow
    }
    if (rule.stops(k, gap, out)) return out;
    momentum.advance(k - 1, gap, C, sums.data(), h);
  }
}

}  // namespace a1gm
