#include <algorithm>

#include "reduce/peel.hpp"

namespace a1gm {

void replay(const Reduced& reduced, double* w, double* h, int32_t* row_label,
            int32_t* col_label) {
  std::fill_n(row_label, reduced.n_rows, -1);
  std::fill_n(col_label, reduced.n_cols, -1);
  for (size_t k = 0; k < reduced.core_rows.size(); ++k)
    row_label[reduced.core_rows[k]] = reduced.row_label[k];
  for (size_t k = 0; k < reduced.core_cols.size(); ++k)
    col_label[reduced.core_cols[k]] = reduced.col_label[k];
  auto next_label = static_cast<int32_t>(reduced.n_core_blocks);
  for (auto entry = reduced.log.rbegin(); entry != reduced.log.rend(); ++entry) {
    const auto [step, gone, kept, sum_gone, sum_kept, ratio] = *entry;
    auto split = [&](double* factor, int32_t* label) {
      // Not factor * (sum / both): a share below 1e-308 would vanish.
      const double each = factor[kept] / (sum_gone + sum_kept);
      factor[gone] = each * sum_gone / ratio;
      factor[kept] = each * sum_kept;
      label[gone] = label[kept];
    };
    switch (step) {
      case Step::root:
        // The scale is free; 1 on the column's side, where the final factors sum to 1,
        // keeps everything in range whenever the final factors are.
        h[kept] = 1.0;
        w[gone] = sum_gone / ratio;
        row_label[gone] = col_label[kept] = next_label++;
        break;
      case Step::leaf_row:
        w[gone] = sum_gone / h[kept] / ratio;
        row_label[gone] = col_label[kept];
        break;
      case Step::leaf_col:
        h[gone] = sum_gone / w[kept] / ratio;
        col_label[gone] = row_label[kept];
        break;
      case Step::twin_row: split(w, row_label); break;
      case Step::twin_col: split(h, col_label); break;
    }
  }
}

}  // namespace a1gm
