// The innermost loops of the placing passes, over a tile of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "read/table_part.hpp"

namespace a1gm {

constexpr double kLeast = std::numeric_limits<double>::min();  // below, digits are lost
constexpr double kMost = std::numeric_limits<double>::max();

// Loops for rows that lie `stride` doubles apart, and for columns that lie anywhere, with
// or without a bitmap. `h`, `w`, sums and reach are padded to whole vectors.
struct PlaceIsa {
  // Adds the observed cells of each row to its sum, and their h to its reach; returns
  // the smallest cell, or 0 if that is smaller.
  double (*measure_rows)(const double* x, int64_t stride, int64_t rows, int64_t cols,
                         const double* h, double* sums, double* reach);
  double (*measure_columns)(const Column* x, int64_t rows, int64_t cols, const double* h,
                            double* sums, double* reach);
  // out = x, or w h where x is missing; -0.0 becomes 0.0. `holes` become NaN in the
  // columns that have a missing cell; they are padded, too.
  void (*fill_rows)(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    const double* h, const double* w, double* out, int64_t out_stride,
                    double* holes);
  // The same of a column; true if it has a missing cell. `stream`: out is not read soon,
  // so it need not be in a cache.
  bool (*fill_column)(const Column& x, int64_t rows, double h, const double* w,
                      double* out, bool stream);
  // The divergence and Pearson's statistic of lines of n cells, rows or one column. The
  // fitted value of a cell is the number of its line times its own.
  using Sum = double (*)(Column x, int64_t stride, int64_t lines, int64_t n,
                         const double* of_line, const double* of_cell);
  Sum diverge, scatter;
};

PlaceIsa choose_place_isa();

// Where |s| is at most this, x and f are within a factor of sqrt(2).
constexpr double kNear = 0.171572875253809902;

// (atanh(s) - s) / s^3 = 1/3 + s^2/5 + ... for |s| <= kNear, in powers of s^2: an
// interpolation at Chebyshev's points, 1.1e-18 off.
constexpr int kTailTerms = 8;
constexpr double kTail[kTailTerms] = {
    0x1.5555555555555p-2, 0x1.9999999999a38p-3, 0x1.2492492476ccbp-3,
    0x1.c71c7201592afp-4, 0x1.745cf90485b72p-4, 0x1.3b1c355c49df7p-4,
    0x1.0fbe95a8ce3f7p-4, 0x1.0c039e2d97702p-4};

// x log(x / f) - x + f for f = w h: never below 0, and right where x / f is not a
// number of float64. With d = x - f and s = d / (x + f), log(x / f) = 2 atanh(s), and
// x log(x / f) - d = s d + 2 x (atanh(s) - s), in which near f nothing cancels.
inline double divergence_of_cell(double x, double w, double h) {
  const double f = w * h;
  if (x == 0.0) return f;
  const double d = x - f, s = d / (x + f);
  if (std::abs(s) <= kNear && x + f <= kMost && f >= kLeast) {
    double tail = 0.0;
    for (int k = kTailTerms - 1; k >= 0; --k) tail = tail * s * s + kTail[k];
    return s * d + 2.0 * x * (s * s * s * tail);
  }
  const double ratio = x / f;
  const double log_ratio = ratio >= kLeast && ratio <= kMost && f >= kLeast
                               ? std::log(ratio)
                               : std::log(x) - (std::log(w) + std::log(h));
  return std::max(0.0, x * log_ratio - d);
}

// (x - f)^2 / f for f = w h; 0 where f is not positive.
inline double scatter_of_cell(double x, double w, double h) {
  const double f = w * h, d = x - f;
  return f > 0.0 ? d * (d / f) : 0.0;
}

}  // namespace a1gm
