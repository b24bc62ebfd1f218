// Where filled cells go: any layout, float64 or float32.
#pragma once

#include <cstdint>
#include <vector>

namespace a1gm {

// Columns of the filled table; null where nobody asks for a column.
struct Target {
  char* data = nullptr;
  bool is_single = false;  // float32
  int64_t n_cols = 1, row_stride = 0, col_stride = 0;  // bytes
};

// Writes rows that lie `stride` doubles apart, from row `row` of the targets on. False
// where a number is beyond the range of its target.
bool store_tile(const double* x, int64_t stride, int64_t rows,
                const std::vector<Target>& targets, int64_t row);

}  // namespace a1gm
