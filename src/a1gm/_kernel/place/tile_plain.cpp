// The loops over a tile for any processor.
#include "place/tile.hpp"

namespace a1gm {
namespace {

double measure_cell(double x, double h, double& sum, double& reach) {
  const bool seen = x == x;
  sum += seen ? x : 0.0;
  reach += seen ? h : 0.0;
  return x < 0.0 ? x : 0.0;
}

double measure_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    const double* h, double* sums, double* reach) {
  double smallest = 0.0;
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int64_t j = 0; j < cols; ++j)
      smallest = std::min(smallest, measure_cell(x[j], h[j], sums[i], reach[i]));
  return smallest;
}

double measure_columns(const Column* x, int64_t rows, int64_t cols,
                       const double* h, double* sums, double* reach) {
  double smallest = 0.0;
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = 0; i < rows; ++i)
      smallest = std::min(smallest, measure_cell(x[j].cells[i], h[j], sums[i], reach[i]));
  return smallest;
}

void fill_column(const Column& column, int64_t rows, double h, const double* w,
                 double* out, bool) {
  const double* const x = column.cells;
  for (int64_t i = 0; i < rows; ++i) out[i] = (x[i] == x[i] ? x[i] : w[i] * h) + 0.0;
}

void fill_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
               const double* h, const double* w, double* out, int64_t out_stride) {
  for (int64_t i = 0; i < rows; ++i, x += stride, out += out_stride)
    for (int64_t j = 0; j < cols; ++j) fill_column({x + j}, 1, h[j], w + i, out + j, false);
}

double diverge_column(const double* x, int64_t rows, double h, const double* w) {
  double sum = 0.0;
  for (int64_t i = 0; i < rows; ++i)
    if (x[i] == x[i]) sum += divergence_of_cell(x[i], w[i], h);
  return sum;
}

double diverge_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    const double* h, const double* w) {
  double sum = 0.0;
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double of_row = 0.0;
    for (int64_t j = 0; j < cols; ++j) of_row += diverge_column(x + j, 1, h[j], w + i);
    sum += of_row;
  }
  return sum;
}

double scatter_column(const double* x, int64_t rows, double h, const double* w) {
  double sum = 0.0;
  for (int64_t i = 0; i < rows; ++i)
    if (x[i] == x[i]) sum += scatter_of_cell(x[i], w[i], h);
  return sum;
}

double scatter_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    const double* h, const double* w) {
  double sum = 0.0;
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double of_row = 0.0;
    for (int64_t j = 0; j < cols; ++j) of_row += scatter_column(x + j, 1, h[j], w + i);
    sum += of_row;
  }
  return sum;
}

}  // namespace

PlaceIsa plain_place_isa() {
  return {measure_rows, measure_columns, fill_rows,    fill_column,
          diverge_rows, diverge_column,  scatter_rows, scatter_column};
}

}  // namespace a1gm
