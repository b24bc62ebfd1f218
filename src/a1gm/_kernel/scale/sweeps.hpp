// Alternating scaling of a mask until its margins are those asked for.
#pragma once

#include <cstdint>

#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"

namespace a1gm {

struct Sweeps {
  int64_t n = 0;        // sweeps done
  double gap = 0.0;     // largest relative mismatch of the row margins
  bool done = false;
};

// When to stop: the gap is within tol, the budget is spent, or the measured rate says
// that more than `patience` sweeps would be needed. A slow iteration is within tol of
// the margins long before it is within tol of the factors: `polish` waits for both. A
// quick one goes on to `aim` while a few more sweeps get there.
struct Patience {
  double tol;
  int64_t max_sweeps, patience;
  bool polish = true;
  double aim = kInfinity;
  double previous = 0.0;
  bool stops(int64_t sweep, double gap, Sweeps& out);
};

// w = R / (P h), h = C / (P' w) until `rule` stops it. `h` holds the start and, like
// `w`, the result.
Sweeps scale(const Lines& rows, const Lines& cols, const double* R, const double* C,
             double* w, double* h, Patience rule);

// The same for a mask that is kept by rows only, on several threads.
Sweeps scale_by_rows(const Lines& rows, const double* R, const double* C, double* w,
                     double* h, Patience rule, int n_threads);

constexpr double kSmallestStart = 1e-290;

// Column factors to start from.
std::vector<double> start_of(const Reduced& core);

// For each column the sum of the rows that observe it; not for large sparse cores.
const std::vector<double>& sum_of_rows(const Reduced& core);

// The core of a reduced table, in whichever of the two ways it is kept for.
Sweeps scale_core(const Reduced& core, double* w, double* h, Patience rule,
                  int n_threads);

// Numbers in the longest sum of a product.
int64_t longest_sum(const Reduced& core);

// w = R / (P h) and the column sums h (P' w) that these factors give.
void sweep_core(const Reduced& core, const double* h, double* w, double* fitted);

// y = P'(d (P x)) for the mask P of a core.
void core_product(const Reduced& core, const double* d, const double* x, double* y,
                  int n_threads = 1);

// Where the rows of each thread begin, in equal shares of the listed cells; last where
// all end. No more threads than these pay for.
std::vector<int64_t> shares_of_rows(const Lines& rows, int n_threads);

}  // namespace a1gm
