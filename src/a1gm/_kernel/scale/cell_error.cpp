#include "scale/cell_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "interrupt.hpp"
#include "scale/flow.hpp"
#include "scale/sweeps.hpp"

namespace a1gm {
namespace {

double edge_flops(const Reduced& core) {
  const auto n = static_cast<double>(std::max(core.R.size(), core.C.size()));
  const auto m = static_cast<double>(std::min(core.R.size(), core.C.size()));
  return (n + m) * m * m;
}

constexpr double kLeastOverlap = 0.02;
constexpr double kSettled = 4e-15;  // a step of rounding
constexpr double kLongest = 2.0;    // no logarithm moves further in one step
constexpr double kFar = 0.5;
constexpr double kClearly = 1e-9;   // of a cost, beyond its rounding
constexpr int kMostHalvings = 10;
constexpr double kFine = 1e-9;      // rounding that need not be known better
constexpr int64_t kPatience = 6;    // steps without progress
constexpr double kLeast = std::numeric_limits<double>::min();

// The core with its smaller side as columns, the heaviest column first.
class Elimination {
 public:
  Elimination(const Reduced& core, const double* cells, const double* w, const double* h)
      : swapped_(core.rows.n < core.rows.n_other),
        n_(std::max(core.rows.n, core.rows.n_other)),
        m_(std::min(core.rows.n, core.rows.n_other)),
        rounding_(has_lost_digits(core) ? kInfinity : rounding_of_sums(n_)),
        order_(static_cast<size_t>(m_)),
        P_(size(n_, m_), 0.0),
        Q_(P_.size()),
        A_(size(m_, m_)),
        R_(swapped_ ? core.C : core.R) {
    const std::vector<double>& C = swapped_ ? core.R : core.C;
    const std::vector<int32_t>& label = swapped_ ? core.row_label : core.col_label;
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [&C](int32_t a, int32_t b) { return C[a] > C[b]; });
    std::vector<int32_t> place(order_.size());
    for (size_t k = 0; k < order_.size(); ++k) place[order_[k]] = static_cast<int32_t>(k);
    for (const int32_t j : order_) {
      C_.push_back(C[j]);
      h_.push_back((swapped_ ? w : h)[j]);
      label_.push_back(label[j]);
    }
    read(core, cells, place);
    n_blocks_ = core.n_core_blocks;
    v_.resize(C_.size());
    x_.resize(C_.size());
    w_.resize(R_.size());
  }

  Edges run(int64_t max_steps) {
    Edges out;
    double best = kInfinity;
    for (int64_t stuck = 0;; ++out.n) {
      out.gap = collect();
      // A conductance that has vanished would make one block two; and no step is
      // shorter than the mismatch that it would mend.
      const bool is_whole = eliminate(-1.0);
      const double rounding = X_.empty() ? floor_of_columns() : unit();
      const double moved = is_whole ? std::max(spread(), out.gap - rounding) : kInfinity;
      if (!std::isfinite(moved)) {
        out.step = kInfinity;
        return out;
      }
      // Far away every step may be as long as the one before.
      stuck = moved < 0.7 * best || moved > kFar ? 0 : stuck + 1;
      best = std::min(best, moved);
      // Rounding is reached, or what is left no longer shrinks.
      if (moved <= kSettled || stuck >= kPatience || (stuck && moved < 1e-10) ||
          out.n >= max_steps) {
        out.step = moved + floor();
        return out;
      }
      move(moved > kFar);
    }
  }

  // Factors of the core, and the two columns whose potentials differ most.
  void finish(double* w, double* h, Edges& out) const {
    double* const small = swapped_ ? w : h;
    for (int64_t k = 0; k < m_; ++k) small[order_[k]] = h_[k];
    std::copy(w_.begin(), w_.end(), swapped_ ? h : w);
    if (!swapped_) {
      const auto [low, high] = std::minmax_element(v_.begin(), v_.end());
      out.low = order_[low - v_.begin()];
      out.high = order_[high - v_.begin()];
      return;
    }
    double least = kInfinity, most = -kInfinity;
    for (int64_t i = 0; i < n_; ++i) {
      const double moved = std::inner_product(v_.begin(), v_.end(), &Q_[i * m_], 0.0);
      if (moved < least) least = moved, out.low = static_cast<int32_t>(i);
      if (moved > most) most = moved, out.high = static_cast<int32_t>(i);
    }
  }

 private:
  bool swapped_;
  int64_t n_, m_, n_blocks_ = 0;
  double rounding_;
  Poll poll_;
  std::vector<int32_t> order_, label_;
  std::vector<double> P_, X_, Q_, A_, Y_, R_, C_, h_, w_, v_, x_, g_;

  static size_t size(int64_t n, int64_t m) { return static_cast<size_t>(n * m); }

  void read(const Reduced& core, const double* cells, const std::vector<int32_t>& place) {
    for (int64_t i = 0; i < core.rows.n; ++i) {
      int64_t k = core.rows.ptr[i];
      core.rows.each_observed(i, [&](int32_t j) {
        const int64_t at = swapped_ ? j * m_ + place[i] : i * m_ + place[j];
        P_[at] = core.rows.weight.empty() ? 1.0 : core.rows.weight[k++];
      });
    }
    if (cells == nullptr) return;
    X_.assign(P_.size(), 0.0);
    Y_.resize(A_.size());
    for (int64_t i = 0; i < core.rows.n; ++i)
      for (int64_t j = 0; j < core.rows.n_other; ++j)
        X_[swapped_ ? j * m_ + place[i] : i * m_ + place[j]] =
            cells[i * core.rows.n_other + j];
    for (int64_t i = 0; i < n_; ++i)
      R_[i] = std::accumulate(&X_[i * m_], &X_[i * m_] + m_, 0.0);
  }

  // Fits the rows; conductances A between columns, and the current of each pair or, by
  // margins alone, of each column. Returns the largest mismatch of a column. The `sizes`
  // of currents are what they are differences of; numbers below the least normal one
  // round as that does.
  double collect(bool sizes = false) {
    std::fill(A_.begin(), A_.end(), 0.0);
    std::fill(Y_.begin(), Y_.end(), 0.0);
    std::vector<double> fitted(C_.size(), 0.0), f(C_.size()), share(C_.size());
    std::vector<int64_t> on;
    for (int64_t i = 0; i < n_; ++i) {
      poll_.worked(m_ * m_);
      double* const q = &Q_[i * m_];
      const double* const p = &P_[i * m_];
      double t = 0.0;
      for (int64_t j = 0; j < m_; ++j) t += q[j] = p[j] * h_[j];
      w_[i] = R_[i] / t;
      // Fitted cells f and their shares q of the row: the smaller one times the share
      // of the larger keeps its digits wherever the product does.
      for (int64_t j = 0; j < m_; ++j) {
        f[j] = w_[i] * q[j];
        q[j] /= t;
        fitted[j] += f[j];
      }
      const double* const x = X_.empty() ? nullptr : &X_[i * m_];
      for (int64_t j = 0; x != nullptr && j < m_; ++j) share[j] = x[j] / R_[i];
      on.clear();
      for (int64_t j = 0; j < m_; ++j)
        if (p[j] != 0.0) on.push_back(j);
      // Few cells are visited one by one, many in stretches.
      const bool few = 4 * static_cast<int64_t>(on.size()) < m_;
      for (size_t e = 0; e < on.size(); ++e) {
        const int64_t j = on[e];
        const double own = f[j], part = q[j];
        double* const a = &A_[j * m_];
        const auto join = [&](int64_t k) {
          a[k] += std::min(own, f[k]) * std::max(part, q[k]);
        };
        if (few)
          for (size_t b = 0; b < e; ++b) join(on[b]);
        else
          for (int64_t k = 0; k < j; ++k) join(k);
        if (x == nullptr) continue;
        const double data = x[j], data_share = share[j];
        double* const y = &Y_[j * m_];
        const auto send = [&](int64_t k) {
          y[k] += std::min(data, f[k]) * std::max(data_share, q[k]) -
                  std::min(x[k], own) * std::max(share[k], part);
        };
        if (sizes)
          for (size_t b = 0; b < e; ++b) {
            const int64_t k = on[b];
            y[k] += std::min(data, f[k]) * std::max(data_share, q[k]) +
                    std::min(x[k], own) * std::max(share[k], part) + kLeast +
                    (data * std::max(h_[k], 1.0) + x[k] * std::max(h_[j], 1.0)) *
                        (kLeast / t);
          }
        else if (few)
          for (size_t b = 0; b < e; ++b) send(on[b]);
        else
          for (int64_t k = 0; k < j; ++k) send(k);
      }
    }
    double gap = 0.0;
    g_.resize(C_.size());
    for (size_t j = 0; j < C_.size(); ++j) {
      g_[j] = C_[j] - fitted[j];
      gap = std::max(gap, std::abs(g_[j]) / C_[j]);
    }
    return gap;
  }

  // Potentials v of the currents, or bounds of them if `sign` is 1 and the currents are
  // sizes; x are those of one unit of rounding per unit of data, all terms positive.
  // False when some column is tied to no earlier one although its block has one.
  bool eliminate(double sign) {
    std::vector<double> outward(C_.size(), 0.0), c(C_), p(C_.size());
    for (int64_t k = m_ - 1; k > 0; --k) {
      poll_.worked(k * k);
      const double* const a = &A_[k * m_];
      const double s = outward[k] = std::accumulate(a, a + k, 0.0);
      if (s == 0.0) continue;  // the first column of its block
      for (int64_t j = 0; j < k; ++j) p[j] = a[j] / s;
      const double* const y = X_.empty() ? nullptr : &Y_[k * m_];
      if (y != nullptr) g_[k] = std::accumulate(y, y + k, 0.0);
      for (int64_t j = 0; j < k; ++j) {
        if (a[j] == 0.0) continue;
        double* const to = &A_[j * m_];
        for (int64_t l = 0; l < j; ++l) to[l] += a[j] * p[l];
        c[j] += p[j] * c[k];
        if (y == nullptr) g_[j] += p[j] * g_[k];
      }
      if (y == nullptr) continue;
      for (int64_t j = 0; j < k; ++j) {
        double* const to = &Y_[j * m_];
        if (a[j] == 0.0 && y[j] == 0.0) continue;
        for (int64_t l = 0; l < j; ++l) to[l] += p[j] * y[l] + sign * y[j] * p[l];
      }
    }
    for (int64_t k = 0; k < m_; ++k) {
      const double s = outward[k], *a = &A_[k * m_];
      v_[k] = x_[k] = 0.0;
      if (s == 0.0) continue;
      v_[k] = (std::inner_product(a, a + k, v_.begin(), 0.0) + g_[k]) / s;
      x_[k] = (std::inner_product(a, a + k, x_.begin(), 0.0) + c[k]) / s;
    }
    return std::count(outward.begin(), outward.end(), 0.0) == n_blocks_;
  }

  // Moves the factors. Steps of graded tables mix gaps of any size: each gap between
  // neighbours is cut short by itself, and none gets lost beside a larger one.
  // Far away Newton's method may go round for ever: a step that clearly raises the cost
  // is halved.
  void move(bool is_far) {
    std::vector<int32_t> by_step(v_.size());
    std::iota(by_step.begin(), by_step.end(), 0);
    std::sort(by_step.begin(), by_step.end(),
              [this](int32_t a, int32_t b) { return v_[a] < v_[b]; });
    std::vector<double> moved(v_.size(), 0.0);
    for (size_t k = 1; k < by_step.size(); ++k) {
      const int32_t before = by_step[k - 1], at = by_step[k];
      moved[at] = moved[before] + std::min(v_[at] - v_[before], kLongest);
    }
    const std::vector<double> from = h_;
    const double before = is_far ? cost() : 0.0;
    double share = 1.0;
    for (int tries = 0;; ++tries, share *= 0.5) {
      for (size_t j = 0; j < moved.size(); ++j)
        h_[j] = from[j] * std::exp(share * (moved[j] - moved[0]));
      if (!is_far || tries == kMostHalvings || !(cost() > before + kClearly)) return;
    }
  }

  // The divergence but for a constant, over the sum of the cells; rows are fitted.
  double cost() const {
    double sum = 0.0, total = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      sum += R_[i] * std::log(std::inner_product(&P_[i * m_], &P_[i * m_] + m_,
                                                 h_.begin(), 0.0));
      total += R_[i];
    }
    for (int64_t j = 0; j < m_; ++j) sum -= C_[j] * std::log(h_[j]);
    return sum / total;
  }

  // Rounding of the sums, products and quotients that lead to one number.
  double unit() const { return 8.0 * kRounding * static_cast<double>(n_ + m_); }

  // What rounding may move a cell by: that of margins goes in at the columns.
  double floor_of_columns() const {
    return 2.0 * rounding_ * *std::max_element(x_.begin(), x_.end());
  }

  // The same with sums of cells, at the end. Where that is too coarse, or where numbers
  // have lost digits, the current of each pair rounds as the two parts do of which it
  // is the difference, and what is lost goes the way of all currents.
  double floor() {
    if (X_.empty()) return floor_of_columns();
    const auto is_lost = [](double x) { return !(x >= kLeast); };
    if (std::any_of(w_.begin(), w_.end(), is_lost) ||
        std::any_of(h_.begin(), h_.end(), is_lost))
      return kInfinity;
    const double most = std::max(1.0, *std::max_element(h_.begin(), h_.end()));
    double least = C_.back();
    for (int64_t i = 0; i < n_; ++i)
      least = std::min({least, R_[i], R_[i] / w_[i] / most, C_.back() / w_[i]});
    const double coarse = unit() * (1.0 + *std::max_element(x_.begin(), x_.end()));
    if (coarse <= kFine && least * kRounding > kLeast) return coarse;
    collect(true);
    eliminate(1.0);
    return unit() * (1.0 + *std::max_element(v_.begin(), v_.end()));
  }

  // Largest difference of potentials within a block.
  double spread() const {
    const auto n = static_cast<size_t>(*std::max_element(label_.begin(), label_.end()));
    std::vector<double> low(n + 1, kInfinity), high(n + 1, -kInfinity);
    double widest = 0.0;
    for (size_t j = 0; j < v_.size(); ++j) {
      if (!std::isfinite(v_[j])) return kInfinity;
      low[label_[j]] = std::min(low[label_[j]], v_[j]);
      high[label_[j]] = std::max(high[label_[j]], v_[j]);
    }
    for (size_t b = 0; b <= n; ++b) widest = std::max(widest, high[b] - low[b]);
    return widest;
  }
};

}  // namespace

bool has_lost_digits(const Reduced& core) {
  return *std::min_element(core.R.begin(), core.R.end()) < kLeast ||
         *std::min_element(core.C.begin(), core.C.end()) < kLeast;
}

double rounding_of_sums(int64_t n) {
  return (4.0 + std::sqrt(static_cast<double>(n))) * kRounding;
}

void core_places(const Reduced& core, int32_t* rows, int32_t* cols) {
  std::fill_n(rows, core.n_rows, -1);
  std::fill_n(cols, core.n_cols, -1);
  for (size_t k = 0; k < core.core_rows.size(); ++k)
    rows[core.core_rows[k]] = static_cast<int32_t>(k);
  for (size_t k = 0; k < core.core_cols.size(); ++k)
    cols[core.core_cols[k]] = static_cast<int32_t>(k);
  for (auto entry = core.log.rbegin(); entry != core.log.rend(); ++entry) {
    if (entry->step == Step::twin_row) rows[entry->gone] = rows[entry->kept];
    if (entry->step == Step::twin_col) cols[entry->gone] = cols[entry->kept];
  }
}

Overlap::Overlap(int64_t n_blocks)
    : total_(static_cast<size_t>(n_blocks), 0.0),
      most_(total_),
      first_(total_.size(), kInfinity),
      second_(first_),
      n_(total_.size(), 0) {}

void Overlap::add_column(int32_t block, double h, double sum_of_rows, double sum) {
  total_[block] += h;
  ++n_[block];
  double mean = h * (sum_of_rows / sum);  // of what its rows reach
  if (!std::isfinite(mean)) mean = -kInfinity;  // not known
  second_[block] = std::min(second_[block], std::max(first_[block], mean));
  first_[block] = std::min(first_[block], mean);
}

double Overlap::step(double gap, int64_t longest) const {
  double least = 1.0;
  for (size_t b = 0; b < total_.size(); ++b) {
    if (n_[b] < 2) continue;  // nothing to share out
    const double share = (first_[b] + second_[b] - total_[b]) / most_[b];
    if (!(share > kLeastOverlap)) return kInfinity;  // nor NaN
    least = std::min(least, share);
  }
  return 2.0 * (gap + rounding_of_sums(longest)) / least;
}

double step_by_overlap(const Reduced& core, const double* w, const double* h,
                       double gap) {
  if (!core.rows.weight.empty() || is_kept_by_rows(core.rows) || has_lost_digits(core))
    return kInfinity;
  Overlap overlap(core.n_core_blocks);
  for (size_t i = 0; i < core.R.size(); ++i)
    overlap.add_row(core.row_label[i], core.R[i] / w[i]);
  const std::vector<double>& rows = sum_of_rows(core);
  for (size_t j = 0; j < core.C.size(); ++j)
    overlap.add_column(core.col_label[j], h[j], rows[j], core.C[j]);
  return overlap.step(gap, std::max(core.rows.n, core.rows.n_other));
}

double provable_gap(const double* C, int64_t n_cols) {
  // Products prove 0.1 to 0.4 of it, as benchmarks/costs.py measures on random tables.
  constexpr double kShare = 0.25;
  const double total = std::accumulate(C, C + n_cols, 0.0);
  return kShare * kSettledStep * *std::max_element(C, C + n_cols) / total;
}

double cheap_step(const Reduced& core, const double* w, const double* h, double gap,
                  int n_threads) {
  constexpr double kSupersolution = 0.3, kProducts = 60.0, kFewProducts = 4.0;
  constexpr double kFlopsPerCell = 8.0;
  const double overlap = step_by_overlap(core, w, h, gap);
  if (overlap <= kSettledStep || !(gap < kSettledStep)) return overlap;
  const auto cells = static_cast<double>(core.rows.index.size() + core.R.size());
  double products = kProducts;
  if (edges_are_cheap(core))
    products = std::min(products, edge_flops(core) / (kFlopsPerCell * cells));
  if (products < kFewProducts) return overlap;
  Flow flow(core, w, h, n_threads);
  const double reach = flow.reach(kSupersolution, static_cast<int64_t>(products));
  return std::min(overlap, 2.0 * reach * (gap + rounding_of_sums(longest_sum(core))));
}

bool edges_are_cheap(const Reduced& core) {
  constexpr double kFlops = 3e7;
  return edge_flops(core) <= kFlops;
}

Edges settle_by_edges(const Reduced& core, const double* cells, double* w, double* h,
                      int64_t max_steps) {
  Elimination elimination(core, cells, w, h);
  Edges out = elimination.run(max_steps);
  elimination.finish(w, h, out);
  return out;
}

}  // namespace a1gm
