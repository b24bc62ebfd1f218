#include <cmath>
#include <cstdlib>
#include <limits>

#include "avx2.hpp"
#include "place/place.hpp"

namespace a1gm {
namespace {

template <typename T>
bool store_target(const double* x, int64_t stride, int64_t rows, const Target& to,
                  int64_t row) {
  char* const base = to.data + row * to.row_stride;
  bool fits = true;
  const auto put = [&](int64_t i, int64_t j) {
    const double value = x[i * stride + j];
    fits &= !(std::abs(value) > std::numeric_limits<T>::max());
    *reinterpret_cast<T*>(base + i * to.row_stride + j * to.col_stride) =
        static_cast<T>(value);
  };
  // The axis with the smaller stride innermost.
  if (std::abs(to.col_stride) <= std::abs(to.row_stride)) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < to.n_cols; ++j) put(i, j);
  } else {
    for (int64_t j = 0; j < to.n_cols; ++j)
      for (int64_t i = 0; i < rows; ++i) put(i, j);
  }
  return fits;
}

bool is_plain_column(const Target& to) {
  return to.data != nullptr && to.n_cols == 1 && !to.is_single && to.row_stride == 8;
}

#ifdef A1GM_AVX2
bool is_four_columns(const std::vector<Target>& targets, size_t k) {
  static const bool is_able = has_avx2();
  if (!is_able || k + 4 > targets.size()) return false;
  for (size_t c = k; c < k + 4; ++c)
    if (!is_plain_column(targets[c])) return false;
  return true;
}

// Four columns side by side: blocks of 4 x 4 cells are turned in the registers.
A1GM_TARGET void store_four(const double* x, int64_t stride, int64_t rows,
                            const Target* to, int64_t row) {
  double* out[4];
  for (int c = 0; c < 4; ++c) out[c] = reinterpret_cast<double*>(to[c].data) + row;
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    __m256d v[4];
    for (int r = 0; r < 4; ++r) v[r] = _mm256_loadu_pd(x + r * stride);
    turn(v);
    for (int c = 0; c < 4; ++c) _mm256_storeu_pd(out[c] + i, v[c]);
  }
  for (; i < rows; ++i, x += stride)
    for (int c = 0; c < 4; ++c) out[c][i] = x[c];
}
#else
bool is_four_columns(const std::vector<Target>&, size_t) { return false; }
void store_four(const double*, int64_t, int64_t, const Target*, int64_t) {}
#endif

}  // namespace

bool store_tile(const double* x, int64_t stride, int64_t rows,
                const std::vector<Target>& targets, int64_t row) {
  bool fits = true;
  for (size_t k = 0; k < targets.size();) {
    const Target& to = targets[k];
    if (is_four_columns(targets, k)) {
      store_four(x, stride, rows, &to, row);
      k += 4;
      x += 4;
      continue;
    }
    if (to.data != nullptr) {
      auto* const store = to.is_single ? store_target<float> : store_target<double>;
      fits &= store(x, stride, rows, to, row);
    }
    x += to.n_cols;
    ++k;
  }
  return fits;
}

}  // namespace a1gm
