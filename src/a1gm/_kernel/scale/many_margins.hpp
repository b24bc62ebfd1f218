// Alternating scaling of one mask for many margins at once.
#pragma once

#include <cstdint>

#include "bit_mask.hpp"

namespace a1gm {

// Row margins of every problem p, from two sums of each row and coefficients: rows
// before `second` have coef[0][p] * sums[i][0] + coef[1][p] * sums[i][1], the others
// the same with coef[2] and coef[3].
struct ManyMargins {
  const double* sums;  // rows x 2
  const double* coef;  // 4 x problems
  int64_t second;
};

// For every problem, w = R / (P h) and h = C / (P' w) until no column margin is off by
// more than tol, or the last sweeps say that after one more step none will be. `C` and
// `h` are problems x columns; h holds the start, and the result. `gap` is the mismatch
// reached, infinite where nothing can be said.
void scale_together(const BitMask& mask, const ManyMargins& margins, const double* C,
                    int64_t n_problems, double* h, double* gap, double tol,
                    int64_t max_sweeps, int n_threads);

}  // namespace a1gm
