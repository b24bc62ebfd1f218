// Alternating scaling of a large sparse mask, one pass over its rows per sweep.
#include <algorithm>
#include <cmath>
#include <vector>

#include "scale/sweeps.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

constexpr double kFarthest = 1.0;  // no logarithm moves further in one sweep

// A column's factor beside the sum it collects: one line of the cache serves both.
struct Column {
  double h, sum;
};

// Rows begin to end of one thread: w = R / (P h), and P' w of these rows.
void sweep_rows(const Lines& rows, int64_t begin, int64_t end, const double* R,
                double* w, Column* columns) {
  const int32_t* index = rows.index.data();
  const double* weight = rows.weight.empty() ? nullptr : rows.weight.data();
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = rows.ptr[i], to = rows.ptr[i + 1];
    double t = 0.0;
    if (weight != nullptr)
      for (int64_t k = from; k < to; ++k) t += weight[k] * columns[index[k]].h;
    else
      for (int64_t k = from; k < to; ++k) t += columns[index[k]].h;
    const double factor = w[i] = R[i] / t;
    if (weight != nullptr)
      for (int64_t k = from; k < to; ++k) columns[index[k]].sum += weight[k] * factor;
    else
      for (int64_t k = from; k < to; ++k) columns[index[k]].sum += factor;
  }
}

// Logarithm and exponential of numbers near 1 and 0, without calls: right to the third
// order, and of the right sign everywhere.
inline double log_near(double x) { return 2.0 * (x - 1.0) / (x + 1.0); }
inline double exp_near(double y) {
  y = std::min(std::max(y, -kFarthest), kFarthest);
  return (2.0 + y) / (2.0 - y);
}

// Chebyshev's acceleration in log h. A sweep shrinks the error of log h by factors
// between 0 and some rate below 1, which the gaps measure (a little low, early on).
// One more term of memory needs the square root of as many sweeps; the fixed point is
// the same. If the gap ever grows, plain sweeps take over for good.
class Momentum {
 public:
  explicit Momentum(size_t n) : before_(n) {}

  // h is the present factor; a plain sweep would make it C / sums.
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
      for (size_t j = 0; j < before_.size(); ++j) h[j] = C[j] / sums[j];
      return;
    }
    const double rho = rate_ / (2.0 - rate_), step = 2.0 / (2.0 - rate_);
    for (size_t j = 0; j < before_.size(); ++j) {
      // From here by `step` sweeps, and on from where h was before.
      const double moved = step * log_near(C[j] / (sums[j] * h[j]));
      const double drift = starts ? 0.0 : log_near(h[j] / before_[j]);
      before_[j] = h[j];
      h[j] *= exp_near(omega_ * moved + (omega_ - 1.0) * drift);
    }
    omega_ = 1.0 / (1.0 - rho * rho * (starts ? 0.5 : 0.25 * omega_));
  }

 private:
  static constexpr int64_t kSweepsToMeasure = 2;
  static constexpr double kMargin = 1.4, kLargestRate = 0.98, kNear = 1.0;
  std::vector<double> before_;
  bool on_ = false, allowed_ = true;
  double previous_ = 0.0, rate_ = 0.0, omega_ = 1.0;
};

}  // namespace

Sweeps scale_by_rows(const Lines& rows, const double* R, const double* C, double* w,
                     double* h, Patience rule, int n_threads) {
  const auto n_cells = static_cast<int64_t>(rows.index.size());
  const int threads = useful_threads(n_threads, n_cells);
  std::vector<int64_t> cut{0};  // equal shares of the cells
  for (int t = 1; t <= threads; ++t)
    cut.push_back(std::lower_bound(rows.ptr.begin(), rows.ptr.end() - 1,
                                   n_cells * t / threads) -
                  rows.ptr.begin());
  cut.back() = rows.n;
  const auto m = static_cast<size_t>(rows.n_other);
  std::vector<std::vector<Column>> columns(static_cast<size_t>(threads),
                                           std::vector<Column>(m));
  std::vector<double> sums(m);

  Sweeps out;
  rule.polish = false;
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
      gap = std::max(gap, std::abs(h[j] * sums[j] - C[j]) / C[j]);
    }
    if (rule.stops(k, gap, out)) return out;
    momentum.advance(k - 1, gap, C, sums.data(), h);
  }
}

}  // namespace a1gm
