// One pass over a block of rows: row sums, patterns, pattern sums, bad cells.
#pragma once

#include <cstdint>
#include <vector>

#include "pass/weigh.hpp"
#include "read/table_part.hpp"

namespace a1gm {

struct Fault {  // cells of one bad kind: how many, and the first in row-major order
  int64_t count = 0, row = -1, col = -1;
  double value = 0.0;
  void add(const Fault& later) {
    const int64_t n = count + later.count;
    if (count == 0) *this = later;
    count = n;
  }
};

struct Options {
  int n_threads = 1;
  int64_t table_cells = 1 << 18;  // a smaller pattern table is always kept
  bool keep_table = false;    // keep the pattern table whatever its size
  // Weights of the cells. Patterns are then rows of proportional weights.
  const std::vector<Part>* weights = nullptr;
  bool is_exposure = false;  // weights are exposures: cells are counts, not times them
};

struct Observed {
  int64_t n_cols = 0, words = 0;
  bool wide = false;
  int64_t n_patterns = 0;
  std::vector<uint64_t> keys;    // n_patterns x words: observed bits
  std::vector<int64_t> counts;   // rows with each pattern
  std::vector<double> sums;      // n_patterns x n_cols
  std::vector<double> weights;   // n_patterns x n_cols, those of the first row
  std::vector<uint64_t> bits;    // wide form: n_rows x words, observed
  std::vector<uint64_t> positive;  // wide form: n_rows x words, cell > 0
  std::vector<double> col_sums;  // wide form
  bool has_zero = false;         // wide form: an observed cell is 0
  bool is_in_range = true;       // sums of rows, and signed cells: range.hpp
  Fault negative, infinite;
  WeightRange range;
};

// `row_sums` and `ids`, the pattern of each row, are the caller's arrays; the wide form has
// no patterns. Rows of a pattern with weights have the sums that the weights of its first
// row would give them.
Observed observe(const std::vector<Part>& parts, int64_t n_rows, double* row_sums,
                    int32_t* ids, const Options& options);

// row_sums[i] *= scale[pattern_id[i]], in place: a second long array would cost more
// than the multiplication.
void expand_rows(double* row_sums, const int32_t* pattern_id, const double* scale,
                 int64_t n, int n_threads);

}  // namespace a1gm
