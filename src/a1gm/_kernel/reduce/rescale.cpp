#include <algorithm>
#include <limits>

#include "reduce/peel.hpp"

namespace a1gm {
namespace {

// Beyond it every double is 0 or infinite.
int within(int64_t power) {
  constexpr int64_t kFurthest = 1 << 14;
  return static_cast<int>(std::clamp(power, -kFurthest, kFurthest));
}

}  // namespace

Reduced rescaled(const Reduced& reduced, const int64_t* a, const int64_t* b,
                 int64_t lift) {
  Reduced out = reduced;
  out.sum_of_rows.clear();
  out.col_degree.clear();  // known for masks without weights only
  for (std::vector<double>* sums : {&out.R, &out.C})
    for (double& sum : *sums) sum = std::ldexp(sum, within(lift));
  const Lines& from = reduced.rows;
  Lines& rows = out.rows = Lines();
  rows.n = from.n;
  rows.n_other = from.n_other;
  for (int64_t i = 0; i < from.n; ++i) {
    int64_t k = from.ptr[i];
    from.each_observed(i, [&](int32_t j) {
      const double weight = from.weight.empty() ? 1.0 : from.weight[k++];
      rows.index.push_back(j);
      // An observed cell is never 0: it stays one.
      rows.weight.push_back(std::max(std::ldexp(weight, within(a[i] + b[j])),
                                     std::numeric_limits<double>::denorm_min()));
    });
    rows.ptr.push_back(static_cast<int64_t>(rows.index.size()));
  }
  out.cols = is_kept_by_rows(rows) ? Lines() : transpose(rows);
  return out;
}

}  // namespace a1gm
