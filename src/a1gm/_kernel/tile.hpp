// The innermost loops: a tile of rows is scanned, then added to its patterns' sums.
#pragma once

#include <cstdint>

namespace a1gm {

constexpr int64_t kNarrow = 32;  // columns of a narrow tile, whose sums fit registers
constexpr int64_t kPadding = 3;  // a stretch's last vector may end past its columns

// What a tile scan finds: observed bits and sum of each row, the smallest cell, and,
// when asked for, the bits of the positive cells.
struct TileScan {
  uint64_t* keys;
  uint64_t* positive;  // may be null
  double* sums;
  double smallest;
  double* columns = nullptr;  // wanted: column sums of the whole tile
  bool has_columns = false;   // and found: narrow tiles only
  bool expect_complete = false;  // with columns: probably no cell is missing
  bool complete = false;         // and so it is: there are no keys, but a finite total
  double total = 0.0;
  double* run = nullptr;      // wanted: every row added to this run
  bool added = false;         // and done: long rows with `positive` only
};

// The fastest versions that this processor runs.
struct Isa {
  // Scans rows of `cols` doubles, `stride` apart.
  void (*scan)(const double* x, int64_t stride, int64_t rows, int64_t cols,
               int64_t words, TileScan& out);
  // Adds row i to acc[i]; accumulators are padded to whole vectors.
  void (*add)(const double* x, int64_t stride, int64_t rows, int64_t cols,
              double* const* acc);
  // Adds all rows to one accumulator.
  void (*add_run)(const double* x, int64_t stride, int64_t rows, int64_t cols,
                  double* acc);
};

Isa choose_isa();

}  // namespace a1gm
