// The usual table of as many patterns as rows: one block, no zeros, quick to scale.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bit_mask.hpp"
#include "scale/cell_error.hpp"
#include "scale/solve.hpp"
#include "scale/subset_sums.hpp"
#include "scale/sweeps.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// What tables cost, in looks at a column's bit: a cell of a list, the rest of a row's
// list in cells, and, in rows, the way from columns to choices and back.
constexpr int64_t kListedCell = 30, kCellsPerRow = 5, kRowsPerTable = 4096;
constexpr int64_t kGroup = 8, kLast = (1 << kGroup) - 1, kPerWord = 64 / kGroup;
constexpr int64_t kPlaces = places_of(kGroup);

int64_t n_observed_in(const BitMask& mask, int64_t row) {
  int64_t count = 0;
  for (int64_t w = 0; w < mask.words; ++w)
    count += count_bits(mask.bits[row * mask.words + w]);
  return count;
}

// What a sweep by lists costs over one by tables.
double cost_of_lists(const BitMask& mask, int64_t n_observed) {
  const int64_t n_rare = std::min(n_observed, mask.n * mask.m - n_observed);
  return static_cast<double>(kListedCell * (n_rare + kCellsPerRow * mask.n)) /
         static_cast<double>((mask.n + kRowsPerTable) * mask.m);
}

// Whether lists are clearly quicker, by some of the rows: counting all takes a while.
bool seems_quick_by_lists(const BitMask& mask) {
  const int64_t apart = std::max<int64_t>(1, mask.n / 64), n_rows = (mask.n - 1) / apart + 1;
  int64_t n_observed = 0;
  for (int64_t i = 0; i < mask.n; i += apart) n_observed += n_observed_in(mask, i);
  return cost_of_lists(mask, n_observed * mask.n / n_rows) < 0.5;
}

// Whether every row shares a column with the one that observes most: then all are one
// block, if every column is observed. False also for rows of one cell, which are better
// peeled off, and where lists are quicker.
bool meet_the_fullest(const BitMask& mask) {
  if (mask.n == 0 || seems_quick_by_lists(mask)) return false;
  int64_t fullest = 0, most = -1, n_observed = 0;
  for (int64_t i = 0; i < mask.n; ++i) {
    const int64_t count = n_observed_in(mask, i);
    if (count == 1) return false;
    n_observed += count;
    if (count > most) {
      most = count;
      fullest = i;
    }
  }
  if (cost_of_lists(mask, n_observed) < 1.0) return false;
  for (int64_t i = 0; i < mask.n; ++i) {
    uint64_t common = 0;
    for (int64_t w = 0; w < mask.words; ++w)
      common |= mask.bits[i * mask.words + w] & mask.bits[fullest * mask.words + w];
    if (common == 0) return false;
  }
  return true;
}

// A bit mask of few columns, read eight columns at a time: 256 choices, and a table of
// their sums replaces eight additions by one look-up.
class WideMask {
 public:
  WideMask(const BitMask& mask, int n_threads)
      : mask_(mask),
        threads_(useful_threads(n_threads, mask.n * mask.m)),
        n_groups_((mask.m + kGroup - 1) / kGroup),
        sums_(static_cast<size_t>(n_groups_ * kPlaces)),
        collected_(static_cast<size_t>(threads_)) {}

  // For each row the sum of x over its cells (0 without x); `factor_of` makes of it what
  // its columns collect.
  template <typename F>
  void sweep(const double* x, F&& factor_of, std::vector<double>& columns) {
    const auto m = static_cast<size_t>(mask_.m);
    if (x != nullptr) fill_choices<kGroup>(x, m, sums_.data());
    run_on_threads(threads_, [&](int t) {
      std::vector<double>& own = collected_[static_cast<size_t>(t)];
      own.assign(sums_.size(), 0.0);
      for (int64_t i = mask_.n * t / threads_; i < mask_.n * (t + 1) / threads_; ++i)
        collect(i, factor_of(i, x == nullptr ? 0.0 : reach(i)), own.data());
    });
    columns.assign(m, 0.0);
    for (std::vector<double>& own : collected_)
      share_out<kGroup>(own.data(), columns.data(), m);
  }

 private:
  BitMask mask_;
  int threads_;
  int64_t n_groups_;
  std::vector<double> sums_;
  std::vector<std::vector<double>> collected_;

  double reach(int64_t i) const {
    const uint64_t* const bits = mask_.bits + i * mask_.words;
    double a = 0.0, b = 0.0;
    for (int64_t k = 0; k < mask_.words; ++k) {
      uint64_t word = bits[k];
      const double* from = sums_.data() + k * kPerWord * kPlaces;
      const int64_t n = std::min(kPerWord, n_groups_ - k * kPerWord);
      int64_t g = 0;
      for (; g + 1 < n; g += 2, from += 2 * kPlaces, word >>= 2 * kGroup) {
        a += from[word & kLast];
        b += from[kPlaces + (word >> kGroup & kLast)];
      }
      if (g < n) a += from[word & kLast];
    }
    return a + b;
  }

  void collect(int64_t i, double factor, double* collected) const {
    const uint64_t* const bits = mask_.bits + i * mask_.words;
    for (int64_t k = 0; k < mask_.words; ++k) {
      uint64_t word = bits[k];
      double* to = collected + k * kPerWord * kPlaces;
      const int64_t n = std::min(kPerWord, n_groups_ - k * kPerWord);
      for (int64_t g = 0; g < n; ++g, to += kPlaces, word >>= kGroup)
        to[word & kLast] += factor;
    }
  }
};

}  // namespace

bool solve_wide(const BitMask& mask, const double* R, const double* C, double tol,
                int64_t max_sweeps, int n_threads, Plain& out) {
  if (!all_in_range(R, mask.n) || !all_in_range(C, mask.m) || !meet_the_fullest(mask))
    return false;
  WideMask wide(mask, n_threads);
  const auto m = static_cast<size_t>(mask.m);
  std::vector<double> h(m), columns;
  // Rows as they are make the first columns, and say how much any two rows share.
  wide.sweep(nullptr, [R](int64_t i, double) { return R[i]; }, columns);
  const std::vector<double> sum_of_rows(columns);
  for (size_t j = 0; j < m; ++j) h[j] = C[j] / columns[j];
  out.line_factor.resize(static_cast<size_t>(mask.n));
  double* const w = out.line_factor.data();
  Sweeps sweeps;
  Patience rule{tol, max_sweeps, max_sweeps};
  Poll poll;
  for (int64_t k = 1;; ++k) {
    poll.worked(mask.n * mask.m);
    wide.sweep(
        h.data(), [R, w](int64_t i, double reach) { return w[i] = R[i] / reach; },
        columns);
    // Row margins hold exactly: the certificate is the mismatch of the column margins.
    double gap = 0.0;
    for (size_t j = 0; j < m; ++j)
      gap = std::max(gap, std::abs(h[j] * columns[j] - C[j]) / C[j]);
    // Also after the last sweep: its sums are there, and the columns are then exact.
    const bool stops = rule.stops(k, gap, sweeps);
    for (size_t j = 0; j < m; ++j) h[j] = C[j] / columns[j];
    if (stops) break;
  }
  if (!sweeps.done || !are_in_range(out.line_factor, h)) return false;
  Overlap overlap(1);
  for (int64_t i = 0; i < mask.n; ++i) overlap.add_row(0, R[i] / w[i]);
  for (size_t j = 0; j < m; ++j) overlap.add_column(0, h[j], sum_of_rows[j], C[j]);
  out.n_iter = sweeps.n;
  out.gap = sweeps.gap;
  out.step = overlap.step(sweeps.gap, mask.n);
  out.col_factor = std::move(h);
  return out.finish(R);
}

void wide_product(const BitMask& mask, const double* d, const double* x, int n_threads,
                  std::vector<double>& y) {
  WideMask(mask, n_threads)
      .sweep(x, [d](int64_t i, double reach) { return d[i] * reach; }, y);
}

}  // namespace a1gm
