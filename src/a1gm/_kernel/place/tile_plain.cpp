// The loops over a tile for any processor.
#include "place/tile.hpp"

namespace a1gm {
namespace {

double measure_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    const double* h, double* sums, double* reach) {
  double smallest = 0.0;
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int64_t j = 0; j < cols; ++j) {
      const bool seen = x[j] == x[j];
      sums[i] += seen ? x[j] : 0.0;
      reach[i] += seen ? h[j] : 0.0;
      smallest = x[j] < smallest ? x[j] : smallest;
    }
  return smallest;
}

double measure_columns(const Column* x, int64_t rows, int64_t cols, const double* h,
                       double* sums, double* reach) {
  double smallest = 0.0;
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < rows; ++i) {
      const double cell = x[j][i];
      smallest = std::min(smallest, measure_rows(&cell, 1, 1, 1, h + j, sums + i, reach + i));
    }
  return smallest;
}

void fill_column(const Column& x, int64_t rows, double h, const double* w, double* out,
                 bool) {
  for (int64_t i = 0; i < rows; ++i) out[i] = (x[i] == x[i] ? x[i] : w[i] * h) + 0.0;
}

void fill_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
               const double* h, const double* w, double* out, int64_t out_stride) {
  for (int64_t i = 0; i < rows; ++i, x += stride, out += out_stride)
    fill_column({x}, cols, w[i], h, out, false);
}

// The sum of what `of_cell` makes of the observed cells.
template <double (*of_cell)(double, double, double)>
double sum_lines(Column x, int64_t stride, int64_t lines, int64_t n, const double* v,
                 const double* u) {
  double sum = 0.0;
  for (int64_t i = 0; i < lines; ++i, x.cells += stride) {
    double of_line = 0.0;
    for (int64_t j = 0; j < n; ++j)
      if (x[j] == x[j]) of_line += of_cell(x[j], v[i], u[j]);
    sum += of_line;
  }
  return sum;
}

}  // namespace

PlaceIsa plain_place_isa() {
  return {measure_rows, measure_columns,               fill_rows,
          fill_column,  sum_lines<divergence_of_cell>, sum_lines<scatter_of_cell>};
}

}  // namespace a1gm
