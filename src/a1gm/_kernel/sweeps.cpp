// Alternating scaling of a large sparse mask, one pass over its rows per sweep.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "lines.hpp"

namespace a1gm {
namespace {

constexpr int64_t kManyCells = 1 << 18;
constexpr int64_t kCellsPerThread = 1 << 19;

int32_t find_root(std::vector<int32_t>& parent, int32_t x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}

// Rows begin to end of one thread: w = R / (P h), and P' w of these rows.
double sweep_rows(const Lines& rows, int64_t begin, int64_t end, const double* R,
                  const double* h, bool measure, double* w, double* sums) {
  const int32_t* index = rows.index.data();
  const double* weight = rows.weight.empty() ? nullptr : rows.weight.data();
  double gap = 0.0;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = rows.ptr[i], to = rows.ptr[i + 1];
    double t = 0.0;
    if (weight != nullptr)
      for (int64_t k = from; k < to; ++k) t += weight[k] * h[index[k]];
    else
      for (int64_t k = from; k < to; ++k) t += h[index[k]];
    if (measure) gap = std::max(gap, std::abs(w[i] * t - R[i]) / R[i]);
    const double factor = w[i] = R[i] / t;
    if (weight != nullptr)
      for (int64_t k = from; k < to; ++k) sums[index[k]] += weight[k] * factor;
    else
      for (int64_t k = from; k < to; ++k) sums[index[k]] += factor;
  }
  return gap;
}

}  // namespace

bool sweeps_by_rows(const Lines& rows) {
  return !rows.lists_missing && static_cast<int64_t>(rows.index.size()) >= kManyCells;
}

int64_t blocks_of_rows(const Lines& rows, std::vector<int32_t>& row_label,
                       std::vector<int32_t>& col_label) {
  std::vector<int32_t> parent(static_cast<size_t>(rows.n_other));
  std::iota(parent.begin(), parent.end(), 0);
  for (int64_t i = 0; i < rows.n; ++i) {
    int32_t root = find_root(parent, rows.index[rows.ptr[i]]);
    for (int64_t k = rows.ptr[i] + 1; k < rows.ptr[i + 1]; ++k) {
      const int32_t other = find_root(parent, rows.index[k]);
      if (other == root) continue;
      parent[std::max(root, other)] = std::min(root, other);
      root = std::min(root, other);
    }
  }
  // Blocks are numbered in the order of their first rows.
  int32_t n_blocks = 0;
  std::vector<int32_t> label_of_root(parent.size(), -1);
  row_label.resize(static_cast<size_t>(rows.n));
  col_label.resize(parent.size());
  for (int64_t i = 0; i < rows.n; ++i) {
    int32_t& label = label_of_root[find_root(parent, rows.index[rows.ptr[i]])];
    if (label < 0) label = n_blocks++;
    row_label[i] = label;
  }
  for (size_t j = 0; j < parent.size(); ++j)
    col_label[j] = label_of_root[find_root(parent, static_cast<int32_t>(j))];
  return n_blocks;
}

Sweeps scale_by_rows(const Lines& rows, const double* R, const double* C, double* w,
                     double* h, double tol, int64_t max_sweeps, int64_t patience,
                     int n_threads) {
  const auto n_cells = static_cast<int64_t>(rows.index.size());
  const int threads = static_cast<int>(
      std::clamp<int64_t>(n_threads, 1, std::max<int64_t>(1, n_cells / kCellsPerThread)));
  std::vector<int64_t> cut{0};  // equal shares of the cells
  for (int t = 1; t <= threads; ++t)
    cut.push_back(std::lower_bound(rows.ptr.begin(), rows.ptr.end() - 1,
                                   n_cells * t / threads) -
                  rows.ptr.begin());
  cut.back() = rows.n;
  std::vector<std::vector<double>> sums(
      static_cast<size_t>(threads), std::vector<double>(static_cast<size_t>(rows.n_other)));
  std::vector<double> gaps(static_cast<size_t>(threads));

  Sweeps out;
  Patience rule{tol, max_sweeps, patience};
  for (int64_t k = 0;; ++k) {
    auto work = [&](int t) {
      std::fill(sums[t].begin(), sums[t].end(), 0.0);
      gaps[t] = sweep_rows(rows, cut[t], cut[t + 1], R, h, k > 0, w, sums[t].data());
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others) other.join();
    if (k && rule.stops(k, *std::max_element(gaps.begin(), gaps.end()), out)) return out;
    for (int64_t j = 0; j < rows.n_other; ++j) {
      double total = sums[0][j];
      for (int t = 1; t < threads; ++t) total += sums[t][j];
      h[j] = C[j] / total;
    }
  }
}

}  // namespace a1gm
