// Sweeps that remember the one before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace a1gm {

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

}  // namespace a1gm
