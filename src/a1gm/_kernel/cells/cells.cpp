#include "cells/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

constexpr int64_t kSettled = 4;  // sweeps before the rate is looked at
constexpr int64_t kStep = 1 << 13;  // cells at a time, which stay in the cache

// Adds up values of cells by level, on several threads with sums of their own.
class Adder {
 public:
  Adder(const Cells& cells, int asked) : cells_(cells) {
    const int64_t n_cells = cells.n_fibres * cells.length;
    n_ = useful_threads(asked, n_cells);
    if (cells.n_levels() * n_ > n_cells) n_ = 1;
    own_.assign(static_cast<size_t>(n_), std::vector<double>());
  }

  // work(first, last, sums) for parts of the fibres; the sums of all parts in `out`.
  template <typename F>
  void add(int64_t n_levels, double* out, F&& work) {
    const int64_t step = std::max<int64_t>(1, kStep / cells_.length);
    run_on_threads(n_, [&](int k) {
      std::vector<double>& sums = own_[static_cast<size_t>(k)];
      sums.assign(static_cast<size_t>(n_levels), 0.0);
      Poll poll;
      const int64_t stop = cells_.n_fibres * (k + 1) / n_;
      for (int64_t c = cells_.n_fibres * k / n_; c < stop; c += step) {
        work(c, std::min(c + step, stop), sums.data());
        poll.worked(step * cells_.length);
      }
    });
    std::fill(out, out + n_levels, 0.0);
    for (const std::vector<double>& sums : own_)
      for (int64_t l = 0; l < n_levels; ++l) out[l] += sums[static_cast<size_t>(l)];
  }

 private:
  const Cells& cells_;
  int n_ = 1;
  std::vector<std::vector<double>> own_;
};

// Levels of cells that follow each other: listed, or along a fibre.
struct Listed {
  const int32_t* level;
};

struct Along {
  int64_t level;  // of the first cell
  int64_t step;   // 0 or 1
};

void multiply(Listed on, const double* x, int64_t n, double* f) {
  for (int64_t k = 0; k < n; ++k) f[k] *= x[on.level[k]];
}

void multiply(Along on, const double* x, int64_t n, double* f) {
  x += on.level;
  if (on.step)
    for (int64_t k = 0; k < n; ++k) f[k] *= x[k];
  else
    for (int64_t k = 0; k < n; ++k) f[k] *= x[0];
}

// One sum per run of equal levels, if some of them show runs: no store waits for the
// one before.
void add(Listed on, const double* f, int64_t n, double* sums) {
  int64_t n_same = 0;
  const int64_t some = std::min<int64_t>(256, n - 1);
  for (int64_t k = 0; k < some; ++k) n_same += on.level[k] == on.level[k + 1];
  if (2 * n_same <= some) {
    for (int64_t k = 0; k < n; ++k) sums[on.level[k]] += f[k];
    return;
  }
  for (int64_t k = 0; k < n;) {
    const int32_t level = on.level[k];
    double sum = 0.0;
    do sum += f[k];
    while (++k < n && on.level[k] == level);
    sums[level] += sum;
  }
}

void add(Along on, const double* f, int64_t n, double* sums) {
  sums += on.level;
  if (on.step)
    for (int64_t k = 0; k < n; ++k) sums[k] += f[k];
  else
    sums[0] += quick_sum(f, n);
}

// work(levels, first cell, number of cells) for some fibres: all listed cells at once.
template <typename F>
void by_levels(const Cells& cells, int64_t first, int64_t last, F&& work) {
  if (cells.step == nullptr) {
    std::vector<Listed> levels;
    for (int g = 0; g < cells.n_groups; ++g) levels.push_back({cells.of(g) + first});
    return work(levels.data(), first, last - first);
  }
  std::vector<Along> levels(static_cast<size_t>(cells.n_groups));
  for (; first < last; ++first) {
    for (int g = 0; g < cells.n_groups; ++g)
      levels[static_cast<size_t>(g)] = {cells.of(g)[first], cells.step[g]};
    work(levels.data(), first * cells.length, cells.length);
  }
}

// Sums of the fitted cells by the levels of groups first to last - 1, one after another;
// the cells themselves in f, unless that is null.
void fit_groups(const Cells& cells, const double* t, int first, int last, Adder& adder,
                double* f, double* margins) {
  const int64_t base = cells.starts[first];
  adder.add(cells.starts[last] - base, margins, [&](int64_t c, int64_t stop, double* own) {
    const int64_t most = std::max(cells.length, kStep);
    const std::unique_ptr<double[]> room(f ? nullptr : new double[most]);
    by_levels(cells, c, stop, [&](auto* level, int64_t from, int64_t n) {
      double* x = f ? f + from : room.get();
      if (cells.v == nullptr)
        std::fill(x, x + n, 1.0);
      else
        std::copy(cells.v + from, cells.v + from + n, x);
      for (int g = 0; g < cells.n_groups; ++g) multiply(level[g], t, n, x);
      for (int g = first; g < last; ++g) add(level[g], x, n, own - base);
    });
  });
}

}  // namespace

int64_t scale_cells(const Cells& cells, const double* sums, double* t, double* margins,
                    double tol, int64_t max_sweeps, int64_t patience, int n_threads) {
  Adder adder(cells, n_threads);
  double gap = std::numeric_limits<double>::infinity();
  int64_t sweep = 0;
  while (sweep < max_sweeps) {
    ++sweep;
    const double before = gap;
    gap = 0.0;
    for (int g = 0; g < cells.n_groups; ++g) {
      fit_groups(cells, t, g, g + 1, adder, nullptr, margins + cells.starts[g]);
      for (int64_t l = cells.starts[g]; l < cells.starts[g + 1]; ++l) {
        if (sums[l] > 0.0) gap = std::max(gap, std::abs(margins[l] / sums[l] - 1.0));
        if (margins[l] > 0.0) t[l] *= sums[l] / margins[l];
      }
    }
    if (gap <= tol) break;
    if (sweep >= kSettled) {
      const double rate = gap / before;
      if (!(rate < 1.0)) break;
      if (sweep + std::log(tol / gap) / std::log(rate) > patience) break;
    }
  }
  fit_groups(cells, t, 0, cells.n_groups, adder, nullptr, margins);
  return sweep;
}

void fit_cells(const Cells& cells, const double* t, double* f, double* margins,
               int n_threads) {
  Adder adder(cells, n_threads);
  fit_groups(cells, t, 0, cells.n_groups, adder, f, margins);
}

void multiply_cells(const Cells& cells, const double* f, const double* x, double* y,
                    int n_threads) {
  Adder adder(cells, n_threads);
  adder.add(cells.n_levels(), y, [&](int64_t c, int64_t stop, double* own) {
    for (; c < stop; ++c) {
      double sum = 0.0;
      for (int g = 0; g < cells.n_groups; ++g) sum += x[cells.of(g)[c]];
      sum *= f[c];
      for (int g = 0; g < cells.n_groups; ++g) own[cells.of(g)[c]] += sum;
    }
  });
}

}  // namespace a1gm
