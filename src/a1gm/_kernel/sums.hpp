// Sums that do not lose digits.
#pragma once

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

}  // namespace a1gm
