#include "scale/weighted_rows.hpp"

#include <algorithm>

#include "avx2.hpp"
#include "bit_mask.hpp"

namespace a1gm {
namespace {

// Calls f with row, column and weight of every observed cell.
template <typename F>
void each_cell(const WeightedRows& rows, F&& f) {
  for (int64_t i = 0; i < kRowsAtOnce; ++i)
    for (int64_t w = 0; w * 64 < rows.n_cols; ++w)
      for (uint64_t bits = rows.bits[i][w]; bits != 0; bits &= bits - 1) {
        const int64_t j = w * 64 + lowest_bit(bits);
        f(i, j, rows.weights[i][j]);
      }
}

void reach_plain(const WeightedRows& rows, const double* x, double* sums) {
  std::fill_n(sums, kRowsAtOnce, 0.0);
  each_cell(rows, [=](int64_t i, int64_t j, double v) { sums[i] += v * x[j]; });
}

void collect_plain(const WeightedRows& rows, const double* factors, double* sums) {
  each_cell(rows, [=](int64_t i, int64_t j, double v) { sums[j] += factors[i] * v; });
}

void collect_squares_plain(const WeightedRows& rows, const double* factors,
                           const double* a, const double* b, double* squares,
                           double* sums) {
  std::fill_n(squares, kRowsAtOnce, 0.0);
  each_cell(rows, [=](int64_t i, int64_t j, double v) {
    const double own = factors[i] * v;
    sums[j] += own;
    squares[i] += (own * a[j]) * (own * b[j]);
  });
}

#ifdef A1GM_AVX2
constexpr int64_t kShort = 64;

A1GM_INLINE __m256d load(const double* v, uint64_t bits) {
  const auto* const lanes = reinterpret_cast<const double*>(kLanes.mask[bits & 15]);
  return _mm256_and_pd(_mm256_loadu_pd(v), _mm256_load_pd(lanes));
}

// Calls f with four weights of each row, 0 where they are not observed or were met
// before, and the column of the first. The last four end with the row.
template <typename F>
A1GM_INLINE void each_four(const WeightedRows& rows, F&& f) {
  const double *a = rows.weights[0], *b = rows.weights[1];
  const double *c = rows.weights[2], *d = rows.weights[3];
  for (int64_t w = 0; w * 64 < rows.n_cols; ++w) {
    uint64_t in_a = rows.bits[0][w], in_b = rows.bits[1][w];
    uint64_t in_c = rows.bits[2][w], in_d = rows.bits[3][w];
    const int64_t end = std::min(rows.n_cols, w * 64 + 64);
    const auto meet = [&](int64_t j) A1GM_LAMBDA {
      const __m256d v[kRowsAtOnce] = {load(a + j, in_a), load(b + j, in_b),
                                      load(c + j, in_c), load(d + j, in_d)};
      f(j, v);
    };
    int64_t j = w * 64;
    for (; j + 4 <= end; j += 4) {
      meet(j);
      in_a >>= 4, in_b >>= 4, in_c >>= 4, in_d >>= 4;
    }
    const int64_t past = j + 4 - end;
    if (past == 4) continue;
    in_a <<= past, in_b <<= past, in_c <<= past, in_d <<= past;
    meet(end - 4);
  }
}

// The sum of a long row in four parts.
A1GM_INLINE __m256d reach_of(const double* v, const uint64_t* bits, int64_t n_cols,
                             const double* x) {
  __m256d even = _mm256_setzero_pd(), odd = even;
  const auto add = [v, x](int64_t j, uint64_t own, __m256d& sum) A1GM_LAMBDA {
    sum = _mm256_fmadd_pd(load(v + j, own), _mm256_loadu_pd(x + j), sum);
  };
  for (int64_t w = 0; w * 64 < n_cols; ++w) {
    uint64_t left = bits[w];
    const int64_t end = std::min(n_cols, w * 64 + 64);
    int64_t j = w * 64;
    for (; j + 8 <= end; j += 8, left >>= 8) {
      add(j, left, even);
      add(j + 4, left >> 4, odd);
    }
    for (; j + 4 <= end; j += 4, left >>= 4) add(j, left, even);
    if (j < end) add(end - 4, left << (j + 4 - end), odd);
  }
  return _mm256_add_pd(even, odd);
}

// Long rows one after another, as they lie: memory is not read ahead for several.
A1GM_TARGET void reach_avx2(const WeightedRows& rows, const double* x, double* sums) {
  if (rows.n_cols > kShort) {
    __m256d found[kRowsAtOnce];
    for (int64_t i = 0; i < kRowsAtOnce; ++i)
      found[i] = reach_of(rows.weights[i], rows.bits[i], rows.n_cols, x);
    _mm256_storeu_pd(sums, four_sums(found[0], found[1], found[2], found[3]));
    return;
  }
  const __m256d zero = _mm256_setzero_pd();
  __m256d a = zero, b = zero, c = zero, d = zero;
  each_four(rows, [&](int64_t j, const __m256d* v) A1GM_LAMBDA {
    const __m256d own = _mm256_loadu_pd(x + j);
    a = _mm256_fmadd_pd(v[0], own, a);
    b = _mm256_fmadd_pd(v[1], own, b);
    c = _mm256_fmadd_pd(v[2], own, c);
    d = _mm256_fmadd_pd(v[3], own, d);
  });
  _mm256_storeu_pd(sums, four_sums(a, b, c, d));
}

A1GM_TARGET void collect_avx2(const WeightedRows& rows, const double* factors,
                              double* sums) {
  const __m256d a = _mm256_set1_pd(factors[0]), b = _mm256_set1_pd(factors[1]);
  const __m256d c = _mm256_set1_pd(factors[2]), d = _mm256_set1_pd(factors[3]);
  each_four(rows, [&](int64_t j, const __m256d* v) A1GM_LAMBDA {
    const __m256d first = _mm256_fmadd_pd(a, v[0], _mm256_loadu_pd(sums + j));
    const __m256d second = _mm256_fmadd_pd(c, v[2], _mm256_mul_pd(b, v[1]));
    _mm256_storeu_pd(sums + j,
                     _mm256_add_pd(first, _mm256_fmadd_pd(d, v[3], second)));
  });
}

A1GM_TARGET void collect_squares_avx2(const WeightedRows& rows, const double* factors,
                                      const double* a, const double* b,
                                      double* squares, double* sums) {
  __m256d found[kRowsAtOnce], factor[kRowsAtOnce];
  for (int64_t i = 0; i < kRowsAtOnce; ++i) {
    found[i] = _mm256_setzero_pd();
    factor[i] = _mm256_set1_pd(factors[i]);
  }
  each_four(rows, [&](int64_t j, const __m256d* v) A1GM_LAMBDA {
    const __m256d of_a = _mm256_loadu_pd(a + j), of_b = _mm256_loadu_pd(b + j);
    __m256d sum = _mm256_loadu_pd(sums + j);
    for (int64_t i = 0; i < kRowsAtOnce; ++i) {
      const __m256d own = _mm256_mul_pd(factor[i], v[i]);
      sum = _mm256_add_pd(sum, own);
      found[i] = _mm256_fmadd_pd(_mm256_mul_pd(own, of_a), _mm256_mul_pd(own, of_b),
                                 found[i]);
    }
    _mm256_storeu_pd(sums + j, sum);
  });
  _mm256_storeu_pd(squares, four_sums(found[0], found[1], found[2], found[3]));
}
#endif

}  // namespace

RowLoops choose_row_loops(int64_t n_cols) {
#ifdef A1GM_AVX2
  if (has_avx2() && n_cols >= 4) return {reach_avx2, collect_avx2, collect_squares_avx2};
#endif
  return {reach_plain, collect_plain, collect_squares_plain};
}

}  // namespace a1gm
