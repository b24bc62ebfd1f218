// The usual case from pattern table to factors in one call.
#pragma once

#include <cstdint>
#include <vector>

#include "bit_mask.hpp"
#include "read/table_part.hpp"

namespace a1gm {

struct Plain {
  std::vector<double> line_factor, line_scale, col_factor;
  int64_t n_iter = 0;  // 0: closed form
  bool newton = false;
  double gap = 0.0, step = 0.0;  // of the margins, and of the cells (cell_error.hpp)
  // Makes the column factors sum to 1 and the scales from the row sums.
  bool finish(const double* R);
  bool in_range() const;  // every factor positive, with all its digits
};

bool all_in_range(const double* values, int64_t n);  // positive, with all digits
bool are_in_range(const std::vector<double>& w, const std::vector<double>& h);

// Solves a pattern table of one block. False when it has empty lines or several blocks,
// zeros that break it into components, or when neither scaling nor Newton's method on a
// small core settles its cells: those take the general way.
bool solve_plain(const BitMask& keys, const double* sums, double tol,
                 int64_t max_sweeps, int64_t max_steps, Plain& out);

// The same for a table of as many patterns as rows, whose observed cells are positive.
// False also for tables that lists of their holes solve faster. The step may come out
// as infinite: not known.
bool solve_bits(const BitMask& mask, const double* R, const double* C, double tol,
                int64_t max_sweeps, int n_threads, Plain& out);

// The same for a mask whose cells have weights, of any type and layout. Lines and
// columns of sum 0 have factor 0; the others must be one block. False also where weights
// are a product of rows and columns and something can be peeled: a closed form may exist.
bool solve_weighted_bits(const BitMask& mask, const std::vector<Part>& weights,
                         const double* R, const double* C, double tol,
                         int64_t max_sweeps, int n_threads, Plain& out);

// P'(d (P x)) for a mask P of bits, or of the weights of the observed cells.
std::vector<double> product_of_bits(const BitMask& mask, const std::vector<Part>* weights,
                                    const double* d, const double* x, int n_threads);

}  // namespace a1gm
