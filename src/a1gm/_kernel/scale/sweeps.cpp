#include "scale/sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "interrupt.hpp"
#include "threads.hpp"

namespace a1gm {

constexpr double kAhead = 0.03;  // of tol may be left to further sweeps
// Cost less than to prove a coarser solution: 23 sweeps or more by benchmarks/costs.py.
constexpr double kFewSweeps = 8.0;

bool Patience::stops(int64_t sweep, double gap, Sweeps& out) {
  // Row margins now hold exactly and no column margin is off by more than gap.
  out.n = sweep;
  out.gap = gap;
  const double rate = previous > 0.0 ? gap / previous : 0.0;
  out.done = gap <= tol;
  // What further sweeps would still move the factors by, at the measured rate.
  const double ahead = rate < 0.999 ? gap * rate / (1.0 - rate) : gap;
  const bool settled = !polish || ahead <= kAhead * tol || rate >= 0.999;
  const auto left_to = [=](double wanted) {
    return rate > 0.0 && rate < 1.0 ? std::log(wanted / gap) / std::log(rate) : 1e18;
  };
  const bool goes_on = gap > aim && left_to(aim) <= kFewSweeps;
  if ((out.done && settled && !goes_on) || sweep >= max_sweeps || !(gap < 1e300))
    return true;
  if (sweep >= 8 && rate > 0.0 && !out.done &&
      static_cast<double>(sweep) + left_to(tol) > static_cast<double>(patience))
    return true;
  previous = gap;
  return false;
}

Sweeps scale(const Lists& rows, const Lists& cols, const double* R, const double* C,
             double* w, double* h, Patience rule) {
  Sweeps out;
  Poll poll;
  for (int64_t k = 0;; ++k) {
    poll.worked(static_cast<int64_t>(rows.index.size() + cols.index.size()) + rows.n);
    double total = 0.0;
    for (int64_t j = 0; j < cols.n; ++j) total += h[j];
    double gap = 0.0;
    for (int64_t i = 0; i < rows.n; ++i) {
      const double t = rows.sum(i, h, total);
      const double off = std::abs(w[i] * t - R[i]);
      if (k && off > gap * R[i]) gap = off / R[i];  // seldom: divisions are slow
      w[i] = R[i] / t;
    }
    if (k && rule.stops(k, gap, out)) return out;
    total = 0.0;
    for (int64_t i = 0; i < rows.n; ++i) total += w[i];
    for (int64_t j = 0; j < cols.n; ++j) h[j] = C[j] / cols.sum(j, w, total);
  }
}

const std::vector<double>& sum_of_rows(const Reduced& core) {
  if (!core.sum_of_rows.empty()) return core.sum_of_rows;
  const double all = std::accumulate(core.R.begin(), core.R.end(), 0.0);
  for (int64_t j = 0; j < core.cols.n; ++j)
    core.sum_of_rows.push_back(core.cols.sum(j, core.R.data(), all));
  return core.sum_of_rows;
}

std::vector<double> start_of(const Reduced& core) {
  std::vector<double> h(core.C);
  if (!is_kept_by_rows(core.rows) && core.rows.weight.empty()) {
    // Half a sweep from w = R; the bound of the cells needs its sums anyway.
    const std::vector<double>& rows = sum_of_rows(core);
    for (size_t j = 0; j < h.size(); ++j) h[j] /= rows[j];
  } else {
    // Cells per column spread the sums: a start that is one sweep nearer.
    for (size_t j = 0; j < core.col_degree.size(); ++j) h[j] /= core.col_degree[j];
  }
  const double largest = *std::max_element(h.begin(), h.end());
  for (double& value : h) value = std::max(value / largest, kSmallestStart);
  return h;
}

namespace {

// A large sparse mask, in lists. Threads have equal shares of the listed cells, and keep a
// column's x beside the sum it collects: one line of the cache serves both.
class ListedRows {
 public:
  ListedRows(const Lists& lists, int n_threads)
      : threads(useful_threads(n_threads, n_cells(lists), kListedPerThread)),
        lists_(lists),
        columns_(static_cast<size_t>(threads)) {}
  const int threads;

  int64_t begin(int t) const {
    if (t == threads) return lists_.n;
    return std::lower_bound(lists_.ptr.begin(), lists_.ptr.end() - 1,
                            n_cells(lists_) * t / threads) -
           lists_.ptr.begin();
  }
  int64_t n_at_once() const { return 1; }
  void take(const double* x) { x_ = x; }
  void expect(double, const double*) {}
  const ListedRows& reader(int) const { return *this; }

  double* collect_in(int t) {
    std::vector<double>& own = columns_[t];
    own.resize(static_cast<size_t>(2 * lists_.n_other));
    for (int64_t j = 0; j < lists_.n_other; ++j) {
      own[2 * j] = x_[j];
      own[2 * j + 1] = 0.0;
    }
    return own.data();
  }

  int64_t reach(int64_t first, int64_t n, const double* columns, double* t) const {
    for (int64_t i = 0; i < n; ++i) t[i] = reach_of(first + i, columns);
    return lists_.ptr[first + n] - lists_.ptr[first];
  }

  void collect(int64_t first, int64_t n, const double* t, double* columns) const {
    const int32_t* const index = lists_.index.data();
    const double* const weight = lists_.weight.empty() ? nullptr : lists_.weight.data();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t from = lists_.ptr[first + i], to = lists_.ptr[first + i + 1];
      const double own = t[i];
      if (weight != nullptr)
        for (int64_t k = from; k < to; ++k)
          columns[2 * int64_t{index[k]} + 1] += weight[k] * own;
      else
        for (int64_t k = from; k < to; ++k) columns[2 * int64_t{index[k]} + 1] += own;
    }
  }

  void share_out(double* columns) const {
    std::fill_n(columns, lists_.n_other, 0.0);
    for (const std::vector<double>& own : columns_)
      for (int64_t j = 0; j < lists_.n_other; ++j) columns[j] += own[2 * j + 1];
  }

 private:
  static constexpr int64_t kListedPerThread = 1 << 16;
  static int64_t n_cells(const Lists& lists) {
    return static_cast<int64_t>(lists.index.size());
  }
  double reach_of(int64_t i, const double* columns) const {
    constexpr int64_t kAhead = 24;  // cells
    const int32_t* const index = lists_.index.data();
    const int64_t from = lists_.ptr[i], to = lists_.ptr[i + 1], last = n_cells(lists_) - 1;
    const bool is_far = lists_.n_other > 1 << 16;  // columns are beyond the nearer caches
    const auto x = [=](int64_t k) {
      if (is_far) prefetch(columns + 2 * int64_t{index[std::min(k + kAhead, last)]});
      return columns[2 * int64_t{index[k]}];
    };
    double sum = 0.0, other = 0.0;  // two, as one would wait for itself at every cell
    if (!lists_.weight.empty()) {
      for (int64_t k = from; k < to; ++k) sum += lists_.weight[k] * x(k);
      return sum;
    }
    int64_t k = from;
    for (; k + 1 < to; k += 2) {
      sum += x(k);
      other += x(k + 1);
    }
    if (k < to) sum += x(k);
    return sum + other;
  }

  const Lists& lists_;
  const double* x_ = nullptr;
  std::vector<std::vector<double>> columns_;
};

// y = P' t, where t_i is made of row i's sum of x.
template <typename OfRow>
void to_and_fro(const Reduced& core, const double* x, double* y, int n_threads,
                OfRow&& of_row) {
  const Lists& lists = core.rows;
  if (is_kept_by_rows(lists)) {
    ListedRows rows(lists, n_threads);
    return sweep(rows, x, of_row, y);
  }
  const double total = std::accumulate(x, x + lists.n_other, 0.0);
  std::vector<double> t(static_cast<size_t>(lists.n));
  for (int64_t i = 0; i < lists.n; ++i) t[i] = of_row(i, lists.sum(i, x, total));
  const double all = std::accumulate(t.begin(), t.end(), 0.0);
  for (int64_t j = 0; j < core.cols.n; ++j) y[j] = core.cols.sum(j, t.data(), all);
}

}  // namespace

Sweeps scale_core(const Reduced& core, double* w, double* h, Patience rule,
                  int n_threads) {
  const double *R = core.R.data(), *C = core.C.data();
  if (!is_kept_by_rows(core.rows)) return scale(core.rows, core.cols, R, C, w, h, rule);
  rule.polish = false;
  rule.aim = std::min(rule.tol, provable_gap(C, core.rows.n_other));
  ListedRows rows(core.rows, n_threads);
  std::vector<double> columns;
  return scale_rows(rows, R, C, core.rows.n_other, rule, w, h, columns);
}

int64_t longest_sum(const Reduced& core) {
  const Lists& rows = core.rows;
  if (rows.lists_missing) return std::max(rows.n, rows.n_other);
  std::vector<int32_t> of_column(core.col_degree);
  if (of_column.empty()) {
    of_column.resize(static_cast<size_t>(rows.n_other));
    for (const int32_t j : rows.index) ++of_column[j];
  }
  int64_t longest = *std::max_element(of_column.begin(), of_column.end());
  for (int64_t i = 0; i < rows.n; ++i) longest = std::max(longest, rows.length(i));
  return longest;
}

void sweep_core(const Reduced& core, const double* h, double* w, double* fitted) {
  to_and_fro(core, h, fitted, 1,
             [&](int64_t i, double t) { return w[i] = core.R[i] / t; });
  for (size_t j = 0; j < core.C.size(); ++j) fitted[j] *= h[j];
}

void core_product(const Reduced& core, const double* d, const double* x, double* y,
                  int n_threads) {
  to_and_fro(core, x, y, n_threads, [d](int64_t i, double t) { return d[i] * t; });
}

}  // namespace a1gm
