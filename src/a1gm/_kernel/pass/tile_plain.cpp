// The loops over a tile for any processor.
#include <algorithm>

#include "pass/tile.hpp"
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

}  // namespace

template <typename T>
Isa<T> plain_isa() {
  return {scan_tile_plain<T>, add_tile_plain<T>, add_run_plain<T>};
}

template Isa<double> plain_isa();
template Isa<float> plain_isa();

}  // namespace a1gm
