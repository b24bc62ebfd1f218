// Sums and products that do not lose digits.
#pragma once

#include <cmath>
#include <cstdint>

namespace a1gm {

// Rows are summed in runs of this many before they enter a compensated sum, so a
// column sum is as good as a sum of short runs, whatever the number of rows.
constexpr int64_t kRun = 32;

// Adds x to the pair (hi, lo) without losing what hi alone would round away.
inline void two_sum(double x, double& hi, double& lo) {
  const double s = hi + x, b = s - hi;
  lo += (hi - (s - b)) + (x - b);
  hi = s;
}

// Four sums side by side: a single one would wait for itself at every step.
inline double quick_sum(const double* x, int64_t n) {
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a += x[i];
    b += x[i + 1];
    c += x[i + 2];
    d += x[i + 3];
  }
  for (; i < n; ++i) a += x[i];
  return (a + b) + (c + d);
}

// Whether a result has all its digits.
inline bool keeps_digits(double x) { return std::isnormal(x); }

// Limits of cells and sums, so that squares stay in range (_base/float_range.py).
constexpr double kLargest = 1e140, kSmallest = 1e-140;

// Whether every sum is 0 or within the limits; as a sum: one vector loop.
inline bool are_in_range(const double* sums, int64_t n) {
  int64_t n_out = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double size = std::abs(sums[i]);
    n_out += (size <= kLargest && size >= kSmallest) || size == 0.0 ? 0 : 1;
  }
  return n_out == 0;
}

}  // namespace a1gm
