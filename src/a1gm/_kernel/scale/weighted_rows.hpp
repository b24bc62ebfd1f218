// The innermost loops of a sweep over weights: a few rows, read twice while they are near.
#pragma once

#include <cstdint>

namespace a1gm {

constexpr int64_t kRowsAtOnce = 4;

// Rows of weights and which of their cells are observed. The vectors that stand beside
// them have a number for every bit.
struct WeightedRows {
  const double* weights[kRowsAtOnce];
  const uint64_t* bits[kRowsAtOnce];
  int64_t n_cols;
};

// The fastest versions that this processor runs.
struct RowLoops {
  // Sums of x over the cells of each row, each times its weight.
  void (*reach)(const WeightedRows& rows, const double* x, double* sums);
  // Adds weights times the row's factor to the sums of the columns.
  void (*collect)(const WeightedRows& rows, const double* factors, double* sums);
  // The same; also for each row the sum of what it adds, squared and times a and b of
  // the column.
  void (*collect_squares)(const WeightedRows& rows, const double* factors,
                          const double* a, const double* b, double* squares,
                          double* sums);
};

RowLoops choose_row_loops(int64_t n_cols);

}  // namespace a1gm
