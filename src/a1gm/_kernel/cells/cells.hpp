// Tables of any number of modes as a list of cells: fitted cell c is
// v[c] * product over the groups g of t[level[g][c]].
#pragma once

#include <cstdint>
#include <vector>

namespace a1gm {

// Levels are positions in one vector for all groups; those of group g lie from
// starts[g] to starts[g + 1].
struct Cells {
  const int32_t* level;  // group after group
  int64_t n_cells;
  int n_groups;
  const int64_t* starts;
  const double* v;  // null for ones
  const int32_t* of(int g) const { return level + g * n_cells; }
  int64_t n_levels() const { return starts[n_groups]; }
};

struct Swept {
  int64_t n_sweeps;
  double gap;
};

// Scales one group after the other until all margins are within tol of the sums, or
// the measured rate says that more than `patience` sweeps are needed.
Swept scale_cells(const Cells& cells, const double* sums, double* t, double tol,
                  int64_t max_sweeps, int64_t patience, int n_threads);

// The fitted cells, and their sums by level.
void fit_cells(const Cells& cells, const double* t, double* f, double* margins,
               int n_threads);

// A' (f * (A x)) for the design A: a product with the Hessian.
void multiply_cells(const Cells& cells, const double* f, const double* x, double* y,
                    int n_threads);

}  // namespace a1gm
