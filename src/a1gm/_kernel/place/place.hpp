// Rows of any table placed by given column factors h, in one pass: the factor of a row
// is the sum of its observed cells over the sum of their columns' factors.
//
// Every function that places declines, by returning false, where a cell is infinite or,
// unless `takes_negatives`, negative, or positive where h is 0, and where a factor or a filled cell leaves the
// range of float64. Nothing that was written then counts: the caller takes the general
// way, which finds the words.
#pragma once

#include <cstdint>
#include <vector>

#include "read/table_part.hpp"

namespace a1gm {

struct Placing {
  const std::vector<Part>& parts;
  int64_t n_rows, n_cols;
  const double* h;
  bool takes_negatives;
  int n_threads;
};

// Where a column of the filled table goes, its cells `stride` doubles apart; null where
// nobody asks for it.
struct Target {
  double* data = nullptr;
  int64_t stride = 1;
};

struct Holes {
  int64_t n_empty = 0, first_empty = -1;  // rows that observe nothing
  std::vector<double> columns;            // NaN for those with a missing cell
};

// Factors of the rows; NaN for a row that observes nothing.
bool row_factors(const Placing& job, double* factors);

// Writes the cells with the missing ones filled, `otherwise` in rows that observe
// nothing. The target may be the table itself: rows are read before they are written.
bool fill_rows(const Placing& job, const double* otherwise,
               const std::vector<Target>& targets, Holes& holes);

struct Sums {  // over the cells, and of the factors of the rows
  double cells = 0.0, factors = 0.0;
};

// Sum over the observed cells of x log(x / f) - x + f, f being the fitted value. The
// same number for any number of threads.
bool divergence(const Placing& job, Sums& sums);

// Sum of (x - f)^2 / f over the observed cells with a positive fitted value f.
bool pearson(const Placing& job, Sums& sums);

struct Squares {
  const std::vector<Part>& parts;
  int64_t n_rows, n_cols;
  const double* row_sums;
  const int32_t* lines;    // of each row
  int64_t n_lines;
  int n_threads;
};

// The sum of x^2 / r for each line and column, over the rows of the line, r being
// the sum of the row. NaN for a line with a row that has cells but no positive sum.
std::vector<double> square_sums(const Squares& job);

}  // namespace a1gm
