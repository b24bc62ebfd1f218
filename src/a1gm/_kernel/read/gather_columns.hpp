// Columns of float64 that lie apart, as column frames keep them, gathered into rows.
#pragma once

#include <vector>

#include "read/table_part.hpp"

namespace a1gm {

// Loads at most 64 rows of a table whose parts are all single contiguous columns of
// float64, with or without a validity bitmap. False when the table is not such a one,
// or the processor has no AVX2; then nothing was done.
bool load_columns(const std::vector<Part>& parts, int64_t row, int64_t rows,
                  int64_t stride, double* out);

}  // namespace a1gm
