// The usual case from pattern table to factors in one call.
#pragma once

#include <cstdint>
#include <vector>

#include "bit_mask.hpp"
#include "read/table_part.hpp"

namespace a1gm {

struct Plain {
  std::vector<double> pattern_factor, pattern_scale, col_factor;
  int64_t n_iter = 0;  // 0: closed form
  bool newton = false;
  bool is_whole = true;  // no row and no column has factor 0
  double gap = 0.0, step = 0.0;  // of the margins, and of the cells (cell_error.hpp)
  // Makes the column factors sum to 1 and the scales from the row sums; false if a number
  // has lost digits.
  bool finish(const double* R, const double* C);
  bool is_usable(const double* R, const double* C) const;
};

// Whether factors are positive, with all their digits, or 0 like the sums.
bool are_usable(const std::vector<double>& factors, const double* sums);

// Solves a pattern table of one block. Rows and columns of zeros have factor 0. False when
// there are empty rows or columns, several blocks, or zeros that break it into
// components, or when neither scaling nor Newton's method on a small core settles its
// cells: those take the general way.
bool solve_plain(const BitMask& keys, const double* sums, double tol,
                 int64_t max_sweeps, int64_t max_steps, Plain& out);

// The same for a table of as many patterns as rows, whose observed cells are positive.
// False also for tables that lists of their holes solve faster. The step may come out
// as infinite: not known.
bool solve_bits(const BitMask& mask, const double* R, const double* C, double tol,
                int64_t max_sweeps, int n_threads, Plain& out);

// The same for a mask whose cells have weights, of any type and layout. Rows and
// columns of sum 0 have factor 0; the others must be one block.
bool solve_weighted_bits(const BitMask& mask, const std::vector<Part>& weights,
                         const double* R, const double* C, double tol,
                         int64_t max_sweeps, int n_threads, Plain& out);

// P'(d (P x)) for a mask P of bits, or of the weights of the observed cells.
std::vector<double> product_of_bits(const BitMask& mask, const std::vector<Part>* weights,
                                    const double* d, const double* x, int n_threads);

// P x, and the sums of d over the rows that observe a column, for each level of the
// rows: those of level l have i / inner % n_levels == l.
std::vector<double> reach_of_bits(const BitMask& mask, const double* x, int n_threads);
std::vector<double> collect_bits(const BitMask& mask, const double* d, int64_t n_levels,
                                 int64_t inner, int n_threads);

// Nested patterns (staircases): the peeling in one sweep over the cells.
//
// Order the distinct patterns by inclusion, p_1 < p_2 < ... < p_K, and let step k be
// the columns of p_k that are not in p_{k-1}. Peeling takes the last step's columns as
// leaves, merges the last two rows, and so on; unrolled, the column factors of step k
// are to those of all earlier steps as C_k : B_k, where C_k is the sum of the step's
// columns and B_k the sum, over the rows that observe step k, of all earlier columns.
// `parts` are the cells, read like those of `observe`. Column factors sum to 1; `reach` is
// their sum over the columns that each row observes. False when some two patterns do not
// contain one another.
bool solve_nested(const BitMask& mask, const std::vector<Part>& parts,
                  const double* col_sums, int n_threads, std::vector<double>& h,
                  std::vector<double>& reach);

}  // namespace a1gm
