#include "cells/cells.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

constexpr int64_t kSettled = 4;  // sweeps before the rate is looked at
constexpr int64_t kStep = 1 << 13;  // cells at a time, which stay in the cache

// work(first, last, sums) for parts of the fibres, on threads with sums of their own by
// level; those of all parts in `out`.
template <typename F>
void add_up(const Cells& cells, int64_t n_levels, int asked, double* out, F&& work) {
  const int64_t n_cells = cells.n_fibres * cells.length;
  const int64_t step = std::max<int64_t>(1, kStep / cells.length);
  const int n = useful_threads(asked, n_cells, std::max(kCellsPerThread, n_levels));
  std::vector<std::vector<double>> own(static_cast<size_t>(n));
  run_on_threads(n, [&](int k) {
    Poll poll;
    own[k].resize(static_cast<size_t>(n_levels));
    const int64_t stop = cells.n_fibres * (k + 1) / n;
    for (int64_t c = cells.n_fibres * k / n; c < stop; c += step) {
      work(c, std::min(c + step, stop), own[k].data());
      poll.worked(step * cells.length);
    }
  });
  std::fill_n(out, n_levels, 0.0);
  for (const std::vector<double>& sums : own)
    for (int64_t l = 0; l < n_levels; ++l) out[l] += sums[l];
}

// One sum per run of equal levels, if the first ones show runs: no store waits for the
// one before.
void add_listed(const int32_t* level, const double* x, int64_t n, double* sums) {
  int n_same = 0;
  for (int k = 1; k < 256 && k < n; ++k) n_same += level[k] == level[k - 1];
  if (n_same < 128) {
    for (int64_t k = 0; k < n; ++k) sums[level[k]] += x[k];
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    double sum = x[k];
    while (k + 1 < n && level[k + 1] == level[k]) sum += x[++k];
    sums[level[k]] += sum;
  }
}

// Adds the cells x of the fibre c to the sums of groups from `first` to `last`.
void add_fibre(const Cells& cells, int64_t c, const double* x, int first, int last,
               double* sums) {
  const int64_t n = cells.length;
  for (int g = first; g < last; ++g) {
    double* const to = sums + cells.of(g)[c];
    if (cells.step[g] == 0) *to += quick_sum(x, n);
#pragma omp simd
    for (int64_t k = 0; k < n * cells.step[g]; ++k) to[k] += x[k];
  }
}

}  // namespace

void fit_cells(const Cells& cells, const double* t, int one, double* f, double* sums,
               int n_threads) {
  const int first = std::max(one, 0), last = one < 0 ? cells.n_groups : one + 1;
  const int64_t base = cells.starts[first], n = cells.length;
  const std::vector<double> ones(static_cast<size_t>(n), 1.0);
  std::vector<int> across, along;  // groups with one factor per fibre, or per cell
  for (int g = 0; g < cells.n_groups; ++g)
    if (g != one) (cells.step && !cells.step[g] ? across : along).push_back(g);

  const auto fit_list = [&](int64_t c, int64_t stop, double* x, double* own) {
    for (int64_t k = 0; k < stop - c; ++k) x[k] = cells.v ? cells.v[c + k] : 1.0;
    for (const int g : along)
      for (int64_t k = 0; k < stop - c; ++k) x[k] *= t[cells.of(g)[c + k]];
    for (int g = first; g < last; ++g) add_listed(cells.of(g) + c, x, stop - c, own);
  };
  const auto fit_fibre = [&](int64_t c, const auto* v, double* x, double* own) {
    double factor = 1.0;
    for (const int g : across) factor *= t[cells.of(g)[c]];
    const double* y = along.empty() ? ones.data() : t + cells.of(along[0])[c];
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) x[k] = factor * v[c * n + k] * y[k];
    for (size_t i = 1; i < along.size(); ++i) {
      y = t + cells.of(along[i])[c];
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) x[k] *= y[k];
    }
    add_fibre(cells, c, x, first, last, own);
  };
  const auto work = [&](int64_t c, int64_t stop, double* own) {
    const std::unique_ptr<double[]> room(new double[std::max(n, kStep)]);
    double* x = f ? f + c * n : room.get();
    own -= base;
    if (!cells.step) return fit_list(c, stop, x, own);
    for (; c < stop; ++c, x += f ? n : 0)
      cells.seen ? fit_fibre(c, cells.seen, x, own) : fit_fibre(c, cells.v, x, own);
  };
  add_up(cells, cells.starts[last] - base, n_threads, sums, work);
}

int64_t scale_cells(Cells cells, const double* sums, double* t, double* margins,
                    double tol, int64_t max_sweeps, int64_t patience, int n_threads) {
  const int64_t n = cells.step ? cells.n_fibres * cells.length : 0;
  const auto is_bit = [](double v) { return v == 0.0 || v == 1.0; };
  const bool are_bits = std::all_of(cells.v, cells.v + n, is_bit);
  const std::vector<uint8_t> seen(cells.v, cells.v + (are_bits ? n : 0));
  if (n > 0 && are_bits) cells.seen = seen.data();
  double gap = INFINITY;
  int64_t sweep = 0;
  while (sweep < max_sweeps && gap > tol) {
    ++sweep;
    const double before = gap;
    gap = 0.0;
    for (int g = 0; g < cells.n_groups; ++g) {
      fit_cells(cells, t, g, nullptr, margins + cells.starts[g], n_threads);
      for (int64_t l = cells.starts[g]; l < cells.starts[g + 1]; ++l) {
        const double margin = t[l] * margins[l];
        if (sums[l] > 0.0) gap = std::max(gap, std::abs(margin / sums[l] - 1.0));
        if (margin > 0.0) t[l] = sums[l] / margins[l];
      }
    }
    if (sweep < kSettled || gap <= tol) continue;
    const double left = std::log(tol / gap) / std::log(gap / before);  // sweeps
    if (!(gap < before) || sweep + left > patience) break;
  }
  fit_cells(cells, t, -1, nullptr, margins, n_threads);
  return sweep;
}

double multiply_cells(const Cells& cells, const double* f, const double* x, double* y,
                      int n_threads) {
  const int64_t n = cells.length;
  std::atomic<double> most{0.0};
  const auto list = [&](int64_t c, int64_t stop, double* own) {
    double largest = 0.0;
    for (; c < stop; ++c) {
      double sum = 0.0;
      for (int g = 0; g < cells.n_groups; ++g) sum += x[cells.of(g)[c]];
      largest = std::max(largest, std::abs(sum));
      sum *= f[c];
      for (int g = 0; g < cells.n_groups; ++g) own[cells.of(g)[c]] += sum;
    }
    return largest;
  };
  const auto fibre = [&](int64_t c, double* sums, double* own) {
    double across = 0.0, largest = 0.0;
    for (int g = 0; g < cells.n_groups; ++g)
      if (cells.step[g] == 0) across += x[cells.of(g)[c]];
    std::fill_n(sums, n, across);
    for (int g = 0; g < cells.n_groups; ++g) {
      const double* along = x + cells.of(g)[c];
#pragma omp simd
      for (int64_t k = 0; k < n * cells.step[g]; ++k) sums[k] += along[k];
    }
#pragma omp simd reduction(max : largest)
    for (int64_t k = 0; k < n; ++k) {
      const double size = f[c * n + k] > 0.0 ? std::abs(sums[k]) : 0.0;
      largest = largest < size ? size : largest;
      sums[k] *= f[c * n + k];
    }
    add_fibre(cells, c, sums, 0, cells.n_groups, own);
    return largest;
  };
  add_up(cells, cells.n_levels(), n_threads, y, [&](int64_t c, int64_t stop, double* own) {
    double largest = cells.step ? 0.0 : list(c, stop, own);
    std::vector<double> sums(static_cast<size_t>(cells.step ? n : 0));
    for (; cells.step && c < stop; ++c)
      largest = std::max(largest, fibre(c, sums.data(), own));
    double before = most.load();
    while (before < largest && !most.compare_exchange_weak(before, largest)) {
    }
  });
  return most;
}

}  // namespace a1gm
