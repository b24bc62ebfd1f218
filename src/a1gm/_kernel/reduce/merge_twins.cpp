#include "reduce/peel.hpp"

#include <algorithm>

#include "interrupt.hpp"

namespace a1gm {
namespace {

struct Twins {
  std::vector<int32_t> group;   // representative of each line, -1 when empty
  std::vector<int64_t> size;    // lines in the group of a representative
  std::vector<int32_t> kept;    // representatives, ascending
};

bool same_list(const Lines& lines, int64_t a, int64_t b) {
  return lines.length(a) == lines.length(b) &&
         std::equal(lines.index.begin() + lines.ptr[a],
                    lines.index.begin() + lines.ptr[a + 1],
                    lines.index.begin() + lines.ptr[b]);
}

// Gives every line the number of the first line with the same list.
void join_twins(const Lines& lines, std::vector<int32_t>& group) {
  std::vector<uint64_t> name(static_cast<size_t>(lines.n_other));
  for (size_t j = 0; j < name.size(); ++j) name[j] = name_of(j);
  std::vector<uint64_t> signature(static_cast<size_t>(lines.n), 0);
  size_t n_slots = 16;
  while (n_slots < 2 * signature.size()) n_slots *= 2;
  std::vector<int32_t> slots(n_slots, -1);  // first lines, by signature
  Poll poll;
  for (int64_t i = 0; i < lines.n; ++i) {
    if (group[i] < 0) continue;
    poll.worked(lines.ptr[i + 1] - lines.ptr[i]);
    for (int64_t k = lines.ptr[i]; k < lines.ptr[i + 1]; ++k)
      signature[i] += name[lines.index[k]];
    size_t slot = static_cast<size_t>(signature[i]) & (n_slots - 1);
    while (slots[slot] >= 0 && !(signature[slots[slot]] == signature[i] &&
                                 same_list(lines, i, slots[slot])))
      slot = (slot + 1) & (n_slots - 1);
    if (slots[slot] < 0) slots[slot] = static_cast<int32_t>(i);
    group[i] = slots[slot];
  }
}

Twins find_twins(const Lines& lines, bool known_distinct) {
  Twins out;
  out.group.resize(static_cast<size_t>(lines.n));
  out.size.assign(static_cast<size_t>(lines.n), 0);
  for (int64_t i = 0; i < lines.n; ++i)
    out.group[i] = lines.degree(i) == 0 ? -1 : static_cast<int32_t>(i);
  if (!known_distinct) join_twins(lines, out.group);
  for (int64_t i = 0; i < lines.n; ++i) {
    if (out.group[i] < 0) continue;
    if (out.group[i] == i) out.kept.push_back(static_cast<int32_t>(i));
    ++out.size[out.group[i]];
  }
  return out;
}

bool has_leaf(const Lines& lines, const Twins& own, const Twins& other) {
  for (const int32_t i : own.kept)
    if (lines.degree(i) == other.size[other.group[lines.first_observed(i)]]) return true;
  return false;
}

std::vector<double> merge_sums(const Twins& twins, const double* sums, Step step,
                               std::vector<LogEntry>& log) {
  std::vector<double> merged(twins.group.size(), 0.0);
  for (size_t i = 0; i < twins.group.size(); ++i) {
    const int32_t to = twins.group[i];
    if (to < 0) continue;
    if (to != static_cast<int32_t>(i))
      log.push_back({step, static_cast<int32_t>(i), to, sums[i], merged[to], 1.0});
    merged[to] += sums[i];
  }
  std::vector<double> kept;
  kept.reserve(twins.kept.size());
  for (const int32_t i : twins.kept) kept.push_back(merged[i]);
  return kept;
}

}  // namespace

bool merge_twins(const BitMask& mask, const double* row_sums, const double* col_sums,
                 bool rows_distinct, bool force, Reduced& out) {
  Lines rows = lines_of_bits(mask);
  Lines cols = transpose(rows);
  const Twins row_twins = find_twins(rows, rows_distinct);
  const Twins col_twins = find_twins(cols, false);
  if (!force &&
      (has_leaf(rows, row_twins, col_twins) || has_leaf(cols, col_twins, row_twins)))
    return false;
  out.n_rows = mask.n;
  out.n_cols = mask.m;
  out.R = merge_sums(row_twins, row_sums, Step::twin_row, out.log);
  out.C = merge_sums(col_twins, col_sums, Step::twin_col, out.log);
  out.core_rows = row_twins.kept;
  out.core_cols = col_twins.kept;
  const bool all_rows = static_cast<int64_t>(out.core_rows.size()) == mask.n;
  const bool all_cols = static_cast<int64_t>(out.core_cols.size()) == mask.m;
  if (all_rows && all_cols) {
    out.rows = std::move(rows);
    out.cols = std::move(cols);
  } else {
    out.rows = subset(rows, out.core_rows, out.core_cols);
    out.cols = subset(cols, out.core_cols, out.core_rows);
  }
  out.n_core_blocks = connected_blocks(out.rows, out.row_label, out.col_label);
  return true;
}

}  // namespace a1gm
