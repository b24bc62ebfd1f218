#include "observe.hpp"

#include "columns.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define A1GM_AVX2 1
#include <immintrin.h>
#endif

namespace a1gm {
namespace {

// Rows are summed in runs of this many before they enter a compensated sum, so a
// column sum is as good as a sum of short runs, whatever the number of rows.
constexpr int64_t kRun = 32;
constexpr int64_t kTileBytes = 8 * 1024;  // a tile stays in the first-level cache
constexpr int64_t kMaxTileRows = 64;
constexpr int64_t kFlushWords = 32;        // row sums: 2,048 columns per run
constexpr int64_t kCellsPerThread = 1 << 17;
constexpr int64_t kPadding = 3;  // a stretch's last vector may end past its columns
// Narrower parts than this, on average, are gathered in a scratch tile first.
constexpr int64_t kColsWorthReading = 4;

inline void two_sum(double x, double& hi, double& lo) {
  const double s = hi + x, b = s - hi;
  lo += (hi - (s - b)) + (x - b);
  hi = s;
}

// What a tile scan finds: observed bits and sum of each row, the smallest cell, and,
// when asked for, the bits of the positive cells.
struct TileScan {
  uint64_t* keys;
  uint64_t* positive;  // may be null
  double* sums;
  double smallest;
  double* columns = nullptr;  // wanted: column sums of the whole tile
  bool has_columns = false;   // and found: narrow tiles only
};

// ---------------------------------------------------------------- portable twin
void scan_tile_plain(const double* x, int64_t stride, int64_t rows, int64_t cols,
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

void add_tile_plain(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    double* const* acc) {
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* a = acc[i];
    for (int64_t j = 0; j < cols; ++j) a[j] += x[j] == x[j] ? x[j] : 0.0;
  }
}

// Rows of one pattern: the sums stay in registers (here, in one line of the cache).
void add_run_plain(const double* x, int64_t stride, int64_t rows, int64_t cols,
                   double* acc) {
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int64_t j = 0; j < cols; ++j) acc[j] += x[j] == x[j] ? x[j] : 0.0;
}

// ------------------------------------------------------------------------ AVX2
#ifdef A1GM_AVX2
#define A1GM_TARGET __attribute__((target("avx2")))
#define A1GM_LAMBDA __attribute__((target("avx2"), always_inline))
#define A1GM_INLINE __attribute__((target("avx2"), always_inline)) inline

A1GM_INLINE double lane_sum(__m256d v) {
  const __m128d pair =
      _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
}

A1GM_INLINE double lane_min(__m256d v) {
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, v);
  return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

A1GM_INLINE __m256i head_mask(int64_t n) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_set_epi64x(3, 2, 1, 0));
}

A1GM_INLINE uint64_t bits_of(__m256d mask) {
  return static_cast<uint64_t>(_mm256_movemask_pd(mask));
}

// One row of at most 4 * V columns; the last vector is read under `tail`.
template <int V, bool kPositive, bool kColumns = false>
A1GM_INLINE __m256d scan_short_row(const double* x, __m256i tail, uint64_t valid,
                                   __m256d& smallest, uint64_t& key,
                                   uint64_t& positive, __m256d* columns = nullptr) {
  const __m256d zero = _mm256_setzero_pd();
  __m256d sum = zero;
  uint64_t bits = 0, above = 0;
  for (int v = 0; v < V; ++v) {
    const __m256d a = v + 1 < V ? _mm256_loadu_pd(x + 4 * v)
                                : _mm256_maskload_pd(x + 4 * v, tail);
    const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
    const __m256d value = _mm256_and_pd(a, seen);
    sum = _mm256_add_pd(sum, value);
    if (kColumns) columns[v] = _mm256_add_pd(columns[v], value);
    smallest = _mm256_min_pd(smallest, value);
    bits |= bits_of(seen) << (4 * v);
    if (kPositive) above |= bits_of(_mm256_cmp_pd(a, zero, _CMP_GT_OQ)) << (4 * v);
  }
  key = bits & valid;
  positive = above;
  return sum;
}

template <int V, bool kColumns>
A1GM_TARGET void scan_narrow_rows(const double* x, int64_t stride, int64_t rows,
                                  int64_t cols, TileScan& out) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  const uint64_t valid = cols == 64 ? ~uint64_t{0} : (uint64_t{1} << cols) - 1;
  __m256d smallest = _mm256_set1_pd(out.smallest);
  uint64_t unused = 0;
  int64_t i = 0;
  __m256d columns[V];
  for (int v = 0; v < V; ++v) columns[v] = _mm256_setzero_pd();
  const auto scan_row = [&](const double* row, uint64_t& key) A1GM_LAMBDA {
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
      const __m256d ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d);
      _mm256_storeu_pd(out.sums + i,
                       _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x20),
                                     _mm256_permute2f128_pd(ab, cd, 0x31)));
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
    out.has_columns = true;
  }
}

template <int V>
void scan_short_rows(const double* x, int64_t stride, int64_t rows, int64_t cols,
                     TileScan& out) {
  if (out.columns != nullptr && out.positive == nullptr)
    scan_narrow_rows<V, true>(x, stride, rows, cols, out);
  else
    scan_narrow_rows<V, false>(x, stride, rows, cols, out);
}

template <bool kPositive>
A1GM_TARGET void scan_long_rows(const double* x, int64_t stride, int64_t rows,
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
      const double* p = x + w * 64;
      const int64_t n = std::min<int64_t>(64, cols - w * 64);
      uint64_t bits = 0, above = 0;
      int64_t k = 0;
      for (; k + 16 <= n; k += 16) {
        const __m256d a = _mm256_loadu_pd(p + k), b = _mm256_loadu_pd(p + k + 4);
        const __m256d c = _mm256_loadu_pd(p + k + 8), d = _mm256_loadu_pd(p + k + 12);
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
        bits |= (bits_of(ma) | bits_of(mb) << 4 | bits_of(mc) << 8 | bits_of(md) << 12)
                << k;
        if (kPositive)
          above |= (bits_of(_mm256_cmp_pd(a, zero, _CMP_GT_OQ)) |
                    bits_of(_mm256_cmp_pd(b, zero, _CMP_GT_OQ)) << 4 |
                    bits_of(_mm256_cmp_pd(c, zero, _CMP_GT_OQ)) << 8 |
                    bits_of(_mm256_cmp_pd(d, zero, _CMP_GT_OQ)) << 12)
                   << k;
      }
      for (; k < n; k += 4) {
        const bool whole = k + 4 <= n;
        const __m256d a =
            whole ? _mm256_loadu_pd(p + k) : _mm256_maskload_pd(p + k, tail_mask);
        const __m256d seen = _mm256_cmp_pd(a, a, _CMP_ORD_Q);
        const __m256d value = _mm256_and_pd(a, seen);
        s0 = _mm256_add_pd(s0, value);
        smallest = _mm256_min_pd(smallest, value);
        bits |= (bits_of(seen) & (whole ? 15 : tail_bits)) << k;
        if (kPositive) above |= bits_of(_mm256_cmp_pd(a, zero, _CMP_GT_OQ)) << k;
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
}

void scan_tile_avx2(const double* x, int64_t stride, int64_t rows, int64_t cols,
                    int64_t words, TileScan& out) {
  switch ((cols + 3) / 4) {
    case 1: return scan_short_rows<1>(x, stride, rows, cols, out);
    case 2: return scan_short_rows<2>(x, stride, rows, cols, out);
    case 3: return scan_short_rows<3>(x, stride, rows, cols, out);
    case 4: return scan_short_rows<4>(x, stride, rows, cols, out);
    case 5: return scan_short_rows<5>(x, stride, rows, cols, out);
    case 6: return scan_short_rows<6>(x, stride, rows, cols, out);
    case 7: return scan_short_rows<7>(x, stride, rows, cols, out);
    case 8: return scan_short_rows<8>(x, stride, rows, cols, out);
    default:
      return out.positive == nullptr
                 ? scan_long_rows<false>(x, stride, rows, cols, words, out)
                 : scan_long_rows<true>(x, stride, rows, cols, words, out);
  }
}

template <int V>
A1GM_TARGET void add_short_rows(const double* x, int64_t stride, int64_t rows,
                                int64_t cols, double* const* acc) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* a = acc[i];
    for (int v = 0; v < V; ++v) {
      const __m256d u = v + 1 < V ? _mm256_loadu_pd(x + 4 * v)
                                  : _mm256_maskload_pd(x + 4 * v, tail);
      const __m256d seen = _mm256_and_pd(u, _mm256_cmp_pd(u, u, _CMP_ORD_Q));
      _mm256_storeu_pd(a + 4 * v, _mm256_add_pd(_mm256_loadu_pd(a + 4 * v), seen));
    }
  }
}

A1GM_TARGET void add_long_rows(const double* x, int64_t stride, int64_t rows,
                               int64_t cols, double* const* acc) {
  const int64_t tail = cols & 3, body = cols - tail;
  const __m256i tail_mask = head_mask(tail);
  for (int64_t i = 0; i < rows; ++i, x += stride) {
    double* a = acc[i];
    int64_t j = 0;
    for (; j + 8 <= body; j += 8) {
      const __m256d u = _mm256_loadu_pd(x + j), v = _mm256_loadu_pd(x + j + 4);
      const __m256d su = _mm256_and_pd(u, _mm256_cmp_pd(u, u, _CMP_ORD_Q));
      const __m256d sv = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
      _mm256_storeu_pd(a + j, _mm256_add_pd(_mm256_loadu_pd(a + j), su));
      _mm256_storeu_pd(a + j + 4, _mm256_add_pd(_mm256_loadu_pd(a + j + 4), sv));
    }
    for (; j < body; j += 4) {
      const __m256d v = _mm256_loadu_pd(x + j);
      const __m256d seen = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
      _mm256_storeu_pd(a + j, _mm256_add_pd(_mm256_loadu_pd(a + j), seen));
    }
    if (tail) {  // accumulators are padded to whole vectors
      const __m256d v = _mm256_maskload_pd(x + j, tail_mask);
      const __m256d seen = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
      _mm256_storeu_pd(a + j, _mm256_add_pd(_mm256_loadu_pd(a + j), seen));
    }
  }
}

void add_tile_avx2(const double* x, int64_t stride, int64_t rows, int64_t cols,
                   double* const* acc) {
  switch ((cols + 3) / 4) {
    case 1: return add_short_rows<1>(x, stride, rows, cols, acc);
    case 2: return add_short_rows<2>(x, stride, rows, cols, acc);
    case 3: return add_short_rows<3>(x, stride, rows, cols, acc);
    case 4: return add_short_rows<4>(x, stride, rows, cols, acc);
    case 5: return add_short_rows<5>(x, stride, rows, cols, acc);
    case 6: return add_short_rows<6>(x, stride, rows, cols, acc);
    case 7: return add_short_rows<7>(x, stride, rows, cols, acc);
    case 8: return add_short_rows<8>(x, stride, rows, cols, acc);
    default: return add_long_rows(x, stride, rows, cols, acc);
  }
}

// At most 4 * V columns; the last vector is read under `tail`.
template <int V>
A1GM_TARGET void add_run_columns(const double* x, int64_t stride, int64_t rows,
                                 int64_t cols, double* acc) {
  const __m256i tail = head_mask(cols - 4 * (V - 1));
  __m256d sum[V];
  for (int v = 0; v < V; ++v) sum[v] = _mm256_setzero_pd();
  for (int64_t i = 0; i < rows; ++i, x += stride)
    for (int v = 0; v < V; ++v) {
      const __m256d a = v + 1 < V ? _mm256_loadu_pd(x + 4 * v)
                                  : _mm256_maskload_pd(x + 4 * v, tail);
      const __m256d seen = _mm256_and_pd(a, _mm256_cmp_pd(a, a, _CMP_ORD_Q));
      sum[v] = _mm256_add_pd(sum[v], seen);
    }
  for (int v = 0; v < V; ++v)  // accumulators are padded to whole vectors
    _mm256_storeu_pd(acc + 4 * v, _mm256_add_pd(_mm256_loadu_pd(acc + 4 * v), sum[v]));
}

void add_run_avx2(const double* x, int64_t stride, int64_t rows, int64_t cols,
                  double* acc) {
  for (; cols > 32; cols -= 32, x += 32, acc += 32)
    add_run_columns<8>(x, stride, rows, 32, acc);
  switch ((cols + 3) / 4) {
    case 1: return add_run_columns<1>(x, stride, rows, cols, acc);
    case 2: return add_run_columns<2>(x, stride, rows, cols, acc);
    case 3: return add_run_columns<3>(x, stride, rows, cols, acc);
    case 4: return add_run_columns<4>(x, stride, rows, cols, acc);
    case 5: return add_run_columns<5>(x, stride, rows, cols, acc);
    case 6: return add_run_columns<6>(x, stride, rows, cols, acc);
    case 7: return add_run_columns<7>(x, stride, rows, cols, acc);
    default: return add_run_columns<8>(x, stride, rows, cols, acc);
  }
}
#endif

struct Isa {
  decltype(&scan_tile_plain) scan;
  decltype(&add_tile_plain) add;
  decltype(&add_run_plain) add_run;
};

Isa choose_isa() {
#ifdef A1GM_AVX2
  if (__builtin_cpu_supports("avx2")) return {scan_tile_avx2, add_tile_avx2, add_run_avx2};
#endif
  return {scan_tile_plain, add_tile_plain, add_run_plain};
}

// Four sums side by side: a single one would wait for itself at every step.
double quick_sum(const double* x, int64_t n) {
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    a += x[i];
    b += x[i + 1];
    c += x[i + 2];
    d += x[i + 3];
  }
  for (; i < n; ++i) a += x[i];
  return (a + b) + (c + d);
}

// ------------------------------------------------------------ reading any layout
template <typename T>
void load_part(const Part& part, int64_t row, int64_t rows, int64_t stride,
               double* out) {
  const char* base = part.data + row * part.row_stride;
  // Walk the axis with the smaller stride innermost: Fortran order stays fast.
  if (std::abs(part.col_stride) <= std::abs(part.row_stride)) {
    for (int64_t i = 0; i < rows; ++i) {
      const char* p = base + i * part.row_stride;
      double* o = out + i * stride;
      for (int64_t j = 0; j < part.n_cols; ++j, p += part.col_stride)
        o[j] = static_cast<double>(*reinterpret_cast<const T*>(p));
    }
  } else {
    for (int64_t j = 0; j < part.n_cols; ++j) {
      const char* p = base + j * part.col_stride;
      for (int64_t i = 0; i < rows; ++i, p += part.row_stride)
        out[i * stride + j] = static_cast<double>(*reinterpret_cast<const T*>(p));
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
    const double value = static_cast<double>(*reinterpret_cast<const T*>(p));
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

void load_tile(const std::vector<Part>& parts, int64_t row, int64_t rows,
               int64_t stride, double scale, double* out) {
  if (load_columns(parts, row, rows, stride, out)) {
    if (scale != 1.0)
      for (int64_t k = 0; k < rows * stride; ++k) out[k] *= scale;
    return;
  }
  double* o = out;
  for (const Part& part : parts) {
    switch (part.dtype) {
      case Dtype::f64: load_any<double>(part, row, rows, stride, o); break;
      case Dtype::f32: load_any<float>(part, row, rows, stride, o); break;
      case Dtype::i64: load_any<int64_t>(part, row, rows, stride, o); break;
      case Dtype::i32: load_any<int32_t>(part, row, rows, stride, o); break;
      case Dtype::i16: load_any<int16_t>(part, row, rows, stride, o); break;
      case Dtype::i8: load_any<int8_t>(part, row, rows, stride, o); break;
      case Dtype::u64: load_any<uint64_t>(part, row, rows, stride, o); break;
      case Dtype::u32: load_any<uint32_t>(part, row, rows, stride, o); break;
      case Dtype::u16: load_any<uint16_t>(part, row, rows, stride, o); break;
      case Dtype::u8: load_any<uint8_t>(part, row, rows, stride, o); break;
    }
    if (part.mask != nullptr) blank_missing(part, row, rows, stride, o);
    o += part.n_cols;
  }
  if (scale != 1.0)
    for (int64_t k = 0; k < rows * stride; ++k) out[k] *= scale;
}

// ------------------------------------------------------------------ pattern table
uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Distinct patterns in order of first appearance; keys are compared word for word.
class PatternIndex {
 public:
  // A longer table is worth a larger cache: two patterns that share a place in it
  // would push each other out at every row.
  PatternIndex(int64_t words, int64_t n_rows)
      : words_(words),
        slots_(64, -1),
        shift_(n_rows < 100'000 ? 58 : 52),
        recent_(words == 1 ? size_t{1} << (64 - shift_) : 0) {}

  // A small cache in front of the table, for keys of one word.
  struct Short {
    uint64_t key = 0;
    int32_t id = -1;
  };
  Short& cached(uint64_t key) {
    return recent_[(key * 0x9e3779b97f4a7c15ULL) >> shift_];
  }
  int64_t size() const { return size_; }
  std::vector<uint64_t> keys;

  int32_t find_or_insert(const uint64_t* key) {
    if (last_ >= 0 && same(last_, key)) return last_;
    size_t slot = hash(key) & (slots_.size() - 1);
    while (slots_[slot] >= 0) {
      if (same(slots_[slot], key)) return last_ = slots_[slot];
      slot = (slot + 1) & (slots_.size() - 1);
    }
    last_ = slots_[slot] = static_cast<int32_t>(size_++);
    keys.insert(keys.end(), key, key + words_);
    if (static_cast<size_t>(size_) * 2 > slots_.size()) grow();
    return last_;
  }

 private:
  bool same(int32_t id, const uint64_t* key) const {
    const uint64_t* k = &keys[static_cast<size_t>(id * words_)];
    return words_ == 1 ? *k == *key
                       : std::memcmp(k, key, sizeof(uint64_t) * words_) == 0;
  }
  size_t hash(const uint64_t* key) const {
    uint64_t h = 0;
    for (int64_t w = 0; w < words_; ++w) h = mix(h + 0x9e3779b97f4a7c15ULL + key[w]);
    return static_cast<size_t>(h);
  }
  void grow() {
    std::vector<int32_t> bigger(slots_.size() * 4, -1);
    slots_.swap(bigger);
    for (int64_t id = 0; id < size_; ++id) {
      size_t slot = hash(&keys[static_cast<size_t>(id * words_)]) & (slots_.size() - 1);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<int32_t>(id);
    }
  }
  int64_t words_, size_ = 0;
  int32_t last_ = -1;
  std::vector<int32_t> slots_;
  int shift_;
  std::vector<Short> recent_;
};

// Zeroed memory for the open runs of the patterns, many patterns to an allocation.
// Each run is padded to whole cache lines.
class RunMemory {
 public:
  explicit RunMemory(int64_t cols) : stride_((cols + kPadding + 7) & ~int64_t{7}) {}
  double* next() {
    if (left_ == 0) {
      left_ = std::clamp<int64_t>(kChunk / stride_, 1, 2 * total_ + 4);
      const auto n = static_cast<size_t>(left_ * stride_);
      chunks_.emplace_back(new double[n + kLine]());
      // A vector that straddles two cache lines is slow to store and to load again.
      const auto address = reinterpret_cast<uintptr_t>(chunks_.back().get());
      at_ = chunks_.back().get() + (kLine - address / 8 % kLine) % kLine;
    }
    --left_;
    ++total_;
    double* run = at_;
    at_ += stride_;
    return run;
  }

 private:
  static constexpr int64_t kChunk = 1 << 17;
  static constexpr size_t kLine = 8;  // doubles in a cache line
  int64_t stride_, left_ = 0, total_ = 0;
  double* at_ = nullptr;
  std::vector<std::unique_ptr<double[]>> chunks_;
};

// Column sums of one pattern: short runs, then a compensated pair.
class ColumnSums {
 public:
  ColumnSums(int64_t cols, double* run) : cols_(cols), run_(run) {}
  double* run() { return run_; }
  void flush() {
    if (!hi_) {
      hi_.reset(new double[static_cast<size_t>(cols_)]());
      lo_.reset(new double[static_cast<size_t>(cols_)]());
    }
    for (int64_t j = 0; j < cols_; ++j) {
      two_sum(run_[j], hi_[j], lo_[j]);
      run_[j] = 0.0;
    }
  }
  // Adds another's sums.
  void absorb(ColumnSums& other) {
    if (!hi_ && !other.hi_) {  // two short runs make one
      for (int64_t j = 0; j < cols_; ++j) run_[j] += other.run_[j];
      return;
    }
    flush();
    other.flush();
    for (int64_t j = 0; j < cols_; ++j) {
      two_sum(other.hi_[j], hi_[j], lo_[j]);
      lo_[j] += other.lo_[j];
    }
  }
  void write(double* out) const {
    for (int64_t j = 0; j < cols_; ++j)
      out[j] = hi_ ? hi_[j] + (lo_[j] + run_[j]) : run_[j];
  }

 private:
  int64_t cols_;
  double* run_;  // in the worker's RunMemory
  std::unique_ptr<double[]> hi_, lo_;
};

// Pattern numbers of a stretch of rows in the narrowest integers that hold them:
// fresh memory is the dearest thing a pass over narrow rows asks for.
class IdBuffer {
 public:
  explicit IdBuffer(int64_t n) : n_(n) { widen(1); }
  int width() const { return width_; }
  void store(int64_t at, const int32_t* ids, int64_t n, int64_t n_patterns) {
    if (n_patterns > 256 && width_ == 1) widen(2);
    if (n_patterns > 65536 && width_ == 2) widen(4);
    if (width_ == 1) std::copy_n(ids, n, as<uint8_t>() + at);
    if (width_ == 2) std::copy_n(ids, n, as<uint16_t>() + at);
    if (width_ == 4) std::copy_n(ids, n, as<int32_t>() + at);
  }
  void fill(int64_t at, int32_t id, int64_t n) {  // when `store` has made it fit
    if (width_ == 1) std::fill_n(as<uint8_t>() + at, n, static_cast<uint8_t>(id));
    if (width_ == 2) std::fill_n(as<uint16_t>() + at, n, static_cast<uint16_t>(id));
    if (width_ == 4) std::fill_n(as<int32_t>() + at, n, id);
  }
  template <typename Out>
  void write(const std::vector<int32_t>& renamed, Out* out) const {
    if (width_ == 1) write_from(as<uint8_t>(), renamed, out);
    if (width_ == 2) write_from(as<uint16_t>(), renamed, out);
    if (width_ == 4) write_from(as<int32_t>(), renamed, out);
  }
  void release() { data_.reset(); }

 private:
  template <typename T>
  T* as() const { return reinterpret_cast<T*>(data_.get()); }
  template <typename In, typename Out>
  void write_from(const In* in, const std::vector<int32_t>& renamed, Out* out) const {
    if (renamed.empty())
      for (int64_t i = 0; i < n_; ++i) out[i] = static_cast<Out>(in[i]);
    else
      for (int64_t i = 0; i < n_; ++i) out[i] = static_cast<Out>(renamed[in[i]]);
  }
  void widen(int width) {
    std::unique_ptr<char[]> wider(new char[static_cast<size_t>(n_ * width)]);
    wider.swap(data_);
    std::swap(width_, width);
    const char* old = wider.get();
    if (width == 1) std::copy_n(reinterpret_cast<const uint8_t*>(old), n_, as<uint16_t>());
    if (width == 2) std::copy_n(reinterpret_cast<const uint16_t*>(old), n_, as<int32_t>());
  }
  int64_t n_;
  int width_ = 0;
  std::unique_ptr<char[]> data_;
};

// ------------------------------------------------------------------ one thread
struct Job {
  const std::vector<Part>& parts;
  int64_t n_rows, n_cols, words, n_groups;
  double* row_sums;
  const Options& options;
  const Isa isa;
  bool direct;  // the rows of every part can be read where they lie
  std::atomic<bool>& go_wide;
};

class Worker {
 public:
  Worker(const Job& job, int64_t begin, int64_t end)
      : job_(job),
        begin_(begin),
        end_(end),
        memory_(job.n_cols),
        patterns(job.words, end - begin),
        ids(end - begin) {
    tile_rows_ = std::clamp<int64_t>(
        kTileBytes / (8 * std::max<int64_t>(job.n_cols, 1)), 1, kMaxTileRows);
    keys_.resize(static_cast<size_t>(tile_rows_ * job.words));
    acc_.resize(static_cast<size_t>(tile_rows_));
    tile_ids_.resize(static_cast<size_t>(tile_rows_));
    if (!job.direct)
      scratch_.resize(static_cast<size_t>(tile_rows_ * job.n_cols + 4));
    divide_into_stretches();
    column_sums_.resize(static_cast<size_t>(job.n_cols + kPadding));
  }

  // Fills the pattern table; stops early when the wide form is called for.
  void observe_table() {
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      if (job_.go_wide.load(std::memory_order_relaxed)) return;
      const int64_t rows = std::min(tile_rows_, end_ - row);
      scan(row, rows, nullptr);
      if ((was_one_pattern_ = is_one_pattern(rows))) {
        add_run(row, rows);
        continue;
      }
      assign_patterns(rows);
      add_cells(rows);
      for (const int32_t id : due_) flush(id);
      ids.store(row - begin_, tile_ids_.data(), rows, patterns.size());
      if (table_is_a_waste(row + rows - begin_)) job_.go_wide = true;
    }
    for (size_t id = 0; id < runs_.size(); ++id) counts[id] += runs_[id].rows;
  }

  // Margins and bit masks only: memory is a 32nd of the data.
  void observe_wide(uint64_t* bits, uint64_t* positive) {
    negative = infinite = Fault{};
    total = 0.0;
    overflow = false;
    sums.clear();
    sums.emplace_back(job_.n_cols, memory_.next());
    std::fill_n(sums[0].run(), job_.n_cols, 0.0);
    std::fill(acc_.begin(), acc_.end(), sums[0].run());
    int64_t pending = 0;
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      const int64_t rows = std::min(tile_rows_, end_ - row);
      uint64_t* above = positive + row * job_.words;
      scan(row, rows, above);
      for (int64_t k = 0; k < rows * job_.words; ++k) has_zero |= above[k] != keys_[k];
      std::memcpy(bits + row * job_.words, keys_.data(),
                  sizeof(uint64_t) * static_cast<size_t>(rows * job_.words));
      add_cells(rows);
      if ((pending += rows) >= kRun) {
        sums[0].flush();
        pending = 0;
      }
    }
  }

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

 private:
  const Job& job_;
  int64_t begin_, end_, tile_rows_;
  RunMemory memory_;
  // Columns that lie side by side in memory and count into the same row sums.
  struct Stretch {
    const double* x;  // first cell of the tile
    int64_t stride, cols, first_col;
    int group;
    bool opens_group;  // the first stretch of its group
    bool has_columns = false;  // the scan has left its column sums in column_sums_
  };
  std::vector<Stretch> stretches_;
  std::vector<uint64_t> keys_, stretch_keys_, stretch_positive_;
  std::vector<double> stretch_sums_, scratch_, column_sums_;
  bool was_one_pattern_ = false;  // then the next tile probably has one too
  struct Run {  // the open run of a pattern: its sums and how many rows are in it
    double* sums;
    int64_t rows;
  };
  std::vector<double*> acc_, stretch_acc_;
  std::vector<Run> runs_;
  std::vector<int32_t> due_, tile_ids_;

 public:
  PatternIndex patterns;
  IdBuffer ids;
  std::vector<ColumnSums> sums;
  std::vector<int64_t> counts;
  Fault negative, infinite;
  double total = 0.0;
  bool overflow = false, has_zero = false;

 private:
  // One stretch per part, or one for all when a scratch tile makes them neighbours.
  void divide_into_stretches() {
    int64_t col = 0;
    std::vector<bool> opened(static_cast<size_t>(job_.n_groups), false);
    const bool whole = !job_.direct && job_.n_groups == 1;
    for (const Part& part : job_.parts) {
      const int64_t cols = whole ? job_.n_cols : part.n_cols;
      const int64_t stride = job_.direct ? part.row_stride / 8 : job_.n_cols;
      stretches_.push_back(
          {nullptr, stride, cols, col, part.sum_group, !opened[part.sum_group], false});
      opened[part.sum_group] = true;
      col += cols;
      if (whole) break;
    }
    if (stretches_.size() == 1) return;
    const auto rows = static_cast<size_t>(tile_rows_);
    stretch_keys_.resize(rows * static_cast<size_t>(job_.words));
    stretch_positive_.resize(stretch_keys_.size());
    stretch_sums_.resize(rows);
    stretch_acc_.resize(rows);
  }

  // Whether all rows of the tile have a pattern that is known already.
  bool is_one_pattern(int64_t rows) {
    if (runs_.empty()) return false;
    const uint64_t* key = keys_.data();
    uint64_t differs = 0;
    for (int64_t k = job_.words; k < rows * job_.words; ++k)
      differs |= key[k] ^ key[k - job_.words];
    if (differs != 0) return false;
    tile_ids_[0] = patterns.find_or_insert(key);
    if (tile_ids_[0] < static_cast<int32_t>(runs_.size())) return true;
    add_pattern();
    return false;
  }

  void add_run(int64_t row, int64_t rows) {
    const int32_t id = tile_ids_[0];
    for (const Stretch& s : stretches_) {
      double* sums = runs_[id].sums + s.first_col;
      const double* found = column_sums_.data() + s.first_col;
      if (s.has_columns)
        for (int64_t j = 0; j < s.cols; ++j) sums[j] += found[j];
      else
        job_.isa.add_run(s.x, s.stride, rows, s.cols, sums);
    }
    // Each tile is summed on its own first, so a run may be longer.
    if ((runs_[id].rows += rows) >= 4 * kRun) flush(id);
    ids.fill(row - begin_, id, rows);
  }

  // Adds every cell of the tile to the sums of its row's pattern.
  void add_cells(int64_t rows) {
    for (const Stretch& s : stretches_) {
      double* const* acc = acc_.data();
      if (s.first_col != 0) {
        for (int64_t i = 0; i < rows; ++i) stretch_acc_[i] = acc_[i] + s.first_col;
        acc = stretch_acc_.data();
      }
      job_.isa.add(s.x, s.stride, rows, s.cols, acc);
    }
  }

  // Which pattern each row of the tile has, and where its cells are to be added.
  void assign_patterns(int64_t rows) {
    due_.clear();
    const uint64_t* key = keys_.data();
    int32_t* const ids = tile_ids_.data();
    if (job_.words == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        PatternIndex::Short& hit = patterns.cached(key[i]);
        if (hit.key != key[i] || hit.id < 0) hit = {key[i], number_of(key + i)};
        ids[i] = hit.id;
      }
    } else {
      for (int64_t i = 0; i < rows; ++i) ids[i] = number_of(key + i * job_.words);
    }
    double** const acc = acc_.data();
    Run* const runs = runs_.data();
    for (int64_t i = 0; i < rows; ++i) {
      Run& run = runs[ids[i]];
      acc[i] = run.sums;
      // Runs of whole tiles may be longer already.
      if (++run.rows % kRun == 0) due_.push_back(ids[i]);
    }
  }

  int32_t number_of(const uint64_t* key) {
    const int32_t id = patterns.find_or_insert(key);
    if (id == static_cast<int32_t>(runs_.size())) add_pattern();
    return id;
  }

  void add_pattern() {
    sums.emplace_back(job_.n_cols, memory_.next());
    runs_.push_back({sums.back().run(), 0});
    counts.push_back(0);
  }

  void flush(int32_t id) {
    sums[id].flush();
    counts[id] += runs_[id].rows;
    runs_[id].rows = 0;
  }

  bool table_is_a_waste(int64_t rows_seen) const {
    return !job_.options.keep_table &&
           patterns.size() * job_.n_cols > job_.options.table_cells &&
           patterns.size() * 4 > rows_seen;
  }

  void place_stretches(int64_t row, int64_t rows) {
    if (!job_.direct) {
      load_tile(job_.parts, row, rows, job_.n_cols, job_.options.scale,
                scratch_.data());
      for (Stretch& s : stretches_) s.x = scratch_.data() + s.first_col;
      return;
    }
    for (size_t p = 0; p < stretches_.size(); ++p) {
      const Part& part = job_.parts[p];
      stretches_[p].x =
          reinterpret_cast<const double*>(part.data + row * part.row_stride);
    }
  }

  // Fills keys_, the row sums and, when asked for, the bits of the positive cells.
  void scan(int64_t row, int64_t rows, uint64_t* positive) {
    place_stretches(row, rows);
    double smallest = 0.0;
    if (stretches_.size() == 1) {
      Stretch& s = stretches_[0];
      double* sums = job_.row_sums + s.group * job_.n_rows + row;
      TileScan found{keys_.data(), positive, sums, 0.0, wanted_columns(s)};
      job_.isa.scan(s.x, s.stride, rows, s.cols, job_.words, found);
      smallest = found.smallest;
      s.has_columns = found.has_columns;
    } else {
      smallest = scan_stretches(row, rows, positive);
    }
    if (smallest < 0.0) find_negative(row, rows);
    double tile_total = 0.0;
    for (int64_t g = 0; g < job_.n_groups; ++g)
      tile_total += quick_sum(job_.row_sums + g * job_.n_rows + row, rows);
    total += tile_total;
    // One row that is not finite is enough to spoil the sum of them all.
    if (!std::isfinite(tile_total)) find_infinite(row, rows);
  }

  double* wanted_columns(const Stretch& s) {
    return was_one_pattern_ ? column_sums_.data() + s.first_col : nullptr;
  }

  double scan_stretches(int64_t row, int64_t rows, uint64_t* positive) {
    const int64_t n_words = rows * job_.words;
    std::fill_n(keys_.data(), n_words, 0);
    if (positive != nullptr) std::fill_n(positive, n_words, 0);
    double smallest = 0.0;
    for (Stretch& s : stretches_) {
      double* sums = job_.row_sums + s.group * job_.n_rows + row;
      TileScan found{stretch_keys_.data(),
                     positive != nullptr ? stretch_positive_.data() : nullptr,
                     s.opens_group ? sums : stretch_sums_.data(), smallest,
                     wanted_columns(s)};
      const int64_t words = (s.cols + 63) / 64;
      job_.isa.scan(s.x, s.stride, rows, s.cols, words, found);
      smallest = found.smallest;
      s.has_columns = found.has_columns;
      put_bits(stretch_keys_.data(), words, s, rows, keys_.data());
      if (positive != nullptr)
        put_bits(stretch_positive_.data(), words, s, rows, positive);
      if (!s.opens_group)
        for (int64_t i = 0; i < rows; ++i) sums[i] += stretch_sums_[i];
    }
    return smallest;
  }

  // Moves a stretch's bits to its columns' places among the row's.
  void put_bits(const uint64_t* from, int64_t words, const Stretch& s, int64_t rows,
                uint64_t* to) const {
    const int64_t shift = s.first_col & 63;
    if (job_.words == 1) {
      for (int64_t i = 0; i < rows; ++i) to[i] |= from[i] << shift;
      return;
    }
    to += s.first_col >> 6;
    for (int64_t i = 0; i < rows; ++i, to += job_.words)
      for (int64_t w = 0; w < words; ++w) {
        const uint64_t bits = *from++;
        to[w] |= bits << shift;
        const uint64_t carried = shift != 0 ? bits >> (64 - shift) : 0;
        if (carried != 0) to[w + 1] |= carried;
      }
  }

  void find_negative(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i)
      for (const Stretch& s : stretches_)
        for (int64_t j = 0; j < s.cols; ++j) {
          const double v = s.x[i * s.stride + j];
          if (v < 0.0 && !std::isinf(v)) note(negative, row + i, s.first_col + j, v);
        }
  }

  void find_infinite(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t before = infinite.count;
      for (const Stretch& s : stretches_)
        for (int64_t j = 0; j < s.cols; ++j) {
          const double v = s.x[i * s.stride + j];
          if (std::isinf(v)) note(infinite, row + i, s.first_col + j, v);
        }
      if (infinite.count != before) continue;
      for (int64_t g = 0; g < job_.n_groups; ++g)
        overflow |= !std::isfinite(job_.row_sums[g * job_.n_rows + row + i]);
    }
  }

  static void note(Fault& fault, int64_t row, int64_t col, double value) {
    if (fault.count++ == 0) {
      fault.row = row;
      fault.col = col;
      fault.value = value;
    }
  }
};

template <typename F>
void run_on_threads(int n, F&& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(n - 1));
  for (int t = 1; t < n; ++t) threads.emplace_back([&work, t] { work(t); });
  work(0);
  for (std::thread& thread : threads) thread.join();
}

void merge_fault(Fault& into, const Fault& from) {
  if (from.count && (!into.count || from.row < into.row)) {
    const int64_t count = into.count;
    into = from;
    into.count += count;
  } else {
    into.count += from.count;
  }
}

void merge_tables(std::vector<Worker>& workers, const Job& job, const IdMemory& new_ids,
                  Observation& out) {
  Worker& first = workers[0];
  std::vector<std::vector<int32_t>> renamed(workers.size());
  for (size_t t = 1; t < workers.size(); ++t) {
    Worker& other = workers[t];
    for (int64_t k = 0; k < other.patterns.size(); ++k) {
      const int32_t id =
          first.patterns.find_or_insert(&other.patterns.keys[k * job.words]);
      renamed[t].push_back(id);
      if (id == static_cast<int32_t>(first.sums.size())) {
        first.sums.push_back(std::move(other.sums[k]));
        first.counts.push_back(other.counts[k]);
      } else {
        first.sums[id].absorb(other.sums[k]);
        first.counts[id] += other.counts[k];
      }
    }
  }
  out.n_patterns = first.patterns.size();
  out.keys = std::move(first.patterns.keys);
  out.sums.resize(static_cast<size_t>(out.n_patterns * job.n_cols));
  out.counts = std::move(first.counts);
  for (int64_t k = 0; k < out.n_patterns; ++k)
    first.sums[k].write(&out.sums[static_cast<size_t>(k * job.n_cols)]);
  out.id_width = out.n_patterns <= 256 ? 1 : out.n_patterns <= 65536 ? 2 : 4;
  char* ids = static_cast<char*>(new_ids(out.id_width));
  run_on_threads(static_cast<int>(workers.size()), [&](int t) {
    const int64_t at = workers[t].begin();
    if (out.id_width == 1)
      workers[t].ids.write(renamed[t], reinterpret_cast<uint8_t*>(ids) + at);
    if (out.id_width == 2)
      workers[t].ids.write(renamed[t], reinterpret_cast<uint16_t*>(ids) + at);
    if (out.id_width == 4)
      workers[t].ids.write(renamed[t], reinterpret_cast<int32_t*>(ids) + at);
  });
}

}  // namespace

Observation observe(const std::vector<Part>& parts, int64_t n_rows, int64_t n_groups,
                    double* row_sums, const IdMemory& new_ids, const Options& options) {
  Observation out;
  out.n_rows = n_rows;
  out.n_groups = n_groups;
  for (const Part& part : parts) out.n_cols += part.n_cols;
  out.words = (out.n_cols + 63) / 64;

  static const Isa isa = choose_isa();
  const auto lies_ready = [](const Part& part) {
    return part.dtype == Dtype::f64 && part.col_stride == 8 &&
           part.row_stride % 8 == 0 && part.mask == nullptr && part.validity == nullptr;
  };
  const auto n_parts = static_cast<int64_t>(parts.size());
  const bool direct = options.scale == 1.0 &&
                      (n_parts == 1 || out.n_cols >= kColsWorthReading * n_parts) &&
                      std::all_of(parts.begin(), parts.end(), lies_ready);
  for (int64_t g = 0; g < n_groups; ++g)
    if (std::none_of(parts.begin(), parts.end(),
                     [g](const Part& part) { return part.sum_group == g; }))
      std::fill_n(row_sums + g * n_rows, n_rows, 0.0);
  std::atomic<bool> go_wide{false};
  const Job job{parts,    n_rows,  out.n_cols, out.words, n_groups,
                row_sums, options, isa,        direct,    go_wide};

  const int64_t useful = std::max<int64_t>(1, n_rows * out.n_cols / kCellsPerThread);
  const int threads = static_cast<int>(
      std::clamp<int64_t>(options.n_threads, 1, std::min(useful, n_rows)));
  std::vector<Worker> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t)
    workers.emplace_back(job, n_rows * t / threads, n_rows * (t + 1) / threads);

  run_on_threads(threads, [&](int t) { workers[t].observe_table(); });
  out.wide = go_wide;
  if (out.wide) {
    for (Worker& worker : workers) worker.ids.release();
    out.bits.resize(static_cast<size_t>(n_rows * out.words));
    out.positive.resize(out.bits.size());
    run_on_threads(threads, [&](int t) {
      workers[t].observe_wide(out.bits.data(), out.positive.data());
    });
    for (size_t t = 1; t < workers.size(); ++t)
      workers[0].sums[0].absorb(workers[t].sums[0]);
    out.col_sums.resize(static_cast<size_t>(out.n_cols));
    workers[0].sums[0].write(out.col_sums.data());
  } else {
    merge_tables(workers, job, new_ids, out);
  }
  for (const Worker& worker : workers) {
    merge_fault(out.negative, worker.negative);
    merge_fault(out.infinite, worker.infinite);
    out.total += worker.total;
    out.overflow |= worker.overflow;
    out.has_zero |= worker.has_zero;
  }
  for (const double s : out.sums) out.overflow |= !std::isfinite(s);
  for (const double s : out.col_sums) out.overflow |= !std::isfinite(s);
  return out;
}

void load_rows(const std::vector<Part>& parts, int64_t row, int64_t rows, double scale,
               double* out) {
  int64_t n_cols = 0;
  for (const Part& part : parts) n_cols += part.n_cols;
  load_tile(parts, row, rows, n_cols, scale, out);
}

template <typename Id>
void expand_rows(double* row_sums, const Id* pattern_id, const double* scale, int64_t n,
                 int n_threads) {
  const int threads = static_cast<int>(
      std::clamp<int64_t>(n_threads, 1, std::max<int64_t>(1, n / kCellsPerThread)));
  run_on_threads(threads, [&](int t) {
    for (int64_t i = n * t / threads; i < n * (t + 1) / threads; ++i)
      row_sums[i] *= scale[pattern_id[i]];
  });
}

template void expand_rows(double*, const uint8_t*, const double*, int64_t, int);
template void expand_rows(double*, const uint16_t*, const double*, int64_t, int);
template void expand_rows(double*, const int32_t*, const double*, int64_t, int);

}  // namespace a1gm
