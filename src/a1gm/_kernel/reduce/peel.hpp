// Twins and leaves to the core, with a log that is replayed backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "bit_mask.hpp"
#include "reduce/mask_lists.hpp"

namespace a1gm {

enum class Step : int8_t { root, leaf, twin };

// One step of the peeling. The row or column `gone` leaves the table:
//   root      row `gone` and column `kept` are all that is left of their block
//   leaf      `gone` observes only `kept` of the other side
//   twin      `gone` has the pattern of `kept` on the same side and is added to it
// Sums are those of the cells still in the table at that moment. `ratio` is the
// weight of the leaf's cell, or weights of gone / weights of kept for twins.
struct LogEntry {
  Step step;
  bool is_row;  // `gone` is one
  int32_t gone, kept;
  double sum_gone, sum_kept, ratio;
};

// The signature of a row or column is the sum of the names of the columns or rows that it
// meets. Equal patterns have equal signatures; every match is then compared cell by cell.
inline uint64_t name_of(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Observed (row, column) pairs with their sums, row by row, columns ascending.
struct PairView {
  int64_t n_rows, n_cols;
  const int64_t* ptr;
  const int32_t* col;
  const double* sum;
  const double* weight;  // null = all 1
};

// The pairs of a table of patterns.
struct PairTable {
  PairTable(const BitMask& keys, const double* sums);
  PairView view() const {
    return {n_rows, n_cols, ptr.data(), col.data(), sum.data(), nullptr};
  }
  int64_t n_rows, n_cols;
  std::vector<int64_t> ptr{0};
  std::vector<int32_t> col;
  std::vector<double> sum;
};

struct Reduced {
  int64_t n_rows = 0, n_cols = 0;
  std::vector<LogEntry> log;
  std::vector<int32_t> core_rows, core_cols;  // what is left, by original number
  Lists rows;                                 // mask of the core
  Lists cols;                                 // the same by column, where it is kept
  std::vector<double> R, C;                   // margins of the core
  std::vector<int32_t> col_degree;            // rows per column, where it is known
  mutable std::vector<double> sum_of_rows;    // P' R, once it was needed
  std::vector<int32_t> row_label, col_label;  // connected blocks of the core
  int64_t n_core_blocks = 0;
};

// Twins only, from a bit mask and the margins. False when there is a leaf: then the
// sums of the blocks are needed, and `peel_pairs` does the whole job. With `force`
// leaves stay in the core.
bool merge_twins(const BitMask& mask, const double* row_sums, const double* col_sums,
                 bool rows_distinct, bool force, Reduced& out);

Reduced peel_pairs(const PairView& pairs);

// Factors and blocks of all rows and columns; NaN and -1 where nothing is observed.
struct Factors {
  std::vector<double> w, h;
  std::vector<int32_t> row_label, col_label;
  bool exact = true;  // no number has lost digits on the way
};

// Undoes the log, from the factors of the core.
Factors replay(const Reduced& reduced, const double* core_w, const double* core_h);

// Blocks that were peeled off whole.
int64_t n_roots(const Reduced& reduced);

}  // namespace a1gm
