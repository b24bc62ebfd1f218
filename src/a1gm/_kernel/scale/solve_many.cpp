#include "scale/solve_many.hpp"

#include <atomic>
#include <cmath>

#include "pass/observe.hpp"
#include "pass/patterns.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

constexpr size_t kAtOnce = 8;  // tables that a thread takes at a time

void solve_one(const Cells& table, const ManyOptions& options, SmallFit& fit) {
  const auto n = static_cast<size_t>(table.n_rows);
  std::vector<double> row_sums(n);
  const IdMemory new_ids = [&fit, n](int width) -> void* {
    fit.id_width = width;
    fit.ids.resize(n * static_cast<size_t>(width));
    return fit.ids.data();
  };
  Options pass;
  pass.table_cells = options.table_cells;
  Observation seen =
      observe(*table.parts, table.n_rows, 1, row_sums.data(), new_ids, pass);
  if (seen.wide || seen.overflow || seen.negative.count || seen.infinite.count ||
      !std::isfinite(seen.total) || seen.total < options.least)
    return;
  const BitMask keys{seen.keys.data(), seen.n_patterns, seen.n_cols, seen.words};
  fit.settled = solve_plain(keys, seen.sums.data(), options.tol, options.max_sweeps,
                            options.max_steps, fit.plain);
  if (!fit.settled) return;
  fit.n_cols = seen.n_cols;
  fit.words = seen.words;
  fit.keys = std::move(seen.keys);
  fit.counts = std::move(seen.counts);
  fit.sums = std::move(seen.sums);
  fit.row_factor = std::move(row_sums);
  with_id_type(fit.id_width, [&fit](auto id) {
    expand_rows(fit.row_factor.data(),
                reinterpret_cast<const decltype(id)*>(fit.ids.data()),
                fit.plain.line_scale.data(),
                static_cast<int64_t>(fit.row_factor.size()),
                static_cast<int64_t>(fit.plain.line_scale.size()), 1);
  });
}

}  // namespace

std::vector<SmallFit> solve_many(const std::vector<Cells>& tables,
                                 const ManyOptions& options) {
  std::vector<SmallFit> fits(tables.size());
  std::atomic<size_t> next{0};
  const int threads = useful_threads(
      options.n_threads, static_cast<int64_t>(tables.size()), 2 * kAtOnce);
  run_on_threads(threads, [&](int) {
    for (size_t begin; (begin = next.fetch_add(kAtOnce)) < tables.size();) {
      check_interrupt();
      const size_t end = std::min(begin + kAtOnce, tables.size());
      for (size_t k = begin; k < end; ++k) solve_one(tables[k], options, fits[k]);
    }
  });
  return fits;
}

}  // namespace a1gm
