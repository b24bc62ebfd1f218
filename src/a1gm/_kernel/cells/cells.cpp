#include "cells/cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "threads.hpp"

namespace a1gm {
namespace {

constexpr int64_t kSettled = 4;  // sweeps before the rate is looked at
constexpr int64_t kStep = 1 << 16;  // cells between two looks at signals

// Adds up values of cells by level, on several threads with sums of their own.
class Adder {
 public:
  Adder(int64_t n_cells, int64_t n_levels, int asked) : n_cells_(n_cells) {
    n_ = useful_threads(asked, n_cells);
    if (n_levels * n_ > n_cells) n_ = 1;
    own_.assign(static_cast<size_t>(n_), std::vector<double>());
  }

  // work(first, last, sums) for parts of the cells; the sums of all parts in `out`.
  template <typename F>
  void add(int64_t n_levels, double* out, F&& work) {
    run_on_threads(n_, [&](int k) {
      std::vector<double>& sums = own_[static_cast<size_t>(k)];
      sums.assign(static_cast<size_t>(n_levels), 0.0);
      Poll poll;
      const int64_t stop = n_cells_ * (k + 1) / n_;
      for (int64_t c = n_cells_ * k / n_; c < stop; c += kStep) {
        work(c, std::min(c + kStep, stop), sums.data());
        poll.worked(kStep);
      }
    });
    std::fill(out, out + n_levels, 0.0);
    for (const std::vector<double>& sums : own_)
      for (int64_t l = 0; l < n_levels; ++l) out[l] += sums[static_cast<size_t>(l)];
  }

 private:
  int64_t n_cells_;
  int n_ = 1;
  std::vector<std::vector<double>> own_;
};

// Whether cells with the same level follow each other, by some of them.
bool in_runs(const int32_t* level, int64_t c, int64_t stop) {
  int64_t n_same = 0;
  const int64_t end = std::min(c + 256, stop - 1);
  for (int64_t k = c; k < end; ++k) n_same += level[k] == level[k + 1];
  return 2 * n_same > end - c;
}

// f times the ratio of its level, and the sums of f by another level: one sum per run
// of equal levels, so that no store waits for the one before.
void rescale(const int32_t* last, const double* ratio, const int32_t* now, int64_t base,
             int64_t c, int64_t stop, double* f, double* sums) {
  if (!in_runs(now, c, stop)) {
    for (; c < stop; ++c) {
      f[c] *= ratio[last[c]];
      sums[now[c] - base] += f[c];
    }
    return;
  }
  while (c < stop) {
    const int32_t level = now[c];
    double sum = 0.0;
    do {
      f[c] *= ratio[last[c]];
      sum += f[c];
    } while (++c < stop && now[c] == level);
    sums[level - base] += sum;
  }
}

double fitted(const Cells& cells, const double* t, int64_t c) {
  double value = cells.v == nullptr ? 1.0 : cells.v[c];
  for (int g = 0; g < cells.n_groups; ++g) value *= t[cells.of(g)[c]];
  return value;
}

}  // namespace

Swept scale_cells(const Cells& cells, const double* sums, double* t, double tol,
                  int64_t max_sweeps, int64_t patience, int n_threads) {
  const int64_t n = cells.n_levels();
  std::vector<double> f(static_cast<size_t>(cells.n_cells)), ratio(n, 1.0), got(n);
  Adder adder(cells.n_cells, n, n_threads);
  double gap = std::numeric_limits<double>::infinity();
  int64_t sweep = 0;
  for (int64_t c = 0; c < cells.n_cells; ++c) f[c] = fitted(cells, t, c);
  while (sweep < max_sweeps) {
    ++sweep;
    const double before = gap;
    gap = 0.0;
    for (int g = 0; g < cells.n_groups; ++g) {
      const int32_t* last = cells.of(g == 0 ? cells.n_groups - 1 : g - 1);
      const int32_t* now = cells.of(g);
      const int64_t base = cells.starts[g], end = cells.starts[g + 1];
      adder.add(end - base, got.data() + base, [&](int64_t c, int64_t stop, double* own) {
        rescale(last, ratio.data(), now, base, c, stop, f.data(), own);
      });
      for (int64_t l = base; l < end; ++l) {
        ratio[l] = got[l] > 0.0 ? sums[l] / got[l] : 1.0;
        if (sums[l] > 0.0) gap = std::max(gap, std::abs(got[l] / sums[l] - 1.0));
        t[l] *= ratio[l];
      }
    }
    if (gap <= tol) break;
    if (sweep >= kSettled) {
      const double rate = gap / before;
      if (!(rate < 1.0)) break;
      if (sweep + std::log(tol / gap) / std::log(rate) > patience) break;
    }
  }
  return {sweep, gap};
}

void fit_cells(const Cells& cells, const double* t, double* f, double* margins,
               int n_threads) {
  Adder adder(cells.n_cells, cells.n_levels(), n_threads);
  adder.add(cells.n_levels(), margins, [&](int64_t c, int64_t stop, double* own) {
    for (; c < stop; ++c) {
      f[c] = fitted(cells, t, c);
      for (int g = 0; g < cells.n_groups; ++g) own[cells.of(g)[c]] += f[c];
    }
  });
}

void multiply_cells(const Cells& cells, const double* f, const double* x, double* y,
                    int n_threads) {
  Adder adder(cells.n_cells, cells.n_levels(), n_threads);
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
