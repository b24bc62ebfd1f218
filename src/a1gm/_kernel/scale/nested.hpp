// Nested patterns (staircases): the peeling in one sweep over the cells.
//
// Order the distinct patterns by inclusion, p_1 < p_2 < ... < p_K, and let step k be
// the columns of p_k that are not in p_{k-1}. Peeling takes the last step's columns as
// leaves, merges the last two rows, and so on; unrolled, the column factors of step k
// are to those of all earlier steps as C_k : B_k, where C_k is the sum of the step's
// columns and B_k the sum, over the rows that observe step k, of all earlier columns.
#pragma once

#include <cstdint>
#include <vector>

#include "bit_mask.hpp"
#include "read/table_part.hpp"

namespace a1gm {

struct Nesting {
  std::vector<int32_t> depth;  // steps that each line observes; 0 = none
  std::vector<int32_t> step;   // step of each column, from 0; -1 = never observed
  int32_t n_steps = 0;
};

// False when some two lines do not contain one another.
bool find_nesting(const BitMask& mask, Nesting& out);

// B_k of every step k. Rows are lines here; cells are read like those of `observe`.
std::vector<double> sum_before_steps(const std::vector<Part>& parts, int64_t n_rows,
                                     const Nesting& nesting, double scale,
                                     int n_threads);

// Column factors that sum to 1, from B and the column sums.
void nested_factors(const Nesting& nesting, const double* before,
                    const double* col_sums, int64_t m, double* h);

// Sum of the column factors of the first k steps, for k = 0 .. n_steps.
std::vector<double> reach_of_steps(const Nesting& nesting, const double* h);

}  // namespace a1gm
