// Tables as they lie in memory: any layout, any number type, any mark of a hole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace a1gm {

enum class Dtype { f64, f32, i64, i32, i16, i8, u64, u32, u16, u8 };

// A stretch of columns that lie in one strided array. A table is a list of these:
// one for a matrix, one per column for a column frame, two for [X | Z].
struct Part {
  const char* data = nullptr;
  Dtype dtype = Dtype::f64;
  int64_t n_cols = 0;
  int64_t row_stride = 0, col_stride = 0;  // bytes; may be 0 or negative
  const uint8_t* mask = nullptr;           // non-zero byte = missing
  int64_t mask_row_stride = 0, mask_col_stride = 0;
  const uint8_t* validity = nullptr;  // Arrow bitmap of a one-column part, 1 = valid
  int64_t bit_offset = 0;
};

// Cells of a column from some row on. Where there is a bitmap, only those whose bit is 1
// count, whatever is stored for the others.
struct Column {
  const double* cells = nullptr;
  const uint8_t* validity = nullptr;
  int64_t bit = 0;  // of the first cell

  double operator[](int64_t i) const {
    const bool is_null = validity != nullptr && !(validity[(bit + i) >> 3] >> ((bit + i) & 7) & 1);
    return is_null ? std::numeric_limits<double>::quiet_NaN() : cells[i];
  }
  // Bits of at most 64 cells; those past the last one are not read.
  uint64_t word(int64_t first, int64_t n) const {
    if (validity == nullptr) return ~uint64_t{0};
    const int64_t at = bit + first, shift = at & 7, n_bytes = (shift + n + 7) >> 3;
    const uint8_t* const bytes = validity + (at >> 3);
    uint64_t found = 0;
    std::memcpy(&found, bytes, static_cast<size_t>(std::min<int64_t>(n_bytes, 8)));
    found >>= shift;
    if (n_bytes > 8) found |= uint64_t{bytes[8]} << (64 - shift);
    return found;
  }
};

// Whether the cells are floats of type T with NaN for holes.
template <typename T>
bool holds(const Part& part) {
  return part.dtype == (sizeof(T) == 8 ? Dtype::f64 : Dtype::f32) &&
         part.mask == nullptr && part.validity == nullptr &&
         reinterpret_cast<uintptr_t>(part.data) % sizeof(T) == 0;
}

// Whether rows can be used where they lie: such cells side by side.
template <typename T>
bool lies_as(const Part& part) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  return holds<T>(part) && part.col_stride == size && part.row_stride % size == 0;
}

// Reads rows as float64 with NaN for missing cells, `stride` doubles apart.
void load_tile(const std::vector<Part>& parts, int64_t row, int64_t rows,
               int64_t stride, double* out);

// Reads rows of a part of one column.
void load_column(const Part& part, int64_t row, int64_t rows, double* out);

// Whether each column of a part is contiguous float64; one alone may have a bitmap.
inline bool has_plain_columns(const Part& part) {
  return part.dtype == Dtype::f64 && part.row_stride == 8 && part.col_stride % 8 == 0 &&
         part.mask == nullptr && reinterpret_cast<uintptr_t>(part.data) % 8 == 0;
}

// The cells of a column of such a part from a row on, where they lie.
inline Column column_of(const Part& part, int64_t row, int64_t j = 0) {
  return {reinterpret_cast<const double*>(part.data + j * part.col_stride) + row,
          part.validity, part.bit_offset + row};
}

// Rows of a table as float64, where they lie if they can be used there.
class TileReader {
 public:
  TileReader(const std::vector<Part>& parts, int64_t n_cols, int64_t tile_rows)
      : parts_(parts),
        n_cols_(n_cols),
        is_direct_(parts.size() == 1 && lies_as<double>(parts[0])),
        stride_(is_direct_ ? parts[0].row_stride / 8 : n_cols),
        tile_(is_direct_ ? 0 : static_cast<size_t>(tile_rows * n_cols)) {}

  // Some rows, at most as many as a tile has, `stride` doubles apart.
  const double* rows(int64_t row, int64_t n) {
    if (is_direct_)
      return reinterpret_cast<const double*>(parts_[0].data + row * parts_[0].row_stride);
    load_tile(parts_, row, n, n_cols_, tile_.data());
    return tile_.data();
  }
  // Some rows of column j, which is a part of its own.
  Column column(int64_t j, int64_t row, int64_t n) {
    const Part& part = parts_[static_cast<size_t>(j)];
    if (has_plain_columns(part)) return column_of(part, row);
    const size_t n_rows = tile_.size() / static_cast<size_t>(n_cols_);
    double* const to = tile_.data() + static_cast<size_t>(j) * n_rows;
    load_column(part, row, n, to);
    return {to};
  }
  int64_t stride() const { return stride_; }

 private:
  const std::vector<Part>& parts_;
  int64_t n_cols_;
  bool is_direct_;
  int64_t stride_;
  std::vector<double> tile_;
};

}  // namespace a1gm
