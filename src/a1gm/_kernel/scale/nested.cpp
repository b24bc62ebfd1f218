#include "scale/solve.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// Patterns ordered by inclusion, and the columns by the step at which they appear.
struct Nesting {
  std::vector<int32_t> depth;  // steps that each pattern observes; 0 = none
  std::vector<int32_t> step;   // step of each column, from 0; -1 = never observed
  int32_t n_steps = 0;
};

bool contains(const uint64_t* large, const uint64_t* small, int64_t words) {
  for (int64_t w = 0; w < words; ++w)
    if (small[w] & ~large[w]) return false;
  return true;
}

// The columns in the order of the steps at which they appear.
struct StepOrder {
  std::vector<int32_t> column;  // columns of step 0, then of step 1, ...
  std::vector<int32_t> begin;   // where each step begins, and the end
};

StepOrder order_steps(const Nesting& nesting) {
  StepOrder out;
  out.begin.assign(static_cast<size_t>(nesting.n_steps) + 1, 0);
  for (const int32_t step : nesting.step)
    if (step >= 0) ++out.begin[static_cast<size_t>(step) + 1];
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  out.column.resize(static_cast<size_t>(out.begin.back()));
  std::vector<int32_t> next(out.begin.begin(), out.begin.end() - 1);
  for (size_t j = 0; j < nesting.step.size(); ++j)
    if (nesting.step[j] >= 0)
      out.column[next[nesting.step[j]]++] = static_cast<int32_t>(j);
  return out;
}

// B of some rows: runs of rows, then a compensated sum per step.
class Accumulator {
 public:
  explicit Accumulator(const StepOrder& order)
      : hi(order.begin.size() - 1, 0.0),
        lo(hi.size(), 0.0),
        run_(hi.size(), 0.0),
        before_(hi.size()),
        order_(order) {}

  void add(const double* x, int32_t depth) {
    double sum = 0.0;
    int32_t c = 0;
    for (int32_t k = 0; k < depth; ++k) {
      before_[k] = sum;
      for (; c < order_.begin[k + 1]; ++c) sum += x[order_.column[c]];
    }
    for (int32_t k = 0; k < depth; ++k) run_[k] += before_[k];
    if (++n_rows_ % kRun == 0) flush();
  }

  void flush() {
    for (size_t k = 0; k < hi.size(); ++k) {
      two_sum(run_[k], hi[k], lo[k]);
      run_[k] = 0.0;
    }
  }
  std::vector<double> hi, lo;

 private:
  std::vector<double> run_, before_;
  const StepOrder& order_;
  int64_t n_rows_ = 0;
};

// False when some two patterns do not contain one another.
bool find_nesting(const BitMask& mask, Nesting& out) {
  const auto [bits, n, m, words] = mask;
  // Most tables show at once that they are no staircase.
  for (int64_t i = 1; i < n; ++i) {
    const uint64_t* row = bits + i * words;
    if (!contains(row, bits, words) && !contains(bits, row, words)) return false;
  }
  std::vector<int64_t> size(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) size[i] = n_observed_in(mask, i);
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&size](int32_t a, int32_t b) { return size[a] < size[b]; });
  out.depth.assign(static_cast<size_t>(n), 0);
  out.step.assign(static_cast<size_t>(m), -1);
  out.n_steps = 0;
  const std::vector<uint64_t> nothing(static_cast<size_t>(words), 0);
  const uint64_t* before = nothing.data();
  for (const int32_t i : order) {
    const uint64_t* row = bits + i * words;
    if (!contains(row, before, words)) return false;
    bool grows = false;
    for (int64_t w = 0; w < words; ++w)
      for (uint64_t fresh = row[w] & ~before[w]; fresh; fresh &= fresh - 1) {
        out.step[w * 64 + lowest_bit(fresh)] = out.n_steps;
        grows = true;
      }
    out.n_steps += grows;
    out.depth[i] = out.n_steps;
    before = row;
  }
  return out.n_steps > 0;
}

// B_k of every step k; cells are read like those of `observe`.
std::vector<double> sum_before_steps(const std::vector<Part>& parts, int64_t n_rows,
                                     const Nesting& nesting, double scale,
                                     int n_threads) {
  const auto m = static_cast<int64_t>(nesting.step.size());
  const int threads = useful_threads(n_threads, n_rows * m);
  const StepOrder order = order_steps(nesting);
  std::vector<Accumulator> sums(static_cast<size_t>(threads), Accumulator(order));
  auto work = [&](int t) {
    TileReader rows(parts, m, 1, scale);
    Poll poll;
    for (int64_t i = n_rows * t / threads; i < n_rows * (t + 1) / threads; ++i) {
      if (nesting.depth[i] < 2) continue;  // step 0 has nothing before it
      poll.worked(m);
      sums[t].add(rows.rows(i, 1), nesting.depth[i]);
    }
    sums[t].flush();
  };
  run_on_threads(threads, work);
  std::vector<double> before(static_cast<size_t>(nesting.n_steps), 0.0);
  for (const Accumulator& part : sums)
    for (size_t k = 0; k < before.size(); ++k) before[k] += part.hi[k] + part.lo[k];
  return before;
}

// Column factors that sum to 1, from B and the column sums.
std::vector<double> nested_factors(const Nesting& nesting,
                                   const std::vector<double>& before,
                                   const double* col_sums) {
  std::vector<double> total(static_cast<size_t>(nesting.n_steps), 0.0);
  const size_t m = nesting.step.size();
  for (size_t j = 0; j < m; ++j)
    if (nesting.step[j] >= 0) total[nesting.step[j]] += col_sums[j];
  // From the last step back, so that the shares sum to 1: the last step takes
  // C / (C + B) of all, the one before the same share of what is left, and so on.
  std::vector<double> share(total.size());
  double left = 1.0;
  for (size_t k = total.size(); k-- > 0;) {
    const double both = total[k] + before[k];
    share[k] = k ? left * (total[k] / both) : left;
    left = k ? left * (before[k] / both) : 0.0;
  }
  std::vector<double> h(m, std::numeric_limits<double>::quiet_NaN());
  for (size_t j = 0; j < m; ++j)
    if (const int32_t k = nesting.step[j]; k >= 0)
      h[j] = share[k] * (col_sums[j] / total[k]);
  return h;
}

}  // namespace

bool solve_nested(const BitMask& mask, const std::vector<Part>& parts,
                  const double* col_sums, double scale, int n_threads,
                  std::vector<double>& h, std::vector<double>& reach) {
  Nesting nesting;
  if (!find_nesting(mask, nesting)) return false;
  h = nested_factors(
      nesting, sum_before_steps(parts, mask.n, nesting, scale, n_threads), col_sums);
  std::vector<double> of_step(static_cast<size_t>(nesting.n_steps) + 1, 0.0);
  for (size_t j = 0; j < h.size(); ++j)
    if (nesting.step[j] >= 0) of_step[static_cast<size_t>(nesting.step[j]) + 1] += h[j];
  std::partial_sum(of_step.begin(), of_step.end(), of_step.begin());
  for (const int32_t depth : nesting.depth) reach.push_back(of_step[depth]);
  return true;
}

}  // namespace a1gm
