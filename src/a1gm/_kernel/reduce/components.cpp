// Connected blocks of a mask.
#include <algorithm>
#include <numeric>

#include "reduce/mask_lists.hpp"

namespace a1gm {
namespace {

// The root of x in a union-find forest; paths are halved on the way.
int32_t find_root(int32_t* parent, int32_t x) {
  while (parent[x] != x) {
    const int32_t up = parent[x], next = parent[up];
    if (next != up) parent[x] = next;  // seldom: stores would hold up the next search
    x = next;
  }
  return x;
}

}  // namespace

int64_t connected_blocks(const Lines& rows, std::vector<int32_t>& row_label,
                         std::vector<int32_t>& col_label) {
  std::vector<int32_t> all(static_cast<size_t>(rows.n_other));
  std::iota(all.begin(), all.end(), 0);
  int32_t* const parent = all.data();
  // Every row joins the columns it observes: a few full ones join them all.
  int64_t n_sets = rows.n_other;
  for (int64_t i = 0; i < rows.n && n_sets > 1; ++i) {
    int32_t root = -1;
    rows.each_observed(i, [&](int32_t j) {
      if (parent[j] == root) return;  // as most are, once a few rows have joined them
      const int32_t other = find_root(parent, j);
      if (root < 0) root = other;
      if (other == root) return;
      parent[std::max(root, other)] = std::min(root, other);
      root = std::min(root, other);
      --n_sets;
    });
  }
  // Blocks are numbered in the order of their first rows.
  int32_t n_blocks = 0;
  std::vector<int32_t> label_of_root(all.size(), -1);
  row_label.assign(static_cast<size_t>(rows.n), -1);
  col_label.resize(all.size());
  for (int64_t i = 0; i < rows.n; ++i) {
    const int32_t first = rows.first_observed(i);
    if (first < 0) continue;
    int32_t& label = label_of_root[find_root(parent, first)];
    if (label < 0) label = n_blocks++;
    row_label[i] = label;
  }
  for (size_t j = 0; j < all.size(); ++j)
    col_label[j] = label_of_root[find_root(parent, static_cast<int32_t>(j))];
  return n_blocks;
}

}  // namespace a1gm
