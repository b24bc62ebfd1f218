// Twins and leaves of a table given by its observed pairs: see peel.hpp.
//
// Memory counts here: a sparse table may be most of what a machine holds. Rows own the
// cells; a column knows only how many rows it meets, their joint signature, and their
// numbers xored together, which names the last one. The rows of a column are listed
// when two columns may be twins, not before.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "reduce/peel.hpp"
#include "sums.hpp"

namespace a1gm {
namespace {

// One line of either side.
struct Line {
  uint64_t name = 0, signature = 0;
  int32_t degree = 0;   // alive lines it meets; 0 when it is gone or empty
  int32_t met_xor = 0;  // columns only: the rows it meets, xored
};

// Finds a line by its signature. A slot whose line has changed since is never hit,
// because the signature compared is the line's present one.
class TwinIndex {
 public:
  explicit TwinIndex(const std::vector<Line>& lines) : lines_(lines) {
    size_t n = 16;
    while (n < lines.size() * 2) n *= 2;
    slots_.assign(n, -1);
  }
  // Another alive line with the same signature, or -1 after entering this one. The
  // line may meet itself on the way, in the slot of an earlier signature: its twin may
  // be further on.
  int32_t find_or_enter(int32_t line) {
    if ((n_used_ + 1) * 10 > slots_.size() * 8) rebuild();
    const uint64_t signature = lines_[line].signature;
    size_t slot = first_slot(signature);
    bool is_here = false;
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      const Line& found = lines_[slots_[slot]];
      if (slots_[slot] == line)
        is_here = true;
      else if (found.degree && found.signature == signature)
        return slots_[slot];
    }
    if (!is_here) {
      slots_[slot] = line;
      ++n_used_;
    }
    return -1;
  }
  void expect(int32_t line) const {
    prefetch(&slots_[first_slot(lines_[line].signature)]);
  }

 private:
  size_t first_slot(uint64_t signature) const {
    return static_cast<size_t>(signature) & (slots_.size() - 1);
  }
  void rebuild() {  // drops the slots of lines that are gone or were entered again
    std::vector<int32_t> old(slots_.size(), -1);
    old.swap(slots_);
    std::vector<bool> entered(lines_.size(), false);
    n_used_ = 0;
    for (const int32_t line : old) {
      if (line < 0 || !lines_[line].degree || entered[line]) continue;
      entered[line] = true;
      size_t slot = first_slot(lines_[line].signature);
      while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = line;
      ++n_used_;
    }
  }
  const std::vector<Line>& lines_;
  std::vector<int32_t> slots_;
  size_t n_used_ = 0;
};

// Weights that differ by rounding only are proportional.
constexpr double kProportional = 0x1p-50;

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
      Line& row = rows_[i];
      row.degree = static_cast<int32_t>(end_[i] - p_.ptr[i]);
      for (int64_t k = p_.ptr[i]; k < end_[i]; ++k) {
        Line& col = cols_[p_.col[k]];
        row.signature += col.name;
        col.signature += row.name;
        col.met_xor ^= static_cast<int32_t>(i);
        ++col.degree;
      }
    }
  }

  Reduced run() {
    constexpr int32_t kAhead = 8;
    for (int32_t i = 0; i < p_.n_rows; ++i) {
      if (i < p_.n_rows - kAhead) row_twins_.expect(i + kAhead);
      visit(true, i);
    }
    for (int32_t j = 0; j < p_.n_cols; ++j) visit(false, j);
    while (!queue_.empty()) {
      const auto [is_row, line] = queue_.back();
      queue_.pop_back();
      visit(is_row, line);
    }
    return finish();
  }

 private:
  PairView p_;  // the caller's arrays, until a cell has to change
  std::vector<int32_t> own_col_;
  std::vector<double> own_sum_, own_weight_;
  std::vector<int64_t> end_;  // rows are compacted in place: their cells end here
  std::vector<Line> rows_, cols_;
  TwinIndex row_twins_{rows_}, col_twins_{cols_};
  std::vector<int64_t> col_begin_, col_end_;  // empty until columns may be twins
  std::vector<int32_t> col_rows_;
  std::vector<std::pair<bool, int32_t>> queue_;
  std::vector<LogEntry> log_;
  static constexpr int64_t kVisit = 64;  // what a visit costs, in cells
  Poll poll_;

  void push(bool is_row, int32_t line) {
    if ((is_row ? rows_ : cols_)[line].degree) queue_.emplace_back(is_row, line);
  }

  void visit(bool is_row, int32_t line) {
    const int32_t degree = (is_row ? rows_ : cols_)[line].degree;
    poll_.worked(kVisit + degree);
    if (degree == 0) return;
    if (degree == 1) return is_row ? drop_leaf_row(line) : drop_leaf_col(line);
    const int32_t twin = (is_row ? row_twins_ : col_twins_).find_or_enter(line);
    double ratio = 1.0;
    if (twin < 0) return;
    if (is_row && are_twin_rows(line, twin, ratio)) merge_rows(line, twin, ratio);
    if (!is_row && are_twin_cols(line, twin, ratio)) merge_cols(line, twin, ratio);
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

  // ------------------------------------------------------------------------ leaves
  void drop_leaf_row(int32_t i) {
    int64_t k = p_.ptr[i];
    while (cols_[p_.col[k]].degree == 0) ++k;
    const int32_t stem = p_.col[k];
    rows_[i].degree = 0;
    if (cols_[stem].degree == 1) return take_root(i, stem, k);
    log_.push_back({Step::leaf_row, i, stem, p_.sum[k], 0.0, weight(k)});
    --cols_[stem].degree;
    cols_[stem].met_xor ^= i;
    cols_[stem].signature -= rows_[i].name;
    push(false, stem);
  }

  void drop_leaf_col(int32_t j) {
    const int32_t stem = cols_[j].met_xor;
    const int64_t k = cell(stem, j);
    cols_[j].degree = 0;
    if (rows_[stem].degree == 1) return take_root(stem, j, k);
    log_.push_back({Step::leaf_col, j, stem, p_.sum[k], 0.0, weight(k)});
    --rows_[stem].degree;
    rows_[stem].signature -= cols_[j].name;
    push(true, stem);
  }

  void take_root(int32_t i, int32_t j, int64_t k) {
    rows_[i].degree = cols_[j].degree = 0;
    log_.push_back({Step::root, i, j, p_.sum[k], 0.0, weight(k)});
  }

  // ------------------------------------------------------------------------- twins
  bool are_twin_rows(int32_t a, int32_t b, double& ratio) {
    if (rows_[a].degree != rows_[b].degree) return false;
    compact(a);
    compact(b);
    if (!std::equal(p_.col + p_.ptr[a], p_.col + end_[a], p_.col + p_.ptr[b]))
      return false;
    if (p_.weight == nullptr) return true;
    ratio = weight(p_.ptr[a]) / weight(p_.ptr[b]);
    for (int64_t k = 1; k < rows_[a].degree; ++k)
      if (!proportional(p_.ptr[a] + k, p_.ptr[b] + k, ratio)) return false;
    return true;
  }

  bool are_twin_cols(int32_t a, int32_t b, double& ratio) {
    if (cols_[a].degree != cols_[b].degree) return false;
    list_rows_of(a);
    list_rows_of(b);
    const auto row = col_rows_.begin();
    if (!std::equal(row + col_begin_[a], row + col_end_[a], row + col_begin_[b]))
      return false;
    if (p_.weight == nullptr) return true;
    const int32_t* rows = &col_rows_[col_begin_[a]];
    ratio = weight(cell(rows[0], a)) / weight(cell(rows[0], b));
    for (int64_t k = 1; k < cols_[a].degree; ++k)
      if (!proportional(cell(rows[k], a), cell(rows[k], b), ratio)) return false;
    return true;
  }

  bool proportional(int64_t a, int64_t b, double ratio) const {
    const double x = weight(a), y = ratio * weight(b);
    return std::abs(x - y) <= kProportional * x;
  }

  void merge_rows(int32_t gone, int32_t kept, double ratio) {
    own_cells();
    double sum_gone = 0.0, sum_kept = 0.0;
    const int64_t g = p_.ptr[gone], k0 = p_.ptr[kept];
    for (int64_t k = 0; k < rows_[kept].degree; ++k) {
      sum_gone += own_sum_[g + k];
      sum_kept += own_sum_[k0 + k];
      own_sum_[k0 + k] += own_sum_[g + k];
    }
    log_.push_back({Step::twin_row, gone, kept, sum_gone, sum_kept, ratio});
    rows_[gone].degree = 0;
    // Whoever meets `gone` meets `kept`: with the joint name no signature changes.
    rows_[kept].name += rows_[gone].name;
    for (int64_t k = g; k < end_[gone]; ++k) {
      Line& met = cols_[p_.col[k]];
      met.met_xor ^= gone;
      if (--met.degree == 1) push(false, p_.col[k]);
    }
  }

  void merge_cols(int32_t gone, int32_t kept, double ratio) {
    own_cells();
    double sum_gone = 0.0, sum_kept = 0.0;
    for (int64_t k = col_begin_[gone]; k < col_end_[gone]; ++k) {
      const int32_t i = col_rows_[k];
      const int64_t from = cell(i, gone), to = cell(i, kept);
      sum_gone += own_sum_[from];
      sum_kept += own_sum_[to];
      own_sum_[to] += own_sum_[from];
    }
    log_.push_back({Step::twin_col, gone, kept, sum_gone, sum_kept, ratio});
    cols_[gone].degree = 0;
    cols_[kept].name += cols_[gone].name;
    for (int64_t k = col_begin_[gone]; k < col_end_[gone]; ++k)
      if (--rows_[col_rows_[k]].degree == 1) push(true, col_rows_[k]);
  }

  // The rows that a column meets, ascending.
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
    list_rarer_kind(out.rows);
    keep_columns(out);
    return out;
  }

  // The core's cells: copies are moved up over those that have gone.
  void move_core_rows(const std::vector<int32_t>& rename, Reduced& out) {
    size_t n_cells = 0;
    for (const Line& row : rows_) {
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
    const bool all_cols = out.rows.n_other == p_.n_cols;  // then no one is renamed
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

  // A large sparse core is swept by its rows alone.
  static void keep_columns(Reduced& out) {
    if (!is_kept_by_rows(out.rows)) out.cols = transpose(out.rows);
    out.n_core_blocks = connected_blocks(out.rows, out.row_label, out.col_label);
  }
};

}  // namespace

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
