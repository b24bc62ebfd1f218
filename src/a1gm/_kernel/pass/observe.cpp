#include "pass/observe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pass/worker.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// The sum that a row would have with the weights of its pattern, given the largest of
// its own and of theirs; NaN where float64 does not have it.
double alike(double sum, double own, double theirs) {
  if (sum == 0.0) return sum;
  const double found = sum * (theirs / own);
  return keeps_digits(found) ? found : std::numeric_limits<double>::quiet_NaN();
}

template <typename T>
void merge_tables(std::vector<Worker<T>>& workers, const Job<T>& job,
                  Observed& out) {
  Worker<T>& first = workers[0];
  std::vector<std::vector<int32_t>> renamed(workers.size());
  for (size_t t = 1; t < workers.size(); ++t) {
    Worker<T>& other = workers[t];
    for (int64_t k = 0; k < other.patterns.size(); ++k) {
      const int32_t id =
          first.patterns.find_or_insert(&other.patterns.keys[k * job.key_words]);
      renamed[t].push_back(id);
      if (id == static_cast<int32_t>(first.sums.size())) {
        first.sums.push_back(std::move(other.sums[k]));
        first.counts.push_back(other.counts[k]);
        if (job.is_weighted()) {
          const double* const own = &other.weighing()->pattern_weights[k * job.n_cols];
          std::vector<double>& all = first.weighing()->pattern_weights;
          all.insert(all.end(), own, own + job.n_cols);
        }
      } else {
        first.sums[id].absorb(other.sums[k]);
        first.counts[id] += other.counts[k];
      }
    }
  }
  out.n_patterns = first.patterns.size();
  out.keys = std::move(first.patterns.keys);
  if (job.is_weighted()) out.weights = std::move(first.weighing()->pattern_weights);
  out.sums.resize(static_cast<size_t>(out.n_patterns * job.n_cols));
  out.counts = std::move(first.counts);
  for (int64_t k = 0; k < out.n_patterns; ++k)
    first.sums[k].write(&out.sums[static_cast<size_t>(k * job.n_cols)]);
  std::vector<double> largest;  // weight of each pattern
  for (auto own = out.weights.begin(); own != out.weights.end(); own += job.n_cols)
    largest.push_back(*std::max_element(own, own + job.n_cols));
  const auto n_workers = static_cast<int64_t>(workers.size());
  const int threads = useful_threads(static_cast<int>(n_workers), job.n_rows);
  run_on_threads(threads, [&](int begin) {
    for (int64_t t = begin; t < n_workers; t += threads) {
      const int64_t from = job.n_rows * t / n_workers, to = job.n_rows * (t + 1) / n_workers;
      for (int64_t i = from; t > 0 && i < to; ++i) job.ids[i] = renamed[t][job.ids[i]];
      for (int64_t i = from; job.is_weighted() && i < to; ++i)
        job.row_sums[i] = alike(job.row_sums[i], job.largest[i], largest[job.ids[i]]);
    }
  });
}

// Whether rows are read where they lie, as cells of type T.
template <typename T>
bool is_direct(const std::vector<Part>& parts, const Options& options) {
  return options.weights == nullptr && parts.size() == 1 &&
         lies_as<T>(parts[0]);
}

template <typename T>
void observe_as(const std::vector<Part>& parts, int64_t n_rows, double* row_sums,
                int32_t* ids, const Options& options, Observed& out) {
  static const Isa<T> isa = choose_isa<T>();
  std::atomic<bool> go_wide{false};
  const bool direct = is_direct<T>(parts, options);
  const bool is_weighted = options.weights != nullptr;
  std::vector<double> largest(static_cast<size_t>(is_weighted ? n_rows : 0));
  const Job<T> job{parts,    n_rows,  out.n_cols, out.words,
                   row_sums, ids,     options,    isa,       direct,    go_wide,
                   is_weighted ? out.n_cols : out.words, largest.data()};

  const int threads = static_cast<int>(std::min<int64_t>(
      useful_threads(options.n_threads, n_rows * out.n_cols), std::max<int64_t>(1, n_rows)));
  std::vector<Worker<T>> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t)
    workers.emplace_back(job, n_rows * t / threads, n_rows * (t + 1) / threads);

  run_on_threads(threads, [&](int t) { workers[t].observe_table(); });
  out.wide = go_wide;
  if (out.wide) {
    out.bits.resize(static_cast<size_t>(n_rows * out.words));
    out.positive.resize(out.bits.size());
    run_on_threads(threads, [&](int t) {
      workers[t].observe_wide(out.bits.data(), out.positive.data());
    });
    for (size_t t = 1; t < workers.size(); ++t)
      workers[0].sums[0].absorb(workers[t].sums[0]);
    out.col_sums.resize(static_cast<size_t>(out.n_cols));
    workers[0].sums[0].write(out.col_sums.data());
  } else {
    merge_tables(workers, job, out);
  }
  for (Worker<T>& worker : workers) {
    out.negative.add(worker.negative);
    out.infinite.add(worker.infinite);
    out.is_in_range &= worker.is_in_range;
    out.has_zero |= worker.has_zero;
    if (worker.weighing()) out.range.add(worker.weighing()->range);
  }
}

}  // namespace

Observed observe(const std::vector<Part>& parts, int64_t n_rows, double* row_sums,
                    int32_t* ids, const Options& options) {
  Observed out;
  for (const Part& part : parts) out.n_cols += part.n_cols;
  out.words = (out.n_cols + 63) / 64;
  auto* const run =
      is_direct<float>(parts, options) ? observe_as<float> : observe_as<double>;
  run(parts, n_rows, row_sums, ids, options, out);
  return out;
}

void expand_rows(double* row_sums, const int32_t* pattern_id, const double* scale,
                 int64_t n, int n_threads) {
  const int threads = useful_threads(n_threads, n);
  run_on_threads(threads, [=](int t) {
    for (int64_t i = n * t / threads; i < n * (t + 1) / threads; ++i)
      row_sums[i] *= scale[pattern_id[i]];
  });
}

}  // namespace a1gm
