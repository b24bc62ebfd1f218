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
constexpr double kLeast = std::numeric_limits<double>::min();

// The bound by overlap; infinite for weights, and for large sparse cores.
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
  for (auto entry = core.log.rbegin(); entry != core.log.rend(); ++entry)
    if (entry->step == Step::twin) {
      int32_t* const places = entry->is_row ? rows : cols;
      places[entry->gone] = places[entry->kept];
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

}  // namespace a1gm
