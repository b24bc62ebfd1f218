// Sweeps that remember the one before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace a1gm {

constexpr double kFarthest = 1.0;  // no logarithm moves further in one sweep

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
      for (size_t j = 0; j < before_.size(); ++j)
        if (C[j] != 0.0) h[j] = C[j] / sums[j];
      return;
    }
    const double rho = rate_ / (2.0 - rate_), step = 2.0 / (2.0 - rate_);
    for (size_t j = 0; j < before_.size(); ++j) {
      if (C[j] == 0.0) continue;
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

}  // namespace a1gm
