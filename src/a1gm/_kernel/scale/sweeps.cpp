#include "scale/sweeps.hpp"

#include <cmath>

namespace a1gm {

bool Patience::stops(int64_t sweep, double gap, Sweeps& out) {
  // Row margins now hold exactly and no column margin is off by more than gap.
  out.n = sweep;
  out.gap = gap;
  const double rate = previous > 0.0 ? gap / previous : 0.0;
  out.done = gap <= tol;
  // What further sweeps would still move the factors by, at the measured rate.
  const double ahead = rate < 0.999 ? gap * rate / (1.0 - rate) : gap;
  const bool settled = !polish || ahead <= 0.1 * tol || rate >= 0.999;
  if ((out.done && settled) || sweep >= max_sweeps || !(gap < 1e300)) return true;
  if (sweep >= 8 && rate > 0.0) {
    const double left =
        rate < 1.0 ? std::log(tol / gap) / std::log(rate) : 1e18;
    if (static_cast<double>(sweep) + left > static_cast<double>(patience)) return true;
  }
  previous = gap;
  return false;
}

Sweeps scale(const Lines& rows, const Lines& cols, const double* R, const double* C,
             double* w, double* h, Patience rule) {
  Sweeps out;
  for (int64_t k = 0;; ++k) {
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

Sweeps scale_core(const Reduced& core, double* w, double* h, Patience rule,
                  int n_threads) {
  const double *R = core.R.data(), *C = core.C.data();
  if (!is_kept_by_rows(core.rows)) return scale(core.rows, core.cols, R, C, w, h, rule);
  // Cells per column spread the sums: a start that is one sweep nearer.
  for (size_t j = 0; j < core.col_degree.size(); ++j) h[j] /= core.col_degree[j];
  return scale_by_rows(core.rows, R, C, w, h, rule, n_threads);
}

}  // namespace a1gm
