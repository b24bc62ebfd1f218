// Connected blocks of a mask.
#include <algorithm>
#include <numeric>

#include "reduce/mask_lists.hpp"

namespace a1gm {
namespace {

// The root of x in a union-find forest; paths are halved on the way.
int32_t find_root(std::vector<int32_t>& parent, int32_t x) {
  while (parent[x] != x) x = parent[x] = parent[parent[x]];
  return x;
}

}  // namespace

int64_t connected_blocks(const Lines& rows, const Lines& cols,
                         std::vector<int32_t>& row_label,
                         std::vector<int32_t>& col_label) {
  row_label.assign(static_cast<size_t>(rows.n), 0);
  col_label.assign(static_cast<size_t>(cols.n), 0);
  // One line that meets every line of the other side joins all of it.
  auto has_full = [](const Lines& side) {
    for (int64_t i = 0; i < side.n; ++i)
      if (side.degree(i) == side.n_other) return true;
    return false;
  };
  auto none_empty = [](const Lines& side) {
    for (int64_t i = 0; i < side.n; ++i)
      if (side.degree(i) == 0) return false;
    return true;
  };
  const bool complete = none_empty(rows) && none_empty(cols);
  if (complete && (has_full(rows) || has_full(cols))) return rows.n ? 1 : 0;
  if (complete && rows.lists_missing) {
    // Two lines that miss fewer than n_other cells together share one. Compare each
    // line with the fullest: when all share a cell with it, there is one block.
    int64_t fewest = rows.n_other;
    for (int64_t i = 0; i < rows.n; ++i) fewest = std::min(fewest, rows.length(i));
    bool joined = true;
    for (int64_t i = 0; i < rows.n; ++i) joined &= rows.length(i) + fewest < rows.n_other;
    if (joined) return 1;  // every column meets some row, every row meets that one
  }
  std::vector<int32_t> parent(static_cast<size_t>(rows.n + cols.n));
  std::iota(parent.begin(), parent.end(), 0);
  auto join = [&](int64_t i, int32_t j) {
    const int32_t a = find_root(parent, static_cast<int32_t>(i));
    const int32_t b = find_root(parent, static_cast<int32_t>(rows.n + j));
    if (a != b) parent[std::max(a, b)] = std::min(a, b);
  };
  for (int64_t i = 0; i < rows.n; ++i) {
    if (!rows.lists_missing) {
      for (int64_t k = rows.ptr[i]; k < rows.ptr[i + 1]; ++k) join(i, rows.index[k]);
      continue;
    }
    int32_t from = 0;
    for (int64_t k = rows.ptr[i]; k <= rows.ptr[i + 1]; ++k) {
      const int32_t to = k < rows.ptr[i + 1] ? rows.index[k]
                                             : static_cast<int32_t>(rows.n_other);
      for (int32_t j = from; j < to; ++j) join(i, j);
      from = to + 1;
    }
  }
  // Roots are the smallest member, a row when there is one: labels follow first rows.
  int32_t n_blocks = 0;
  std::vector<int32_t> label_of_root(parent.size(), -1);
  for (int64_t i = 0; i < rows.n; ++i) {
    if (rows.degree(i) == 0) {
      row_label[i] = -1;
      continue;
    }
    int32_t& label = label_of_root[find_root(parent, static_cast<int32_t>(i))];
    if (label < 0) label = n_blocks++;
    row_label[i] = label;
  }
  for (int64_t j = 0; j < cols.n; ++j)
    col_label[j] =
        label_of_root[find_root(parent, static_cast<int32_t>(rows.n + j))];
  return n_blocks;
}

int64_t blocks_of_rows(const Lines& rows, std::vector<int32_t>& row_label,
                       std::vector<int32_t>& col_label) {
  std::vector<int32_t> parent(static_cast<size_t>(rows.n_other));
  std::iota(parent.begin(), parent.end(), 0);
  int64_t n_sets = rows.n_other;
  for (int64_t i = 0; i < rows.n && n_sets > 1; ++i) {
    int32_t root = find_root(parent, rows.index[rows.ptr[i]]);
    for (int64_t k = rows.ptr[i] + 1; k < rows.ptr[i + 1]; ++k) {
      const int32_t other = find_root(parent, rows.index[k]);
      if (other == root) continue;
      parent[std::max(root, other)] = std::min(root, other);
      root = std::min(root, other);
      --n_sets;
    }
  }
  // Blocks are numbered in the order of their first rows.
  int32_t n_blocks = 0;
  std::vector<int32_t> label_of_root(parent.size(), -1);
  row_label.resize(static_cast<size_t>(rows.n));
  col_label.resize(parent.size());
  for (int64_t i = 0; i < rows.n; ++i) {
    int32_t& label = label_of_root[find_root(parent, rows.index[rows.ptr[i]])];
    if (label < 0) label = n_blocks++;
    row_label[i] = label;
  }
  for (size_t j = 0; j < parent.size(); ++j)
    col_label[j] = label_of_root[find_root(parent, static_cast<int32_t>(j))];
  return n_blocks;
}

}  // namespace a1gm
