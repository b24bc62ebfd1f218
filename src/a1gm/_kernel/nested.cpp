#include "nested.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

int64_t count_bits(const uint64_t* row, int64_t words) {
  int64_t n = 0;
  for (int64_t w = 0; w < words; ++w)
    for (uint64_t x = row[w]; x; x &= x - 1) ++n;
  return n;
}

bool contains(const uint64_t* large, const uint64_t* small, int64_t words) {
  for (int64_t w = 0; w < words; ++w)
    if (small[w] & ~large[w]) return false;
  return true;
}

// B of some rows, with a compensated sum per step.
class Accumulator {
 public:
  Accumulator(const Nesting& nesting, int64_t m)
      : hi(static_cast<size_t>(nesting.n_steps), 0.0),
        lo(static_cast<size_t>(nesting.n_steps), 0.0),
        cells_(static_cast<size_t>(nesting.n_steps)),
        nesting_(nesting),
        m_(m) {}

  void add(const double* x, int32_t depth) {
    std::fill_n(cells_.begin(), depth, 0.0);
    for (int64_t j = 0; j < m_; ++j)
      if (x[j] == x[j]) cells_[nesting_.step[j]] += x[j];
    double sum = 0.0;
    for (int32_t k = 0; k < depth; ++k) {
      two_sum(sum, hi[k], lo[k]);
      sum += cells_[k];
    }
  }
  std::vector<double> hi, lo;

 private:
  std::vector<double> cells_;
  const Nesting& nesting_;
  int64_t m_;
};

}  // namespace

bool find_nesting(const uint64_t* bits, int64_t n, int64_t m, int64_t words,
                  Nesting& out) {
  std::vector<int64_t> size(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) size[i] = count_bits(bits + i * words, words);
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&size](int32_t a, int32_t b) { return size[a] < size[b]; });
  out.depth.assign(static_cast<size_t>(n), 0);
  out.step.assign(static_cast<size_t>(m), -1);
  out.n_steps = 0;
  const std::vector<uint64_t> nothing(static_cast<size_t>(words), 0);
  const uint64_t* before = nothing.data();
  for (const int32_t i : order) {
    const uint64_t* row = bits + i * words;
    if (!contains(row, before, words)) return false;
    bool grows = false;
    for (int64_t w = 0; w < words; ++w)
      for (uint64_t fresh = row[w] & ~before[w]; fresh; fresh &= fresh - 1) {
        int bit = 0;
        while (!(fresh >> bit & 1)) ++bit;
        out.step[w * 64 + bit] = out.n_steps;
        grows = true;
      }
    out.n_steps += grows;
    out.depth[i] = out.n_steps;
    before = row;
  }
  return out.n_steps > 0;
}

void sum_before_steps(const std::vector<Part>& parts, int64_t n_rows,
                      const Nesting& nesting, double scale, int n_threads,
                      double* before) {
  const auto m = static_cast<int64_t>(nesting.step.size());
  const int threads =
      static_cast<int>(std::clamp<int64_t>(n_threads, 1, std::max<int64_t>(1, n_rows)));
  std::vector<Accumulator> sums(static_cast<size_t>(threads), Accumulator(nesting, m));
  auto work = [&](int t) {
    std::vector<double> row(static_cast<size_t>(m));
    for (int64_t i = n_rows * t / threads; i < n_rows * (t + 1) / threads; ++i) {
      if (nesting.depth[i] < 2) continue;  // step 0 has nothing before it
      load_tile(parts, i, 1, m, scale, row.data());
      sums[t].add(row.data(), nesting.depth[i]);
    }
  };
  run_on_threads(threads, work);
  std::fill_n(before, nesting.n_steps, 0.0);
  for (const Accumulator& part : sums)
    for (int32_t k = 0; k < nesting.n_steps; ++k) before[k] += part.hi[k] + part.lo[k];
}

std::vector<double> reach_of_steps(const Nesting& nesting, const double* h) {
  std::vector<double> reach(static_cast<size_t>(nesting.n_steps) + 1, 0.0);
  for (size_t j = 0; j < nesting.step.size(); ++j)
    if (nesting.step[j] >= 0) reach[static_cast<size_t>(nesting.step[j]) + 1] += h[j];
  std::partial_sum(reach.begin(), reach.end(), reach.begin());
  return reach;
}

void nested_factors(const Nesting& nesting, const double* before,
                    const double* col_sums, int64_t m, double* h) {
  std::vector<double> total(static_cast<size_t>(nesting.n_steps), 0.0);
  for (int64_t j = 0; j < m; ++j)
    if (nesting.step[j] >= 0) total[nesting.step[j]] += col_sums[j];
  // From the last step back, so that the shares sum to 1: the last step takes
  // C / (C + B) of all, the one before the same share of what is left, and so on.
  std::vector<double> share(total.size());
  double left = 1.0;
  for (size_t k = total.size(); k-- > 0;) {
    const double both = total[k] + before[k];
    share[k] = k ? left * (total[k] / both) : left;
    left = k ? left * (before[k] / both) : 0.0;
  }
  for (int64_t j = 0; j < m; ++j)
    h[j] = nesting.step[j] < 0 ? std::numeric_limits<double>::quiet_NaN()
                               : share[nesting.step[j]] *
                                     (col_sums[j] / total[nesting.step[j]]);
}

}  // namespace a1gm
