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
void add_tile_plain(const T* x, int64_t stride, int64_t rows, int64_t cols,
                    double* const* acc) {
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* a = acc[i];
    for (int64_t j = 0; j < cols; ++j) a[j] += x[j] == x[j] ? x[j] : 0.0;
  }
}

// Rows of one pattern: the sums stay in registers (here, in one line of the cache).
template <typename T>
void add_run_plain(const T* x, int64_t stride, int64_t rows, int64_t cols,
                   double* acc) {
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int64_t j = 0; j < cols; ++j) acc[j] += x[j] == x[j] ? x[j] : 0.0;
}

constexpr int64_t kFlushWords = 32;  // row sums: 2,048 columns per run

#ifdef A1GM_AVX2
A1GM_INLINE double lane_min(__m256d v) {
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, v);
  return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

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

// One row of at most 4 * V columns; the last vector is read under `tail`.
template <int V, bool kPositive, bool kColumns = false, typename T>
A1GM_INLINE __m256d scan_short_row(const T* x, __m256i tail, uint64_t valid,
                                   __m256d& smallest, uint64_t& key,
                                   uint64_t& positive, __m256d* columns = nullptr) {
  const __m256d zero = _mm256_setzero_pd();
  __m256d sum = zero;
  uint64_t bits = 0, above = 0;
  for (int v = 0; v < V; ++v) {
    const __m256d a = v + 1 < V ? load(x + 4 * v) : load(x + 4 * v, tail);
    const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
    const __m256d value = _mm256_and_pd(a, seen);
    sum = _mm256_add_pd(sum, value);
    if (kColumns) columns[v] = _mm256_add_pd(columns[v], value);
    smallest = _mm256_min_pd(smallest, value);
    bits |= bits_of(seen) << (4 * v);
    if (kPositive) above |= bits_above(a) << (4 * v);
  }
  key = bits & valid;
  positive = above;
  return sum;
}

template <int V, bool kColumns, typename T>
A1GM_TARGET void scan_narrow_rows(const T* x, int64_t stride, int64_t rows,
                                  int64_t cols, TileScan& out) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  const uint64_t valid = cols == 64 ? ~uint64_t{0} : (uint64_t{1} << cols) - 1;
  __m256d smallest = _mm256_set1_pd(out.smallest);
  uint64_t unused = 0;
  int64_t i = 0;
  __m256d columns[V];
  for (int v = 0; v < V; ++v) columns[v] = _mm256_setzero_pd();
  const auto scan_row = [&](const T* row, uint64_t& key) A1GM_LAMBDA {
    return scan_short_row<V, false, kColumns>(row, tail, valid, smallest, key, unused,
                                              columns);
  };
  if (out.positive == nullptr) {
    for (; i + 4 <= rows; i += 4, x += 4 * stride) {
      uint64_t* key = out.keys + i;
      const __m256d a = scan_row(x, key[0]);
      const __m256d b = scan_row(x + stride, key[1]);
      const __m256d c = scan_row(x + 2 * stride, key[2]);
      const __m256d d = scan_row(x + 3 * stride, key[3]);
      _mm256_storeu_pd(out.sums + i, four_sums(a, b, c, d));
    }
    for (; i < rows; ++i, x += stride)
      out.sums[i] = lane_sum(scan_row(x, out.keys[i]));
  } else {
    for (; i < rows; ++i, x += stride)
      out.sums[i] = lane_sum(scan_short_row<V, true>(x, tail, valid, smallest,
                                                     out.keys[i], out.positive[i]));
  }
  out.smallest = lane_min(smallest);
  if (kColumns) {
    for (int v = 0; v < V; ++v) _mm256_storeu_pd(out.columns + 4 * v, columns[v]);
    out.done = Scan::columns;
  }
}

// A row that has been read, added to the run of its pattern.
template <int V>
A1GM_INLINE void add_to_run(const __m256d* values, uint64_t key, int64_t i,
                            RowSink& sink) {
  const KnownKey& hit = sink.known[sink.place(key)];
  int32_t id = hit.id;
  if (__builtin_expect(hit.key != key || id < 0, 0)) id = sink.number(sink.owner, key, sink);
  sink.ids[i] = id;
  Run& run = sink.runs[id];
  double* const sums = run.sums;  // vectors may be anywhere: it would be read again
  for (int v = 0; v < V; ++v)     // runs are padded to whole vectors
    _mm256_storeu_pd(sums + 4 * v, _mm256_add_pd(load(sums + 4 * v), values[v]));
  if (++run.rows % kRun == 0) sink.full.push_back(id);
}

template <int V, typename T>
A1GM_TARGET void scan_and_add_rows(const T* x, int64_t stride, int64_t rows,
                                   int64_t cols, TileScan& out, RowSink& sink) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  const uint64_t valid = (uint64_t{1} << cols) - 1;
  __m256d smallest = _mm256_set1_pd(out.smallest);
  const auto scan_row = [&](const T* row, int64_t i) A1GM_LAMBDA {
    __m256d values[V], sum = _mm256_setzero_pd();
    uint64_t bits = 0;
    for (int v = 0; v < V; ++v) {
      const __m256d a = v + 1 < V ? load(row + 4 * v) : load(row + 4 * v, tail);
      const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
      values[v] = _mm256_and_pd(a, seen);
      sum = v == 0 ? values[v] : _mm256_add_pd(sum, values[v]);
      smallest = _mm256_min_pd(smallest, values[v]);
      bits |= bits_of(seen) << (4 * v);
    }
    add_to_run<V>(values, out.keys[i] = bits & valid, i, sink);
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

template <typename T>
void scan_and_add_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                       TileScan& out, RowSink& sink) {
  with_vectors(cols, [&](auto v) { scan_and_add_rows<v>(x, stride, rows, cols, out, sink); });
}

template <bool kPositive, bool kAdd, typename T>
A1GM_TARGET void scan_long_rows(const T* x, int64_t stride, int64_t rows,
                                int64_t cols, int64_t words, TileScan& out) {
  const __m256d zero = _mm256_setzero_pd();
  __m256d smallest = _mm256_set1_pd(out.smallest);
  const int64_t tail = cols & 3;
  const __m256i tail_mask = head_mask(tail);
  const uint64_t tail_bits = (uint64_t{1} << tail) - 1;
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double hi = 0.0, lo = 0.0;
    __m256d s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    for (int64_t w = 0; w < words; ++w) {
      const T* p = x + w * 64;
      const int64_t n = std::min<int64_t>(64, cols - w * 64);
      uint64_t bits = 0, above = 0;
      int64_t k = 0;
      for (; k + 16 <= n; k += 16) {
        const __m256d a = load(p + k), b = load(p + k + 4);
        const __m256d c = load(p + k + 8), d = load(p + k + 12);
        const __m256d ma = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
        const __m256d mb = _mm256_cmp_pd(b, b, _CMP_ORD_Q);
        const __m256d mc = _mm256_cmp_pd(c, c, _CMP_ORD_Q);
        const __m256d md = _mm256_cmp_pd(d, d, _CMP_ORD_Q);
        const __m256d va = _mm256_and_pd(a, ma), vb = _mm256_and_pd(b, mb);
        const __m256d vc = _mm256_and_pd(c, mc), vd = _mm256_and_pd(d, md);
        s0 = _mm256_add_pd(s0, va);
        s1 = _mm256_add_pd(s1, vb);
        s2 = _mm256_add_pd(s2, vc);
        s3 = _mm256_add_pd(s3, vd);
        smallest = _mm256_min_pd(
            smallest, _mm256_min_pd(_mm256_min_pd(va, vb), _mm256_min_pd(vc, vd)));
        if (kAdd) {
          double* r = out.run + w * 64 + k;
          _mm256_storeu_pd(r, _mm256_add_pd(_mm256_loadu_pd(r), va));
          _mm256_storeu_pd(r + 4, _mm256_add_pd(_mm256_loadu_pd(r + 4), vb));
          _mm256_storeu_pd(r + 8, _mm256_add_pd(_mm256_loadu_pd(r + 8), vc));
          _mm256_storeu_pd(r + 12, _mm256_add_pd(_mm256_loadu_pd(r + 12), vd));
        }
        bits |= (bits_of(ma) | bits_of(mb) << 4 | bits_of(mc) << 8 | bits_of(md) << 12)
                << k;
        if (kPositive)
          above |= (bits_above(a) | bits_above(b) << 4 | bits_above(c) << 8 |
                    bits_above(d) << 12)
                   << k;
      }
      for (; k < n; k += 4) {
        const bool whole = k + 4 <= n;
        const __m256d a = whole ? load(p + k) : load(p + k, tail_mask);
        const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
        const __m256d value = _mm256_and_pd(a, seen);
        s0 = _mm256_add_pd(s0, value);
        smallest = _mm256_min_pd(smallest, value);
        if (kAdd) {  // runs are padded to whole vectors
          double* r = out.run + w * 64 + k;
          _mm256_storeu_pd(r, _mm256_add_pd(_mm256_loadu_pd(r), value));
        }
        bits |= (bits_of(seen) & (whole ? 15 : tail_bits)) << k;
        if (kPositive) above |= bits_above(a) << k;
      }
      out.keys[i * words + w] = bits;
      if (kPositive) out.positive[i * words + w] = above;
      if ((w + 1) % kFlushWords == 0) {
        two_sum(lane_sum(_mm256_add_pd(_mm256_add_pd(s0, s1), _mm256_add_pd(s2, s3))),
                hi, lo);
        s0 = s1 = s2 = s3 = zero;
      }
    }
    two_sum(lane_sum(_mm256_add_pd(_mm256_add_pd(s0, s1), _mm256_add_pd(s2, s3))), hi,
            lo);
    out.sums[i] = hi + lo;
  }
  out.smallest = lane_min(smallest);
  if (kAdd) out.done = Scan::added;
}

template <typename T>
void scan_tile_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                    int64_t words, TileScan& out) {
  if (cols <= kNarrow)
    return with_vectors(cols, [&](auto v) {
      auto* const scan = out.asked == Scan::columns ? scan_narrow_rows<v, true, T>
                                                    : scan_narrow_rows<v, false, T>;
      scan(x, stride, rows, cols, out);
    });
  if (out.positive == nullptr)
    scan_long_rows<false, false>(x, stride, rows, cols, words, out);
  else if (out.asked != Scan::added)
    scan_long_rows<true, false>(x, stride, rows, cols, words, out);
  else
    scan_long_rows<true, true>(x, stride, rows, cols, words, out);
}

template <int V, typename T>
A1GM_TARGET void add_short_rows(const T* x, int64_t stride, int64_t rows,
                                int64_t cols, double* const* acc) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* a = acc[i];
    for (int v = 0; v < V; ++v) {
      const __m256d u = v + 1 < V ? load(x + 4 * v) : load(x + 4 * v, tail);
      const __m256d seen = _mm256_and_pd(u, _mm256_cmp_pd(u, u, _CMP_ORD_Q));
      _mm256_storeu_pd(a + 4 * v, _mm256_add_pd(_mm256_loadu_pd(a + 4 * v), seen));
    }
  }
}

template <typename T>
A1GM_TARGET void add_long_rows(const T* x, int64_t stride, int64_t rows,
                               int64_t cols, double* const* acc) {
  const int64_t tail = cols & 3, body = cols - tail;
  const __m256i tail_mask = head_mask(tail);
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* a = acc[i];
    int64_t j = 0;
    for (; j + 8 <= body; j += 8) {
      const __m256d u = load(x + j), v = load(x + j + 4);
      const __m256d su = _mm256_and_pd(u, _mm256_cmp_pd(u, u, _CMP_ORD_Q));
      const __m256d sv = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
      _mm256_storeu_pd(a + j, _mm256_add_pd(_mm256_loadu_pd(a + j), su));
      _mm256_storeu_pd(a + j + 4, _mm256_add_pd(_mm256_loadu_pd(a + j + 4), sv));
    }
    for (; j < body; j += 4) {
      const __m256d v = load(x + j);
      const __m256d seen = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
      _mm256_storeu_pd(a + j, _mm256_add_pd(_mm256_loadu_pd(a + j), seen));
    }
    if (tail) {  // accumulators are padded to whole vectors
      const __m256d v = load(x + j, tail_mask);
      const __m256d seen = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
      _mm256_storeu_pd(a + j, _mm256_add_pd(_mm256_loadu_pd(a + j), seen));
    }
  }
}

template <typename T>
void add_tile_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                   double* const* acc) {
  if (cols > kNarrow) return add_long_rows(x, stride, rows, cols, acc);
  with_vectors(cols, [&](auto v) { add_short_rows<v>(x, stride, rows, cols, acc); });
}

// At most 4 * V columns; the last vector is read under `tail`.
template <int V, typename T>
A1GM_TARGET void add_run_columns(const T* x, int64_t stride, int64_t rows,
                                 int64_t cols, double* acc) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  __m256d sum[V];
  for (int v = 0; v < V; ++v) sum[v] = _mm256_setzero_pd();
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int v = 0; v < V; ++v) {
      const __m256d a = v + 1 < V ? load(x + 4 * v) : load(x + 4 * v, tail);
      const __m256d seen = _mm256_and_pd(a, _mm256_cmp_pd(a, a, _CMP_ORD_Q));
      sum[v] = _mm256_add_pd(sum[v], seen);
    }
  for (int v = 0; v < V; ++v)  // accumulators are padded to whole vectors
    _mm256_storeu_pd(acc + 4 * v, _mm256_add_pd(_mm256_loadu_pd(acc + 4 * v), sum[v]));
}

template <typename T>
void add_run_avx2(const T* x, int64_t stride, int64_t rows, int64_t cols,
                  double* acc) {
  for (; cols > 32; cols -= 32, x += 32, acc += 32)
    add_run_columns<8>(x, stride, rows, 32, acc);
  with_vectors(cols, [&](auto v) { add_run_columns<v>(x, stride, rows, cols, acc); });
}
#endif

}  // namespace

template <typename T>
Isa<T> choose_isa() {
#ifdef A1GM_AVX2
  if (has_avx2())
    return {scan_tile_avx2<T>, add_tile_avx2<T>, add_run_avx2<T>, scan_and_add_avx2<T>};
#endif
  return {scan_tile_plain<T>, add_tile_plain<T>, add_run_plain<T>};
}

template Isa<double> choose_isa();
template Isa<float> choose_isa();

}  // namespace a1gm
