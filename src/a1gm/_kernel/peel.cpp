#include "peel.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace a1gm {
namespace {

// Weights that differ by rounding only are proportional.
constexpr double kProportional = 1e-14;

// A line's signature is the sum of the names of the lines it meets. Equal patterns
// have equal signatures; every match is then compared cell by cell.
uint64_t name_of(uint64_t i) {
  uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// ------------------------------------------------------------------- twins only
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

Twins find_twins(const Lines& lines, bool known_distinct) {
  Twins out;
  out.group.resize(static_cast<size_t>(lines.n));
  out.size.assign(static_cast<size_t>(lines.n), 0);
  std::vector<std::pair<uint64_t, int32_t>> signed_lines;
  for (int64_t i = 0; i < lines.n; ++i) {
    const auto id = static_cast<int32_t>(i);
    out.group[i] = lines.degree(i) == 0 ? -1 : id;
    if (known_distinct || out.group[i] < 0) continue;
    uint64_t signature = 0;
    for (int64_t k = lines.ptr[i]; k < lines.ptr[i + 1]; ++k)
      signature += name_of(static_cast<uint64_t>(lines.index[k]));
    signed_lines.emplace_back(signature, id);
  }
  // Equal signatures come together, each run led by its first line.
  std::sort(signed_lines.begin(), signed_lines.end());
  for (size_t k = 1, lead = 0; k < signed_lines.size(); ++k) {
    if (signed_lines[k].first != signed_lines[lead].first)
      lead = k;
    else if (same_list(lines, signed_lines[k].second, signed_lines[lead].second))
      out.group[signed_lines[k].second] = signed_lines[lead].second;
  }
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

// -------------------------------------------------------------------- full peel
// One side (rows or columns) of the pair graph. Lists are compacted when scanned.
struct Side {
  std::vector<int64_t> begin, end;
  std::vector<int32_t> other;    // line of the other side
  std::vector<int64_t> pair;     // which pair
  std::vector<int64_t> degree;
  std::vector<uint64_t> name, signature;
  std::vector<char> alive;
  std::unordered_map<uint64_t, int32_t> seen;
};

class Peeler {
 public:
  explicit Peeler(Pairs pairs) : p_(std::move(pairs)) {
    build_rows();
    build_cols();
    sign(rows_, cols_);
    sign(cols_, rows_);
    for (int64_t i = 0; i < p_.n_rows; ++i) push(rows_, static_cast<int32_t>(i));
    for (int64_t j = 0; j < p_.n_cols; ++j) push(cols_, static_cast<int32_t>(j));
  }

  Reduced run() {
    while (!queue_.empty()) {
      const auto [is_row, line] = queue_.back();
      queue_.pop_back();
      Side& own = is_row ? rows_ : cols_;
      Side& other = is_row ? cols_ : rows_;
      if (!own.alive[line]) continue;
      if (own.degree[line] == 1)
        drop_leaf(own, other, line, is_row);
      else
        seek_twin(own, other, line, is_row);
    }
    return finish();
  }

 private:
  Pairs p_;
  Side rows_, cols_;
  std::vector<std::pair<bool, int32_t>> queue_;
  std::vector<LogEntry> log_;

  void push(Side& side, int32_t line) {
    if (side.alive[line]) queue_.emplace_back(&side == &rows_, line);
  }

  static void size_side(Side& side, int64_t n, size_t n_pairs) {
    side.begin.resize(static_cast<size_t>(n));
    side.end.resize(static_cast<size_t>(n));
    side.other.resize(n_pairs);
    side.pair.resize(n_pairs);
    side.degree.resize(static_cast<size_t>(n));
    side.name.resize(static_cast<size_t>(n));
    side.signature.assign(static_cast<size_t>(n), 0);
    side.alive.resize(static_cast<size_t>(n));
    side.seen.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) side.name[i] = name_of(static_cast<uint64_t>(i));
  }

  void build_rows() {
    size_side(rows_, p_.n_rows, p_.col.size());
    rows_.other = p_.col;
    std::iota(rows_.pair.begin(), rows_.pair.end(), 0);
    for (int64_t i = 0; i < p_.n_rows; ++i) {
      rows_.begin[i] = p_.ptr[i];
      rows_.end[i] = p_.ptr[i + 1];
      rows_.degree[i] = rows_.end[i] - rows_.begin[i];
      rows_.alive[i] = rows_.degree[i] > 0;
    }
  }

  void build_cols() {
    size_side(cols_, p_.n_cols, p_.col.size());
    std::vector<int64_t> next(static_cast<size_t>(p_.n_cols + 1), 0);
    for (const int32_t j : p_.col) ++next[j + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (int64_t j = 0; j < p_.n_cols; ++j) {
      cols_.begin[j] = next[j];
      cols_.end[j] = next[j + 1];
      cols_.degree[j] = cols_.end[j] - cols_.begin[j];
      cols_.alive[j] = cols_.degree[j] > 0;
    }
    for (int64_t i = 0; i < p_.n_rows; ++i)
      for (int64_t k = p_.ptr[i]; k < p_.ptr[i + 1]; ++k) {
        const int64_t to = next[p_.col[k]]++;
        cols_.other[to] = static_cast<int32_t>(i);
        cols_.pair[to] = k;
      }
  }

  static void sign(Side& own, const Side& other) {
    for (size_t i = 0; i < own.begin.size(); ++i)
      for (int64_t k = own.begin[i]; k < own.end[i]; ++k)
        own.signature[i] += other.name[own.other[k]];
  }

  double weight(int64_t pair) const {
    return p_.weight.empty() ? 1.0 : p_.weight[pair];
  }

  static void compact(Side& own, const Side& other, int32_t line) {
    if (own.end[line] - own.begin[line] == own.degree[line]) return;
    int64_t to = own.begin[line];
    for (int64_t k = to; k < own.end[line]; ++k)
      if (other.alive[own.other[k]]) {
        own.other[to] = own.other[k];
        own.pair[to++] = own.pair[k];
      }
    own.end[line] = to;
  }

  void drop_leaf(Side& own, Side& other, int32_t line, bool is_row) {
    compact(own, other, line);
    const int32_t stem = own.other[own.begin[line]];
    const int64_t pair = own.pair[own.begin[line]];
    own.alive[line] = false;
    if (other.degree[stem] == 1) {
      other.alive[stem] = false;
      log_.push_back({Step::root, is_row ? line : stem, is_row ? stem : line,
                      p_.sum[pair], 0.0, weight(pair)});
      return;
    }
    log_.push_back({is_row ? Step::leaf_row : Step::leaf_col, line, stem, p_.sum[pair],
                    0.0, weight(pair)});
    --other.degree[stem];
    other.signature[stem] -= own.name[line];
    push(other, stem);
  }

  void seek_twin(Side& own, Side& other, int32_t line, bool is_row) {
    const auto [place, fresh] = own.seen.emplace(own.signature[line], line);
    if (fresh || place->second == line) return;
    const int32_t twin = place->second;
    double ratio = 1.0;
    if (!own.alive[twin] || own.signature[twin] != own.signature[line]) {
      place->second = line;  // the entry had gone stale
    } else if (are_twins(own, other, line, twin, ratio)) {
      merge(own, other, line, twin, ratio, is_row);
    }
  }

  bool are_twins(Side& own, Side& other, int32_t a, int32_t b, double& ratio) {
    compact(own, other, a);
    compact(own, other, b);
    const int64_t n = own.degree[a];
    if (n != own.degree[b] ||
        !std::equal(own.other.begin() + own.begin[a], own.other.begin() + own.end[a],
                    own.other.begin() + own.begin[b]))
      return false;
    if (p_.weight.empty()) return true;
    const int64_t *pa = &own.pair[own.begin[a]], *pb = &own.pair[own.begin[b]];
    ratio = weight(pa[0]) / weight(pb[0]);
    for (int64_t k = 1; k < n; ++k) {
      const double x = weight(pa[k]), y = ratio * weight(pb[k]);
      if (std::abs(x - y) > kProportional * x) return false;
    }
    return true;
  }

  void merge(Side& own, Side& other, int32_t gone, int32_t kept, double ratio,
             bool is_row) {
    double sum_gone = 0.0, sum_kept = 0.0;
    const int64_t *pg = &own.pair[own.begin[gone]], *pk = &own.pair[own.begin[kept]];
    for (int64_t k = 0; k < own.degree[kept]; ++k) {
      sum_gone += p_.sum[pg[k]];
      sum_kept += p_.sum[pk[k]];
      p_.sum[pk[k]] += p_.sum[pg[k]];
    }
    log_.push_back({is_row ? Step::twin_row : Step::twin_col, gone, kept, sum_gone,
                    sum_kept, ratio});
    own.alive[gone] = false;
    // Whoever meets `gone` meets `kept`: with the joint name no signature changes.
    own.name[kept] += own.name[gone];
    for (int64_t k = own.begin[gone]; k < own.end[gone]; ++k) {
      const int32_t met = own.other[k];
      if (--other.degree[met] == 1) push(other, met);
    }
  }

  Reduced finish() {
    Reduced out;
    out.n_rows = p_.n_rows;
    out.n_cols = p_.n_cols;
    out.log = std::move(log_);
    std::vector<int32_t> rename(static_cast<size_t>(p_.n_cols), -1);
    for (int64_t j = 0; j < p_.n_cols; ++j)
      if (cols_.alive[j]) {
        rename[j] = static_cast<int32_t>(out.core_cols.size());
        out.core_cols.push_back(static_cast<int32_t>(j));
      }
    out.C.assign(out.core_cols.size(), 0.0);
    for (int64_t i = 0; i < p_.n_rows; ++i)
      if (rows_.alive[i]) add_core_row(static_cast<int32_t>(i), rename, out);
    out.rows.n = static_cast<int64_t>(out.core_rows.size());
    out.rows.n_other = static_cast<int64_t>(out.core_cols.size());
    list_rarer_kind(out.rows);
    out.cols = transpose(out.rows);
    out.n_core_blocks =
        connected_blocks(out.rows, out.cols, out.row_label, out.col_label);
    return out;
  }

  void add_core_row(int32_t i, const std::vector<int32_t>& rename, Reduced& out) {
    compact(rows_, cols_, i);
    double sum = 0.0;
    for (int64_t k = rows_.begin[i]; k < rows_.end[i]; ++k) {
      const int64_t pair = rows_.pair[k];
      const int32_t j = rename[rows_.other[k]];
      out.rows.index.push_back(j);
      if (!p_.weight.empty()) out.rows.weight.push_back(p_.weight[pair]);
      sum += p_.sum[pair];
      out.C[j] += p_.sum[pair];
    }
    out.rows.ptr.push_back(static_cast<int64_t>(out.rows.index.size()));
    out.core_rows.push_back(i);
    out.R.push_back(sum);
  }
};

}  // namespace

Pairs pairs_of_table(const uint64_t* keys, const double* sums, int64_t n, int64_t m,
                     int64_t words) {
  Pairs pairs;
  pairs.n_rows = n;
  pairs.n_cols = m;
  pairs.ptr.push_back(0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j)
      if (keys[i * words + (j >> 6)] >> (j & 63) & 1) {
        pairs.col.push_back(static_cast<int32_t>(j));
        pairs.sum.push_back(sums[i * m + j]);
      }
    pairs.ptr.push_back(static_cast<int64_t>(pairs.col.size()));
  }
  return pairs;
}

bool merge_twins(const uint64_t* bits, int64_t n, int64_t m, int64_t words,
                 const double* row_sums, const double* col_sums, bool rows_distinct,
                 bool force, Reduced& out) {
  Lines rows = lines_of_bits(bits, n, m, words);
  Lines cols = transpose(rows);
  const Twins row_twins = find_twins(rows, rows_distinct);
  const Twins col_twins = find_twins(cols, false);
  if (!force &&
      (has_leaf(rows, row_twins, col_twins) || has_leaf(cols, col_twins, row_twins)))
    return false;
  out.n_rows = n;
  out.n_cols = m;
  out.R = merge_sums(row_twins, row_sums, Step::twin_row, out.log);
  out.C = merge_sums(col_twins, col_sums, Step::twin_col, out.log);
  out.core_rows = row_twins.kept;
  out.core_cols = col_twins.kept;
  const bool all_rows = static_cast<int64_t>(out.core_rows.size()) == n;
  const bool all_cols = static_cast<int64_t>(out.core_cols.size()) == m;
  if (all_rows && all_cols) {
    out.rows = std::move(rows);
    out.cols = std::move(cols);
  } else {
    out.rows = subset(rows, out.core_rows, out.core_cols);
    out.cols = transpose(out.rows);
  }
  out.n_core_blocks = connected_blocks(out.rows, out.cols, out.row_label, out.col_label);
  return true;
}

Reduced peel_pairs(Pairs pairs) { return Peeler(std::move(pairs)).run(); }

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
      const double share = sum_gone / (sum_gone + sum_kept);
      factor[gone] = factor[kept] * share / ratio;
      factor[kept] *= sum_kept / (sum_gone + sum_kept);
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
