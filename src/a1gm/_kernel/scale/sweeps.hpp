// Alternating scaling of a mask until it has the required margins.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"
#include "threads.hpp"

namespace a1gm {

struct Sweeps {
  int64_t n = 0;        // sweeps done
  double gap = 0.0;     // largest relative mismatch of the row margins
  bool done = false;
};

// When to stop: the gap is within tol, the budget is spent, or at the measured rate
// more than `patience` sweeps would be needed. A slow iteration is within tol of
// the margins long before it is within tol of the factors: `polish` waits for both. A
// quick one goes on to `aim` while a few more sweeps get there.
struct Patience {
  double tol;
  int64_t max_sweeps, patience;
  bool polish = true;
  double aim = kInfinity;
  double previous = 0.0;
  bool stops(int64_t sweep, double gap, Sweeps& out);
};

// w = R / (P h), h = C / (P' w) until `rule` stops it. `h` holds the start and, like
// `w`, the result.
Sweeps scale(const Lists& rows, const Lists& cols, const double* R, const double* C,
             double* w, double* h, Patience rule);

constexpr double kSmallestStart = 1e-290;

// Column factors to start from.
std::vector<double> start_of(const Reduced& core);

// For each column the sum of the rows that observe it; not for large sparse cores.
const std::vector<double>& sum_of_rows(const Reduced& core);

// The core of a reduced table, in whichever of the two ways it is kept for.
Sweeps scale_core(const Reduced& core, double* w, double* h, Patience rule,
                  int n_threads);

// Numbers in the longest sum of a product.
int64_t longest_sum(const Reduced& core);

// w = R / (P h) and the column sums h (P' w) that these factors give.
void sweep_core(const Reduced& core, const double* h, double* w, double* fitted);

// y = P'(d (P x)) for the mask P of a core.
void core_product(const Reduced& core, const double* d, const double* x, double* y,
                  int n_threads = 1);

constexpr double kFarthest = 1.0;  // no logarithm moves further in one sweep

// Chebyshev's acceleration in log h. A sweep shrinks the error of log h by factors
// between 0 and some rate below 1, which the gaps measure (a little low, early on).
// One more term of memory needs the square root of as many sweeps; the fixed point is
// the same. If the gap ever grows, plain sweeps take over for good.
class Momentum {
 public:
  explicit Momentum(size_t n) : moved_(n) {}

  // h is the present factor; a plain sweep would make it C / sums. Columns without data
  // stay as they are.
  void advance(int64_t sweep, double gap, const double* C, const double* sums,
               double* h) {
    const double rate = previous_ > 0.0 ? gap / previous_ : 0.0;
    previous_ = gap;
    if (on_ && rate >= 1.0) on_ = allowed_ = false;
    const bool starts =
        !on_ && allowed_ && sweep >= kSweepsToMeasure && rate < 1.0 && gap < kNear;
    if (starts) {
      on_ = true;
      rate_ = std::min(kLargestRate, kMargin * rate);
    }
    if (!on_) {
      for (size_t j = 0; j < moved_.size(); ++j)
        if (C[j] != 0.0) h[j] = C[j] / sums[j];
      return;
    }
    const double rho = rate_ / (2.0 - rate_), step = 2.0 / (2.0 - rate_);
    // From here by `step` sweeps, and on as h moved before. log x is 2 (x - 1) / (x + 1)
    // and exp y is (2 + y) / (2 - y), its inverse: right to the third order, and of the
    // right sign everywhere.
    const double by_sweep = 2.0 * omega_ * step, on = omega_ - 1.0;
    for (size_t j = 0; j < moved_.size(); ++j) {
      const double fitted = sums[j] * h[j];
      double y = by_sweep * (C[j] - fitted) / (C[j] + fitted) + on * moved_[j];
      y = std::min(std::max(y, -kFarthest), kFarthest);
      moved_[j] = y = C[j] == 0.0 ? 0.0 : y;
      h[j] *= (2.0 + y) / (2.0 - y);
    }
    omega_ = 1.0 / (1.0 - rho * rho * (starts ? 0.5 : 0.25 * omega_));
  }

 private:
  static constexpr int64_t kSweepsToMeasure = 2;
  static constexpr double kMargin = 1.4, kLargestRate = 0.98, kNear = 1.0;
  std::vector<double> moved_;  // logarithms of h, in the last sweep
  bool on_ = false, allowed_ = true;
  double previous_ = 0.0, rate_ = 0.0, omega_ = 1.0;
};

// ---------------------------------------------------------------- masks kept by rows
// A kind of rows has, for each thread, a first row and a buffer for the sums of the
// columns; its reader sums x over the cells of some rows, and adds numbers of rows to the
// columns that they observe.

constexpr int64_t kMostRows = 16;  // that are read at once

// columns = P' t, where t_i is what `factor_of` makes of row i and its sum of x.
template <typename Rows, typename F>
void sweep(Rows& rows, const double* x, F&& factor_of, double* columns) {
  rows.take(x);
  run_on_threads(rows.threads, [&](int t) {
    double* const own = rows.collect_in(t);
    auto&& reader = rows.reader(t);
    const int64_t end = rows.begin(t + 1);
    Poll poll;
    double t_of[kMostRows];
    for (int64_t i = rows.begin(t), n; i < end; i += n) {
      n = std::min(rows.n_at_once(), end - i);
      poll.worked(reader.reach(i, n, own, t_of));
      for (int64_t k = 0; k < n; ++k) t_of[k] = factor_of(i + k, t_of[k]);
      reader.collect(i, n, t_of, own);
    }
  });
  rows.share_out(columns);
}

// w = R / (P h), h = C / (P' w), with momentum, until `rule` stops it: then rows are
// fitted exactly, and `columns` = P' w. Rows and columns of sum 0 have factor 0.
template <typename Rows>
Sweeps scale_rows(Rows& rows, const double* R, const double* C, int64_t n_cols,
                  Patience rule, double* w, double* h, std::vector<double>& columns) {
  const auto fit_row = [R, w](int64_t i, double reach) {
    return R[i] > 0.0 ? w[i] = R[i] / reach : 0.0;
  };
  columns.resize(static_cast<size_t>(n_cols));
  Sweeps out;
  Momentum momentum(columns.size());
  for (int64_t k = 1;; ++k) {
    if (k > 1) rows.expect(out.gap, h);
    sweep(rows, h, fit_row, columns.data());
    // Row margins hold exactly: the certificate is the mismatch of the column margins.
    double gap = 0.0;
    for (int64_t j = 0; j < n_cols; ++j) {
      const double off = std::abs(h[j] * columns[j] - C[j]);
      if (off > gap * C[j]) gap = off / C[j];  // seldom: divisions are slow
    }
    if (rule.stops(k, gap, out)) return out;
    momentum.advance(k - 1, gap, C, columns.data(), h);
  }
}

}  // namespace a1gm
