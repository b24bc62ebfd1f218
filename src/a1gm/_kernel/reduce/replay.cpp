#include <algorithm>

#include "reduce/peel.hpp"
#include "sums.hpp"

namespace a1gm {

bool replay(const Reduced& reduced, double* w, double* h, int32_t* row_label,
            int32_t* col_label) {
  std::fill_n(row_label, reduced.n_rows, -1);
  std::fill_n(col_label, reduced.n_cols, -1);
  for (size_t k = 0; k < reduced.core_rows.size(); ++k)
    row_label[reduced.core_rows[k]] = reduced.row_label[k];
  for (size_t k = 0; k < reduced.core_cols.size(); ++k)
    col_label[reduced.core_cols[k]] = reduced.col_label[k];
  auto next_label = static_cast<int32_t>(reduced.n_core_blocks);
  bool exact = true;
  for (auto entry = reduced.log.rbegin(); entry != reduced.log.rend(); ++entry) {
    // Not `auto [...]`, whose names no lambda of C++17 may take: older Clangs refuse it.
    const Step step = entry->step;
    const int32_t gone = entry->gone, kept = entry->kept;
    const double sum_gone = entry->sum_gone, sum_kept = entry->sum_kept;
    const double ratio = entry->ratio;
    auto split = [&](double* factor, int32_t* label) {
      // Not factor * (sum / both): a share below 1e-308 would vanish.
      const double each = factor[kept] / (sum_gone + sum_kept);
      const double part = each * sum_gone;
      factor[gone] = part / ratio;
      factor[kept] = each * sum_kept;
      label[gone] = label[kept];
      exact &= keeps_digits(each) && keeps_digits(part) &&
               keeps_digits(factor[gone]) && keeps_digits(factor[kept]);
    };
    auto leaf = [&](double* factor, double other) {
      const double quotient = sum_gone / other;
      factor[gone] = quotient / ratio;
      exact &= keeps_digits(quotient) && keeps_digits(factor[gone]);
    };
    switch (step) {
      case Step::root:
        // The scale is free; 1 on the column's side, where the final factors sum to 1,
        // keeps everything in range whenever the final factors are.
        h[kept] = 1.0;
        w[gone] = sum_gone / ratio;
        exact &= keeps_digits(w[gone]);
        row_label[gone] = col_label[kept] = next_label++;
        break;
      case Step::leaf_row:
        leaf(w, h[kept]);
        row_label[gone] = col_label[kept];
        break;
      case Step::leaf_col:
        leaf(h, w[kept]);
        col_label[gone] = row_label[kept];
        break;
      case Step::twin_row: split(w, row_label); break;
      case Step::twin_col: split(h, col_label); break;
    }
  }
  return exact;
}

int64_t n_roots(const Reduced& reduced) {
  return std::count_if(reduced.log.begin(), reduced.log.end(),
                       [](const LogEntry& e) { return e.step == Step::root; });
}

}  // namespace a1gm
