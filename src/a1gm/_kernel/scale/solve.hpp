// The usual case from pattern table to factors in one call.
#pragma once

#include <cstdint>
#include <vector>

#include "bit_mask.hpp"

namespace a1gm {

struct Plain {
  std::vector<double> line_factor, line_scale, col_factor;
  int64_t n_iter = 0;  // 0: closed form
  double gap = 0.0;
  // Makes the column factors sum to 1 and the scales from the row sums.
  bool finish(const double* R);
  bool in_range() const;  // every factor positive, with all its digits
};

// What both ways below begin and end with.
bool all_in_range(const double* values, int64_t n);  // positive, with all digits
bool are_in_range(const std::vector<double>& w, const std::vector<double>& h);
void start_factors(std::vector<double>& h);  // column sums in, at most 1 out

// Solves a pattern table of positive sums and one block. False when it has zeros,
// empty lines or several blocks, or when scaling would need more than `max_sweeps`:
// those take the general way.
bool solve_plain(const BitMask& keys, const double* sums, double tol,
                 int64_t max_sweeps, Plain& out);

// The same for a table of as many patterns as rows, whose observed cells are positive.
// False also for tables that lists of their holes solve faster.
bool solve_wide(const BitMask& mask, const double* R, const double* C, double tol,
                int64_t max_sweeps, int n_threads, Plain& out);

}  // namespace a1gm
