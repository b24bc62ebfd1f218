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

// A table of patterns with its row and column sums.
struct Margins {
  const BitMask& keys;
  const double* sums;
  std::vector<double> R, C;
  int64_t n_positive = 0;  // cells

  Margins(const BitMask& mask, const double* cells);
  bool are_positive() const;
  bool are_one_component() const;
};

Margins::Margins(const BitMask& mask, const double* cells)
    : keys(mask),
      sums(cells),
      R(static_cast<size_t>(mask.n), 0.0),
      C(static_cast<size_t>(mask.m), 0.0) {
  const int64_t n = keys.n, m = keys.m;
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
  n_positive = static_cast<int64_t>(std::accumulate(counts.begin(), counts.end(), 0.0));
}

bool Margins::are_positive() const {
  const auto positive = [](double x) { return x > 0.0; };
  return std::all_of(R.begin(), R.end(), positive) &&
         std::all_of(C.begin(), C.end(), positive);
}

// Whether every observed sum is positive, or zeros leave the table in one strongly
// connected component (components.py). Margins are positive.
bool Margins::are_one_component() const {
  int64_t n_observed = 0;
  for (int64_t k = 0; k < keys.n * keys.words; ++k) n_observed += count_bits(keys.bits[k]);
  // Sums of missing cells are 0: as many positive as observed ones means that they are
  // the same.
  return n_positive == n_observed ||
         (finds_all(keys, sums, false) && finds_all(keys, sums, true));
}

// The rows and columns with a positive sum: the others have factor 0, and need no graph
// where all of them share cells with these.
struct Rest {
  std::vector<int64_t> rows, cols;
  std::vector<uint64_t> bits;
  std::vector<double> sums;
  bool is_joined = true;

  explicit Rest(const Margins& all) {
    for (size_t i = 0; i < all.R.size(); ++i)
      if (all.R[i] > 0.0) rows.push_back(static_cast<int64_t>(i));
    for (size_t j = 0; j < all.C.size(); ++j)
      if (all.C[j] > 0.0) cols.push_back(static_cast<int64_t>(j));
    const int64_t words = (n_cols() + 63) / 64;
    const BitMask& keys = all.keys;
    const auto observes = [&keys](int64_t i, int64_t j) {
      return (keys.bits[i * keys.words + j / 64] >> (j & 63) & 1) != 0;
    };
    for (int64_t i = 0; i < keys.n; ++i)
      if (!(all.R[i] > 0.0))
        is_joined &= std::any_of(cols.begin(), cols.end(),
                                 [&](int64_t j) { return observes(i, j); });
    for (int64_t j = 0; j < keys.m; ++j)
      if (!(all.C[j] > 0.0))
        is_joined &= std::any_of(rows.begin(), rows.end(),
                                 [&](int64_t i) { return observes(i, j); });
    bits.assign(static_cast<size_t>(n_rows() * words), 0);
    sums.reserve(rows.size() * cols.size());
    for (int64_t i = 0; i < n_rows(); ++i)
      for (int64_t j = 0; j < n_cols(); ++j) {
        const int64_t row = rows[i], col = cols[j];
        bits[i * words + j / 64] |= uint64_t{observes(row, col)} << (j & 63);
        sums.push_back(all.sums[row * all.keys.m + col]);
      }
  }
  int64_t n_rows() const { return static_cast<int64_t>(rows.size()); }
  int64_t n_cols() const { return static_cast<int64_t>(cols.size()); }
  BitMask mask() const { return {bits.data(), n_rows(), n_cols(), (n_cols() + 63) / 64}; }
};

// Puts values at their places among zeros.
void spread(const std::vector<int64_t>& places, size_t n, std::vector<double>& values) {
  std::vector<double> all(n, 0.0);
  for (size_t k = 0; k < places.size(); ++k) all[places[k]] = values[k];
  values = std::move(all);
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

bool are_usable(const std::vector<double>& factors, const double* sums) {
  for (size_t k = 0; k < factors.size(); ++k)
    if (sums[k] > 0.0 ? !(factors[k] > 0.0 && keeps_digits(factors[k])) : factors[k] != 0.0)
      return false;
  return true;
}

bool Plain::is_usable(const double* R, const double* C) const {
  return are_usable(pattern_factor, R) && are_usable(col_factor, C) &&
         are_usable(pattern_scale, R);
}

bool Plain::finish(const double* R, const double* C) {
  if (!is_usable(R, C)) return false;
  const double total = std::accumulate(col_factor.begin(), col_factor.end(), 0.0);
  for (double& h : col_factor) h /= total;
  pattern_scale.resize(pattern_factor.size());
  for (size_t i = 0; i < pattern_factor.size(); ++i) {
    pattern_factor[i] *= total;
    pattern_scale[i] = R[i] == 0.0 ? 0.0 : pattern_factor[i] / R[i];
  }
  return is_usable(R, C);
}

bool solve_plain(const BitMask& keys, const double* sums, double tol,
                 int64_t max_sweeps, int64_t max_steps, Plain& out) {
  const int64_t n = keys.n, m = keys.m;
  const Margins margins(keys, sums);
  const std::vector<double>& R = margins.R;
  const std::vector<double>& C = margins.C;
  if (!are_in_range(C.data(), m)) return false;
  if (!margins.are_positive()) {
    const Rest rest(margins);
    if (rest.rows.empty() || !rest.is_joined) return false;
    if (!solve_plain(rest.mask(), rest.sums.data(), tol, max_sweeps, max_steps, out))
      return false;
    spread(rest.rows, R.size(), out.pattern_factor);
    spread(rest.rows, R.size(), out.pattern_scale);
    spread(rest.cols, C.size(), out.col_factor);
    out.is_whole = false;
    return true;
  }
  if (!margins.are_one_component()) return false;
  if (std::vector<double> reach; solve_nested(keys, {part_of(sums, m)}, C.data(), 1,
                                              out.col_factor, reach)) {
    for (int64_t i = 0; i < n; ++i) {
      out.pattern_scale.push_back(1.0 / reach[i]);
      out.pattern_factor.push_back(R[i] * out.pattern_scale[i]);
    }
    return out.is_usable(R.data(), C.data());
  }
  Reduced reduced;
  if (!merge_twins(keys, R.data(), C.data(), true, false, reduced))
    reduced = peel_pairs(PairTable(keys, sums).view());
  if (reduced.n_core_blocks + n_roots(reduced) != 1) return false;

  std::vector<double> w, h;
  if (!reduced.core_rows.empty()) {
    w.resize(reduced.R.size());
    h = start_of(reduced);
    const Sweeps sweeps =
        scale_core(reduced, w.data(), h.data(), {tol, max_sweeps, max_sweeps}, 1);
    out.n_iter = sweeps.n;
    out.gap = sweeps.gap;
    out.step = cheap_step(reduced, w.data(), h.data(), sweeps.gap, 1);
    if (!(sweeps.done && out.step <= kSettledStep) &&
        !settle_cells(reduced, keys, sums, tol, max_steps, w.data(), h.data(), out))
      return false;
    if (!are_usable(w, reduced.R.data()) || !are_usable(h, reduced.C.data())) return false;
  }
  Factors found = replay(reduced, w.data(), h.data());
  out.pattern_factor = std::move(found.w);
  out.col_factor = std::move(found.h);
  return found.exact && out.finish(R.data(), C.data());
}

}  // namespace a1gm
