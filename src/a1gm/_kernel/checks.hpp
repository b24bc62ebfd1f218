// What callers must give: every array is held against this before it is read.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "bit_mask.hpp"
#include "reduce/peel.hpp"

namespace a1gm {

constexpr int64_t kMostCells = int64_t{1} << 60;  // products of sizes stay in 64 bits
constexpr int64_t kMostLines = INT32_MAX;         // lines have numbers of 32 bits
constexpr int64_t kPiece = 1 << 12;  // pairs that stay in the first-level cache

inline void require(bool holds, const char* sentence) {
  if (!holds) throw std::invalid_argument(sentence);
}

inline void check_threads(int n_threads) {
  require(n_threads >= 1, "n_threads must be at least 1");
}

inline void check_sweeps(double tol, int64_t max_sweeps) {
  require(tol >= 0.0, "tol must be 0 or more");
  require(max_sweeps >= 0, "max_sweeps must be 0 or more");
}

inline void check_scale(double scale) {
  require(scale > 0.0 && std::isfinite(scale), "scale must be positive and finite");
}

// Rows and columns that are numbered together.
inline void check_lines(int64_t n, int64_t m) {
  require(n >= 0 && m >= 0 && n <= kMostLines && m <= kMostLines - n,
          "rows and columns must be fewer than 2^31 together");
}

// The shape of a mask of bits, before anyone reads it ...
inline void check_bit_shape(int64_t n, int64_t m, int64_t words) {
  check_lines(n, m);
  require(words == (m + 63) / 64, "a row of bits must be a word per 64 columns");
}

// ... and what stands in it.
inline void check_bits(const BitMask& mask) {
  const int64_t tail = mask.m & 63;
  if (tail == 0) return;
  uint64_t any = 0;
  for (int64_t i = 0; i < mask.n; ++i) any |= mask.bits[(i + 1) * mask.words - 1];
  require(any >> tail == 0, "bits beyond the last column must be 0");
}

// The largest of some numbers, and their bits together, which tell if one is negative.
struct IdRange {
  int64_t largest = -1, bits = 0;
  void add(const IdRange& other) {
    largest = std::max(largest, other.largest);
    bits |= other.bits;
  }
  bool is_below(int64_t n) const { return bits >= 0 && largest < n; }
};

template <typename Id>
IdRange range_of(const Id* ids, int64_t n) {
  Id largest = 0, bits = 0;
  for (int64_t k = 0; k < n; ++k) {
    largest = std::max(largest, ids[k]);
    bits = static_cast<Id>(bits | ids[k]);
  }
  return n > 0 ? IdRange{largest, bits} : IdRange{};
}

// Row pointers that lead nowhere but to the cells, and columns that ascend in each row.
inline void check_pairs(const PairView& pairs, int64_t n_cells) {
  const int64_t* const ptr = pairs.ptr;
  const int32_t* const col = pairs.col;
  require(ptr[0] == 0, "ptr must begin with 0");
  bool grows = true;
  for (int64_t i = 0; i < pairs.n_rows; ++i) grows &= ptr[i] <= ptr[i + 1];
  require(grows, "ptr must never decrease");
  require(ptr[pairs.n_rows] == n_cells, "ptr must end with the number of pairs");
  // Where the columns do not ascend, a row must begin.
  IdRange range;
  int64_t falls = 0;
  for (int64_t from = 0; from < n_cells; from += kPiece) {
    const int64_t to = std::min(n_cells, from + kPiece);
    range.add(range_of(col + from, to - from));
    int32_t found = 0;  // as narrow as the columns: more of them to a vector
    for (int64_t k = std::max<int64_t>(from, 1); k < to; ++k) found += col[k] <= col[k - 1];
    falls += found;
  }
  require(range.is_below(pairs.n_cols), "cols must be 0 or more and below n_cols");
  for (int64_t i = 1; i < pairs.n_rows; ++i) {
    const int64_t k = ptr[i];
    if (k > ptr[i - 1] && k < n_cells) falls -= col[k] <= col[k - 1];
  }
  require(falls == 0, "cols must ascend within a row");
  if (pairs.weight == nullptr) return;
  int64_t bad = 0;
  for (int64_t k = 0; k < n_cells; ++k)
    bad += !(pairs.weight[k] > 0.0 && pairs.weight[k] < HUGE_VAL);
  require(bad == 0, "weights must be positive and finite");
}

}  // namespace a1gm
