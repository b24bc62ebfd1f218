#include "lines.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "words.hpp"

namespace a1gm {

int32_t Lines::first_observed(int64_t i) const {
  if (!lists_missing) return length(i) ? index[ptr[i]] : -1;
  int32_t next = 0;
  for (int64_t k = ptr[i]; k < ptr[i + 1] && index[k] == next; ++k) ++next;
  return next < n_other ? next : -1;
}

double Lines::sum_of_unlisted(int64_t i, const double* x) const {
  double sum = 0.0;
  int32_t from = 0;
  for (int64_t k = ptr[i]; k <= ptr[i + 1]; ++k) {
    const int32_t to = k < ptr[i + 1] ? index[k] : static_cast<int32_t>(n_other);
    for (int32_t j = from; j < to; ++j) sum += x[j];
    from = to + 1;
  }
  return sum;
}

Lines transpose(const Lines& lines) {
  Lines out;
  out.n = lines.n_other;
  out.n_other = lines.n;
  out.lists_missing = lines.lists_missing;
  out.ptr.assign(static_cast<size_t>(out.n + 1), 0);
  for (const int32_t j : lines.index) ++out.ptr[j + 1];
  std::partial_sum(out.ptr.begin(), out.ptr.end(), out.ptr.begin());
  out.index.resize(lines.index.size());
  out.weight.resize(lines.weight.size());
  std::vector<int64_t> next(out.ptr.begin(), out.ptr.end() - 1);
  for (int64_t i = 0; i < lines.n; ++i)
    for (int64_t k = lines.ptr[i]; k < lines.ptr[i + 1]; ++k) {
      const int64_t to = next[lines.index[k]]++;
      out.index[to] = static_cast<int32_t>(i);
      if (!lines.weight.empty()) out.weight[to] = lines.weight[k];
    }
  return out;
}

Lines lines_of_bits(const uint64_t* bits, int64_t n, int64_t m, int64_t words) {
  Lines out;
  out.n = n;
  out.n_other = m;
  int64_t observed = 0;
  for (int64_t k = 0; k < n * words; ++k) observed += count_bits(bits[k]);
  out.lists_missing = observed * 2 > n * m;
  const uint64_t flip = out.lists_missing ? ~uint64_t{0} : 0;
  const int64_t tail = m & 63;
  const uint64_t tail_mask = tail ? (uint64_t{1} << tail) - 1 : ~uint64_t{0};
  out.ptr.resize(static_cast<size_t>(n + 1));
  out.index.resize(static_cast<size_t>(out.lists_missing ? n * m - observed : observed));
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t w = 0; w < words; ++w) {
      uint64_t word = bits[i * words + w] ^ flip;
      if (w == words - 1) word &= tail_mask;
      for (; word; word &= word - 1)
        out.index[at++] = static_cast<int32_t>(w * 64 + lowest_bit(word));
    }
    out.ptr[i + 1] = at;
  }
  return out;
}

void list_rarer_kind(Lines& lines) {
  const auto listed = static_cast<int64_t>(lines.index.size());
  if (!lines.weight.empty() || listed * 2 <= lines.n * lines.n_other) return;
  std::vector<int32_t> index;
  index.reserve(static_cast<size_t>(lines.n * lines.n_other - listed));
  int64_t begin = 0;
  for (int64_t i = 0; i < lines.n; ++i) {
    int32_t from = 0;
    for (int64_t k = begin; k <= lines.ptr[i + 1]; ++k) {
      const int32_t to = k < lines.ptr[i + 1] ? lines.index[k]
                                              : static_cast<int32_t>(lines.n_other);
      for (int32_t j = from; j < to; ++j) index.push_back(j);
      from = to + 1;
    }
    begin = lines.ptr[i + 1];
    lines.ptr[i + 1] = static_cast<int64_t>(index.size());
  }
  lines.index.swap(index);
  lines.lists_missing = !lines.lists_missing;
}

Lines subset(const Lines& lines, const std::vector<int32_t>& keep,
             const std::vector<int32_t>& keep_other) {
  Lines out;
  out.n = static_cast<int64_t>(keep.size());
  out.n_other = static_cast<int64_t>(keep_other.size());
  out.lists_missing = lines.lists_missing;
  const bool all_other = out.n_other == lines.n_other;
  std::vector<int32_t> rename(static_cast<size_t>(lines.n_other), -1);
  for (size_t k = 0; k < keep_other.size(); ++k)
    rename[keep_other[k]] = static_cast<int32_t>(k);
  out.index.resize(lines.index.size());
  out.ptr.resize(keep.size() + 1);
  int32_t* to = out.index.data();
  for (size_t line = 0; line < keep.size(); ++line) {
    const int32_t* from = lines.index.data() + lines.ptr[keep[line]];
    const int32_t* end = lines.index.data() + lines.ptr[keep[line] + 1];
    if (all_other)
      to = std::copy(from, end, to);
    else
      for (; from != end; ++from) {  // written even if dropped: no branch to guess
        *to = rename[*from];
        to += *to >= 0;
      }
    out.ptr[line + 1] = to - out.index.data();
  }
  out.index.resize(static_cast<size_t>(out.ptr.back()));
  return out;
}

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

bool Patience::stops(int64_t sweep, double gap, Sweeps& out) {
  // Row margins now hold exactly and no column margin is off by more than gap.
  out.n = sweep;
  out.gap = gap;
  out.rate = previous > 0.0 ? gap / previous : 0.0;
  out.done = gap <= tol;
  // What further sweeps would still move the factors by, at the measured rate.
  const double ahead = out.rate < 0.999 ? gap * out.rate / (1.0 - out.rate) : gap;
  const bool settled = !polish || ahead <= 0.1 * tol || out.rate >= 0.999;
  if ((out.done && settled) || sweep >= max_sweeps || !(gap < 1e300)) return true;
  if (sweep >= 8 && out.rate > 0.0) {
    const double left =
        out.rate < 1.0 ? std::log(tol / gap) / std::log(out.rate) : 1e18;
    if (static_cast<double>(sweep) + left > static_cast<double>(patience)) return true;
  }
  previous = gap;
  return false;
}

Sweeps scale(const Lines& rows, const Lines& cols, const double* R, const double* C,
             double* w, double* h, double tol, int64_t max_sweeps, int64_t patience) {
  Sweeps out;
  Patience rule{tol, max_sweeps, patience};
  for (int64_t k = 0;; ++k) {
    double total = 0.0;
    for (int64_t j = 0; j < cols.n; ++j) total += h[j];
    double gap = 0.0;
    for (int64_t i = 0; i < rows.n; ++i) {
      const double t = rows.sum(i, h, total);
      const double off = std::abs(w[i] * t - R[i]);
      if (k && off > gap * R[i]) gap = off / R[i];  // seldom: divisions are slow
      w[i] = R[i] / t;
    }
    if (k && rule.stops(k, gap, out)) return out;
    total = 0.0;
    for (int64_t i = 0; i < rows.n; ++i) total += w[i];
    for (int64_t j = 0; j < cols.n; ++j) h[j] = C[j] / cols.sum(j, w, total);
  }
}

}  // namespace a1gm
