// Twins and leaves of a bit mask or of a table's observed pairs: see peel.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "reduce/peel.hpp"
#include "sums.hpp"

namespace a1gm {
namespace {

// One node of either side.
struct Node {
  uint64_t name = 0, signature = 0;
  int32_t degree = 0;   // alive nodes it meets; 0 when it is gone or empty
  int32_t met_xor = 0;  // the numbers of these, xored: that of the last one in the end
};

// Finds a node by its signature. A slot whose node has changed since is never hit,
// because the signature compared is the node's present one.
class TwinIndex {
 public:
  explicit TwinIndex(const std::vector<Node>& nodes) : nodes_(nodes) {
    size_t n = 16;
    while (n < nodes.size() * 2) n *= 2;
    slots_.assign(n, -1);
  }
  // Another alive node with the same signature, or -1 after entering this one. The
  // node may meet itself on the way, in the slot of an earlier signature: its twin may
  // be further on.
  int32_t find_or_enter(int32_t node) {
    if ((n_used_ + 1) * 10 > slots_.size() * 8) rebuild();
    const uint64_t signature = nodes_[node].signature;
    size_t slot = first_slot(signature);
    bool is_here = false;
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const Node& found = nodes_[slots_[slot]];
      if (slots_[slot] == node)
        is_here = true;
      else if (found.degree && found.signature == signature)
        return slots_[slot];
    }
    if (!is_here) {
      slots_[slot] = node;
      ++n_used_;
    }
    return -1;
  }
  void expect(int32_t node) const {
    prefetch(&slots_[first_slot(nodes_[node].signature)]);
  }

 private:
  size_t first_slot(uint64_t signature) const {
    return static_cast<size_t>(signature) & (slots_.size() - 1);
  }
  void rebuild() {  // drops the slots of nodes that are gone or were entered again
    std::vector<int32_t> old(slots_.size(), -1);
    old.swap(slots_);
    std::vector<bool> entered(nodes_.size(), false);
    n_used_ = 0;
    for (const int32_t node : old) {
      if (node < 0 || !nodes_[node].degree || entered[node]) continue;
      entered[node] = true;
      size_t slot = first_slot(nodes_[node].signature);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = node;
      ++n_used_;
    }
  }
  const std::vector<Node>& nodes_;
  std::vector<int32_t> slots_;
  size_t n_used_ = 0;
};

// ------------------------------------------------------------------ twins of a mask
struct Twins {
  std::vector<int32_t> group;   // representative of each row or column, -1 when empty
  std::vector<int64_t> size;    // of the group of a representative
  std::vector<int32_t> kept;    // representatives, ascending
};

// Gives every row or column the number of the first one with the same list.
void join_twins(const Lists& lists, std::vector<int32_t>& group) {
  std::vector<uint64_t> name(static_cast<size_t>(lists.n_other));
  for (size_t j = 0; j < name.size(); ++j) name[j] = name_of(j);
  std::vector<Node> nodes(group.size());
  TwinIndex index(nodes);
  const auto cells = lists.index.begin();
  Poll poll;
  for (int32_t i = 0; i < lists.n; ++i) {
    if (group[i] < 0) continue;
    const auto begin = cells + lists.ptr[i], end = cells + lists.ptr[i + 1];
    poll.worked(end - begin);
    nodes[i].degree = 1;
    for (auto cell = begin; cell != end; ++cell) nodes[i].signature += name[*cell];
    const int32_t twin = index.find_or_enter(i);
    if (twin >= 0 &&
        std::equal(begin, end, cells + lists.ptr[twin], cells + lists.ptr[twin + 1]))
      group[i] = twin;
  }
}

Twins find_twins(const Lists& lists, bool known_distinct) {
  Twins out;
  out.group.resize(static_cast<size_t>(lists.n));
  out.size.assign(static_cast<size_t>(lists.n), 0);
  for (int64_t i = 0; i < lists.n; ++i)
    out.group[i] = lists.degree(i) == 0 ? -1 : static_cast<int32_t>(i);
  if (!known_distinct) join_twins(lists, out.group);
  for (int64_t i = 0; i < lists.n; ++i) {
    if (out.group[i] < 0) continue;
    if (out.group[i] == i) out.kept.push_back(static_cast<int32_t>(i));
    ++out.size[out.group[i]];
  }
  return out;
}

bool has_leaf(const Lists& lists, const Twins& own, const Twins& other) {
  for (const int32_t i : own.kept)
    if (lists.degree(i) == other.size[other.group[lists.first_observed(i)]]) return true;
  return false;
}

std::vector<double> merge_sums(const Twins& twins, const double* sums, bool is_row,
                               std::vector<LogEntry>& log) {
  std::vector<double> merged(twins.group.size(), 0.0);
  for (size_t i = 0; i < twins.group.size(); ++i) {
    const int32_t to = twins.group[i];
    if (to < 0) continue;
    if (to != static_cast<int32_t>(i))
      log.push_back(
          {Step::twin, is_row, static_cast<int32_t>(i), to, sums[i], merged[to], 1.0});
    merged[to] += sums[i];
  }
  std::vector<double> kept;
  kept.reserve(twins.kept.size());
  for (const int32_t i : twins.kept) kept.push_back(merged[i]);
  return kept;
}

// ---------------------------------------------------------------- pairs to the core
// Weights that differ by rounding only are proportional.
constexpr double kProportional = 0x1p-50;

// Memory counts here: a sparse table may fill most of it. Cells are stored by row; the
// rows of a column are listed only when two columns may be twins.
class Peeler {
 public:
  explicit Peeler(const PairView& pairs)
      : p_(pairs),
        end_(p_.ptr + 1, p_.ptr + 1 + p_.n_rows),
        rows_(static_cast<size_t>(p_.n_rows)),
        cols_(static_cast<size_t>(p_.n_cols)) {
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i].name = name_of(i);
    for (size_t j = 0; j < cols_.size(); ++j) cols_[j].name = name_of(j);
    for (int64_t i = 0; i < p_.n_rows; ++i) {
      poll_.worked(kVisit);
      Node& row = rows_[i];
      row.degree = static_cast<int32_t>(end_[i] - p_.ptr[i]);
      for (int64_t k = p_.ptr[i]; k < end_[i]; ++k) {
        Node& col = cols_[p_.col[k]];
        row.signature += col.name;
        col.signature += row.name;
        row.met_xor ^= p_.col[k];
        col.met_xor ^= static_cast<int32_t>(i);
        ++col.degree;
      }
    }
  }

  Reduced run() {
    constexpr int32_t kAhead = 8;
    for (int32_t i = 0; i < p_.n_rows; ++i) {
      if (i < p_.n_rows - kAhead) row_twins_.expect(i + kAhead);
      visit<true>(i);
    }
    for (int32_t j = 0; j < p_.n_cols; ++j) visit<false>(j);
    while (!queue_.empty()) {
      const auto [is_row, node] = queue_.back();
      queue_.pop_back();
      is_row ? visit<true>(node) : visit<false>(node);
    }
    return finish();
  }

 private:
  PairView p_;  // the caller's arrays, until a cell has to change
  std::vector<int32_t> own_col_;
  std::vector<double> own_sum_, own_weight_;
  std::vector<int64_t> end_;  // rows are compacted in place: their cells end here
  std::vector<Node> rows_, cols_;
  TwinIndex row_twins_{rows_}, col_twins_{cols_};
  std::vector<int64_t> col_begin_, col_end_;  // empty until columns may be twins
  std::vector<int32_t> col_rows_;
  std::vector<std::pair<bool, int32_t>> queue_;
  std::vector<LogEntry> log_;
  static constexpr int64_t kVisit = 64;  // what a visit costs, in cells
  Poll poll_;

  std::vector<Node>& side(bool is_row) { return is_row ? rows_ : cols_; }

  void push(bool is_row, int32_t node) {
    if (side(is_row)[node].degree) queue_.emplace_back(is_row, node);
  }

  template <bool is_row>
  void visit(int32_t node) {
    const int32_t degree = side(is_row)[node].degree;
    poll_.worked(kVisit + degree);
    if (degree == 0) return;
    if (degree == 1) return drop_leaf<is_row>(node);
    const int32_t twin = (is_row ? row_twins_ : col_twins_).find_or_enter(node);
    double ratio = 1.0;
    if (twin >= 0 && are_twins<is_row>(node, twin, ratio)) merge<is_row>(node, twin, ratio);
  }

  double weight(int64_t cell) const {
    return p_.weight == nullptr ? 1.0 : p_.weight[cell];
  }

  // From here on the cells are copies that may be changed.
  void own_cells() {
    if (!own_col_.empty()) return;
    const int64_t n = p_.ptr[p_.n_rows];
    own_col_.assign(p_.col, p_.col + n);
    own_sum_.assign(p_.sum, p_.sum + n);
    p_.col = own_col_.data();
    p_.sum = own_sum_.data();
    if (p_.weight == nullptr) return;
    own_weight_.assign(p_.weight, p_.weight + n);
    p_.weight = own_weight_.data();
  }

  // The cells of a row that are still in the table, in order of their columns.
  void compact(int32_t i) {
    if (end_[i] - p_.ptr[i] == rows_[i].degree) return;
    own_cells();
    int64_t to = p_.ptr[i];
    for (int64_t k = to; k < end_[i]; ++k)
      if (cols_[own_col_[k]].degree) {
        own_col_[to] = own_col_[k];
        own_sum_[to] = own_sum_[k];
        if (!own_weight_.empty()) own_weight_[to] = own_weight_[k];
        ++to;
      }
    end_[i] = to;
  }

  int64_t cell(int32_t i, int32_t j) const {
    return std::lower_bound(p_.col + p_.ptr[i], p_.col + end_[i], j) - p_.col;
  }

  template <bool is_row>
  void drop_leaf(int32_t node) {
    Node& leaf = side(is_row)[node];
    const int32_t met = leaf.met_xor;
    Node& stem = side(!is_row)[met];
    const int64_t k = is_row ? cell(node, met) : cell(met, node);
    leaf.degree = 0;
    if (--stem.degree == 0) {
      const int32_t row = is_row ? node : met, col = is_row ? met : node;
      log_.push_back({Step::root, true, row, col, p_.sum[k], 0.0, weight(k)});
      return;
    }
    log_.push_back({Step::leaf, is_row, node, met, p_.sum[k], 0.0, weight(k)});
    stem.met_xor ^= node;
    stem.signature -= leaf.name;
    push(!is_row, met);
  }

  // The rows or columns that a node meets, ascending.
  template <bool is_row>
  const int32_t* met_by(int32_t node) {
    if (is_row)
      compact(node);
    else
      list_rows_of(node);
    return is_row ? p_.col + p_.ptr[node] : col_rows_.data() + col_begin_[node];
  }

  // The cell where a node meets the k-th of these.
  template <bool is_row>
  int64_t cell_of(int32_t node, int64_t k, int32_t met) const {
    return is_row ? p_.ptr[node] + k : cell(met, node);
  }

  template <bool is_row>
  bool are_twins(int32_t a, int32_t b, double& ratio) {
    const int32_t degree = side(is_row)[a].degree;
    if (degree != side(is_row)[b].degree) return false;
    const int32_t *const met = met_by<is_row>(a), *const met_by_b = met_by<is_row>(b);
    if (!std::equal(met, met + degree, met_by_b)) return false;
    for (int64_t k = 0; p_.weight != nullptr && k < degree; ++k) {
      const double x = weight(cell_of<is_row>(a, k, met[k]));
      const double y = weight(cell_of<is_row>(b, k, met[k]));
      if (k == 0) ratio = x / y;
      if (k > 0 && !(std::abs(x - ratio * y) <= kProportional * x)) return false;
    }
    return true;
  }

  template <bool is_row>
  void merge(int32_t gone, int32_t kept, double ratio) {
    own_cells();
    const int32_t degree = side(is_row)[gone].degree, *const met = met_by<is_row>(gone);
    double sum_gone = 0.0, sum_kept = 0.0;
    for (int64_t k = 0; k < degree; ++k) {
      const int64_t from = cell_of<is_row>(gone, k, met[k]);
      const int64_t to = cell_of<is_row>(kept, k, met[k]);
      sum_gone += own_sum_[from];
      sum_kept += own_sum_[to];
      own_sum_[to] += own_sum_[from];
      Node& other = side(!is_row)[met[k]];
      other.met_xor ^= gone;
      if (--other.degree == 1) push(!is_row, met[k]);
    }
    log_.push_back({Step::twin, is_row, gone, kept, sum_gone, sum_kept, ratio});
    side(is_row)[gone].degree = 0;
    // Nodes that meet `gone` meet `kept`: with the joint name no signature changes.
    side(is_row)[kept].name += side(is_row)[gone].name;
  }

  // The rows of a column that are still in the table, ascending.
  void list_rows_of(int32_t j) {
    if (col_begin_.empty()) list_all_rows();
    if (col_end_[j] - col_begin_[j] == cols_[j].degree) return;
    int64_t to = col_begin_[j];
    for (int64_t k = to; k < col_end_[j]; ++k)
      if (rows_[col_rows_[k]].degree) col_rows_[to++] = col_rows_[k];
    col_end_[j] = to;
  }

  void list_all_rows() {
    col_begin_.assign(static_cast<size_t>(p_.n_cols + 1), 0);
    int64_t n = 0;
    for (int64_t j = 0; j < p_.n_cols; ++j) {
      col_begin_[j] = n;
      n += cols_[j].degree;
    }
    col_end_.assign(col_begin_.begin(), col_begin_.end() - 1);
    col_rows_.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < p_.n_rows; ++i) {
      if (!rows_[i].degree) continue;
      for (int64_t k = p_.ptr[i]; k < end_[i]; ++k)
        if (cols_[p_.col[k]].degree)
          col_rows_[col_end_[p_.col[k]]++] = static_cast<int32_t>(i);
    }
  }

  // -------------------------------------------------------------------------- core
  Reduced finish() {
    Reduced out;
    out.n_rows = p_.n_rows;
    out.n_cols = p_.n_cols;
    out.log = std::move(log_);
    std::vector<int32_t>().swap(col_rows_);
    std::vector<int32_t> rename(static_cast<size_t>(p_.n_cols), -1);
    for (int64_t j = 0; j < p_.n_cols; ++j)
      if (cols_[j].degree) {
        rename[j] = static_cast<int32_t>(out.core_cols.size());
        out.core_cols.push_back(static_cast<int32_t>(j));
        if (p_.weight == nullptr) out.col_degree.push_back(cols_[j].degree);
      }
    move_core_rows(rename, out);
    const auto n_listed = static_cast<int64_t>(out.rows.index.size());
    if (p_.weight == nullptr && n_listed * 2 > out.rows.n * out.rows.n_other)
      list_other_kind(out.rows);
    if (!is_kept_by_rows(out.rows)) out.cols = transpose(out.rows);
    out.n_core_blocks = connected_blocks(out.rows, out.row_label, out.col_label);
    return out;
  }

  // The core's cells: copies are moved up over those that have gone.
  void move_core_rows(const std::vector<int32_t>& rename, Reduced& out) {
    size_t n_cells = 0;
    for (const Node& row : rows_) {
      n_cells += static_cast<size_t>(row.degree);
      out.rows.n += row.degree > 0;
    }
    out.rows.n_other = static_cast<int64_t>(out.core_cols.size());
    std::vector<int32_t>& index = out.rows.index;
    index.swap(own_col_);
    index.resize(std::max(n_cells, index.size()));
    if (p_.weight != nullptr) {
      out.rows.weight.swap(own_weight_);
      out.rows.weight.resize(index.size());
    }
    out.rows.ptr.reserve(static_cast<size_t>(out.rows.n + 1));
    out.core_rows.reserve(static_cast<size_t>(out.rows.n));
    out.R.reserve(static_cast<size_t>(out.rows.n));
    out.C.assign(out.core_cols.size(), 0.0);
    const bool all_cols = out.rows.n_other == p_.n_cols;  // then no column is renamed
    int64_t to = 0;
    for (int64_t i = 0; i < p_.n_rows; ++i) {
      if (!rows_[i].degree) continue;
      double sum = 0.0;
      for (int64_t k = p_.ptr[i]; k < end_[i]; ++k) {
        const int32_t j = all_cols ? p_.col[k] : rename[p_.col[k]];
        if (j < 0) continue;
        sum += p_.sum[k];
        out.C[j] += p_.sum[k];
        if (p_.weight != nullptr) out.rows.weight[to] = p_.weight[k];
        index[to++] = j;
      }
      out.rows.ptr.push_back(to);
      out.core_rows.push_back(static_cast<int32_t>(i));
      out.R.push_back(sum);
    }
    std::vector<double>().swap(own_sum_);
    index.resize(n_cells);
    if (p_.weight != nullptr) out.rows.weight.resize(n_cells);
  }
};

}  // namespace

bool merge_twins(const BitMask& mask, const double* row_sums, const double* col_sums,
                 bool rows_distinct, bool force, Reduced& out) {
  Lists rows = lists_of_bits(mask);
  Lists cols = transpose(rows);
  const Twins row_twins = find_twins(rows, rows_distinct);
  const Twins col_twins = find_twins(cols, false);
  if (!force &&
      (has_leaf(rows, row_twins, col_twins) || has_leaf(cols, col_twins, row_twins)))
    return false;
  out.n_rows = mask.n;
  out.n_cols = mask.m;
  out.R = merge_sums(row_twins, row_sums, true, out.log);
  out.C = merge_sums(col_twins, col_sums, false, out.log);
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

Reduced peel_pairs(const PairView& pairs) { return Peeler(pairs).run(); }

PairTable::PairTable(const BitMask& keys, const double* sums)
    : n_rows(keys.n), n_cols(keys.m) {
  for (int64_t i = 0; i < keys.n; ++i) {
    for (int64_t w = 0; w < keys.words; ++w)
      for (uint64_t word = keys.bits[i * keys.words + w]; word; word &= word - 1) {
        col.push_back(static_cast<int32_t>(w * 64 + lowest_bit(word)));
        sum.push_back(sums[i * keys.m + col.back()]);
      }
    ptr.push_back(static_cast<int64_t>(col.size()));
  }
}

Factors replay(const Reduced& reduced, const double* core_w, const double* core_h) {
  const auto n = static_cast<size_t>(reduced.n_rows), m = static_cast<size_t>(reduced.n_cols);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Factors out;
  out.w.assign(n, nan);
  out.h.assign(m, nan);
  out.row_label.assign(n, -1);
  out.col_label.assign(m, -1);
  for (size_t k = 0; k < reduced.core_rows.size(); ++k) {
    out.w[reduced.core_rows[k]] = core_w[k];
    out.row_label[reduced.core_rows[k]] = reduced.row_label[k];
  }
  for (size_t k = 0; k < reduced.core_cols.size(); ++k) {
    out.h[reduced.core_cols[k]] = core_h[k];
    out.col_label[reduced.core_cols[k]] = reduced.col_label[k];
  }
  auto next_label = static_cast<int32_t>(reduced.n_core_blocks);
  for (auto entry = reduced.log.rbegin(); entry != reduced.log.rend(); ++entry) {
    const auto [step, is_row, gone, kept, sum_gone, sum_kept, ratio] = *entry;
    std::vector<double>&own = is_row ? out.w : out.h, &other = is_row ? out.h : out.w;
    std::vector<int32_t>& own_label = is_row ? out.row_label : out.col_label;
    std::vector<int32_t>& other_label = is_row ? out.col_label : out.row_label;
    double factor = 0.0;  // of `gone`, for a ratio of 1
    if (step == Step::twin) {
      // Not factor * (sum / both): a share below 1e-308 would vanish.
      const double each = own[kept] / (sum_gone + sum_kept);
      factor = each * sum_gone;
      own[kept] = each * sum_kept;
      own_label[gone] = own_label[kept];
      out.exact &= keeps_digits(each) && keeps_digits(own[kept]);
    } else {
      if (step == Step::root) {
        // The scale is free; 1 on the column's side, where the final factors sum to 1,
        // keeps everything in range whenever the final factors are.
        other[kept] = 1.0;
        other_label[kept] = next_label++;
      }
      factor = sum_gone / other[kept];
      own_label[gone] = other_label[kept];
    }
    own[gone] = factor / ratio;
    out.exact &= keeps_digits(factor) && keeps_digits(own[gone]);
  }
  return out;
}

int64_t n_roots(const Reduced& reduced) {
  return std::count_if(reduced.log.begin(), reduced.log.end(),
                       [](const LogEntry& e) { return e.step == Step::root; });
}

}  // namespace a1gm
