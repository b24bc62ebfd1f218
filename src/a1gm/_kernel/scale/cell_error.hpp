// How wrong a fitted cell of a core can be, and how to mend it.
//
// Rows are fitted exactly, so what is left is the mismatch of the columns. It moves the
// logarithm of a cell by at most the spread of the potentials that it causes in the
// network whose conductances are the fitted cells: `step`, to first order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "reduce/peel.hpp"

namespace a1gm {

constexpr double kRounding = 0x1p-53;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSettledStep = 5e-9;  // half of what a converged fit may be off by

// Whether margins are so small that float64 rounds them by more than others.
bool has_lost_digits(const Reduced& core);

// Relative rounding of a sum of n numbers.
double rounding_of_sums(int64_t n);

// Where each row and column of the table is in the core; -1 when it was peeled off.
void core_places(const Reduced& core, int32_t* rows, int32_t* cols);

// A lower bound of the share by which a sweep of a 0/1 mask shrinks the error of the
// factors, from how much of the columns any two rows must share.
class Overlap {
 public:
  explicit Overlap(int64_t n_blocks);
  // A row whose observed columns have factors that sum to `reach`.
  void add_row(int32_t block, double reach) {
    most_[block] = std::max(most_[block], reach);
  }
  // A column, the sum of the rows that observe it, and its sum.
  void add_column(int32_t block, double h, double sum_of_rows, double sum);
  // Bound of the step for this mismatch, in a table of so many rows or columns at most;
  // infinite when the overlap is too small for a bound.
  double step(double gap, int64_t longest) const;

 private:
  std::vector<double> total_, most_, first_, second_;
  std::vector<int64_t> n_;  // columns
};

// The cheapest bound of the step of a core for this mismatch: by overlap, or by as many
// products as are worth it beside the elimination below. Infinite when neither gives
// one.
double cheap_step(const Reduced& core, const double* w, const double* h, double gap,
                  int n_threads);

// About the mismatch that such a bound settles in any core: currents leave at the heaviest
// column, which has that share of them.
double provable_gap(const double* C, int64_t n_cols);

// Nodes by about their degree, least first. Entries may be stale: one counts if the node
// is still there, and of that degree.
class DegreeQueue {
 public:
  void push(int32_t node, int64_t degree) {
    const size_t at = level(degree);
    waiting_[at].push_back(node);
    lowest_ = std::min(lowest_, at);
  }
  // The next node; -1 when all are gone. `degree_of` gives -1 for those that are.
  template <typename F>
  int32_t pop(F&& degree_of) {
    for (; lowest_ < kLevels; ++lowest_)
      while (!waiting_[lowest_].empty()) {
        const int32_t node = waiting_[lowest_].back();
        waiting_[lowest_].pop_back();
        const int64_t degree = degree_of(node);
        if (degree < 0) continue;
        if (level(degree) == lowest_) return node;
        if (level(degree) > lowest_) waiting_[level(degree)].push_back(node);
      }
    return -1;
  }

 private:
  static constexpr size_t kLevels = 1 << 10;
  static size_t level(int64_t degree) {
    return std::min(static_cast<size_t>(degree), kLevels - 1);
  }
  std::vector<std::vector<int32_t>> waiting_{kLevels};
  size_t lowest_ = 0;
};

struct Edges {
  int64_t n = 0;      // steps taken
  double step = 0.0;  // bound of the step that is left
  double gap = 0.0;   // largest relative mismatch of a column (or row)
  int32_t low = 0, high = 0;  // columns of the core that may be furthest off
};

// Whether the elimination below costs less than a few hundred sweeps of a small table.
bool edges_are_cheap(const Reduced& core);

struct Effort {
  double tol;
  int64_t max_steps;
  int64_t most_work;  // visits of an edge; 0: a small core
};

// Newton's method by an elimination of rows and columns, the nodes of one graph whose
// edges are the observed cells. Each has the fitted cell as conductance and the data's
// cell minus the fitted one as current, so that nothing is a difference of sums, and cuts
// that carry next to nothing keep their digits; rounding is followed edge by edge. Without
// a `table` of cells only margins are known: currents then enter at the columns. `w` and
// `h` hold the start and the result.
//
// A small core is eliminated until steps are tiny, from its larger side on unless parts of
// it are joined by few cells. Others in the order that fills in least, until the cells
// are settled and the margins within tol; nothing when that would take too much work,
// which is known before any number is computed.
std::optional<Edges> settle(const Reduced& core, const PairView* table, const Effort& effort,
                            double* w, double* h);

}  // namespace a1gm
