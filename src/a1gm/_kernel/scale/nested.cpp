#include "scale/solve.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

int64_t size_of(const uint64_t* row, int64_t words) {
  int64_t n = 0;
  for (int64_t w = 0; w < words; ++w) n += count_bits(row[w]);
  return n;
}

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

}  // namespace

bool find_nesting(const BitMask& mask, Nesting& out) {
  const auto [bits, n, m, words] = mask;
  // Most tables show at once that they are no staircase.
  for (int64_t i = 1; i < n; ++i) {
    const uint64_t* row = bits + i * words;
    if (!contains(row, bits, words) && !contains(bits, row, words)) return false;
  }
  std::vector<int64_t> size(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) size[i] = size_of(bits + i * words, words);
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

std::vector<double> sum_before_steps(const std::vector<Part>& parts, int64_t n_rows,
                                     const Nesting& nesting, double scale,
                                     int n_threads) {
  const auto m = static_cast<int64_t>(nesting.step.size());
  const int threads = useful_threads(n_threads, n_rows * m);
  const StepOrder order = order_steps(nesting);
  std::vector<Accumulator> sums(static_cast<size_t>(threads), Accumulator(order));
  const bool whole = parts.size() == 1 && scale == 1.0 && lies_as<double>(parts[0]);
  auto work = [&](int t) {
    std::vector<double> row(static_cast<size_t>(m));
    Poll poll;
    for (int64_t i = n_rows * t / threads; i < n_rows * (t + 1) / threads; ++i) {
      if (nesting.depth[i] < 2) continue;  // step 0 has nothing before it
      poll.worked(m);
      if (whole) {
        const Part& part = parts[0];
        sums[t].add(reinterpret_cast<const double*>(part.data + i * part.row_stride),
                    nesting.depth[i]);
        continue;
      }
      load_tile(parts, i, 1, m, scale, row.data());
      sums[t].add(row.data(), nesting.depth[i]);
    }
    sums[t].flush();
  };
  run_on_threads(threads, work);
  std::vector<double> before(static_cast<size_t>(nesting.n_steps), 0.0);
  for (const Accumulator& part : sums)
    for (size_t k = 0; k < before.size(); ++k) before[k] += part.hi[k] + part.lo[k];
  return before;
}

std::vector<double> reach_of_steps(const Nesting& nesting, const double* h) {
  std::vector<double> reach(static_cast<size_t>(nesting.n_steps) + 1, 0.0);
  for (size_t j = 0; j < nesting.step.size(); ++j)
    if (nesting.step[j] >= 0) reach[static_cast<size_t>(nesting.step[j]) + 1] += h[j];
  std::partial_sum(reach.begin(), reach.end(), reach.begin());
  return reach;
}

void nested_factors(const Nesting& nesting, const double* before,
                    const double* col_sums, int64_t m, double* h) {
  std::vector<double> total(static_cast<size_t>(nesting.n_steps), 0.0);
  for (int64_t j = 0; j < m; ++j)
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
  for (int64_t j = 0; j < m; ++j)
    h[j] = nesting.step[j] < 0 ? std::numeric_limits<double>::quiet_NaN()
                               : share[nesting.step[j]] *
                                     (col_sums[j] / total[nesting.step[j]]);
}

}  // namespace a1gm
