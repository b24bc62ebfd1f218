// The usual table with weights: one block, quick to scale, one read of the weights a sweep.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "read/tile_reader.hpp"
#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"
#include "scale/momentum.hpp"
#include "scale/solve.hpp"
#include "scale/sweeps.hpp"
#include "scale/weighted_rows.hpp"
#include "threads.hpp"
#include "wide_number.hpp"

namespace a1gm {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int kRounds = 64;             // of a search for what hangs together
constexpr double kProportional = 0x1p-44;
constexpr double kLeastShare = 0.02;
constexpr double kSmallestSum = 1e-280;  // below it squares of shares could vanish
constexpr double kNear = 0.01;    // a gap at which the spread is measured
constexpr double kSlack = 1e-6;

// The columns that a row observes of those that count.
bool meets(const BitMask& mask, int64_t i, const std::vector<uint64_t>& columns) {
  uint64_t common = 0;
  for (int64_t w = 0; w < mask.words; ++w) common |= mask.bits[i * mask.words + w] & columns[w];
  return common != 0;
}

// Whether all rows and columns with data hang together; "no" after a long search.
bool are_one_block(const BitMask& mask, const double* R, const double* C) {
  std::vector<uint64_t> active(static_cast<size_t>(mask.words), 0), reached(active);
  for (int64_t j = 0; j < mask.m; ++j)
    active[j >> 6] |= static_cast<uint64_t>(C[j] > 0.0) << (j & 63);
  std::vector<int64_t> waiting;
  for (int64_t i = 0; i < mask.n; ++i)
    if (R[i] > 0.0) waiting.push_back(i);
  if (waiting.empty()) return false;
  const auto join = [&](int64_t i) {
    for (int64_t w = 0; w < mask.words; ++w)
      reached[w] |= mask.bits[i * mask.words + w] & active[w];
  };
  join(waiting[0]);
  for (int round = 0; round < kRounds && !waiting.empty(); ++round) {
    const auto joins = [&](int64_t i) {
      if (!meets(mask, i, reached)) return false;
      join(i);
      return true;
    };
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), joins), waiting.end());
  }
  return waiting.empty() && reached == active;
}

// Whether every row's weights are proportional to those of the fullest row where both
// observe. Where two rows of two columns are not, no closed form exists.
bool are_proportional(const BitMask& mask, const std::vector<Part>& weights) {
  std::vector<int64_t> counts(static_cast<size_t>(mask.n), 0);
  for (int64_t i = 0; i < mask.n; ++i)
    for (int64_t w = 0; w < mask.words; ++w)
      counts[i] += count_bits(mask.bits[i * mask.words + w]);
  const int64_t fullest = std::max_element(counts.begin(), counts.end()) - counts.begin();
  TileReader reader(weights, mask.m, kTileRows);
  const double* tile = reader.rows(fullest, 1);
  const std::vector<double> full(tile, tile + mask.m);
  Poll poll;
  for (int64_t i = 0; i < mask.n; ++i) {
    const int64_t k = i % kTileRows;
    if (k == 0) tile = reader.rows(i, std::min(kTileRows, mask.n - i));
    poll.worked(mask.m);
    const double* const own = tile + k * reader.stride();
    double ratio = 0.0;
    for (int64_t w = 0; w < mask.words; ++w) {
      uint64_t both = mask.bits[i * mask.words + w] & mask.bits[fullest * mask.words + w];
      for (; both != 0; both &= both - 1) {
        const int64_t j = w * 64 + lowest_bit(both);
        if (ratio == 0.0) ratio = own[j] / full[j];
        if (std::abs(own[j] - ratio * full[j]) > kProportional * own[j]) return false;
      }
    }
  }
  return true;
}

// How much the fitted cells of rows differ from the product of their margins: bounds
// what is left of an error after a sweep, in the mean and for the worst row.
struct Spread {
  double mean = 0.0, worst = 0.0;

  // The squares of the row's fitted cells, each over its column's sum, added up.
  void add(double squares, double R) {
    mean += squares / R;
    worst = std::max(worst, squares / R / R);
  }
  void add(const Spread& other) {
    mean += other.mean;
    worst = std::max(worst, other.worst);
  }
  // Bound of the step that Newton's method would take for this mismatch of columns.
  // A sweep multiplies errors by a matrix with eigenvalues 1, for the scale, and others
  // from 0 to 1; `mean` is the sum of all. The error in the mean follows, and one more
  // product, row by row, makes it that of each column. Cells have changed by at most
  // this factor since they were squared.
  double step(double mismatch, double total, double factor) const {
    const double shrinks = 2.0 - mean * factor * factor;
    if (!(shrinks > kLeastShare)) return std::numeric_limits<double>::infinity();
    return 2.0 * mismatch * (1.0 + std::sqrt(total * worst) * factor / shrinks);
  }
};

// Columns that stand beside rows of bits: a number for each, 0 beyond the last.
std::vector<double> beside(const BitMask& mask, const double* values) {
  std::vector<double> all(static_cast<size_t>(mask.words) * 64, 0.0);
  std::copy_n(values, mask.m, all.begin());
  return all;
}

class Weights {
 public:
  Weights(const BitMask& mask, const std::vector<Part>& parts, int n_threads)
      : mask_(mask),
        parts_(parts),
        threads_(useful_threads(n_threads, mask.n * mask.m)),
        loops_(choose_row_loops(mask.m)),
        no_bits_(static_cast<size_t>(mask.words), 0),
        collected_(static_cast<size_t>(threads_)) {}

  // For each row the sum of x over its cells; `factor_of` makes of it what its columns
  // collect, and `collect` does so.
  template <typename F, typename G>
  void sweep(const std::vector<double>& x, F&& factor_of, G&& collect,
             std::vector<double>& columns) {
    run_on_threads(threads_, [&](int t) {
      std::vector<double>& own = collected_[t];
      own.assign(x.size(), 0.0);
      TileReader reader(parts_, mask_.m, kTileRows);
      Poll poll;
      double factors[kRowsAtOnce];
      const int64_t begin = mask_.n * t / threads_, end = mask_.n * (t + 1) / threads_;
      for (int64_t first = begin; first < end; first += kTileRows) {
        const int64_t last = std::min(first + kTileRows, end);
        poll.worked((last - first) * mask_.m);
        const double* const tile = reader.rows(first, last - first);
        for (int64_t i = first; i < last; i += kRowsAtOnce) {
          const int64_t n = std::min(kRowsAtOnce, last - i);
          const WeightedRows rows =
              some_rows(tile + (i - first) * reader.stride(), reader.stride(), i, n);
          loops_.reach(rows, x.data(), factors);
          for (int64_t k = 0; k < n; ++k) factors[k] = factor_of(i + k, factors[k]);
          collect(loops_, rows, factors, i, n, t, own.data());
        }
      }
    });
    columns.assign(static_cast<size_t>(mask_.m), 0.0);
    for (const std::vector<double>& own : collected_)
      for (size_t j = 0; j < columns.size(); ++j) columns[j] += own[j];
  }

  template <typename F>
  void sweep(const std::vector<double>& x, F&& factor_of, std::vector<double>& columns) {
    const auto collect = [](const RowLoops& loops, const WeightedRows& rows,
                            const double* factors, int64_t, int64_t, int, double* sums) {
      loops.collect(rows, factors, sums);
    };
    sweep(x, factor_of, collect, columns);
  }

  // The same, and how far the fitted cells spread; x are factors of columns, C and R
  // the sums of columns and rows.
  template <typename F>
  Spread measure(const std::vector<double>& x, F&& factor_of, const double* R,
                 const double* C, std::vector<double>& columns) {
    std::vector<double> share = beside(mask_, C);
    for (size_t j = 0; j < share.size(); ++j) share[j] = share[j] > 0.0 ? x[j] / share[j] : 0.0;
    std::vector<Spread> spreads(static_cast<size_t>(threads_));
    const auto collect = [&](const RowLoops& loops, const WeightedRows& rows,
                             const double* factors, int64_t first, int64_t n, int t,
                             double* sums) {
      double squares[kRowsAtOnce];
      loops.collect_squares(rows, factors, x.data(), share.data(), squares, sums);
      for (int64_t k = 0; k < n; ++k)
        if (R[first + k] > 0.0) spreads[t].add(squares[k], R[first + k]);
    };
    sweep(x, factor_of, collect, columns);
    Spread all;
    for (const Spread& own : spreads) all.add(own);
    return all;
  }

 private:
  BitMask mask_;
  const std::vector<Part>& parts_;
  int threads_;
  RowLoops loops_;
  std::vector<uint64_t> no_bits_;
  std::vector<std::vector<double>> collected_;

  WeightedRows some_rows(const double* weights, int64_t stride, int64_t i, int64_t n) const {
    WeightedRows rows;
    rows.n_cols = mask_.m;
    for (int64_t k = 0; k < kRowsAtOnce; ++k) {
      rows.weights[k] = k < n ? weights + k * stride : weights;
      rows.bits[k] = k < n ? mask_.bits + (i + k) * mask_.words : no_bits_.data();
    }
    return rows;
  }
};

// By what factor cells may differ whose columns have the one or the other factors.
double factor_between(const std::vector<double>& one, const std::vector<double>& other) {
  double least = HUGE_VAL, most = 0.0;
  for (size_t j = 0; j < one.size(); ++j) {
    if (one[j] == 0.0) continue;
    least = std::min(least, one[j] / other[j]);
    most = std::max(most, one[j] / other[j]);
  }
  return most / least;
}

// Whether every number but 0 keeps its digits; those that should not be 0 are not.
bool are_usable(const std::vector<double>& factors, const double* sums) {
  for (size_t k = 0; k < factors.size(); ++k)
    if (sums[k] > 0.0 ? !(factors[k] > 0.0 && keeps_digits(factors[k])) : factors[k] != 0.0)
      return false;
  return true;
}

bool are_sums(const double* sums, int64_t n) {
  return std::all_of(sums, sums + n, [](double x) {
    return x == 0.0 || (x > kSmallestSum && keeps_digits(x));
  });
}

}  // namespace

bool solve_weighted(const BitMask& mask, const std::vector<Part>& weights,
                    const double* R, const double* C, double tol, int64_t max_sweeps,
                    int n_threads, Plain& out) {
  if (!are_sums(R, mask.n) || !are_sums(C, mask.m) || !are_one_block(mask, R, C))
    return false;
  Reduced unused;
  if (are_proportional(mask, weights) && !merge_twins(mask, R, C, false, false, unused))
    return false;
  Weights all(mask, weights, n_threads);
  const auto m = static_cast<size_t>(mask.m);
  const double largest = *std::max_element(C, C + mask.m);
  std::vector<double> h = beside(mask, C), measured, columns;
  for (double& x : h)
    if (x > 0.0) x = std::max(x / largest, kSmallestStart);
  out.line_factor.assign(static_cast<size_t>(mask.n), 0.0);
  double* const w = out.line_factor.data();
  const auto fit_row = [R, w](int64_t i, double reach) {
    return R[i] > 0.0 ? w[i] = R[i] / reach : 0.0;
  };
  Sweeps sweeps;
  Spread spread;
  Patience rule{tol, max_sweeps, std::numeric_limits<int64_t>::max()};
  Momentum momentum(m);
  for (int64_t k = 1;; ++k) {
    if (measured.empty() && k > 1 && sweeps.gap < kNear) {
      measured = h;
      spread = all.measure(h, fit_row, R, C, columns);
    } else {
      all.sweep(h, fit_row, columns);
    }
    // Row margins hold exactly: the certificate is the mismatch of the column margins.
    double gap = 0.0;
    for (size_t j = 0; j < m; ++j)
      if (C[j] > 0.0) gap = std::max(gap, std::abs(h[j] * columns[j] - C[j]) / C[j]);
    const bool stops = rule.stops(k, gap, sweeps);
    if (!stops) {
      momentum.advance(k - 1, gap, C, columns.data(), h.data());
      continue;
    }
    for (size_t j = 0; j < m; ++j)
      if (C[j] > 0.0) h[j] = C[j] / columns[j];
    break;
  }
  out.col_factor.assign(h.begin(), h.begin() + mask.m);
  if (!sweeps.done || !are_usable(out.line_factor, R) || !are_usable(out.col_factor, C))
    return false;
  out.n_iter = sweeps.n;
  out.gap = sweeps.gap;
  out.step = std::numeric_limits<double>::infinity();
  if (!measured.empty())
    out.step = spread.step(sweeps.gap + rounding_of_sums(std::max(mask.n, mask.m)),
                           std::accumulate(C, C + mask.m, 0.0),
                           factor_between(h, measured) * (1.0 + kSlack));
  out.finish(R);
  return are_usable(out.line_factor, R) && are_usable(out.col_factor, C) &&
         are_usable(out.line_scale, R);
}

void weighted_product(const BitMask& mask, const std::vector<Part>& weights,
                      const double* d, const double* x, int n_threads,
                      std::vector<double>& y) {
  const auto factor_of = [d](int64_t i, double reach) { return d[i] * reach; };
  Weights(mask, weights, n_threads).sweep(beside(mask, x), factor_of, y);
}

}  // namespace a1gm
