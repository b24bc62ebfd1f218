// What one thread does in the pass: its rows, tile by tile, into patterns or masks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "interrupt.hpp"
#include "bit_mask.hpp"
#include "pass/observe.hpp"
#include "pass/patterns.hpp"
#include "pass/tile.hpp"
#include "pass/weighing.hpp"
#include "sums.hpp"

namespace a1gm {

constexpr int64_t kTileBytes = 8 * 1024;  // a tile stays in the first-level cache
constexpr int64_t kMaxTileRows = 64;
constexpr int64_t kGatheredRows = 8;  // of one column they are one line of the cache
constexpr int64_t kRowsWorthARun = 16;  // tiles of fewer, long rows gain nothing

template <typename T>
struct Job {
  const std::vector<Part>& parts;
  int64_t n_rows, n_cols, words, n_groups;
  double* row_sums;
  const Options& options;
  const Isa<T> isa;
  bool direct;  // the rows of every part can be read where they lie
  std::atomic<bool>& go_wide;
  int64_t key_words;  // of a pattern
  double* largest;    // weight of each row, where there are weights
  bool is_weighted() const { return options.weights != nullptr; }
};

// T is the type of the cells that lie where they are read.
template <typename T>
class Worker {
 public:
  Worker(const Job<T>& job, int64_t begin, int64_t end)
      : job_(job),
        begin_(begin),
        end_(end),
        memory_(job.n_cols),
        patterns(job.key_words, end - begin),
        ids(end - begin) {
    tile_rows_ = std::clamp<int64_t>(kTileBytes / (8 * job.n_cols),
                                     job.direct ? 1 : kGatheredRows, kMaxTileRows);
    if (!job.direct) tile_rows_ &= -kGatheredRows;  // whole lines of every column
    keys_.resize(static_cast<size_t>(tile_rows_ * job.words));
    if (job.is_weighted())
      weighing_.emplace(job.parts, job.options, job.n_cols, job.words, tile_rows_);
    acc_.resize(static_cast<size_t>(tile_rows_));
    tile_ids_.resize(static_cast<size_t>(tile_rows_));
    if (!job.direct)
      scratch_.resize(static_cast<size_t>(tile_rows_ * job.n_cols + 4));
    divide_into_stretches();
    column_sums_.resize(static_cast<size_t>(job.n_cols + kPadding));
  }

  // Fills the pattern table; stops early when the wide form is called for.
  void observe_table() {
    expect(first_);
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      if (job_.go_wide.load(std::memory_order_relaxed)) return;
      const int64_t rows = std::min(tile_rows_, end_ - row);
      poll_.worked(rows * job_.n_cols);
      due_.clear();
      const Scan done = scan(row, rows, nullptr);
      if (done == Scan::complete) {  // as was the last tile, whose pattern is still
        add_run(row, rows);          // in tile_ids_[0]
        continue;
      }
      const bool is_run = rows >= kRowsWorthARun && is_one_pattern(rows);
      if (!is_run) expect(first_);
      if (is_run && done != Scan::added) {
        add_run(row, rows);
        continue;
      }
      if (done != Scan::added) {
        number_rows(row, rows);
        find_runs(rows);
        add_cells(rows);
      }
      for (const int32_t id : due_) flush(id);
      ids.store(row - begin_, tile_ids_.data(), rows, patterns.size());
      if (table_is_a_waste(row + rows - begin_)) job_.go_wide = true;
    }
    for (size_t id = 0; id < runs_.size(); ++id) counts[id] += runs_[id].rows;
  }

  // Margins and bit masks only: memory is a 32nd of the data.
  void observe_wide(uint64_t* bits, uint64_t* positive) {
    negative = infinite = Fault{};
    total = 0.0;
    overflow = false;
    if (weighing_) weighing_->range = {};
    sums.clear();
    sums.emplace_back(job_.n_cols, memory_.next());
    std::fill_n(sums[0].run(), job_.n_cols, 0.0);
    std::fill(acc_.begin(), acc_.end(), sums[0].run());
    wide_run_ = sums[0].run();
    int64_t pending = 0;
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      const int64_t rows = std::min(tile_rows_, end_ - row);
      poll_.worked(rows * job_.n_cols);
      uint64_t* above = positive + row * job_.words;
      expect(stretches_.size() == 1 ? Scan::added : Scan::keys);
      const Scan done = scan(row, rows, above);
      for (int64_t k = 0; k < rows * job_.words; ++k) has_zero |= above[k] != keys_[k];
      std::memcpy(bits + row * job_.words, keys_.data(),
                  sizeof(uint64_t) * static_cast<size_t>(rows * job_.words));
      if (done != Scan::added) add_cells(rows);
      if ((pending += rows) >= kRun) {
        sums[0].flush();
        pending = 0;
      }
    }
  }

  int64_t begin() const { return begin_; }
  std::optional<Weighing>& weighing() { return weighing_; }
  int64_t size() const { return end_ - begin_; }

 private:
  const Job<T>& job_;
  Poll poll_;
  int64_t begin_, end_, tile_rows_;
  RunMemory memory_;
  double* wide_run_ = nullptr;  // the wide form's one run
  // Columns that lie side by side in memory and count into the same row sums.
  struct Stretch {
    const T* x;  // first cell of the tile
    int64_t stride, cols, first_col;
    int group;
    bool opens_group;  // the first stretch of its group
    Scan next = Scan::keys;  // what to ask of the next tile, which is probably alike
    Scan done = Scan::keys;  // what came of the last one
  };
  std::vector<Stretch> stretches_;
  std::vector<uint64_t> keys_, stretch_keys_, stretch_positive_;
  std::vector<double> stretch_sums_, scratch_, column_sums_;
  Scan first_ = Scan::keys;  // what to ask where rows of any pattern may follow
  bool all_narrow_ = true;   // so that every stretch may turn out complete
  std::vector<double*> acc_, stretch_acc_;
  std::vector<Run> runs_;
  std::vector<int32_t> due_, tile_ids_;
  std::optional<Weighing> weighing_;

 public:
  PatternIndex patterns;
  IdBuffer ids;
  std::vector<ColumnSums> sums;
  std::vector<int64_t> counts;
  Fault negative, infinite;
  double total = 0.0;
  bool overflow = false, has_zero = false;

 private:
  // One stretch per part, or one for all when a scratch tile makes them neighbours.
  void divide_into_stretches() {
    int64_t col = 0;
    std::vector<bool> opened(static_cast<size_t>(job_.n_groups), false);
    const bool whole = !job_.direct && job_.n_groups == 1;
    for (const Part& part : job_.parts) {
      const int64_t cols = whole ? job_.n_cols : part.n_cols;
      const int64_t stride = job_.direct ? part.row_stride / sizeof(T) : job_.n_cols;
      stretches_.push_back(
          {nullptr, stride, cols, col, part.sum_group, !opened[part.sum_group]});
      opened[part.sum_group] = true;
      all_narrow_ = all_narrow_ && cols <= kNarrow;
      col += cols;
      if (whole) break;
    }
    if (stretches_.size() == 1) {
      if (all_narrow_ && job_.isa.scan_and_add != nullptr && !job_.is_weighted())
        first_ = Scan::added;
      return;
    }
    const auto rows = static_cast<size_t>(tile_rows_);
    stretch_keys_.resize(rows * static_cast<size_t>(job_.words));
    stretch_positive_.resize(stretch_keys_.size());
    stretch_sums_.resize(rows);
    stretch_acc_.resize(rows);
  }

  void expect(Scan next) {
    for (Stretch& s : stretches_) s.next = next;
  }

  // Whether all rows of the tile have a pattern that is known already.
  bool is_one_pattern(int64_t rows) {
    if (runs_.empty() || job_.is_weighted()) return false;
    const uint64_t* key = keys_.data();
    uint64_t differs = 0;
    for (int64_t k = job_.words; k < rows * job_.words; ++k)
      differs |= key[k] ^ key[k - job_.words];
    if (differs != 0) return false;
    tile_ids_[0] = patterns.find_or_insert(key);
    if (tile_ids_[0] < static_cast<int32_t>(runs_.size())) return true;
    add_pattern();
    return false;
  }

  void add_run(int64_t row, int64_t rows) {
    const int32_t id = tile_ids_[0];
    for (const Stretch& s : stretches_) {
      double* sums = runs_[id].sums + s.first_col;
      const double* found = column_sums_.data() + s.first_col;
      if (s.done == Scan::columns || s.done == Scan::complete)
        for (int64_t j = 0; j < s.cols; ++j) sums[j] += found[j];
      else
        job_.isa.add_run(s.x, s.stride, rows, s.cols, sums);
    }
    // Each tile is summed on its own first, so a run may be longer.
    if ((runs_[id].rows += rows) >= 4 * kRun) flush(id);
    ids.fill(row - begin_, id, rows);
  }

  // Adds every cell of the tile to the sums of its row's pattern.
  void add_cells(int64_t rows) {
    for (const Stretch& s : stretches_) {
      double* const* acc = acc_.data();
      if (s.first_col != 0) {
        for (int64_t i = 0; i < rows; ++i) stretch_acc_[i] = acc_[i] + s.first_col;
        acc = stretch_acc_.data();
      }
      job_.isa.add(s.x, s.stride, rows, s.cols, acc);
    }
  }

  // Which pattern each row of the tile has.
  void number_rows(int64_t row, int64_t rows) {
    const uint64_t* key = keys_.data();
    int32_t* const ids = tile_ids_.data();
    if (job_.is_weighted()) {
      const auto number = [this](const uint64_t* shape) { return number_of(shape); };
      for (int64_t i = 0; i < rows; ++i)
        ids[i] = weighing_->number(i, key + i * job_.words, job_.largest[row + i], number);
    } else if (job_.words == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        const KnownKey& hit = patterns.cached(key[i]);
        ids[i] = hit.key == key[i] && hit.id >= 0 ? hit.id : number_and_remember(key[i]);
      }
    } else {
      for (int64_t i = 0; i < rows; ++i) ids[i] = number_of(key + i * job_.words);
    }
  }

  // Where the cells of each row are to be added.
  void find_runs(int64_t rows) {
    const int32_t* const ids = tile_ids_.data();
    double** const acc = acc_.data();
    Run* const runs = runs_.data();
    for (int64_t i = 0; i < rows; ++i) {
      Run& run = runs[ids[i]];
      acc[i] = run.sums;
      // Runs of whole tiles may be longer already.
      if (++run.rows % kRun == 0) due_.push_back(ids[i]);
    }
  }

  int32_t number_of(const uint64_t* key) {
    const int32_t id = patterns.find_or_insert(key);
    if (id == static_cast<int32_t>(runs_.size())) add_pattern();
    return id;
  }

  int32_t number_and_remember(uint64_t key) {
    const int32_t id = number_of(&key);
    patterns.remember(key, id);
    return id;
  }

  void add_pattern() {
    sums.emplace_back(job_.n_cols, memory_.next());
    runs_.push_back({sums.back().run(), 0});
    counts.push_back(0);
  }

  void flush(int32_t id) {
    sums[id].flush();
    counts[id] += runs_[id].rows;
    runs_[id].rows = 0;
  }

  bool table_is_a_waste(int64_t rows_seen) const {
    return !job_.options.keep_table &&
           patterns.size() * job_.n_cols > job_.options.table_cells &&
           patterns.size() * 4 > rows_seen;
  }

  void place_stretches(int64_t row, int64_t rows) {
    if constexpr (std::is_same_v<T, double>)
      if (!job_.direct) {
        if (job_.is_weighted())
          weighing_->weigh_rows(row, rows, scratch_.data());
        else
          load_tile(job_.parts, row, rows, job_.n_cols, job_.options.scale,
                    scratch_.data());
        for (Stretch& s : stretches_) s.x = scratch_.data() + s.first_col;
        return;
      }
    for (size_t p = 0; p < stretches_.size(); ++p) {
      const Part& part = job_.parts[p];
      stretches_[p].x =
          reinterpret_cast<const T*>(part.data + row * part.row_stride);
    }
  }

  double* row_sums(int64_t group, int64_t row) const {
    return job_.row_sums + group * job_.n_rows + row;
  }

  // Fills keys_ (unless the tile is complete), the row sums and, when asked for, the
  // bits of the positive cells.
  Scan scan(int64_t row, int64_t rows, uint64_t* positive) {
    place_stretches(row, rows);
    TileScan tile{keys_.data(), positive, row_sums(stretches_[0].group, row)};
    if (stretches_.size() == 1)
      scan_stretch(stretches_[0], rows, tile);
    else
      scan_stretches(row, rows, tile);
    if (tile.smallest < 0.0) find_negative(row, rows);
    if (tile.done != Scan::complete)
      for (int64_t g = 0; g < job_.n_groups; ++g)
        tile.total += quick_sum(row_sums(g, row), rows);
    total += tile.total;
    // One row that is not finite is enough to spoil the sum of them all.
    if (!std::isfinite(tile.total)) find_infinite(row, rows);
    return tile.done;
  }

  // Scans a stretch as the last tile suggests, and says what to ask of the next.
  void scan_stretch(Stretch& s, int64_t rows, TileScan& tile) {
    tile.asked = s.next;
    tile.columns = column_sums_.data() + s.first_col;
    tile.run = wide_run_;
    if (tile.asked == Scan::added && tile.positive == nullptr)
      scan_and_add(s, rows, tile);
    else
      job_.isa.scan(s.x, s.stride, rows, s.cols, words_of(s), tile);
    s.done = tile.done;
    const bool no_holes = tile.done == Scan::complete ||
                          (all_narrow_ && tile.keys[0] == all_bits(s.cols));
    s.next = no_holes && !job_.is_weighted() ? Scan::complete : Scan::columns;
  }

  void scan_and_add(const Stretch& s, int64_t rows, TileScan& tile) {
    RowSink sink{patterns.known(), patterns.place(), runs_.data(), tile_ids_.data(),
                 due_, this, [](void* owner, uint64_t key, RowSink& at) {
                   auto& worker = *static_cast<Worker*>(owner);
                   const int32_t id = worker.number_and_remember(key);
                   at.place = worker.patterns.place();
                   at.runs = worker.runs_.data();
                   return id;
                 }};
    job_.isa.scan_and_add(s.x, s.stride, rows, s.cols, tile, sink);
    tile.done = Scan::added;
  }

  static int64_t words_of(const Stretch& s) { return (s.cols + 63) / 64; }
  static uint64_t all_bits(int64_t cols) { return (uint64_t{1} << cols) - 1; }

  // Keys are wanted as soon as one stretch has holes; those before it had none.
  void scan_stretches(int64_t row, int64_t rows, TileScan& tile) {
    const int64_t n_words = rows * job_.words;
    tile.done = Scan::complete;
    for (size_t k = 0; k < stretches_.size(); ++k) {
      Stretch& s = stretches_[k];
      double* sums = row_sums(s.group, row);
      TileScan found{stretch_keys_.data(),
                     tile.positive != nullptr ? stretch_positive_.data() : nullptr,
                     s.opens_group ? sums : stretch_sums_.data(), tile.smallest};
      scan_stretch(s, rows, found);
      tile.smallest = found.smallest;
      if (!s.opens_group)
        for (int64_t i = 0; i < rows; ++i) sums[i] += stretch_sums_[i];
      if (tile.done == Scan::complete && s.done != Scan::complete) {
        tile.done = Scan::keys;
        tile.total = 0.0;
        std::fill_n(keys_.data(), n_words, 0);
        if (tile.positive != nullptr) std::fill_n(tile.positive, n_words, 0);
        for (size_t before = 0; before < k; ++before)
          put_all_bits(stretches_[before], rows);
      }
      if (tile.done == Scan::complete) {
        tile.total += found.total;
      } else if (s.done == Scan::complete) {
        put_all_bits(s, rows);
      } else {
        put_bits(found.keys, words_of(s), rows, s.first_col, keys_.data(), job_.words);
        if (tile.positive != nullptr)
          put_bits(found.positive, words_of(s), rows, s.first_col, tile.positive,
                   job_.words);
      }
    }
  }

  void put_all_bits(const Stretch& s, int64_t rows) {
    std::vector<uint64_t> all(static_cast<size_t>(rows), all_bits(s.cols));
    put_bits(all.data(), 1, rows, s.first_col, keys_.data(), job_.words);
  }

  void find_negative(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i)
      note(negative, row, i, [](double v) { return v < 0.0 && !std::isinf(v); });
  }

  void find_infinite(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t before = infinite.count;
      note(infinite, row, i, [](double v) { return std::isinf(v); });
      if (infinite.count != before) continue;
      for (int64_t g = 0; g < job_.n_groups; ++g)
        overflow |= !std::isfinite(*row_sums(g, row + i));
    }
  }

  // The bad cells of the tile's row i.
  template <typename F>
  void note(Fault& fault, int64_t row, int64_t i, F&& is_bad) {
    for (const Stretch& s : stretches_)
      for (int64_t j = 0; j < s.cols; ++j) {
        const double v = s.x[i * s.stride + j];
        if (!is_bad(v)) continue;
        if (fault.count == 0) fault = {0, row + i, s.first_col + j, v};
        ++fault.count;
      }
  }
};

}  // namespace a1gm
