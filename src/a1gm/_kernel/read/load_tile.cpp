#include "read/table_part.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "avx2.hpp"

namespace a1gm {
#ifdef A1GM_AVX2
namespace {

constexpr int64_t kAhead = 64;
constexpr int64_t kWord = 64;  // rows whose validity bits make one word

const bool kHasAvx2 = has_avx2();

// Four columns side by side: blocks of 4 x 4 cells are turned in the registers.
A1GM_TARGET void load_four(const Column* columns, int64_t rows, int64_t stride,
                           double* out) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const __m256d holes = _mm256_set1_pd(nan);
  const double* x[4];
  uint64_t valid[4];
  for (int c = 0; c < 4; ++c) {
    x[c] = columns[c].cells;
    valid[c] = columns[c].word(0, rows);
  }
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, out += 4 * stride) {
    __m256d v[4];
    for (int c = 0; c < 4; ++c) {
      _mm_prefetch(reinterpret_cast<const char*>(x[c] + i + kAhead), _MM_HINT_T0);
      const __m256d lanes = _mm256_load_pd(
          reinterpret_cast<const double*>(kLanes.mask[valid[c] >> i & 15]));
      v[c] = _mm256_blendv_pd(holes, _mm256_loadu_pd(x[c] + i), lanes);
    }
    turn(v);
    for (int r = 0; r < 4; ++r) _mm256_storeu_pd(out + r * stride, v[r]);
  }
  for (; i < rows; ++i, out += stride)
    for (int c = 0; c < 4; ++c) out[c] = valid[c] >> i & 1 ? x[c][i] : nan;
}

}  // namespace

// As load_tile, for contiguous columns of float64, parts of their own or those of one
// matrix, and at most 64 rows. False when the table is not such a one, or the processor
// has no AVX2; then nothing was done.
bool load_columns(const std::vector<Part>& parts, int64_t row, int64_t rows,
                  int64_t stride, double* out) {
  const bool is_matrix = parts.size() == 1;
  const int64_t n = is_matrix ? parts[0].n_cols : static_cast<int64_t>(parts.size());
  if (!kHasAvx2 || n < 4 || rows > kWord) return false;
  for (const Part& part : parts)
    if (!has_plain_columns(part) || (part.n_cols > 1 && !is_matrix)) return false;
  for (int64_t j = 0; j < n; j += 4) {
    // The last few columns with some that were loaded before: still one step of four.
    const int64_t first = std::min(j, n - 4);
    Column columns[4];
    for (int64_t c = 0; c < 4; ++c)
      columns[c] = is_matrix ? column_of(parts[0], row, first + c)
                             : column_of(parts[static_cast<size_t>(first + c)], row);
    load_four(columns, rows, stride, out + first);
  }
  return true;
}
#else
bool load_columns(const std::vector<Part>&, int64_t, int64_t, int64_t, double*) {
  return false;
}
#endif

namespace {

// The number at any address, also one that is no multiple of its size.
template <typename T>
double number_at(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return static_cast<double>(value);
}

template <typename T>
void load_part(const Part& part, int64_t row, int64_t rows, int64_t stride,
               double* out) {
  const char* base = part.data + row * part.row_stride;
  // Cells side by side are converted in vectors.
  if (part.col_stride == static_cast<int64_t>(sizeof(T))) {
    for (int64_t i = 0; i < rows; ++i) {
      const char* const p = base + i * part.row_stride;
      double* const o = out + i * stride;
      if (std::is_same_v<T, double>) {
        std::memcpy(o, p, static_cast<size_t>(part.n_cols) * sizeof(T));
        continue;
      }
      for (int64_t j = 0; j < part.n_cols; ++j)
        o[j] = number_at<T>(p + j * static_cast<int64_t>(sizeof(T)));
    }
    return;
  }
  // Walk the axis with the smaller stride innermost: Fortran order stays fast.
  if (std::abs(part.col_stride) <= std::abs(part.row_stride)) {
    for (int64_t i = 0; i < rows; ++i) {
      const char* p = base + i * part.row_stride;
      double* o = out + i * stride;
      for (int64_t j = 0; j < part.n_cols; ++j, p += part.col_stride)
        o[j] = number_at<T>(p);
    }
  } else {
    for (int64_t j = 0; j < part.n_cols; ++j) {
      const char* p = base + j * part.col_stride;
      for (int64_t i = 0; i < rows; ++i, p += part.row_stride)
        out[i * stride + j] = number_at<T>(p);
    }
  }
}

// One column with a validity bitmap. Without branches: holes at random places would
// be mispredicted, which costs three times as much as the rest of the pass.
template <typename T>
void load_nullable(const Part& part, int64_t row, int64_t rows, int64_t stride,
                   double* out) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  uint64_t hole;
  std::memcpy(&hole, &nan, sizeof hole);
  const char* p = part.data + row * part.row_stride;
  for (int64_t i = 0; i < rows; ++i, p += part.row_stride) {
    const int64_t bit = part.bit_offset + row + i;
    const uint64_t keep =
        uint64_t{0} - (part.validity[bit >> 3] >> (bit & 7) & uint64_t{1});
    const double value = number_at<T>(p);
    uint64_t cell;
    std::memcpy(&cell, &value, sizeof cell);
    cell = (cell & keep) | (hole & ~keep);
    std::memcpy(out + i * stride, &cell, sizeof cell);
  }
}

template <typename T>
void load_any(const Part& part, int64_t row, int64_t rows, int64_t stride,
              double* out) {
  if (part.validity != nullptr)
    load_nullable<T>(part, row, rows, stride, out);
  else
    load_part<T>(part, row, rows, stride, out);
}

void blank_missing(const Part& part, int64_t row, int64_t rows, int64_t stride,
                   double* out) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int64_t i = 0; i < rows; ++i) {
    const uint8_t* m = part.mask + (row + i) * part.mask_row_stride;
    for (int64_t j = 0; j < part.n_cols; ++j)
      if (m[j * part.mask_col_stride]) out[i * stride + j] = nan;
  }
}

void load_one(const Part& part, int64_t row, int64_t rows, int64_t stride, double* out) {
  switch (part.dtype) {
    case Dtype::f64: load_any<double>(part, row, rows, stride, out); break;
    case Dtype::f32: load_any<float>(part, row, rows, stride, out); break;
    case Dtype::i64: load_any<int64_t>(part, row, rows, stride, out); break;
    case Dtype::i32: load_any<int32_t>(part, row, rows, stride, out); break;
    case Dtype::i16: load_any<int16_t>(part, row, rows, stride, out); break;
    case Dtype::i8: load_any<int8_t>(part, row, rows, stride, out); break;
    case Dtype::u64: load_any<uint64_t>(part, row, rows, stride, out); break;
    case Dtype::u32: load_any<uint32_t>(part, row, rows, stride, out); break;
    case Dtype::u16: load_any<uint16_t>(part, row, rows, stride, out); break;
    case Dtype::u8: load_any<uint8_t>(part, row, rows, stride, out); break;
  }
  if (part.mask != nullptr) blank_missing(part, row, rows, stride, out);
}

}  // namespace

void load_tile(const std::vector<Part>& parts, int64_t row, int64_t rows,
               int64_t stride, double* out) {
  if (load_columns(parts, row, rows, stride, out)) return;
  for (const Part& part : parts) {
    load_one(part, row, rows, stride, out);
    out += part.n_cols;
  }
}

void load_column(const Part& part, int64_t row, int64_t rows, double* out) {
  load_one(part, row, rows, 1, out);
}

}  // namespace a1gm
