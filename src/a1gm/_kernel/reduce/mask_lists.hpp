// A 0/1 or weighted mask as lists, for each row or column, of its rarer kind of cell.
#pragma once

#include <cstdint>
#include <vector>

#include "bit_mask.hpp"

namespace a1gm {

// The sum of x over the observed cells of row or column i is that of the listed cells
// or, when the missing cells are listed, of all minus that of the listed ones.
struct Lists {
  int64_t n = 0, n_other = 0;
  bool lists_missing = false;
  std::vector<int64_t> ptr{0};
  std::vector<int32_t> index;     // ascending within a list
  std::vector<double> weight;     // empty = all 1; only when observed cells are listed

  int64_t length(int64_t i) const { return ptr[i + 1] - ptr[i]; }
  int64_t degree(int64_t i) const {
    return lists_missing ? n_other - length(i) : length(i);
  }
  // The smallest observed index of row or column i, or -1.
  int32_t first_observed(int64_t i) const;
  double sum(int64_t i, const double* x, double total) const {
    const int32_t* listed = index.data() + ptr[i];
    const int64_t n_listed = length(i);
    double a = 0.0, b = 0.0;
    int64_t k = 0;
    if (!weight.empty()) {
      const double* p = weight.data() + ptr[i];
      for (; k < n_listed; ++k) a += p[k] * x[listed[k]];
      return a;
    }
    for (; k + 1 < n_listed; k += 2) {
      a += x[listed[k]];
      b += x[listed[k + 1]];
    }
    if (k < n_listed) a += x[listed[k]];
    a += b;
    if (!lists_missing) return a;
    if (a <= kCancellation * total) return total - a;
    double sum = 0.0;  // one by one: total minus the others would cancel
    each_unlisted(i, [&sum, x](int32_t j) { sum += x[j]; });
    return sum;
  }
  template <typename F>
  void each_unlisted(int64_t i, F&& f) const {
    int32_t from = 0;
    for (int64_t k = ptr[i]; k <= ptr[i + 1]; ++k) {
      const int32_t to = k < ptr[i + 1] ? index[k] : static_cast<int32_t>(n_other);
      for (int32_t j = from; j < to; ++j) f(j);
      from = to + 1;
    }
  }
  template <typename F>
  void each_observed(int64_t i, F&& f) const {
    if (lists_missing) return each_unlisted(i, f);
    for (int64_t k = ptr[i]; k < ptr[i + 1]; ++k) f(index[k]);
  }

 private:
  static constexpr double kCancellation = 0.75;  // missing share that we do not subtract
};

// The same mask seen from the other side.
Lists transpose(const Lists& lists);

// Lists of the rarer kind of cell of a bit mask.
Lists lists_of_bits(const BitMask& mask);

// Lists the other kind of cells instead; without weights.
void list_other_kind(Lists& lists);

// Keeps some rows or columns and some of the other side, renumbered; without weights.
Lists subset(const Lists& lists, const std::vector<int32_t>& keep,
             const std::vector<int32_t>& keep_other);

// Connected blocks of the bipartite graph; labels -1 where nothing is observed.
int64_t connected_blocks(const Lists& rows, std::vector<int32_t>& row_label,
                         std::vector<int32_t>& col_label);

// Whether a mask is so large and sparse that it is kept, and swept, by its rows alone.
bool is_kept_by_rows(const Lists& rows);

}  // namespace a1gm
