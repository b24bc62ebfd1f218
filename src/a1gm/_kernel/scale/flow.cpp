#include "scale/flow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "interrupt.hpp"
#include "scale/cell_error.hpp"
#include "scale/sweeps.hpp"

namespace a1gm {

Flow::Flow(const Reduced& core, const double* w, const double* h, int n_threads)
    : core_(core),
      n_threads_(n_threads),
      d_(core.R.size()),
      fitted_(core.C.size()),
      scaled_(core.C.size()),
      is_ground_(core.C.size(), 0) {
  std::vector<int64_t> heaviest(static_cast<size_t>(core.n_core_blocks), -1);
  for (size_t j = 0; j < core.C.size(); ++j) {
    int64_t& ground = heaviest[core.col_label[j]];
    if (ground < 0 || core.C[j] > core.C[ground]) ground = static_cast<int64_t>(j);
  }
  for (const int64_t j : heaviest)
    if (j >= 0) is_ground_[j] = 1;
  move(w, h);
}

void Flow::move(const double* w, const double* h) {
  w_.assign(w, w + core_.R.size());
  h_.assign(h, h + core_.C.size());
  for (size_t i = 0; i < d_.size(); ++i) d_[i] = w[i] / (core_.R[i] / w[i]);
  core_product(core_, d_.data(), h, fitted_.data(), n_threads_);
  for (size_t j = 0; j < fitted_.size(); ++j) fitted_[j] *= h[j];
  is_fresh_ = false;
}

void Flow::times(const double* x, const double* extra, double* y) {
  for (size_t j = 0; j < h_.size(); ++j) scaled_[j] = h_[j] * x[j];
  core_product(core_, d_.data(), scaled_.data(), y, n_threads_);
  for (size_t j = 0; j < h_.size(); ++j) {
    const double own = extra == nullptr ? fitted_[j] : fitted_[j] + extra[j];
    y[j] = is_ground_[j] ? 0.0 : own * x[j] - h_[j] * y[j];
  }
}

void Flow::factorise(const double* extra) {
  const Lists& rows = core_.rows;
  const int64_t n = rows.n, m = rows.n_other;
  std::vector<uint8_t> is_ground(static_cast<size_t>(n), 0);
  is_ground.insert(is_ground.end(), is_ground_.begin(), is_ground_.end());
  auto made = std::make_unique<ThinFactors>(
      std::move(is_ground),
      static_cast<int64_t>(rows.index.size()) + (extra == nullptr ? 0 : m));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = rows.ptr[i]; k < rows.ptr[i + 1]; ++k) {
      const int32_t j = rows.index[k];
      const double cell = w_[i] * h_[j];
      made->join(i, n + j, rows.weight.empty() ? cell : rows.weight[k] * cell);
    }
  const auto ground = std::find(is_ground_.begin(), is_ground_.end(), 1);
  if (extra != nullptr)
    for (int64_t j = 0; j < m; ++j)
      if (!is_ground_[j]) made->join(n + j, n + (ground - is_ground_.begin()), extra[j]);
  made->eliminate();
  factors_ = std::move(made);
  all_.resize(static_cast<size_t>(n + m));
  place_.clear();
  for (int64_t j = 0; j < m; ++j) place_.push_back(factors_->place(n + j));
  is_fresh_ = true;
}

void Flow::precede(const double* residual, const double* extra, double* out) {
  if (factors_ == nullptr) {
    for (size_t j = 0; j < h_.size(); ++j) {
      const double own = extra == nullptr ? fitted_[j] : fitted_[j] + extra[j];
      out[j] = is_ground_[j] ? 0.0 : residual[j] / own;
    }
    return;
  }
  std::fill(all_.begin(), all_.end(), 0.0);
  for (size_t j = 0; j < h_.size(); ++j) all_[place_[j]] = residual[j];
  factors_->solve(all_.data());
  for (size_t j = 0; j < h_.size(); ++j) out[j] = all_[place_[j]];
}

int64_t Flow::solve(const double* y, const double* extra, Enough enough, Costs costs,
                    int64_t max_products, double* x) {
  const size_t m = h_.size();
  const double* c = core_.C.data();
  std::vector<double> residual(m), z(m), p(m, 0.0), q(m);
  for (size_t j = 0; j < m; ++j) {
    x[j] = 0.0;
    residual[j] = is_ground_[j] ? 0.0 : y[j];
  }
  const bool has_list = !core_.rows.lists_missing;
  double before = 1.0;
  int64_t spent = 0;
  Poll poll;
  for (int64_t n = 1; n <= max_products; ++n) {
    poll.worked(static_cast<int64_t>(4 * core_.rows.index.size() + d_.size() + 8 * m));
    if (has_list && !is_fresh_ && spent >= costs.factors) {
      factorise(extra);
      std::fill(p.begin(), p.end(), 0.0);
    }
    spent += factors_ == nullptr ? 1 : costs.preceded;
    precede(residual.data(), extra, z.data());
    const double now = std::inner_product(z.begin(), z.end(), residual.begin(), 0.0);
    if (!(now > 0.0)) return n;
    for (size_t j = 0; j < m; ++j) p[j] = z[j] + now / before * p[j];
    before = now;
    times(p.data(), extra, q.data());
    const double length = now / std::inner_product(p.begin(), p.end(), q.begin(), 0.0);
    if (!(length > 0.0) || !std::isfinite(length)) return n;
    double worst = 0.0, low = 0.0, high = 0.0;
    for (size_t j = 0; j < m; ++j) {
      x[j] += length * p[j];
      residual[j] -= length * q[j];
      worst = std::max(worst, std::abs(residual[j]) / c[j]);
      low = std::min(low, x[j]);
      high = std::max(high, x[j]);
    }
    if (worst <= std::max(enough.least, enough.share * (high - low))) return n;
  }
  return max_products;
}

double Flow::reach(double enough, int64_t max_products) {
  if (has_lost_digits(core_)) return kInfinity;
  const size_t m = h_.size();
  std::vector<double> x(m), y(m);
  const Costs never{std::numeric_limits<int64_t>::max(), 1};
  solve(core_.C.data(), nullptr, {1.0 - enough, 0.0}, never, max_products, x.data());
  times(x.data(), nullptr, y.data());
  double most = 0.0, least = kInfinity;
  for (size_t j = 0; j < m; ++j) {
    if (is_ground_[j]) continue;
    const double ratio = y[j] / core_.C[j];
    if (!std::isfinite(x[j]) || !std::isfinite(ratio)) return kInfinity;
    most = std::max(most, std::abs(x[j]));
    least = std::min(least, ratio);
  }
  if (least == kInfinity) return 0.0;  // nothing but grounds
  const double lost = rounding_of_sums(longest_sum(core_)) * most;
  least -= lost;
  return lost <= 0.25 && least > 0.0 ? most / least : kInfinity;
}

}  // namespace a1gm
