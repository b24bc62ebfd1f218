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
  int64_t n_rows, n_cols, words;
  double* row_sums;
  int32_t* ids;
  const Options& options;
  const Isa<T> isa;
  bool direct;  // rows can be read where they lie
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
        patterns(job.key_words, end - begin) {
    tile_rows_ = std::clamp<int64_t>(kTileBytes / (8 * job.n_cols),
                                     job.direct ? 1 : kGatheredRows, kMaxTileRows);
    if (!job.direct) tile_rows_ &= -kGatheredRows;  // whole lines of every column
    keys_.resize(static_cast<size_t>(tile_rows_ * job.words));
    if (job.is_weighted())
      weighing_.emplace(job.parts, job.options, job.n_cols, job.words, tile_rows_);
    acc_.resize(static_cast<size_t>(tile_rows_));
    if (!job.direct)
      scratch_.resize(static_cast<size_t>(tile_rows_ * job.n_cols + 4));
    stride_ = job.direct ? job.parts[0].row_stride / static_cast<int64_t>(sizeof(T))
                         : job.n_cols;
    is_narrow_ = job.n_cols <= kNarrow;
    if (is_narrow_ && job.isa.scan_and_add != nullptr && !job.is_weighted())
      first_ = Scan::added;
    column_sums_.resize(static_cast<size_t>(job.n_cols + kPadding));
  }

  // Fills the pattern table; stops early when the wide form is called for.
  void observe_table() {
    next_ = first_;
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      if (job_.go_wide.load(std::memory_order_relaxed)) return;
      const int64_t rows = std::min(tile_rows_, end_ - row);
      poll_.worked(rows * job_.n_cols);
      due_.clear();
      const Scan done = scan(row, rows, nullptr);
      const bool is_run = rows >= kRowsWorthARun && is_one_pattern(rows);
      if (!is_run) next_ = first_;
      if (is_run && done != Scan::added) {
        add_run(row, rows);
        continue;
      }
      if (done != Scan::added) {
        number_rows(row, rows);
        find_runs(row, rows);
        add_cells(rows);
      }
      for (const int32_t id : due_) flush(id);
      if (table_is_a_waste(row + rows - begin_)) job_.go_wide = true;
    }
    for (size_t id = 0; id < runs_.size(); ++id) counts[id] += runs_[id].rows;
  }

  // Margins and bit masks only: memory is a 32nd of the data.
  void observe_wide(uint64_t* bits, uint64_t* positive) {
    negative = infinite = Fault{};
    is_in_range = true;
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
      next_ = Scan::added;
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

  std::optional<Weighing>& weighing() { return weighing_; }

 private:
  const Job<T>& job_;
  Poll poll_;
  int64_t begin_, end_, tile_rows_;
  RunMemory memory_;
  double* wide_run_ = nullptr;  // the wide form's one run
  const T* x_ = nullptr;  // first cell of the tile
  int64_t stride_;
  std::vector<uint64_t> keys_;
  std::vector<double> scratch_, column_sums_;
  bool is_narrow_;
  Scan first_ = Scan::keys;  // what to ask where rows of any pattern may follow
  Scan next_ = Scan::keys;   // what to ask of the next tile, which is probably alike
  Scan done_ = Scan::keys;   // what came of the last one
  std::vector<double*> acc_;
  std::vector<Run> runs_;
  std::vector<int32_t> due_;
  int32_t of_tile_ = 0;  // the one pattern of the last tile
  std::optional<Weighing> weighing_;

 public:
  PatternIndex patterns;
  std::vector<ColumnSums> sums;
  std::vector<int64_t> counts;
  Fault negative, infinite;
  bool is_in_range = true, has_zero = false;

 private:
  // Whether all rows of the tile have a pattern that is known already.
  bool is_one_pattern(int64_t rows) {
    if (runs_.empty() || job_.is_weighted()) return false;
    const uint64_t* key = keys_.data();
    uint64_t differs = 0;
    for (int64_t k = job_.words; k < rows * job_.words; ++k)
      differs |= key[k] ^ key[k - job_.words];
    if (differs != 0) return false;
    of_tile_ = patterns.find_or_insert(key);
    if (of_tile_ < static_cast<int32_t>(runs_.size())) return true;
    add_pattern();
    return false;
  }

  void add_run(int64_t row, int64_t rows) {
    const int32_t id = of_tile_;
    double* const sums = runs_[id].sums;
    if (done_ == Scan::columns) {
      for (int64_t j = 0; j < job_.n_cols; ++j) sums[j] += column_sums_[j];
    } else {
      std::fill_n(acc_.begin(), rows, sums);
      add_cells(rows);
    }
    // Each tile is summed on its own first, so a run may be longer.
    if ((runs_[id].rows += rows) >= 4 * kRun) flush(id);
    std::fill_n(job_.ids + row, rows, id);
  }

  // Adds every cell of the tile to the sums of its row's pattern.
  void add_cells(int64_t rows) {
    job_.isa.add(x_, stride_, rows, job_.n_cols, acc_.data());
  }

  // Which pattern each row of the tile has.
  void number_rows(int64_t row, int64_t rows) {
    const uint64_t* key = keys_.data();
    int32_t* const ids = job_.ids + row;
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
  void find_runs(int64_t row, int64_t rows) {
    const int32_t* const ids = job_.ids + row;
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

  void go_to(int64_t row, int64_t rows) {
    if (job_.direct) {
      const Part& part = job_.parts[0];
      x_ = reinterpret_cast<const T*>(part.data + row * part.row_stride);
    } else if constexpr (std::is_same_v<T, double>) {
      if (job_.is_weighted())
        weighing_->weigh_rows(row, rows, scratch_.data());
      else
        load_tile(job_.parts, row, rows, job_.n_cols, scratch_.data());
      x_ = scratch_.data();
    }
  }

  // Fills keys_, the row sums and, when asked for, the bits of the positive cells.
  Scan scan(int64_t row, int64_t rows, uint64_t* positive) {
    go_to(row, rows);
    TileScan tile{keys_.data(), positive, job_.row_sums + row};
    tile.asked = next_;
    tile.columns = column_sums_.data();
    tile.run = wide_run_;
    if (tile.asked == Scan::added && positive == nullptr)
      scan_and_add(row, rows, tile);
    else
      job_.isa.scan(x_, stride_, rows, job_.n_cols, job_.words, tile);
    done_ = tile.done;
    next_ = Scan::columns;
    is_in_range &= are_in_range(job_.row_sums + row, rows);
    if (tile.smallest < 0.0 || !is_in_range) find_faults(row, rows);
    return done_;
  }

  void scan_and_add(int64_t row, int64_t rows, TileScan& tile) {
    RowSink sink{patterns.known(), patterns.place(), runs_.data(), job_.ids + row,
                 due_, this, [](void* owner, uint64_t key, RowSink& at) {
                   auto& worker = *static_cast<Worker*>(owner);
                   const int32_t id = worker.number_and_remember(key);
                   at.place = worker.patterns.place();
                   at.runs = worker.runs_.data();
                   return id;
                 }};
    job_.isa.scan_and_add(x_, stride_, rows, job_.n_cols, tile, sink);
    tile.done = Scan::added;
  }

  // Notes the bad cells of the tile.
  void find_faults(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < job_.n_cols; ++j) {
        const double v = x_[i * stride_ + j];
        if (std::isinf(v))
          infinite.add({1, row + i, j, v});
        else if (v < 0.0)
          negative.add({1, row + i, j, v});
        is_in_range &= !(std::abs(v) > kLargest);
      }
    }
  }
};

}  // namespace a1gm
