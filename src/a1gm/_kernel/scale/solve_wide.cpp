// The usual table of as many patterns as rows: one block, no zeros, quick to scale.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bit_mask.hpp"
#include "scale/solve.hpp"
#include "scale/subset_sums.hpp"
#include "scale/sweeps.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

constexpr int64_t kMostCols = 256;  // wider tables are quicker by lists of their holes
constexpr int64_t kGroup = 8, kChoices = 1 << kGroup, kPerWord = 64 / kGroup;

// Whether every row shares a column with the one that observes most: then all are one
// block, if every column is observed. False also for rows of one cell, which are better
// peeled off.
bool meet_the_fullest(const BitMask& mask) {
  int64_t fullest = 0, most = -1;
  for (int64_t i = 0; i < mask.n; ++i) {
    int64_t count = 0;
    for (int64_t w = 0; w < mask.words; ++w) count += count_bits(mask.bits[i * mask.words + w]);
    if (count == 1) return false;
    if (count > most) {
      most = count;
      fullest = i;
    }
  }
  for (int64_t i = 0; i < mask.n; ++i) {
    uint64_t common = 0;
    for (int64_t w = 0; w < mask.words; ++w)
      common |= mask.bits[i * mask.words + w] & mask.bits[fullest * mask.words + w];
    if (common == 0) return false;
  }
  return true;
}

// w = R / (P h) for some rows, added to the choices that they make.
void sweep_rows(const BitMask& mask, int64_t begin, int64_t end, const double* R,
                const double* sums, double* w, double* collected) {
  const int64_t n_groups = (mask.m + kGroup - 1) / kGroup;
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t* const bits = mask.bits + i * mask.words;
    double a = 0.0, b = 0.0;
    for (int64_t k = 0; k < mask.words; ++k) {
      uint64_t word = bits[k];
      const double* from = sums + k * kPerWord * kChoices;
      const int64_t n = std::min(kPerWord, n_groups - k * kPerWord);
      int64_t g = 0;
      for (; g + 1 < n; g += 2, from += 2 * kChoices, word >>= 2 * kGroup) {
        a += from[word & (kChoices - 1)];
        b += from[kChoices + (word >> kGroup & (kChoices - 1))];
      }
      if (g < n) a += from[word & (kChoices - 1)];
    }
    const double factor = w[i] = R[i] / (a + b);
    for (int64_t k = 0; k < mask.words; ++k) {
      uint64_t word = bits[k];
      double* to = collected + k * kPerWord * kChoices;
      const int64_t n = std::min(kPerWord, n_groups - k * kPerWord);
      for (int64_t g = 0; g < n; ++g, to += kChoices, word >>= kGroup)
        to[word & (kChoices - 1)] += factor;
    }
  }
}

}  // namespace

bool solve_wide(const BitMask& mask, const double* R, const double* C, double tol,
                int64_t max_sweeps, int n_threads, Plain& out) {
  if (mask.m > kMostCols || !all_in_range(R, mask.n) || !all_in_range(C, mask.m) ||
      !meet_the_fullest(mask))
    return false;
  const int threads = useful_threads(n_threads, mask.n * mask.m);
  const auto m = static_cast<size_t>(mask.m);
  const size_t n_choices = groups_of(m, kGroup) * kChoices;
  std::vector<double> h(C, C + m), columns(m), sums(n_choices);
  start_factors(h);
  std::vector<std::vector<double>> collected(static_cast<size_t>(threads));
  out.line_factor.resize(static_cast<size_t>(mask.n));
  double* const w = out.line_factor.data();
  Sweeps sweeps;
  Patience rule{tol, max_sweeps, max_sweeps};
  for (int64_t k = 1;; ++k) {
    fill_choices<kGroup>(h.data(), m, sums.data());
    run_on_threads(threads, [&](int t) {
      std::vector<double>& own = collected[static_cast<size_t>(t)];
      own.assign(n_choices, 0.0);
      sweep_rows(mask, mask.n * t / threads, mask.n * (t + 1) / threads, R, sums.data(),
                 w, own.data());
    });
    std::fill(columns.begin(), columns.end(), 0.0);
    for (std::vector<double>& own : collected) share_out<kGroup>(own.data(), columns.data(), m);
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
  out.n_iter = sweeps.n;
  out.gap = sweeps.gap;
  out.col_factor = std::move(h);
  return out.finish(R);
}

}  // namespace a1gm
