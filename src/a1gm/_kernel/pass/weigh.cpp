#include "pass/weigh.hpp"

#include <cstring>
#include <limits>

#include "avx2.hpp"
#include "sums.hpp"

namespace a1gm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kHalf = 1 << 8, kDigits = ~uint64_t{2 * kHalf - 1};  // 44 bits
constexpr double kProportional = 0x1p-50;
const double kLift = std::ldexp(1.0, 1020);

void weigh_cell(double x, double v, int exponent, bool is_exposure, double& y,
                WeightRange& range) {
  range.bad |= !(v >= 0.0 && v < HUGE_VAL);
  y = kNan;
  if (!(v > 0.0) || x != x) return;
  const double times = is_exposure ? 1.0 : v;
  if (exponent == 0) {
    y = x * times;
  } else {
    y = scaled_product(x, times, 1.0, -exponent);
  }
  range.least = std::min(range.least, v);
  range.most = std::max(range.most, v);
  if (!(x > 0.0)) return;
  range.least_cell = std::min(range.least_cell, y);
  range.most_cell = std::max(range.most_cell, y);
}

// Ratios below the smallest float64 with all digits are lifted.
double ratio_of(double v, double largest, bool& is_lifted) {
  const double ratio = v / largest;
  is_lifted = ratio < std::numeric_limits<double>::min();
  return is_lifted ? v * kLift / largest : ratio;
}

uint64_t key_of(double v, double largest, bool exact) {
  bool is_lifted = false;
  const double ratio = ratio_of(v, largest, is_lifted);
  uint64_t bits;
  std::memcpy(&bits, &ratio, sizeof bits);
  const uint64_t digits = exact ? bits | 2 : (bits + kHalf) & kDigits;
  return digits | static_cast<uint64_t>(is_lifted);
}

#ifdef A1GM_AVX2
const bool kHasAvx2 = has_avx2();

A1GM_INLINE double lane_most(__m256d v) {
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, v);
  return std::max(std::max(lanes[0], lanes[1]), std::max(lanes[2], lanes[3]));
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
  const __m256d turned = _mm256_sub_pd(zero, least), far = _mm256_sub_pd(zero, least_cell);
  range.add({-lane_most(turned), lane_most(most), -lane_most(far), lane_most(most_cell),
             bits_of(bad) != 0});
}

A1GM_TARGET double largest_avx2(const double* y, const double* v, int64_t n,
                                const double* weights, double most, bool& alike) {
  const __m256d sign = _mm256_set1_pd(-0.0), near = _mm256_set1_pd(kProportional);
  const auto observed = [&](int64_t k) A1GM_LAMBDA {
    const bool whole = k + 4 <= n;
    const __m256i head = head_mask(n - k);
    const __m256d cell = whole ? _mm256_loadu_pd(y + k) : _mm256_maskload_pd(y + k, head);
    const __m256d own = whole ? _mm256_loadu_pd(v + k) : _mm256_maskload_pd(v + k, head);
    return _mm256_and_pd(own, _mm256_cmp_pd(cell, cell, _CMP_ORD_Q));
  };
  __m256d all = _mm256_setzero_pd();
  for (int64_t k = 0; k < n; k += 4) all = _mm256_max_pd(all, observed(k));
  const double largest = lane_most(all);
  const __m256d theirs = _mm256_set1_pd(most), ours = _mm256_set1_pd(largest);
  __m256d off = _mm256_setzero_pd();
  for (int64_t k = 0; k < n; k += 4) {
    const bool whole = k + 4 <= n;
    const __m256d one = _mm256_mul_pd(observed(k), theirs);
    const __m256d given = whole ? _mm256_loadu_pd(weights + k)
                                : _mm256_maskload_pd(weights + k, head_mask(n - k));
    const __m256d gap = _mm256_sub_pd(one, _mm256_mul_pd(given, ours));
    off = _mm256_or_pd(off, _mm256_cmp_pd(_mm256_andnot_pd(sign, gap),
                                          _mm256_mul_pd(near, one), _CMP_NLE_UQ));
  }
  alike = bits_of(off) == 0;
  return largest;
}
#endif

}  // namespace

void weigh(const double* x, const double* v, int64_t n, int exponent, bool is_exposure,
           double* y, WeightRange& range) {
#ifdef A1GM_AVX2
  if (kHasAvx2 && exponent == 0) return weigh_avx2(x, v, n, is_exposure, y, range);
#endif
  for (int64_t k = 0; k < n; ++k)
    weigh_cell(x[k], v[k], exponent, is_exposure, y[k], range);
}

double largest_weight(const double* y, const double* v, int64_t n, const double* weights,
                      double most, bool& alike) {
#ifdef A1GM_AVX2
  if (kHasAvx2) return largest_avx2(y, v, n, weights, most, alike);
#endif
  double largest = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (y[k] == y[k]) largest = std::max(largest, v[k]);
  alike = true;
  for (int64_t k = 0; k < n; ++k) {
    const double one = y[k] == y[k] ? v[k] * most : 0.0;
    alike &= std::abs(one - weights[k] * largest) <= kProportional * one;
  }
  return largest;
}

double shape_of(const double* y, const double* v, int64_t n, bool exact, uint64_t* key) {
  double largest = 0.0;
  for (int64_t k = 0; k < n; ++k)
    if (y[k] == y[k]) largest = std::max(largest, v[k]);
  for (int64_t k = 0; k < n; ++k)
    key[k] = y[k] == y[k] ? key_of(v[k], largest, exact) : 0;
  return largest;
}

bool are_alike(const double* y, const double* v, int64_t n, double largest,
               const double* weights, double most) {
  bool alike = true;
  for (int64_t k = 0; k < n; ++k) {
    if (y[k] != y[k]) continue;
    bool one = false, other = false;
    const double own = ratio_of(v[k], largest, one);
    alike &= std::abs(own - ratio_of(weights[k], most, other)) <= kProportional * own;
    alike &= one == other;
  }
  return alike;
}

}  // namespace a1gm
