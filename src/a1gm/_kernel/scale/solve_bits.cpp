// The usual table of as many patterns as rows: one block, quick to scale. Its bits, and
// its weights where it has some, are read once per sweep, row by row, where they lie.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "avx2.hpp"
#include "read/table_part.hpp"
#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"
#include "scale/solve.hpp"
#include "scale/sweeps.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// Whether a row observes one of these columns.
bool meets(const BitMask& mask, int64_t i, const uint64_t* columns) {
  uint64_t common = 0;
  for (int64_t w = 0; w < mask.words; ++w)
    common |= mask.bits[i * mask.words + w] & columns[w];
  return common != 0;
}

// ------------------------------------------------------------------------- bits alone
// What tables cost, in looks at a column's bit: a cell of a list, the rest of a row's
// list in cells, and, in rows, the way from columns to choices and back.
constexpr int64_t kListedCell = 30, kCellsPerRow = 5, kRowsPerTable = 4096;

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
  for (int64_t i = 0; i < mask.n; ++i)
    if (!meets(mask, i, mask.bits + fullest * mask.words)) return false;
  return true;
}

// Bits of few columns, read eight columns at a time: 256 choices, and a table of their
// sums replaces eight additions by one look-up.
class BitRows {
 public:
  BitRows(const BitMask& mask, int n_threads)
      : mask(mask),
        threads(useful_threads(n_threads, mask.n * mask.m)),
        n_groups_((mask.m + kGroup - 1) / kGroup),
        sums_(static_cast<size_t>(n_groups_ * kPlaces)),
        collected_(static_cast<size_t>(threads)) {}
  const BitMask mask;
  const int threads;

  int64_t begin(int t) const { return mask.n * t / threads; }
  int64_t n_at_once() const { return kMostRows; }
  void expect(double, const double*) {}
  const BitRows& reader(int) const { return *this; }
  double* collect_in(int t) {
    collected_[t].assign(sums_.size(), 0.0);
    return collected_[t].data();
  }

  // The sums of x over every choice of the columns of a group; none without x.
  void take(const double* x) {
    has_x_ = x != nullptr;
    if (!has_x_) return;
    double* sums = sums_.data();
    for (int64_t g = 0; g < n_groups_; ++g, sums += kPlaces)
      for (int64_t bit = 0; bit < kGroup; ++bit) {
        const int64_t j = g * kGroup + bit, half = int64_t{1} << bit;
        const double own = j < mask.m ? x[j] : 0.0;
        for (int64_t c = 0; c < half; ++c) sums[half + c] = sums[c] + own;
      }
  }

  // The other way round: what rows have added to the choices they make goes to the
  // columns of these choices.
  void share_out(double* columns) {
    std::fill_n(columns, mask.m, 0.0);
    for (std::vector<double>& own : collected_)
      for (int64_t g = 0; g < n_groups_; ++g)
        for (int64_t bit = kGroup; bit-- > 0;) {
          const int64_t j = g * kGroup + bit, half = int64_t{1} << bit;
          double *const collected = own.data() + g * kPlaces, *const on = collected + half;
          if (j < mask.m) columns[j] += quick_sum(on, half);
          for (int64_t c = 0; c < half; ++c) collected[c] += on[c];
        }
  }

  int64_t reach(int64_t first, int64_t n, const double*, double* t) const {
    for (int64_t k = 0; k < n; ++k)
      t[k] = has_x_ ? reach_of(mask.bits + (first + k) * mask.words) : 0.0;
    return n * mask.m;
  }
  void collect(int64_t first, int64_t n, const double* t, double* sums) const {
    for (int64_t k = 0; k < n; ++k)
      collect_row(mask.bits + (first + k) * mask.words, t[k], sums);
  }

 private:
  // Places of a group: one for each choice, and a line of the cache to spare. Groups of a
  // power of two would have their same choices compete for a few lines of the cache.
  static constexpr int64_t kGroup = 8, kLast = (1 << kGroup) - 1, kPerWord = 64 / kGroup;
  static constexpr int64_t kPlaces = kLast + 1 + 8;
  int64_t n_groups_;
  std::vector<double> sums_;
  std::vector<std::vector<double>> collected_;
  bool has_x_ = false;

  double reach_of(const uint64_t* bits) const {
    double a = 0.0, b = 0.0;
    for (int64_t k = 0; k < mask.words; ++k) {
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

  void collect_row(const uint64_t* bits, double factor, double* to) const {
    for (int64_t k = 0; k < mask.words; ++k) {
      uint64_t word = bits[k];
      const int64_t n = std::min(kPerWord, n_groups_ - k * kPerWord);
      for (int64_t g = 0; g < n; ++g, to += kPlaces, word >>= kGroup)
        to[word & kLast] += factor;
    }
  }
};

// -------------------------------------------------------------------------- weights
constexpr int64_t kTileCells = 1 << 9;  // of rows that are read at once
constexpr int kRounds = 64;  // of the search for connected rows
constexpr double kLeastShare = 0.02;
constexpr double kNear = 0.01;           // a gap at which the spread is measured
constexpr double kSlack = 1e-6;

// Whether all rows and columns with data are connected; false after a long search.
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
      if (!meets(mask, i, reached.data())) return false;
      join(i);
      return true;
    };
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), joins), waiting.end());
  }
  return waiting.empty() && reached == active;
}

// Copies the weights of a row, 0 where a cell is not observed, and returns the sum of x
// times these.
double reach_plain(const double* v, const uint64_t* bits, int64_t m, const double* x,
                   double* kept) {
  double sum = 0.0;
  for (int64_t j = 0; j < m; ++j) {
    kept[j] = bits[j >> 6] >> (j & 63) & 1 ? v[j] : 0.0;
    sum += kept[j] * x[j];
  }
  return sum;
}

// Adds the weights of a row times its t to the sums of the columns.
A1GM_ANY void collect_any(const double* kept, int64_t m, double t, double* sums) {
#pragma omp simd
  for (int64_t j = 0; j < m; ++j) sums[j] += t * kept[j];
}

// The sum of what a row adds to its columns, squared and times x and y there.
A1GM_ANY double squares_any(const double* kept, int64_t m, double t, const double* x,
                            const double* y) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < m; ++j) sum += (t * kept[j] * x[j]) * (t * kept[j] * y[j]);
  return sum;
}

#ifdef A1GM_AVX2
const bool kHasAvx2 = has_avx2();

A1GM_TARGET double reach_avx2(const double* v, const uint64_t* bits, int64_t m,
                              const double* x, double* kept) {
  __m256d even = _mm256_setzero_pd(), odd = even;
  const auto add = [=](int64_t j, __m256d& sum) A1GM_LAMBDA {
    const auto* const lanes = kLanes.mask[bits[j >> 6] >> (j & 63) & 15];
    const __m256d own = _mm256_and_pd(
        _mm256_loadu_pd(v + j), _mm256_load_pd(reinterpret_cast<const double*>(lanes)));
    _mm256_storeu_pd(kept + j, own);
    sum = _mm256_fmadd_pd(own, _mm256_loadu_pd(x + j), sum);
  };
  int64_t j = 0;
  for (; j + 8 <= m; j += 8) {
    add(j, even);
    add(j + 4, odd);
  }
  for (; j + 4 <= m; j += 4) add(j, even);
  double rest = 0.0;
  for (; j < m; ++j) {
    kept[j] = bits[j >> 6] >> (j & 63) & 1 ? v[j] : 0.0;
    rest += kept[j] * x[j];
  }
  return lane_sum(_mm256_add_pd(even, odd)) + rest;
}
A1GM_TARGET void collect_avx2(const double* kept, int64_t m, double t, double* sums) {
  collect_any(kept, m, t, sums);
}
A1GM_TARGET double squares_avx2(const double* kept, int64_t m, double t, const double* x,
                                const double* y) {
  return squares_any(kept, m, t, x, y);
}
#else
constexpr bool kHasAvx2 = false;
constexpr auto* reach_avx2 = reach_plain;
constexpr auto* collect_avx2 = collect_any;
constexpr auto* squares_avx2 = squares_any;
#endif

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
    if (!(shrinks > kLeastShare)) return kInfinity;
    return 2.0 * mismatch * (1.0 + std::sqrt(total * worst) * factor / shrinks);
  }
};

// By what factor cells may differ between two sets of column factors.
double factor_between(const std::vector<double>& one, const std::vector<double>& other) {
  double least = kInfinity, most = 0.0;
  for (size_t j = 0; j < one.size(); ++j) {
    if (one[j] == 0.0) continue;
    least = std::min(least, one[j] / other[j]);
    most = std::max(most, one[j] / other[j]);
  }
  return most / least;
}

// Rows of weights. Once, near the solution, a sweep measures how far the fitted cells
// spread: `expect` sees when.
class WeightedRows {
 public:
  WeightedRows(const BitMask& mask, const std::vector<Part>& parts, int n_threads,
               const double* R = nullptr, const double* C = nullptr)
      : mask(mask),
        threads(useful_threads(n_threads, mask.n * mask.m)),
        parts_(parts),
        R_(R),
        C_(C),
        spreads_(static_cast<size_t>(threads)),
        collected_(spreads_.size()) {}
  const BitMask mask;
  const int threads;

  int64_t begin(int t) const { return mask.n * t / threads; }
  int64_t n_at_once() const {
    return std::clamp<int64_t>(kTileCells / std::max<int64_t>(mask.m, 1), 1, kMostRows);
  }
  void take(const double* x) { x_ = x; }
  double* collect_in(int t) {
    collected_[t].assign(static_cast<size_t>(mask.words) * 64, 0.0);
    return collected_[t].data();
  }

  void expect(double gap, const double* h) {
    is_measuring_ = measured_.empty() && gap < kNear;
    if (!is_measuring_) return;
    measured_.assign(h, h + mask.words * 64);
    share_ = measured_;
    for (int64_t j = 0; j < mask.m; ++j) share_[j] = C_[j] > 0.0 ? h[j] / C_[j] : 0.0;
  }

  // The bound of the step for this mismatch of the factors h.
  double step(const std::vector<double>& h, double gap) const {
    if (measured_.empty()) return kInfinity;
    Spread all;
    for (const Spread& own : spreads_) all.add(own);
    return all.step(gap + rounding_of_sums(std::max(mask.n, mask.m)),
                    std::accumulate(C_, C_ + mask.m, 0.0),
                    factor_between(h, measured_) * (1.0 + kSlack));
  }

  void share_out(double* columns) const {
    std::fill_n(columns, mask.m, 0.0);
    for (const std::vector<double>& own : collected_)
      for (int64_t j = 0; j < mask.m; ++j) columns[j] += own[j];
  }

  class Reader {
   public:
    Reader(WeightedRows& rows, int t)
        : rows_(rows),
          tiles_(rows.parts_, rows.mask.m, kMostRows),
          spread_(rows.spreads_[t]),
          kept_(static_cast<size_t>(kMostRows * rows.mask.m)) {}

    int64_t reach(int64_t first, int64_t n, const double*, double* t) {
      const auto [bits, n_rows, m, words] = rows_.mask;
      const double* const v = tiles_.rows(first, n);
      const auto run = kHasAvx2 ? reach_avx2 : reach_plain;
      for (int64_t i = 0; i < n; ++i)
        t[i] = run(v + i * tiles_.stride(), bits + (first + i) * words, m, rows_.x_, kept(i));
      return n * m;
    }

    void collect(int64_t first, int64_t n, const double* t, double* sums) {
      const int64_t m = rows_.mask.m;
      const auto run = kHasAvx2 ? collect_avx2 : collect_any;
      const auto squares = kHasAvx2 ? squares_avx2 : squares_any;
      for (int64_t i = 0; i < n; ++i) run(kept(i), m, t[i], sums);
      for (int64_t i = 0; rows_.is_measuring_ && i < n; ++i)
        if (const double R = rows_.R_[first + i]; R > 0.0)
          spread_.add(squares(kept(i), m, t[i], rows_.x_, rows_.share_.data()), R);
    }

   private:
    WeightedRows& rows_;
    TileReader tiles_;
    Spread& spread_;
    std::vector<double> kept_;  // weights of the rows, 0 where nothing is observed

    double* kept(int64_t i) { return kept_.data() + i * rows_.mask.m; }
  };
  Reader reader(int t) { return {*this, t}; }

 private:
  const std::vector<Part>& parts_;
  const double *R_, *C_, *x_ = nullptr;
  bool is_measuring_ = false;
  std::vector<double> measured_, share_;  // h at that time, and over the columns' sums
  std::vector<Spread> spreads_;
  std::vector<std::vector<double>> collected_;
};

// Columns that stand beside rows of bits: a number for each, 0 beyond the last.
std::vector<double> beside(const BitMask& mask, const double* values) {
  std::vector<double> all(static_cast<size_t>(mask.words) * 64, 0.0);
  std::copy_n(values, mask.m, all.begin());
  return all;
}

bool are_positive(const double* sums, int64_t n) {
  return std::all_of(sums, sums + n, [](double x) { return x > 0.0; });
}

// Sweeps from h; false unless they settle. The sums of the last one make columns exact.
template <typename Rows>
bool settles(Rows& rows, const double* R, const double* C, Patience rule,
             std::vector<double>& h, Plain& out) {
  const int64_t m = rows.mask.m;
  std::vector<double> columns;
  out.pattern_factor.assign(static_cast<size_t>(rows.mask.n), 0.0);
  const Sweeps sweeps =
      scale_rows(rows, R, C, m, rule, out.pattern_factor.data(), h.data(), columns);
  for (int64_t j = 0; j < m; ++j)
    if (C[j] > 0.0) h[j] = C[j] / columns[j];
  out.col_factor.assign(h.begin(), h.begin() + m);
  out.n_iter = sweeps.n;
  out.gap = sweeps.gap;
  return sweeps.done;
}

}  // namespace

bool solve_bits(const BitMask& mask, const double* R, const double* C, double tol,
                int64_t max_sweeps, int n_threads, Plain& out) {
  if (!are_in_range(C, mask.m) || !are_positive(R, mask.n) || !are_positive(C, mask.m))
    return false;
  if (!meet_the_fullest(mask)) return false;
  BitRows rows(mask, n_threads);
  // Rows as they are make the first columns, and bound how much any two rows share.
  std::vector<double> h(C, C + mask.m), sum_of_rows(h.size());
  sweep(rows, nullptr, [R](int64_t i, double) { return R[i]; }, sum_of_rows.data());
  for (size_t j = 0; j < h.size(); ++j) h[j] /= sum_of_rows[j];
  if (!settles(rows, R, C, {tol, max_sweeps, max_sweeps}, h, out)) return false;
  Overlap overlap(1);
  for (int64_t i = 0; i < mask.n; ++i) overlap.add_row(0, R[i] / out.pattern_factor[i]);
  for (size_t j = 0; j < h.size(); ++j) overlap.add_column(0, h[j], sum_of_rows[j], C[j]);
  out.step = overlap.step(out.gap, mask.n);
  return out.finish(R, C);
}

bool solve_weighted_bits(const BitMask& mask, const std::vector<Part>& weights,
                         const double* R, const double* C, double tol,
                         int64_t max_sweeps, int n_threads, Plain& out) {
  if (!are_in_range(C, mask.m) || !are_one_block(mask, R, C)) return false;
  WeightedRows rows(mask, weights, n_threads, R, C);
  out.is_whole = are_positive(R, mask.n) && are_positive(C, mask.m);
  const double largest = *std::max_element(C, C + mask.m);
  std::vector<double> h = beside(mask, C);
  for (double& x : h)
    if (x > 0.0) x = std::max(x / largest, kSmallestStart);
  const Patience rule{tol, max_sweeps, std::numeric_limits<int64_t>::max()};
  if (!settles(rows, R, C, rule, h, out)) return false;
  out.step = rows.step(h, out.gap);
  return out.finish(R, C);
}

std::vector<double> product_of_bits(const BitMask& mask, const std::vector<Part>* weights,
                                    const double* d, const double* x, int n_threads) {
  const auto factor_of = [d](int64_t i, double reach) { return d[i] * reach; };
  std::vector<double> y(static_cast<size_t>(mask.m));
  if (weights == nullptr) {
    BitRows rows(mask, n_threads);
    sweep(rows, x, factor_of, y.data());
  } else {
    WeightedRows rows(mask, *weights, n_threads);
    sweep(rows, beside(mask, x).data(), factor_of, y.data());
  }
  return y;
}

std::vector<double> reach_of_bits(const BitMask& mask, const double* x, int n_threads) {
  BitRows rows(mask, n_threads);
  std::vector<double> reach(static_cast<size_t>(mask.n));
  rows.take(x);
  run_on_threads(rows.threads, [&](int t) {
    const int64_t first = rows.begin(t);
    rows.reach(first, rows.begin(t + 1) - first, nullptr, reach.data() + first);
  });
  return reach;
}

std::vector<double> collect_bits(const BitMask& mask, const double* d, int64_t n_levels,
                                 int64_t inner, int n_threads) {
  std::vector<double> y(static_cast<size_t>(n_levels * mask.m));
  const auto n = static_cast<int>(std::min<int64_t>(n_threads, n_levels));
  run_on_threads(n, [&](int t) {
    BitRows rows(mask, 1);
    for (int64_t level = t; level < n_levels; level += n) {
      double* const sums = rows.collect_in(0);
      for (int64_t i = level * inner; i < mask.n; i += n_levels * inner)
        rows.collect(i, inner, d + i, sums);
      rows.share_out(y.data() + level * mask.m);
    }
  });
  return y;
}

}  // namespace a1gm
