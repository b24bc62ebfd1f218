// What the scatter of the cells needs of the first pass: sums of x^2 / r, r being the
// sum of the row.
#pragma once

#include <cstdint>
#include <vector>

#include "read/table_part.hpp"

namespace a1gm {

struct Squares {
  const std::vector<Part>& parts;
  int64_t n_rows, n_cols;
  const double* row_sums;  // of the cells times `scale`
  const int32_t* lines;    // of each row
  int64_t n_lines;
  double scale;
  int n_threads;
};

// The sum of (x scale)^2 / r for each line and column, over the rows of the line. NaN
// for a line with a row that has cells but no positive sum.
std::vector<double> square_sums(const Squares& job);

}  // namespace a1gm
