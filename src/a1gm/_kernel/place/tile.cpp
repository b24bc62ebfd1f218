// The loops over a tile: for any processor, and in vectors of four.
#include "avx2.hpp"
#include "place/tile.hpp"

namespace a1gm {
namespace plain {

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

bool fill_column(const Column& x, int64_t rows, double h, const double* w, double* out,
                 bool) {
  bool has_hole = false;
  for (int64_t i = 0; i < rows; ++i) {
    const double cell = x[i];  // out may be x
    has_hole |= cell != cell;
    out[i] = (cell == cell ? cell : w[i] * h) + 0.0;
  }
  return has_hole;
}

void fill_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
               const double* h, const double* w, double* out, int64_t out_stride,
               double* holes) {
  for (int64_t i = 0; i < rows; ++i, x += stride, out += out_stride) {
    for (int64_t j = 0; j < cols; ++j)
      if (x[j] != x[j]) holes[j] = x[j];
    fill_column({x}, cols, w[i], h, out, false);
  }
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

}  // namespace plain

#ifdef A1GM_AVX2
namespace {

A1GM_INLINE __m256d all(double value) { return _mm256_set1_pd(value); }

constexpr int64_t kAhead = 64;  // doubles by which columns are fetched ahead

constexpr int64_t kWord = 64;  // cells whose validity bits make one word

// Four cells; NaN, whose bits are all 1, where a bit of `valid` is 0.
A1GM_INLINE __m256d with_holes(__m256d a, uint64_t valid) {
  return _mm256_or_pd(
      a, _mm256_load_pd(reinterpret_cast<const double*>(kLanes.mask[~valid & 15])));
}

// Calls f(first, four cells) for n cells. Past the last one it reads 0.
template <typename F>
A1GM_INLINE void by_fours(const double* x, int64_t n, F&& f) {
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) f(j, _mm256_loadu_pd(x + j));
  if (j < n) f(j, _mm256_maskload_pd(x + j, head_mask(n - j)));
}

// ----------------------------------------------------------------------- the margins
// The sum of some cells, and of their h.
struct Margins {
  __m256d cells, reach;
};

A1GM_INLINE void measure_four(__m256d a, __m256d h, Margins& s, __m256d& smallest) {
  const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
  const __m256d value = _mm256_and_pd(a, seen);
  s.cells = _mm256_add_pd(s.cells, value);
  s.reach = _mm256_add_pd(s.reach, _mm256_and_pd(h, seen));
  smallest = _mm256_min_pd(smallest, value);
}

A1GM_TARGET double measure_rows(const double* x, int64_t stride, int64_t rows,
                                int64_t cols, const double* h, double* sums,
                                double* reach) {
  __m256d smallest = _mm256_setzero_pd();
  const int64_t body = cols & ~int64_t{7};
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    const __m256d zero = _mm256_setzero_pd();
    Margins even{zero, zero}, odd{zero, zero};
    for (int64_t j = 0; j < body; j += 8) {
      measure_four(_mm256_loadu_pd(x + j), _mm256_loadu_pd(h + j), even, smallest);
      measure_four(_mm256_loadu_pd(x + j + 4), _mm256_loadu_pd(h + j + 4), odd, smallest);
    }
    by_fours(x + body, cols - body, [&](int64_t j, __m256d a) A1GM_LAMBDA {
      measure_four(a, _mm256_loadu_pd(h + body + j), even, smallest);
    });
    sums[i] += lane_sum(_mm256_add_pd(even.cells, odd.cells));
    reach[i] += lane_sum(_mm256_add_pd(even.reach, odd.reach));
  }
  return lane_min(smallest);
}

// Rows of C columns at once: memory answers several requests in the time of one.
template <int C>
A1GM_TARGET double measure_some(const Column* x, int64_t rows, const double* h,
                                double* sums, double* reach) {
  const bool has_nulls =
      std::any_of(x, x + C, [](const Column& one) { return one.validity != nullptr; });
  __m256d smallest = _mm256_setzero_pd();
  uint64_t valid[C] = {};
  for (int64_t i = 0; i < rows; i += 4) {
    const bool is_whole = i + 4 <= rows;
    const __m256i head = head_mask(rows - i);
    if (has_nulls && i % kWord == 0)
      for (int c = 0; c < C; ++c) valid[c] = x[c].word(i, std::min(kWord, rows - i));
    Margins s{load(sums + i), load(reach + i)};
    for (int c = 0; c < C; ++c) {
      const double* const p = x[c].cells + i;
      _mm_prefetch(reinterpret_cast<const char*>(p + kAhead), _MM_HINT_T0);
      __m256d a = is_whole ? load(p) : load(p, head);
      if (has_nulls) a = with_holes(a, valid[c] >> i % kWord);
      measure_four(a, all(h[c]), s, smallest);
    }
    _mm256_storeu_pd(sums + i, s.cells);
    _mm256_storeu_pd(reach + i, s.reach);
  }
  return lane_min(smallest);
}

double measure_columns(const Column* x, int64_t rows, int64_t cols, const double* h,
                       double* sums, double* reach) {
  double smallest = 0.0;
  int64_t j = 0;
  for (; j + 4 <= cols; j += 4)
    smallest = std::min(smallest, measure_some<4>(x + j, rows, h + j, sums, reach));
  for (; j < cols; ++j)
    smallest = std::min(smallest, measure_some<1>(x + j, rows, h + j, sums, reach));
  return smallest;
}

// ----------------------------------------------------------------------- the filling
// Adds to `holes` where a cell is missing.
A1GM_INLINE __m256d fill_four(__m256d a, __m256d w, __m256d h, __m256d& holes) {
  const __m256d missing = _mm256_cmp_pd(a, a, _CMP_UNORD_Q);
  holes = _mm256_or_pd(holes, missing);
  const __m256d value = _mm256_blendv_pd(a, _mm256_mul_pd(w, h), missing);
  return _mm256_add_pd(value, _mm256_setzero_pd());
}

A1GM_INLINE void store(double* out, int64_t at, int64_t n, __m256d value) {
  if (at + 4 <= n)
    _mm256_storeu_pd(out + at, value);
  else
    _mm256_maskstore_pd(out + at, head_mask(n - at), value);
}

A1GM_TARGET bool fill_column(const Column& x, int64_t rows, double h, const double* w,
                             double* out, bool stream) {
  const __m256d share = all(h);
  __m256d holes = _mm256_setzero_pd();
  const bool has_nulls = x.validity != nullptr;
  const auto fill = [&](int64_t begin, int64_t n) A1GM_LAMBDA {  // at most a word
    const uint64_t past = n < kWord ? ~uint64_t{0} << n : 0;  // no holes there
    const uint64_t valid = x.word(begin, n) | past;
    by_fours(x.cells + begin, n, [&](int64_t i, __m256d a) A1GM_LAMBDA {
      if (has_nulls) a = with_holes(a, valid >> i);
      store(out + begin, i, n,
            fill_four(a, _mm256_loadu_pd(w + begin + i), share, holes));
    });
  };
  int64_t i = 0;
  if (stream) {  // a line that is stored as usual is read first
    i = std::min<int64_t>(rows, -(reinterpret_cast<intptr_t>(out) / 8) & 3);
    fill(0, i);
    for (; i + kWord <= rows; i += kWord) {
      const uint64_t valid = x.word(i, kWord);
      for (int64_t k = 0; k < kWord; k += 4) {
        __m256d a = load(x.cells + i + k);
        if (has_nulls) a = with_holes(a, valid >> k);
        _mm256_stream_pd(out + i + k, fill_four(a, load(w + i + k), share, holes));
      }
    }
    _mm_sfence();
  }
  for (; i < rows; i += kWord) fill(i, std::min(kWord, rows - i));
  return _mm256_movemask_pd(holes) != 0;
}

A1GM_TARGET void fill_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
                           const double* h, const double* w, double* out,
                           int64_t out_stride, double* holes) {
  for (int64_t i = 0; i < rows; ++i, x += stride, out += out_stride) {
    const __m256d scale = all(w[i]);
    by_fours(x, cols, [&](int64_t j, __m256d a) A1GM_LAMBDA {
      __m256d so_far = load(holes + j);
      store(out, j, cols, fill_four(a, scale, load(h + j), so_far));
      _mm256_storeu_pd(holes + j, so_far);
    });
  }
}

// ------------------------------------------------------------------- the divergence
A1GM_INLINE __m256d either(__m256d mask, __m256d yes, __m256d no) {
  return _mm256_blendv_pd(no, yes, mask);
}

// A number's digits, as a number from 1 to 2.
A1GM_INLINE __m256d mantissa(__m256i bits) {
  const __m256i digits =
      _mm256_and_si256(bits, _mm256_set1_epi64x(0x000fffffffffffffLL));
  return _mm256_castsi256_pd(
      _mm256_or_si256(digits, _mm256_set1_epi64x(0x3ff0000000000000LL)));
}

// `divergence_of_cell` for four pairs of positive normal numbers. The power of two in
// x / f is taken apart first, so the ratio may be beyond the range of float64.
A1GM_INLINE __m256d diverge_four(__m256d x, __m256d f) {
  const __m256i x_bits = _mm256_castpd_si256(x), f_bits = _mm256_castpd_si256(f);
  __m256d mx = mantissa(x_bits);
  const __m256d mf = mantissa(f_bits), root = all(1.4142135623730951);
  const __m256d above = _mm256_cmp_pd(mx, _mm256_mul_pd(mf, root), _CMP_GT_OQ);
  const __m256d below = _mm256_cmp_pd(_mm256_mul_pd(mx, root), mf, _CMP_LT_OQ);
  mx = _mm256_mul_pd(mx, either(above, all(0.5), either(below, all(2.0), all(1.0))));
  // Small integers as doubles: added to the last digits of a large one.
  const __m256i exponent =
      _mm256_sub_epi64(_mm256_srli_epi64(x_bits, 52), _mm256_srli_epi64(f_bits, 52));
  const __m256d large = all(6755399441055744.0);  // 1.5 * 2^52
  __m256d k = _mm256_sub_pd(
      _mm256_castsi256_pd(_mm256_add_epi64(exponent, _mm256_castpd_si256(large))), large);
  k = _mm256_add_pd(k, _mm256_and_pd(above, all(1.0)));
  k = _mm256_sub_pd(k, _mm256_and_pd(below, all(1.0)));

  const __m256d s = _mm256_div_pd(_mm256_sub_pd(mx, mf), _mm256_add_pd(mx, mf));
  const __m256d z = _mm256_mul_pd(s, s);
  __m256d tail = all(kTail[kTailTerms - 1]);
  for (int t = kTailTerms - 2; t >= 0; --t)
    tail = _mm256_fmadd_pd(tail, z, all(kTail[t]));
  tail = _mm256_mul_pd(_mm256_mul_pd(z, s), tail);  // atanh(s) - s

  const __m256d d = _mm256_sub_pd(x, f);
  const __m256d near = _mm256_fmadd_pd(s, d, _mm256_mul_pd(_mm256_add_pd(x, x), tail));
  // ln 2 in two parts: the first times any exponent is exact.
  const __m256d head = _mm256_mul_pd(k, all(0x1.62e42fee00000p-1));
  const __m256d rest = _mm256_fmadd_pd(all(2.0), _mm256_add_pd(s, tail),
                                       _mm256_mul_pd(k, all(0x1.a39ef35793c76p-33)));
  const __m256d far = _mm256_fmsub_pd(x, _mm256_add_pd(head, rest), d);
  const __m256d is_near = _mm256_cmp_pd(k, _mm256_setzero_pd(), _CMP_EQ_OQ);
  return either(is_near, near, _mm256_max_pd(far, _mm256_setzero_pd()));
}

// Four cells: 0 for the missing ones, f for the zeros.
A1GM_INLINE __m256d diverge_cells(__m256d x, __m256d w, __m256d h) {
  const __m256d zero = _mm256_setzero_pd(), f = _mm256_mul_pd(w, h);
  const __m256d above = _mm256_cmp_pd(x, zero, _CMP_GT_OQ);
  const __m256d fits = _mm256_and_pd(
      _mm256_cmp_pd(_mm256_min_pd(x, f), all(kLeast), _CMP_GE_OQ),
      _mm256_cmp_pd(f, all(kMost), _CMP_LE_OQ));
  if (bits_of(_mm256_andnot_pd(fits, above)) != 0) {  // digits are lost: one by one
    alignas(32) double cells[4], scale[4], share[4];
    _mm256_store_pd(cells, x);
    _mm256_store_pd(scale, w);
    _mm256_store_pd(share, h);
    for (int k = 0; k < 4; ++k)
      cells[k] =
          cells[k] == cells[k] ? divergence_of_cell(cells[k], scale[k], share[k]) : 0.0;
    return _mm256_load_pd(cells);
  }
  const __m256d found =
      diverge_four(either(above, x, all(1.0)), either(above, f, all(1.0)));
  return _mm256_or_pd(found, _mm256_and_pd(_mm256_cmp_pd(x, zero, _CMP_EQ_OQ), f));
}

// Four cells: 0 for the missing ones, and where the fitted value is not positive.
A1GM_INLINE __m256d scatter_cells(__m256d x, __m256d w, __m256d h) {
  const __m256d f = _mm256_mul_pd(w, h), d = _mm256_sub_pd(x, f);
  const __m256d counts = _mm256_and_pd(_mm256_cmp_pd(x, x, _CMP_ORD_Q),
                                       _mm256_cmp_pd(f, _mm256_setzero_pd(), _CMP_GT_OQ));
  return _mm256_and_pd(_mm256_mul_pd(d, _mm256_div_pd(d, f)), counts);
}

// The sum of what one of these makes of the cells.
template <bool kDiverges>
A1GM_TARGET double sum_lines(Column x, int64_t stride, int64_t lines, int64_t n,
                             const double* of_line, const double* of_cell) {
  const bool has_nulls = x.validity != nullptr;
  const int64_t step = has_nulls ? kWord : n;
  __m256d sum = _mm256_setzero_pd();
  for (int64_t i = 0; i < lines; ++i, x.cells += stride) {
    const __m256d scale = all(of_line[i]);
    __m256d of_this = _mm256_setzero_pd();
    for (int64_t begin = 0; begin < n; begin += step) {
      const int64_t some = std::min(step, n - begin);
      const uint64_t valid = x.word(begin, some);
      // Past the last cell are a zero and the number 0, which add nothing.
      by_fours(x.cells + begin, some, [&](int64_t j, __m256d a) A1GM_LAMBDA {
        if (has_nulls) a = with_holes(a, valid >> j);
        const __m256d own = load(of_cell + begin + j);
        of_this = _mm256_add_pd(of_this, kDiverges ? diverge_cells(a, scale, own)
                                                   : scatter_cells(a, scale, own));
      });
    }
    sum = _mm256_add_pd(sum, of_this);
  }
  return lane_sum(sum);
}

}  // namespace
#endif

PlaceIsa choose_place_isa() {
#ifdef A1GM_AVX2
  if (has_avx2())
    return {measure_rows, measure_columns, fill_rows,
            fill_column,  sum_lines<true>, sum_lines<false>};
#endif
  return {plain::measure_rows,
          plain::measure_columns,
          plain::fill_rows,
          plain::fill_column,
          plain::sum_lines<divergence_of_cell>,
          plain::sum_lines<scatter_of_cell>};
}

}  // namespace a1gm
