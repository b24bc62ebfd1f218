// Columns of float64 that lie apart, as column frames keep them, gathered into rows.
#include <algorithm>
#include <limits>

#include "avx2.hpp"
#include "read/table_part.hpp"

namespace a1gm {
#ifdef A1GM_AVX2
namespace {

constexpr int64_t kAhead = 64;
constexpr int64_t kWord = 64;  // rows whose validity bits make one word

const bool kHasAvx2 = has_avx2();

// Four columns side by side: blocks of 4 x 4 cells are turned in the registers.
A1GM_TARGET void load_four(const Part* parts, int64_t row, int64_t rows, int64_t stride,
                           double* out) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const __m256d holes = _mm256_set1_pd(nan);
  const double* x[4];
  uint64_t valid[4];
  for (int c = 0; c < 4; ++c) {
    const Column column = column_of(parts[c], row);
    x[c] = column.cells;
    valid[c] = column.word(0, rows);
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

bool load_columns(const std::vector<Part>& parts, int64_t row, int64_t rows,
                  int64_t stride, double* out) {
  const size_t n = parts.size();
  if (!kHasAvx2 || n < 4 || rows > kWord) return false;
  for (const Part& part : parts)
    if (!is_plain_column(part)) return false;
  for (size_t j = 0; j + 4 <= n; j += 4)
    load_four(&parts[j], row, rows, stride, out + j);
  // The last few columns with some that were loaded before: still one step of four.
  if (n % 4) load_four(&parts[n - 4], row, rows, stride, out + (n - 4));
  return true;
}
#else
bool load_columns(const std::vector<Part>&, int64_t, int64_t, int64_t, double*) {
  return false;
}
#endif

}  // namespace a1gm
