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
  std::vector<int32_t> depth;     // steps that each pattern observes
  std::vector<int32_t> column;    // columns of step 0, then of step 1, ...
  std::vector<int32_t> begin{0};  // where each step begins, and the end

  size_t n_steps() const { return begin.size() - 1; }
  template <typename F>
  void each_column(F&& f) const {  // f(step, column)
    for (size_t k = 0; k < n_steps(); ++k)
      for (int32_t c = begin[k]; c < begin[k + 1]; ++c) f(k, column[c]);
  }
};

bool contains(const uint64_t* large, const uint64_t* small, int64_t words) {
  for (int64_t w = 0; w < words; ++w)
    if (small[w] & ~large[w]) return false;
  return true;
}

// B of some rows: runs of rows, then a compensated sum per step.
class Accumulator {
 public:
  explicit Accumulator(const Nesting& nesting)
      : hi(nesting.n_steps(), 0.0),
        lo(hi.size(), 0.0),
        run_(hi.size(), 0.0),
        before_(hi.size()),
        nesting_(nesting) {}

  void add(const double* x, int32_t depth) {
    double sum = 0.0;
    int32_t c = 0;
    for (int32_t k = 0; k < depth; ++k) {
      before_[k] = sum;
      for (; c < nesting_.begin[k + 1]; ++c) sum += x[nesting_.column[c]];
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
  const Nesting& nesting_;
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
  const std::vector<uint64_t> nothing(static_cast<size_t>(words), 0);
  const uint64_t* before = nothing.data();
  for (const int32_t i : order) {
    const uint64_t* row = bits + i * words;
    if (!contains(row, before, words)) return false;
    for (int64_t w = 0; w < words; ++w)
      for (uint64_t fresh = row[w] & ~before[w]; fresh; fresh &= fresh - 1)
        out.column.push_back(static_cast<int32_t>(w * 64 + lowest_bit(fresh)));
    const auto end = static_cast<int32_t>(out.column.size());
    if (end > out.begin.back()) out.begin.push_back(end);
    out.depth[i] = static_cast<int32_t>(out.n_steps());
    before = row;
  }
  return out.n_steps() > 0;
}

// B_k of every step k; cells are read like those of `observe`.
std::vector<double> sum_before_steps(const BitMask& mask, const std::vector<Part>& parts,
                                     const Nesting& nesting, int n_threads) {
  const int64_t n_rows = mask.n, m = mask.m;
  const int threads = useful_threads(n_threads, n_rows * m);
  std::vector<Accumulator> sums(static_cast<size_t>(threads), Accumulator(nesting));
  auto work = [&](int t) {
    TileReader rows(parts, m, 1);
    Poll poll;
    for (int64_t i = n_rows * t / threads; i < n_rows * (t + 1) / threads; ++i) {
      if (nesting.depth[i] < 2) continue;  // step 0 has nothing before it
      poll.worked(m);
      sums[t].add(rows.rows(i, 1), nesting.depth[i]);
    }
    sums[t].flush();
  };
  run_on_threads(threads, work);
  std::vector<double> before(nesting.n_steps(), 0.0);
  for (const Accumulator& part : sums)
    for (size_t k = 0; k < before.size(); ++k) before[k] += part.hi[k] + part.lo[k];
  return before;
}

// Column factors that sum to 1, from B and the column sums.
std::vector<double> nested_factors(const Nesting& nesting,
                                   const std::vector<double>& before,
                                   const double* col_sums, int64_t m) {
  std::vector<double> total(before.size(), 0.0), share(before.size());
  nesting.each_column([&](size_t k, int32_t j) { total[k] += col_sums[j]; });
  // From the last step back, so that the shares sum to 1: the last step takes
  // C / (C + B) of all, the one before the same share of what is left, and so on.
  double left = 1.0;
  for (size_t k = total.size(); k-- > 0;) {
    const double both = total[k] + before[k];
    share[k] = k ? left * (total[k] / both) : left;
    left = k ? left * (before[k] / both) : 0.0;
  }
  std::vector<double> h(static_cast<size_t>(m), std::numeric_limits<double>::quiet_NaN());
  nesting.each_column(
      [&](size_t k, int32_t j) { h[j] = share[k] * (col_sums[j] / total[k]); });
  return h;
}

}  // namespace

bool solve_nested(const BitMask& mask, const std::vector<Part>& parts,
                  const double* col_sums, int n_threads, std::vector<double>& h,
                  std::vector<double>& reach) {
  Nesting nesting;
  if (!find_nesting(mask, nesting)) return false;
  h = nested_factors(nesting, sum_before_steps(mask, parts, nesting, n_threads), col_sums,
                     mask.m);
  std::vector<double> of_step(nesting.n_steps() + 1, 0.0);
  nesting.each_column([&](size_t k, int32_t j) { of_step[k + 1] += h[j]; });
  std::partial_sum(of_step.begin(), of_step.end(), of_step.begin());
  for (const int32_t depth : nesting.depth) reach.push_back(of_step[depth]);
  return true;
}

}  // namespace a1gm
