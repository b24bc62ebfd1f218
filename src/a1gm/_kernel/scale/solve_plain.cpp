#include "scale/solve.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"
#include "scale/sweeps.hpp"
#include "interrupt.hpp"
#include "sums.hpp"

namespace a1gm {
namespace {

// Whether a search from the first row finds all rows and columns. It goes from rows to
// the columns that they observe, and back to rows with a positive sum there; against
// these arrows if `backward`.
bool finds_all(const BitMask& keys, const double* sums, bool backward) {
  const int64_t n = keys.n, m = keys.m;
  const auto leads = [&keys, sums](int64_t i, int64_t j, bool to_row) {
    if (to_row) return sums[i * keys.m + j] > 0.0;
    return (keys.bits[i * keys.words + j / 64] >> (j & 63) & 1) != 0;
  };
  const auto n_all = static_cast<size_t>(n + m);
  std::vector<char> seen(n_all, 0);
  std::vector<int64_t> found{0};  // rows, and columns from n on
  seen[0] = 1;
  Poll poll;
  for (size_t k = 0; k < found.size() && found.size() < n_all; ++k) {
    const int64_t node = found[k];
    const bool is_row = node < n;
    const int64_t begin = is_row ? n : 0, end = is_row ? n + m : n;
    for (int64_t next = begin; next < end; ++next) {
      const int64_t i = is_row ? node : next, j = (is_row ? next : node) - n;
      if (seen[next] || !leads(i, j, is_row == backward)) continue;
      seen[next] = 1;
      found.push_back(next);
    }
    poll.worked(end - begin);
  }
  return found.size() == n_all;
}

// Row and column sums; false unless no line is empty and every observed sum is positive,
// or zeros leave the table in one strongly connected component (components.py).
bool positive_margins(const BitMask& keys, const double* sums, std::vector<double>& R,
                      std::vector<double>& C) {
  const auto [bits, n, m, words] = keys;
  R.assign(static_cast<size_t>(n), 0.0);
  C.assign(static_cast<size_t>(m), 0.0);
  int64_t n_observed = 0;
  for (int64_t k = 0; k < n * words; ++k) n_observed += count_bits(bits[k]);
  std::vector<double> counts(static_cast<size_t>(m), 0.0);  // doubles: one vector loop
  double* const positives = counts.data();
  double* const columns = C.data();
  for (int64_t i = 0; i < n; ++i) {
    const double* s = sums + i * m;
    for (int64_t j = 0; j < m; ++j) {
      columns[j] += s[j];
      positives[j] += s[j] > 0.0 ? 1.0 : 0.0;
    }
    R[i] = quick_sum(s, m);
  }
  const auto n_positive =
      static_cast<int64_t>(std::accumulate(counts.begin(), counts.end(), 0.0));
  // Sums of cells that nobody observed are 0: as many positive as observed ones means
  // that they are the same.
  const auto positive = [](double x) { return x > 0.0; };
  return std::all_of(R.begin(), R.end(), positive) &&
         std::all_of(C.begin(), C.end(), positive) &&
         (n_positive == n_observed ||
          (finds_all(keys, sums, false) && finds_all(keys, sums, true)));
}

// The cells of a table of patterns.
Part part_of(const double* sums, int64_t m) {
  Part part;
  part.data = reinterpret_cast<const char*>(sums);
  part.n_cols = m;
  part.row_stride = 8 * m;
  part.col_stride = 8;
  return part;
}

// Newton's method on a small core that sweeps have not settled.
bool settle_cells(const Reduced& core, const BitMask& keys, const double* sums,
                  double tol, int64_t max_steps, double* w, double* h, Plain& out) {
  if (!edges_are_cheap(core)) return false;
  const PairTable pairs(keys, sums);
  const PairView view = pairs.view();
  const Edges edges = *settle(core, &view, {tol, max_steps, 0}, w, h);
  out.n_iter += edges.n;
  out.newton = edges.n > 0;
  out.gap = edges.gap;
  out.step = edges.step;
  return out.gap <= tol && out.step <= kSettledStep;
}

}  // namespace

bool all_in_range(const double* values, int64_t n) {
  return std::all_of(values, values + n,
                     [](double v) { return v > 0.0 && keeps_digits(v); });
}

bool are_in_range(const std::vector<double>& w, const std::vector<double>& h) {
  return all_in_range(w.data(), static_cast<int64_t>(w.size())) &&
         all_in_range(h.data(), static_cast<int64_t>(h.size()));
}

bool Plain::finish(const double* R) {
  double total = 0.0;
  for (const double h : col_factor) total += h;
  for (double& h : col_factor) h /= total;
  line_scale.resize(line_factor.size());
  for (size_t i = 0; i < line_factor.size(); ++i) {
    line_factor[i] *= total;
    line_scale[i] = R[i] == 0.0 ? 0.0 : line_factor[i] / R[i];
  }
  return in_range();
}

bool Plain::in_range() const {
  return are_in_range(line_factor, col_factor) && are_in_range(line_scale, {});
}

bool solve_plain(const BitMask& keys, const double* sums, double tol,
                 int64_t max_sweeps, int64_t max_steps, Plain& out) {
  const int64_t n = keys.n, m = keys.m;
  std::vector<double> R, C;
  if (!positive_margins(keys, sums, R, C)) return false;
  if (std::vector<double> reach; solve_nested(keys, {part_of(sums, m)}, C.data(), 1.0, 1,
                                              out.col_factor, reach)) {
    for (int64_t i = 0; i < n; ++i) {
      out.line_scale.push_back(1.0 / reach[i]);
      out.line_factor.push_back(R[i] * out.line_scale[i]);
    }
    return out.in_range();
  }
  Reduced reduced;
  if (!merge_twins(keys, R.data(), C.data(), true, false, reduced))
    reduced = peel_pairs(PairTable(keys, sums).view());
  if (reduced.n_core_blocks + n_roots(reduced) != 1) return false;

  out.line_factor.resize(static_cast<size_t>(n));
  out.col_factor.resize(static_cast<size_t>(m));
  if (!reduced.core_rows.empty()) {
    std::vector<double> w(reduced.R.size()), h(start_of(reduced));
    const Sweeps sweeps =
        scale_core(reduced, w.data(), h.data(), {tol, max_sweeps, max_sweeps}, 1);
    out.n_iter = sweeps.n;
    out.gap = sweeps.gap;
    out.step = cheap_step(reduced, w.data(), h.data(), sweeps.gap, 1);
    if (!(sweeps.done && out.step <= kSettledStep) &&
        !settle_cells(reduced, keys, sums, tol, max_steps, w.data(), h.data(), out))
      return false;
    if (!are_in_range(w, h)) return false;
    for (size_t k = 0; k < w.size(); ++k) out.line_factor[reduced.core_rows[k]] = w[k];
    for (size_t k = 0; k < h.size(); ++k) out.col_factor[reduced.core_cols[k]] = h[k];
  }
  std::vector<int32_t> row_label(static_cast<size_t>(n)), col_label(static_cast<size_t>(m));
  return replay(reduced, out.line_factor.data(), out.col_factor.data(),
                row_label.data(), col_label.data()) &&
         out.finish(R.data());
}

}  // namespace a1gm
