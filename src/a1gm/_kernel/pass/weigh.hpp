// Cells times their weights, and what tells rows of proportional weights from others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace a1gm {

// Smallest and largest weight of an observed cell, and positive weighted cell; `bad`
// when some weight is NaN, infinite or negative.
struct WeightRange {
  double least = HUGE_VAL, most = 0.0, least_cell = HUGE_VAL, most_cell = 0.0;
  bool bad = false;
  void add(const WeightRange& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    least_cell = std::min(least_cell, other.least_cell);
    most_cell = std::max(most_cell, other.most_cell);
    bad |= other.bad;
  }
};

// y = x v, or x for exposures; NaN where x is missing or v is 0. Three doubles past the
// end of y may be overwritten.
void weigh(const double* x, const double* v, int64_t n, bool is_exposure, double* y,
           WeightRange& range);

// Whether the weights v of the observed cells of a row (where y is not NaN) are
// proportional to others, 0 where those do not observe, of which that at `at` is the
// largest, but for what rounding leaves of the ratios of two products. For weights that
// are far from the ends of float64.
bool are_proportional(const double* y, const double* v, int64_t n, const double* weights,
                      int64_t at);
constexpr double kNearEnough = 0x1p400;  // weights within it, and its inverse, are far

// The weights v of the observed cells of a row (where y is not NaN), each over the
// largest of them, which is returned. Proportional rows have equal keys, mostly: 44 bits
// count, and all of them where it must be exact.
double shape_of(const double* y, const double* v, int64_t n, bool exact, uint64_t* key);

}  // namespace a1gm
