#include "scale/cell_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "interrupt.hpp"
#include "sums.hpp"

namespace a1gm {
namespace {

constexpr int32_t kNone = -1;
constexpr double kLeast = std::numeric_limits<double>::min();
constexpr double kSmallest = 4.0 * std::numeric_limits<double>::denorm_min();
// A small core is eliminated in the order of least degree where that is so much less work
// and the smaller side has that many rows or columns.
constexpr int64_t kGain = 8, kFew = 64;
constexpr double kRoundings = 4.0 * kRounding;  // of a few operations in a row

// The order of elimination, and the later nodes that each meets when its turn comes.
struct Order {
  std::vector<int32_t> place;  // of nodes: rows, then columns
  std::vector<int64_t> ptr{0};
  std::vector<int32_t> to;  // places, ascending for each node
};

// The larger side first, then the other in ascending order of sums: by then all nodes of
// a block that are left meet each other.
Order order_of_sides(const Reduced& core, const Lists& rows) {
  const bool by_rows = rows.n >= rows.n_other;
  const Lists cols = by_rows ? Lists() : transpose(rows);
  const Lists& large = by_rows ? rows : cols;
  const std::vector<double>& sums = by_rows ? core.C : core.R;
  const std::vector<int32_t>& block = by_rows ? core.col_label : core.row_label;
  std::vector<int32_t> small(sums.size());
  std::iota(small.begin(), small.end(), 0);
  std::stable_sort(small.begin(), small.end(),
                   [&sums](int32_t a, int32_t b) { return sums[a] < sums[b]; });
  Order out;
  out.place.resize(static_cast<size_t>(large.n + large.n_other));
  int32_t* const of_large = out.place.data() + (by_rows ? 0 : rows.n);
  int32_t* const of_small = out.place.data() + (by_rows ? rows.n : 0);
  std::iota(of_large, of_large + large.n, 0);
  for (size_t k = 0; k < small.size(); ++k)
    of_small[small[k]] = static_cast<int32_t>(large.n + static_cast<int64_t>(k));
  for (int64_t i = 0; i < large.n; ++i) {
    for (int64_t k = large.ptr[i]; k < large.ptr[i + 1]; ++k)
      out.to.push_back(of_small[large.index[k]]);
    std::sort(out.to.begin() + out.ptr.back(), out.to.end());
    out.ptr.push_back(static_cast<int64_t>(out.to.size()));
  }
  for (size_t k = 0; k < small.size(); ++k) {
    for (size_t later = k + 1; later < small.size(); ++later)
      if (block[small[later]] == block[small[k]]) out.to.push_back(of_small[small[later]]);
    out.ptr.push_back(static_cast<int64_t>(out.to.size()));
  }
  return out;
}

// Nodes of the least degree first. False when that takes too many visits.
class Ordering {
 public:
  explicit Ordering(const Lists& rows)
      : n_(rows.n + rows.n_other), met_(static_cast<size_t>(n_)) {
    for (int64_t i = 0; i < rows.n; ++i)
      rows.each_observed(i, [&](int32_t j) {
        met_[i].push_back(static_cast<int32_t>(rows.n + j));
        met_[rows.n + j].push_back(static_cast<int32_t>(i));
      });
    for (int32_t k = 0; k < n_; ++k) queue_.push(k, degree(k));
  }

  bool run(int64_t most_work, Order& out) {
    out.place.assign(static_cast<size_t>(n_), kNone);
    std::vector<int32_t> joined;
    Poll poll;
    int32_t n_gone = 0;
    const auto degree_of = [&](int32_t node) {
      return out.place[node] == kNone ? degree(node) : -1;
    };
    for (int32_t node; (node = queue_.pop(degree_of)) != kNone;) {
      std::vector<int32_t> around;
      around.swap(met_[node]);
      out.place[node] = n_gone++;
      const auto n_met = static_cast<int64_t>(around.size());
      int64_t work = kVisit + n_met * n_met;
      for (const int32_t j : around) {
        std::vector<int32_t>& own = met_[j];
        work += static_cast<int64_t>(own.size());
        joined.clear();
        std::set_union(own.begin(), own.end(), around.begin(), around.end(),
                       std::back_inserter(joined));
        const auto is_gone = [=](int32_t k) { return k == node || k == j; };
        joined.erase(std::remove_if(joined.begin(), joined.end(), is_gone),
                     joined.end());
        own.assign(joined.begin(), joined.end());
        queue_.push(j, degree(j));
      }
      out.to.insert(out.to.end(), around.begin(), around.end());
      out.ptr.push_back(static_cast<int64_t>(out.to.size()));
      poll.worked(work);
      // Nodes to come have about this degree, at least.
      most_work -= work;
      if (most_work < (n_ - n_gone) * n_met * n_met / kSlack) return false;
    }
    for (int32_t& node : out.to) node = out.place[node];
    for (size_t k = 0; k + 1 < out.ptr.size(); ++k)
      std::sort(out.to.begin() + out.ptr[k], out.to.begin() + out.ptr[k + 1]);
    return true;
  }

 private:
  static constexpr int64_t kSlack = 4;
  static constexpr int64_t kVisit = 8;  // of a node, in visits of edges
  int64_t n_;
  std::vector<std::vector<int32_t>> met_;
  DegreeQueue queue_;

  int64_t degree(int32_t node) const { return static_cast<int64_t>(met_[node].size()); }
};

class Elimination {
 public:
  // `rows` are the observed cells of the core, listed.
  Elimination(const Reduced& core, const Lists& rows, const std::vector<double>& cells,
              Order&& order, double* w, double* h)
      : core_(core), rows_(rows), X_(cells), order_(std::move(order)), w_(w), h_(h) {
    const size_t n_edges = order_.to.size(), n_nodes = order_.place.size();
    for (std::vector<double>* of_edges : {&a_, &y_, &e_}) of_edges->resize(n_edges);
    for (std::vector<double>* of_nodes : {&u_, &q_, &s_, &v_, &z_}) of_nodes->resize(n_nodes);
    slot_.reserve(rows_.index.size());
    R_ = core.R;
    C_ = core.C;
    if (!X_.empty()) {
      std::fill(R_.begin(), R_.end(), 0.0);
      std::fill(C_.begin(), C_.end(), 0.0);
    }
    std::vector<int64_t> edge_to(n_nodes);
    for (int64_t i = 0; i < rows_.n; ++i) {
      const int32_t a = row_place(i);
      for (int64_t k = order_.ptr[a]; k < order_.ptr[a + 1]; ++k) edge_to[order_.to[k]] = k;
      for (int64_t k = rows_.ptr[i]; k < rows_.ptr[i + 1]; ++k) {
        const int32_t b = col_place(rows_.index[k]);
        slot_.push_back(a < b ? edge_to[b] : find_edge(b, a));
        if (X_.empty()) continue;
        R_[i] += X_[k];
        C_[rows_.index[k]] += X_[k];
      }
    }
  }

  // Until the cells are settled and the margins within tol; until steps are tiny, if
  // `polish`.
  Edges run(double tol, int64_t max_steps, bool polish) {
    constexpr double kNear = 0.3;  // above it a step is cut short
    constexpr double kTiny = 1e-12;
    const int64_t patience = polish ? 6 : 4;
    Edges out;
    double best = kInfinity;
    for (int64_t stuck = 0;; ++out.n) {
      for (int64_t i = 0; i < rows_.n; ++i) w_[i] = R_[i] / rows_.sum(i, h_, 0.0);
      out.gap = collect();
      if (!eliminate()) {
        out.step = kInfinity;
        return out;
      }
      const double moved = spread(), rounding = *std::max_element(z_.begin(), z_.end());
      out.step = std::max(moved, out.gap) + 2.0 * rounding;
      if (!std::isfinite(out.step) || has_lost()) out.step = kInfinity;
      // Far away every step may be as long as the one before.
      stuck = moved < 0.7 * best || moved > 0.5 ? 0 : stuck + 1;
      best = std::min(best, moved);
      const bool is_settled = polish
                                  ? moved <= kTiny || (stuck && moved < 1e-10)
                                  : moved <= rounding || out.step == kInfinity ||
                                        (out.gap <= tol && out.step <= kSettledStep);
      if (is_settled || !std::isfinite(moved) || out.n >= max_steps || stuck >= patience) break;
      const double furthest = longest_edge();
      // A cost of exponentials falls at least for so long, and often for much longer.
      double length = furthest > kNear ? std::log1p(furthest) / furthest : 1.0;
      while (furthest > kNear && !X_.empty() && slope(2.0 * length) < 0.0) length *= 2.0;
      for (int64_t j = 0; j < rows_.n_other; ++j)
        h_[j] *= std::exp(length * v_[col_place(j)]);
    }
    for (int64_t j = 0; j < rows_.n_other; ++j) {
      const double v = v_[col_place(j)];
      if (v < v_[col_place(out.low)]) out.low = static_cast<int32_t>(j);
      if (v > v_[col_place(out.high)]) out.high = static_cast<int32_t>(j);
    }
    return out;
  }

 private:
  const Reduced& core_;
  const Lists& rows_;
  const std::vector<double>& X_;  // cells of the core; empty: not known
  const Order order_;
  double *w_, *h_;
  std::vector<double> R_, C_;
  std::vector<int64_t> slot_;  // of each cell among the edges
  // Conductances, currents into the earlier node, bounds of their rounding; currents that
  // enter at nodes, bounds of their rounding, outward conductances of nodes, potentials,
  // bounds of their rounding.
  std::vector<double> a_, y_, e_, u_, q_, s_, v_, z_;
  Poll poll_;

  int32_t row_place(int64_t i) const { return order_.place[i]; }
  int32_t col_place(int64_t j) const { return order_.place[rows_.n + j]; }
  int64_t find_edge(int32_t from, int32_t to) const {
    const auto begin = order_.to.begin();
    return std::lower_bound(begin + order_.ptr[from], begin + order_.ptr[from + 1], to) -
           begin;
  }
  double weight(int64_t k) const { return rows_.weight.empty() ? 1.0 : rows_.weight[k]; }

  // Whether factors or, where only margins are known, these have lost digits.
  bool has_lost() const {
    if (X_.empty()) return has_lost_digits(core_);
    const auto is_lost = [](double x) { return !(x >= kLeast); };
    return std::any_of(w_, w_ + rows_.n, is_lost) ||
           std::any_of(h_, h_ + rows_.n_other, is_lost);
  }

  // Conductances and currents of the cells; returns the largest mismatch of a column.
  double collect() {
    for (std::vector<double>* all : {&a_, &y_, &e_, &u_, &q_})
      std::fill(all->begin(), all->end(), 0.0);
    std::vector<double> fitted(C_.size(), 0.0);
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int64_t k = rows_.ptr[i]; k < rows_.ptr[i + 1]; ++k) {
        const int32_t j = rows_.index[k];
        const double f = weight(k) * (w_[i] * h_[j]);
        fitted[j] += f;
        a_[slot_[k]] = f;
        if (X_.empty()) continue;
        const double off = X_[k] - f;
        y_[slot_[k]] = row_place(i) < col_place(j) ? -off : off;
        e_[slot_[k]] = 3.0 * kRounding * (X_[k] + f) + kSmallest * (1.0 + weight(k));
      }
    const double of_sums = rounding_of_sums(std::max(rows_.n, rows_.n_other));
    double gap = 0.0;
    for (size_t j = 0; j < C_.size(); ++j) {
      gap = std::max(gap, std::abs(C_[j] - fitted[j]) / C_[j]);
      if (!X_.empty()) continue;
      u_[col_place(static_cast<int64_t>(j))] = C_[j] - fitted[j];
      q_[col_place(static_cast<int64_t>(j))] = of_sums * C_[j];
    }
    return gap;
  }

  // Potentials and bounds of their rounding; false when a node has lost its edges.
  bool eliminate() {
    const auto n = static_cast<int64_t>(order_.place.size());
    std::vector<double> p;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t from = order_.ptr[k], to = order_.ptr[k + 1];
      poll_.worked((to - from) * (to - from) + 1);
      double sum = 0.0, rest = 0.0;
      for (int64_t b = from; b < to; ++b) two_sum(a_[b], sum, rest);
      const double s = s_[k] = sum + rest;
      if (to == from) continue;
      if (!(s > kLeast)) return false;
      p.clear();
      for (int64_t b = from; b < to; ++b) p.push_back(a_[b] / s);
      for (int64_t b = from; b < to; ++b) join_later(b, to, p.data() - from);
      for (int64_t b = from; b < to && X_.empty(); ++b) {
        u_[order_.to[b]] += p[b - from] * u_[k];
        q_[order_.to[b]] += p[b - from] * q_[k];
      }
    }
    for (int64_t k = n - 1; k >= 0; --k) {
      double into = u_[k], rest = 0.0, lost = q_[k], size = std::abs(u_[k]);
      for (int64_t b = order_.ptr[k]; b < order_.ptr[k + 1]; ++b) {
        const int32_t other = order_.to[b];
        two_sum(a_[b] * v_[other], into, rest);
        two_sum(y_[b], into, rest);
        size += std::abs(a_[b] * v_[other]) + std::abs(y_[b]);
        lost += a_[b] * z_[other] + e_[b];
      }
      v_[k] = z_[k] = 0.0;
      if (s_[k] == 0.0) continue;
      v_[k] = (into + rest) / s_[k];
      z_[k] = (lost + kRoundings * size) / s_[k];
    }
    return true;
  }

  // Joins the neighbour at edge b of a node to those at its later edges.
  void join_later(int64_t b, int64_t end, const double* p) {
    const int32_t* const to = order_.to.data();
    const int32_t node = to[b];
    const int64_t first = order_.ptr[node], n_met = order_.ptr[node + 1] - first;
    const bool has_cells = !X_.empty();
    double *const a = a_.data(), *const y = y_.data(), *const e = e_.data();
    const double p_b = p[b], a_b = a[b], y_b = y[b], e_b = e[b];
    const auto join = [=](int64_t c, int64_t at) {
      a[at] += a_b * p[c];
      if (!has_cells) return;
      const double sent = p_b * y[c], back = y_b * p[c];
      y[at] += sent - back;
      e[at] += p_b * e[c] + p[c] * e_b + kRoundings * (std::abs(sent) + std::abs(back)) +
               kRounding * std::abs(y[at]);
    };
    // A node that meets all later ones has their edges in order; another is searched.
    if (n_met == static_cast<int64_t>(order_.place.size()) - 1 - node) {
      for (int64_t c = b + 1; c < end; ++c) join(c, first + to[c] - node - 1);
      return;
    }
    int64_t at = first;
    for (int64_t c = b + 1; c < end; ++c) {
      while (to[at] != to[c]) ++at;
      join(c, at);
    }
  }

  // Largest difference of potentials within a block.
  double spread() const {
    const auto n = static_cast<size_t>(core_.n_core_blocks);
    std::vector<double> low(n, kInfinity), high(n, -kInfinity);
    const auto add = [&](int32_t block, double v) {
      low[block] = std::min(low[block], v);
      high[block] = std::max(high[block], v);
      if (!std::isfinite(v)) high[block] = kInfinity;
    };
    for (int64_t i = 0; i < rows_.n; ++i) add(core_.row_label[i], v_[row_place(i)]);
    for (int64_t j = 0; j < rows_.n_other; ++j)
      add(core_.col_label[j], v_[col_place(j)]);
    double widest = 0.0;
    for (size_t b = 0; b < n; ++b) widest = std::max(widest, high[b] - low[b]);
    return widest;
  }

  // Slope of the cost after a step of this length along the potentials.
  double slope(double length) const {
    double sum = 0.0;
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int64_t k = rows_.ptr[i]; k < rows_.ptr[i + 1]; ++k) {
        const double d = v_[col_place(rows_.index[k])] - v_[row_place(i)];
        sum += d * (weight(k) * (w_[i] * h_[rows_.index[k]]) * std::exp(length * d) - X_[k]);
      }
    return sum;
  }

  // Largest difference of potentials along a cell.
  double longest_edge() const {
    double longest = 0.0;
    for (int64_t i = 0; i < rows_.n; ++i)
      for (int64_t k = rows_.ptr[i]; k < rows_.ptr[i + 1]; ++k)
        longest = std::max(longest,
                           std::abs(v_[row_place(i)] - v_[col_place(rows_.index[k])]));
    return longest;
  }
};

// Sums of the observed cells of the core, row by row, twins added up.
std::vector<double> cells_of_core(const Reduced& core, const Lists& rows,
                                  const PairView& table) {
  std::vector<int32_t> row(static_cast<size_t>(core.n_rows));
  std::vector<int32_t> col(static_cast<size_t>(core.n_cols));
  core_places(core, row.data(), col.data());
  std::vector<double> found(rows.index.size());
  const int32_t* const index = rows.index.data();
  for (int64_t i = 0; i < table.n_rows; ++i) {
    if (row[i] < 0) continue;
    const int32_t *const begin = index + rows.ptr[row[i]], *at = begin;
    const int32_t* const end = index + rows.ptr[row[i] + 1];
    for (int64_t k = table.ptr[i]; k < table.ptr[i + 1]; ++k) {
      const int32_t j = col[table.col[k]];
      if (j < 0) continue;
      if (at == end || *at != j) at = std::lower_bound(begin, end, j);
      if (at != end && *at == j) found[at++ - index] += table.sum[k];  // else in no block
    }
  }
  return found;
}

}  // namespace

std::optional<Edges> settle(const Reduced& core, const PairView* table, const Effort& effort,
                            double* w, double* h) {
  const bool is_small = effort.most_work == 0;
  Lists other;
  if (core.rows.lists_missing) {
    if (!is_small) return std::nullopt;
    other = core.rows;
    list_other_kind(other);
  }
  const Lists& rows = core.rows.lists_missing ? other : core.rows;
  const int64_t small = std::min(rows.n, rows.n_other);
  const int64_t most_work =
      is_small ? (rows.n + rows.n_other) * small * small / kGain : effort.most_work;
  Order order;
  if (!is_small && has_lost_digits(core)) return std::nullopt;
  if ((is_small && small < kFew) || !Ordering(rows).run(most_work, order)) {
    if (!is_small) return std::nullopt;
    order = order_of_sides(core, rows);
  }
  std::vector<double> cells;
  if (table != nullptr) cells = cells_of_core(core, rows, *table);
  return Elimination(core, rows, cells, std::move(order), w, h)
      .run(effort.tol, effort.max_steps, is_small);
}

}  // namespace a1gm
