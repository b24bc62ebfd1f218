// The loops over a tile: for any processor, and in vectors of four.
#include "pass/tile.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "avx2.hpp"
#include "sums.hpp"

namespace a1gm {
namespace {

template <typename T>
void scan_tile_plain(const T* x, int64_t stride, int64_t rows, int64_t cols,
                     int64_t words, TileScan& out) {
  double smallest = out.smallest;
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double hi = 0.0, lo = 0.0;
    for (int64_t w = 0; w < words; ++w) {
      const int64_t begin = w * 64, n = std::min<int64_t>(64, cols - begin);
      uint64_t bits = 0, positive = 0;
      double run = 0.0;
      for (int64_t k = 0; k < n; ++k) {
        const double v = x[begin + k];
        const bool seen = v == v;
        bits |= static_cast<uint64_t>(seen) << k;
        positive |= static_cast<uint64_t>(v > 0.0) << k;
        const double value = seen ? v : 0.0;
        run += value;
        smallest = value < smallest ? value : smallest;
      }
      two_sum(run, hi, lo);
      out.keys[i * words + w] = bits;
      if (out.positive != nullptr) out.positive[i * words + w] = positive;
    }
    out.sums[i] = hi + lo;
  }
  out.smallest = smallest;
}

template <typename T>
A1GM_ANY void add_rows(const T* x, int64_t stride, int64_t rows, int64_t cols,
                       double* const* acc) {
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* const own = acc[i];
    for (int64_t j = 0; j < cols; ++j) own[j] += x[j] == x[j] ? x[j] : 0.0;
  }
}

template <typename T>
void add_tile_plain(const T* x, int64_t stride, int64_t rows, int64_t cols,
                    double* const* acc) {
  add_rows(x, stride, rows, cols, acc);
}

constexpr int64_t kFlushWords = 32;  // row sums: 2,048 columns per run

#ifdef A1GM_AVX2
// The cells that are positive, as bits.
A1GM_INLINE uint64_t bits_above(__m256d v) {
  return bits_of(_mm256_cmp_pd(v, _mm256_setzero_pd(), _CMP_GT_OQ));
}

// Calls f with the number of vectors that hold at most kNarrow columns, as a constant.
template <typename F>
void with_vectors(int64_t cols, F&& f) {
  switch ((cols + 3) / 4) {
    case 1: return f(std::integral_constant<int, 1>{});
    case 2: return f(std::integral_constant<int, 2>{});
    case 3: return f(std::integral_constant<int, 3>{});
    case 4: return f(std::integral_constant<int, 4>{});
    case 5: return f(std::integral_constant<int, 5>{});
    case 6: return f(std::integral_constant<int, 6>{});
    case 7: return f(std::integral_constant<int, 7>{});
    default: return f(std::integral_constant<int, 8>{});
  }
}

// Rows of at most 4 * V columns; the last vector is read under a mask. Calls use(row, its
// cells with zeros for the missing ones).
template <int V, bool kPositive, typename T, typename F>
A1GM_INLINE void scan_narrow_rows(const T* x, int64_t stride, int64_t rows, int64_t cols,
                                  TileScan& out, F&& use) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  const uint64_t valid = (uint64_t{1} << cols) - 1;
  __m256d smallest = _mm256_set1_pd(out.smallest);
  const auto scan_row = [&](const T* row, int64_t i) A1GM_LAMBDA {
    __m256d values[V], sum = _mm256_setzero_pd();
    uint64_t bits = 0, above = 0;
    for (int v = 0; v < V; ++v) {
      const __m256d a = v + 1 < V ? load(row + 4 * v) : load(row + 4 * v, tail);
      const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
      values[v] = _mm256_and_pd(a, seen);
      sum = v == 0 ? values[v] : _mm256_add_pd(sum, values[v]);
      smallest = _mm256_min_pd(smallest, values[v]);
      bits |= bits_of(seen) << (4 * v);
      if (kPositive) above |= bits_above(a) << (4 * v);
    }
    out.keys[i] = bits & valid;
    if (kPositive) out.positive[i] = above;
    use(i, values);
    return sum;
  };
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    const __m256d a = scan_row(x, i), b = scan_row(x + stride, i + 1);
    const __m256d c = scan_row(x + 2 * stride, i + 2);
    const __m256d d = scan_row(x + 3 * stride, i + 3);
    _mm256_storeu_pd(out.sums + i, four_sums(a, b, c, d));
  }
  for (; i < rows; ++i, x += stride) out.sums[i] = lane_sum(scan_row(x, i));
  out.smallest = lane_min(smallest);
}

template <int V, bool kPositive, typename T>
A1GM_TARGET void scan_keys(const T* x, int64_t stride, int64_t rows, int64_t cols,
                           TileScan& out) {
  const auto nothing = [](int64_t, const __m256d*) A1GM_LAMBDA {};
  scan_narrow_rows<V, kPositive>(x, stride, rows, cols, out, nothing);
}

template <int V, typename T>
A1GM_TARGET void scan_columns(const T* x, int64_t stride, int64_t rows, int64_t cols,
                              TileScan& out) {
  __m256d columns[V];
  for (int v = 0; v < V; ++v) columns[v] = _mm256_setzero_pd();
  const auto add = [&](int64_t, const __m256d* values) A1GM_LAMBDA {
    for (int v = 0; v < V; ++v) columns[v] = _mm256_add_pd(columns[v], values[v]);
  };
  scan_narrow_rows<V, false>(x, stride, rows, cols, out, add);
  for (int v = 0; v < V; ++v) _mm256_storeu_pd(out.columns + 4 * v, columns[v]);
  out.done = Scan::columns;
}

// Every row is added to the run of its pattern.
template <int V, typename T>
A1GM_TARGET void scan_to_runs(const T* x, int64_t stride, int64_t rows, int64_t cols,
                              TileScan& out, RowSink& sink) {
  const auto add = [&](int64_t i, const __m256d* values) A1GM_LAMBDA {
    const uint64_t key = out.keys[i];
    const KnownKey& hit = sink.known[sink.place(key)];
    int32_t id = hit.id;
    if (__builtin_expect(hit.key != key || id < 0, 0))
      id = sink.number(sink.owner, key, sink);
    sink.ids[i] = id;
    Run& run = sink.runs[id];
    double* const sums = run.sums;  // vectors may be anywhere: it would be read again
    for (int v = 0; v < V; ++v)     // runs are padded to whole vectors
      _mm256_storeu_pd(sums + 4 * v, _mm256_add_pd(load(sums + 4 * v), values[v]));
    if (++run.rows % kRun == 0) sink.full.push_back(id);
  };
  scan_narrow_rows<V, false>(x, stride, rows, cols, out, add);
}

template <typename T>
void scan_and_add_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                       TileScan& out, RowSink& sink) {
  with_vectors(cols, [&](auto v) { scan_to_runs<v>(x, stride, rows, cols, out, sink); });
}

// With `kWide`, also the bits of the positive cells, and the rows are added to a run.
template <bool kWide, typename T>
A1GM_TARGET void scan_long_rows(const T* x, int64_t stride, int64_t rows, int64_t cols,
                                int64_t words, TileScan& out) {
  const __m256d zero = _mm256_setzero_pd();
  __m256d smallest = _mm256_set1_pd(out.smallest);
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double hi = 0.0, lo = 0.0;
    __m256d sums[4] = {zero, zero, zero, zero};
    const auto flush = [&]() A1GM_LAMBDA {
      two_sum(lane_sum(_mm256_add_pd(_mm256_add_pd(sums[0], sums[1]),
                                     _mm256_add_pd(sums[2], sums[3]))),
              hi, lo);
      for (__m256d& sum : sums) sum = zero;
    };
    for (int64_t w = 0; w < words; ++w) {
      const T* const p = x + w * 64;
      const int64_t n = std::min<int64_t>(64, cols - w * 64);
      uint64_t bits = 0, above = 0;
      const auto take = [&](int64_t k, __m256d a, __m256d& sum) A1GM_LAMBDA {
        const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
        const __m256d value = _mm256_and_pd(a, seen);
        sum = _mm256_add_pd(sum, value);
        smallest = _mm256_min_pd(smallest, value);
        bits |= bits_of(seen) << k;
        if (kWide) {  // runs are padded to whole vectors
          double* const run = out.run + w * 64 + k;
          _mm256_storeu_pd(run, _mm256_add_pd(load(run), value));
          above |= bits_above(a) << k;
        }
      };
      int64_t k = 0;
      for (; k + 16 <= n; k += 16)
        for (int v = 0; v < 4; ++v) take(k + 4 * v, load(p + k + 4 * v), sums[v]);
      for (; k + 4 <= n; k += 4) take(k, load(p + k), sums[0]);
      if (k < n) {
        take(k, load(p + k, head_mask(n - k)), sums[0]);
        bits &= (uint64_t{1} << n) - 1;
      }
      out.keys[i * words + w] = bits;
      if (kWide) out.positive[i * words + w] = above;
      if ((w + 1) % kFlushWords == 0) flush();
    }
    flush();
    out.sums[i] = hi + lo;
  }
  out.smallest = lane_min(smallest);
  if (kWide) out.done = Scan::added;
}

template <typename T>
void scan_tile_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                    int64_t words, TileScan& out) {
  if (cols <= kNarrow)
    return with_vectors(cols, [&](auto v) {
      auto* const scan = out.positive != nullptr         ? scan_keys<v, true, T>
                         : out.asked == Scan::columns ? scan_columns<v, T>
                                                      : scan_keys<v, false, T>;
      scan(x, stride, rows, cols, out);
    });
  auto* const scan = out.positive != nullptr ? scan_long_rows<true, T> : scan_long_rows<false, T>;
  scan(x, stride, rows, cols, words, out);
}

template <typename T>
A1GM_TARGET void add_tile_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                               double* const* acc) {
  add_rows(x, stride, rows, cols, acc);
}
#endif

}  // namespace

template <typename T>
Isa<T> choose_isa() {
#ifdef A1GM_AVX2
  if (has_avx2())
    return {scan_tile_avx2<T>, add_tile_avx2<T>, scan_and_add_avx2<T>};
#endif
  return {scan_tile_plain<T>, add_tile_plain<T>};
}

template Isa<double> choose_isa();
template Isa<float> choose_isa();

}  // namespace a1gm
