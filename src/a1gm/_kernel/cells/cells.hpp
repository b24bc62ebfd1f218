// Tables of any number of modes: fitted cell c is v[c] * product over the groups g of
// t[level of c in g]. Cells are listed one by one, or as the fibres of an array along its
// last mode, whose missing cells have v = 0.
#pragma once

#include <cstdint>

namespace a1gm {

// Levels are positions in one vector for all groups; those of group g lie from
// starts[g] to starts[g + 1]. Those of a fibre are those of its first cell.
struct Cells {
  const int32_t* level;  // group after group
  int64_t n_fibres;
  int n_groups;
  const int64_t* starts;
  const double* v;               // null for ones
  int64_t length = 1;            // of a fibre
  const int64_t* step = nullptr;  // of levels along a fibre, 0 or 1 by group
  const uint8_t* seen = nullptr;  // v of fibres in less memory, if all are 0 or 1
  const int32_t* of(int g) const { return level + g * n_fibres; }
  int64_t n_levels() const { return starts[n_groups]; }
};

// Sums of the fitted cells by the levels of all groups; or, if `one` is not -1, by those
// of that group, without its factors: what scaling divides by. The cells in f, or null.
void fit_cells(const Cells& cells, const double* t, int one, double* f, double* sums,
               int n_threads);

// Scales group after group until all margins are within tol of the sums, or the measured
// rate asks for more than `patience` sweeps. Returns their number, and t's `margins`.
int64_t scale_cells(Cells cells, const double* sums, double* t, double* margins,
                    double tol, int64_t max_sweeps, int64_t patience, int n_threads);

// A' (f * (A x)) for the design A: a product with the Hessian. Returns the largest size
// of A x, in a fibre of those cells that have f > 0.
double multiply_cells(const Cells& cells, const double* f, const double* x, double* y,
                      int n_threads);

}  // namespace a1gm
