// Rows of a table as float64, where they lie if they can be used there.
#pragma once

#include <vector>

#include "read/table_part.hpp"

namespace a1gm {

class TileReader {
 public:
  TileReader(const std::vector<Part>& parts, int64_t n_cols, int64_t tile_rows,
             double scale = 1.0)
      : parts_(parts),
        n_cols_(n_cols),
        scale_(scale),
        is_direct_(scale == 1.0 && parts.size() == 1 && lies_as<double>(parts[0])),
        stride_(is_direct_ ? parts[0].row_stride / 8 : n_cols),
        tile_(is_direct_ ? 0 : static_cast<size_t>(tile_rows * n_cols)) {}

  // Some rows, at most as many as a tile has, `stride` doubles apart.
  const double* rows(int64_t row, int64_t n) {
    if (is_direct_)
      return reinterpret_cast<const double*>(parts_[0].data + row * parts_[0].row_stride);
    load_tile(parts_, row, n, n_cols_, scale_, tile_.data());
    return tile_.data();
  }
  // Some rows of column j, which is a part of its own.
  Column column(int64_t j, int64_t row, int64_t n) {
    const Part& part = parts_[static_cast<size_t>(j)];
    if (is_plain_column(part)) return column_of(part, row);
    const size_t n_rows = tile_.size() / static_cast<size_t>(n_cols_);
    double* const to = tile_.data() + static_cast<size_t>(j) * n_rows;
    load_column(part, row, n, to);
    return {to};
  }
  int64_t stride() const { return stride_; }

 private:
  const std::vector<Part>& parts_;
  int64_t n_cols_;
  double scale_;
  bool is_direct_;
  int64_t stride_;
  std::vector<double> tile_;
};

}  // namespace a1gm
