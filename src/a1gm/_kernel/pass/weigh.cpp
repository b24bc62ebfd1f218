#include "pass/weigh.hpp"

#include <cstring>
#include <limits>

#include "avx2.hpp"

namespace a1gm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kHalf = 1 << 8, kDigits = ~uint64_t{2 * kHalf - 1};  // 44 bits
constexpr double kProportional = 0x1p-50;

void weigh_cell(double x, double v, bool is_exposure, double& y, WeightRange& range) {
  range.bad |= !(v >= 0.0 && v < HUGE_VAL);
  y = kNan;
  if (!(v > 0.0) || x != x) return;
  y = is_exposure ? x : x * v;
  range.least = std::min(range.least, v);
  range.most = std::max(range.most, v);
  if (!(x > 0.0)) return;
  range.least_cell = std::min(range.least_cell, y);
  range.most_cell = std::max(range.most_cell, y);
}

// The bits of a ratio.
uint64_t key_of(double v, double largest, bool exact) {
  const double ratio = v / largest;
  uint64_t bits;
  std::memcpy(&bits, &ratio, sizeof bits);
  return exact ? bits | 1 : (bits + kHalf) & kDigits;
}

// How many observed cells have weights v that are not `largest` / `most` times the others.
// As a sum: one vector loop.
inline int64_t count_off(const double* y, const double* v, int64_t n, const double* weights,
                         double most, double largest) {
  int64_t n_off = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double one = y[k] == y[k] ? v[k] * most : 0.0;
    n_off += std::abs(one - weights[k] * largest) <= kProportional * one ? 0 : 1;
  }
  return n_off;
}

#ifdef A1GM_AVX2
A1GM_TARGET int64_t count_off_avx2(const double* y, const double* v, int64_t n,
                                   const double* weights, double most, double largest) {
  return count_off(y, v, n, weights, most, largest);
}

const bool kHasAvx2 = has_avx2();

A1GM_INLINE double lane_max(__m256d v) {
  return -lane_min(_mm256_sub_pd(_mm256_setzero_pd(), v));
}

A1GM_TARGET void weigh_avx2(const double* x, const double* v, int64_t n, bool is_exposure,
                            double* y, WeightRange& range) {
  const __m256d zero = _mm256_setzero_pd(), infinity = _mm256_set1_pd(HUGE_VAL);
  const __m256d nan = _mm256_set1_pd(kNan);
  __m256d least = infinity, most = zero, least_cell = infinity, most_cell = zero;
  __m256d bad = zero;
  for (int64_t k = 0; k < n; k += 4) {
    const bool whole = k + 4 <= n;
    const __m256i head = head_mask(n - k);
    const __m256d a = whole ? _mm256_loadu_pd(x + k) : _mm256_maskload_pd(x + k, head);
    const __m256d p = whole ? _mm256_loadu_pd(v + k) : _mm256_maskload_pd(v + k, head);
    const __m256d used = _mm256_cmp_pd(p, zero, _CMP_GT_OQ);
    const __m256d product = is_exposure ? a : _mm256_mul_pd(a, p);
    const __m256d cell = _mm256_blendv_pd(nan, product, used);
    const __m256d seen = _mm256_cmp_pd(cell, cell, _CMP_ORD_Q);
    const __m256d positive = _mm256_and_pd(used, _mm256_cmp_pd(a, zero, _CMP_GT_OQ));
    bad = _mm256_or_pd(bad, _mm256_or_pd(_mm256_cmp_pd(p, zero, _CMP_NGE_UQ),
                                         _mm256_cmp_pd(p, infinity, _CMP_EQ_OQ)));
    least = _mm256_min_pd(least, _mm256_blendv_pd(infinity, p, seen));
    most = _mm256_max_pd(most, _mm256_and_pd(p, seen));
    least_cell = _mm256_min_pd(least_cell, _mm256_blendv_pd(infinity, product, positive));
    most_cell = _mm256_max_pd(most_cell, _mm256_and_pd(product, positive));
    _mm256_storeu_pd(y + k, cell);
  }
  range.add({lane_min(least), lane_max(most), lane_min(least_cell), lane_max(most_cell),
             bits_of(bad) != 0});
}
#endif

}  // namespace

void weigh(const double* x, const double* v, int64_t n, bool is_exposure, double* y,
           WeightRange& range) {
#ifdef A1GM_AVX2
  if (kHasAvx2) return weigh_avx2(x, v, n, is_exposure, y, range);
#endif
  for (int64_t k = 0; k < n; ++k) weigh_cell(x[k], v[k], is_exposure, y[k], range);
}

bool are_proportional(const double* y, const double* v, int64_t n, const double* weights,
                      int64_t at) {
  const double most = weights[at], largest = y[at] == y[at] ? v[at] : 0.0;
  if (!(most > 0.0 && largest > 0.0)) return false;
#ifdef A1GM_AVX2
  if (kHasAvx2) return count_off_avx2(y, v, n, weights, most, largest) == 0;
#endif
  return count_off(y, v, n, weights, most, largest) == 0;
}

double shape_of(const double* y, const double* v, int64_t n, bool exact, uint64_t* key) {
  double largest = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (y[k] == y[k]) largest = std::max(largest, v[k]);
  for (int64_t k = 0; k < n; ++k)
    key[k] = y[k] == y[k] ? key_of(v[k], largest, exact) : 0;
  return largest;
}

}  // namespace a1gm
