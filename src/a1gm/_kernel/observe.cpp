#include "observe.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>

#include "patterns.hpp"
#include "sums.hpp"
#include "threads.hpp"
#include "tile.hpp"

namespace a1gm {
namespace {

constexpr int64_t kTileBytes = 8 * 1024;  // a tile stays in the first-level cache
constexpr int64_t kMaxTileRows = 64;
constexpr int64_t kRowsWorthARun = 16;  // tiles of fewer, long rows gain nothing
constexpr int64_t kCellsPerThread = 1 << 19;  // fewer do not pay for a thread
// Narrower parts than this, on average, are gathered in a scratch tile first.
constexpr int64_t kColsWorthReading = 4;

struct Job {
  const std::vector<Part>& parts;
  int64_t n_rows, n_cols, words, n_groups;
  double* row_sums;
  const Options& options;
  const Isa isa;
  bool direct;  // the rows of every part can be read where they lie
  std::atomic<bool>& go_wide;
};

class Worker {
 public:
  Worker(const Job& job, int64_t begin, int64_t end)
      : job_(job),
        begin_(begin),
        end_(end),
        memory_(job.n_cols),
        patterns(job.words, end - begin),
        ids(end - begin) {
    tile_rows_ = std::clamp<int64_t>(
        kTileBytes / (8 * std::max<int64_t>(job.n_cols, 1)), 1, kMaxTileRows);
    keys_.resize(static_cast<size_t>(tile_rows_ * job.words));
    acc_.resize(static_cast<size_t>(tile_rows_));
    tile_ids_.resize(static_cast<size_t>(tile_rows_));
    if (!job.direct)
      scratch_.resize(static_cast<size_t>(tile_rows_ * job.n_cols + 4));
    divide_into_stretches();
    column_sums_.resize(static_cast<size_t>(job.n_cols + kPadding));
  }

  // Fills the pattern table; stops early when the wide form is called for.
  void observe_table() {
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      if (job_.go_wide.load(std::memory_order_relaxed)) return;
      const int64_t rows = std::min(tile_rows_, end_ - row);
      due_.clear();
      scan(row, rows, nullptr);
      if (complete_) {  // as was the last tile, whose pattern stands in tile_ids_[0]
        add_run(row, rows);
        continue;
      }
      was_one_pattern_ = rows >= kRowsWorthARun && is_one_pattern(rows);
      if (was_one_pattern_ && !added_) {
        add_run(row, rows);
        continue;
      }
      if (!added_) {
        assign_patterns(rows);
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
    sums.clear();
    sums.emplace_back(job_.n_cols, memory_.next());
    std::fill_n(sums[0].run(), job_.n_cols, 0.0);
    std::fill(acc_.begin(), acc_.end(), sums[0].run());
    wide_run_ = sums[0].run();
    int64_t pending = 0;
    for (int64_t row = begin_; row < end_; row += tile_rows_) {
      const int64_t rows = std::min(tile_rows_, end_ - row);
      uint64_t* above = positive + row * job_.words;
      scan(row, rows, above);
      for (int64_t k = 0; k < rows * job_.words; ++k) has_zero |= above[k] != keys_[k];
      std::memcpy(bits + row * job_.words, keys_.data(),
                  sizeof(uint64_t) * static_cast<size_t>(rows * job_.words));
      if (!added_) add_cells(rows);
      if ((pending += rows) >= kRun) {
        sums[0].flush();
        pending = 0;
      }
    }
  }

  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }

 private:
  const Job& job_;
  int64_t begin_, end_, tile_rows_;
  RunMemory memory_;
  double* wide_run_ = nullptr;  // the wide form's one run, for scans that can add to it
  bool added_ = false;          // whether the last scan has added its rows, too
  // Columns that lie side by side in memory and count into the same row sums.
  struct Stretch {
    const double* x;  // first cell of the tile
    int64_t stride, cols, first_col;
    int group;
    bool opens_group;  // the first stretch of its group
    bool has_columns = false;  // the scan has left its column sums in column_sums_
    bool complete = false;     // nothing was missing in the last tile
  };
  std::vector<Stretch> stretches_;
  std::vector<uint64_t> keys_, stretch_keys_, stretch_positive_;
  std::vector<double> stretch_sums_, scratch_, column_sums_;
  bool was_one_pattern_ = false;  // then the next tile probably has one too
  bool can_add_at_once_ = false;  // one narrow stretch
  bool all_narrow_ = true;        // so that a scan may find every stretch complete
  bool complete_ = false;         // nothing is missing in this tile: it has no keys
  std::vector<double*> acc_, stretch_acc_;
  std::vector<Run> runs_;
  std::vector<int32_t> due_, tile_ids_;

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
      const int64_t stride = job_.direct ? part.row_stride / 8 : job_.n_cols;
      stretches_.push_back(
          {nullptr, stride, cols, col, part.sum_group, !opened[part.sum_group]});
      opened[part.sum_group] = true;
      all_narrow_ = all_narrow_ && cols <= kNarrow;
      col += cols;
      if (whole) break;
    }
    can_add_at_once_ = stretches_.size() == 1 && all_narrow_ &&
                       job_.isa.scan_and_add != nullptr;
    if (stretches_.size() == 1) return;
    const auto rows = static_cast<size_t>(tile_rows_);
    stretch_keys_.resize(rows * static_cast<size_t>(job_.words));
    stretch_positive_.resize(stretch_keys_.size());
    stretch_sums_.resize(rows);
    stretch_acc_.resize(rows);
  }

  // Whether all rows of the tile have a pattern that is known already.
  bool is_one_pattern(int64_t rows) {
    if (runs_.empty()) return false;
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
      if (s.has_columns)
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

  // Which pattern each row of the tile has, and where its cells are to be added.
  void assign_patterns(int64_t rows) {
    const uint64_t* key = keys_.data();
    int32_t* const ids = tile_ids_.data();
    if (job_.words == 1) {
      for (int64_t i = 0; i < rows; ++i) {
        KnownKey& hit = patterns.cached(key[i]);
        if (hit.key != key[i] || hit.id < 0) hit = {key[i], number_of(key + i)};
        ids[i] = hit.id;
      }
    } else {
      for (int64_t i = 0; i < rows; ++i) ids[i] = number_of(key + i * job_.words);
    }
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
    if (!job_.direct) {
      load_tile(job_.parts, row, rows, job_.n_cols, job_.options.scale,
                scratch_.data());
      for (Stretch& s : stretches_) s.x = scratch_.data() + s.first_col;
      return;
    }
    for (size_t p = 0; p < stretches_.size(); ++p) {
      const Part& part = job_.parts[p];
      stretches_[p].x =
          reinterpret_cast<const double*>(part.data + row * part.row_stride);
    }
  }

  // Fills keys_ (unless the tile is complete_), the row sums and, when asked for, the
  // bits of the positive cells.
  void scan(int64_t row, int64_t rows, uint64_t* positive) {
    place_stretches(row, rows);
    double smallest = 0.0, tile_total = 0.0;
    if (stretches_.size() == 1) {
      Stretch& s = stretches_[0];
      TileScan found{keys_.data(), positive,
                     job_.row_sums + s.group * job_.n_rows + row, 0.0};
      found.run = wide_run_;
      if (positive == nullptr && !was_one_pattern_ && can_add_at_once_)
        scan_and_add(s, rows, found);
      else
        scan_stretch(s, rows, found);
      smallest = found.smallest;
      tile_total = found.total;
      added_ = found.added;
      complete_ = found.complete;
    } else {
      smallest = scan_stretches(row, rows, positive, tile_total);
    }
    if (smallest < 0.0) find_negative(row, rows);
    if (!complete_)
      for (int64_t g = 0; g < job_.n_groups; ++g)
        tile_total += quick_sum(job_.row_sums + g * job_.n_rows + row, rows);
    total += tile_total;
    // One row that is not finite is enough to spoil the sum of them all.
    if (!std::isfinite(tile_total)) find_infinite(row, rows);
  }

  void scan_and_add(const Stretch& s, int64_t rows, TileScan& found) {
    RowSink sink{patterns.known(), patterns.shift(), runs_.data(), tile_ids_.data(),
                 due_, this, [](void* owner, uint64_t key, RowSink& at) {
                   auto& worker = *static_cast<Worker*>(owner);
                   const int32_t id = worker.number_of(&key);
                   worker.patterns.cached(key) = {key, id};
                   at.runs = worker.runs_.data();
                   return id;
                 }};
    job_.isa.scan_and_add(s.x, s.stride, rows, s.cols, found, sink);
    found.added = true;
  }

  // Scans a stretch as the last tile suggests.
  void scan_stretch(Stretch& s, int64_t rows, TileScan& found) {
    if (was_one_pattern_ && found.positive == nullptr) {
      found.columns = column_sums_.data() + s.first_col;
      found.expect_complete = all_narrow_ && s.complete && rows >= kRowsWorthARun;
    }
    job_.isa.scan(s.x, s.stride, rows, s.cols, words_of(s), found);
    s.has_columns = found.has_columns;
    s.complete =
        found.complete || (s.cols <= kNarrow && found.keys[0] == all_bits(s.cols));
  }

  static int64_t words_of(const Stretch& s) { return (s.cols + 63) / 64; }
  static uint64_t all_bits(int64_t cols) { return (uint64_t{1} << cols) - 1; }

  double scan_stretches(int64_t row, int64_t rows, uint64_t* positive,
                        double& tile_total) {
    const int64_t n_words = rows * job_.words;
    double smallest = 0.0;
    // Keys are wanted as soon as one stretch has holes; those before it had none.
    complete_ = true;
    for (size_t k = 0; k < stretches_.size(); ++k) {
      Stretch& s = stretches_[k];
      double* sums = job_.row_sums + s.group * job_.n_rows + row;
      TileScan found{stretch_keys_.data(),
                     positive != nullptr ? stretch_positive_.data() : nullptr,
                     s.opens_group ? sums : stretch_sums_.data(), smallest};
      scan_stretch(s, rows, found);
      smallest = found.smallest;
      if (!s.opens_group)
        for (int64_t i = 0; i < rows; ++i) sums[i] += stretch_sums_[i];
      if (complete_ && !found.complete) {
        complete_ = false;
        tile_total = 0.0;
        std::fill_n(keys_.data(), n_words, 0);
        if (positive != nullptr) std::fill_n(positive, n_words, 0);
        for (size_t before = 0; before < k; ++before)
          put_all_bits(stretches_[before], rows);
      }
      if (found.complete && complete_) {
        tile_total += found.total;
      } else if (found.complete) {
        put_all_bits(s, rows);
      } else {
        put_bits(stretch_keys_.data(), words_of(s), s, rows, keys_.data());
        if (positive != nullptr)
          put_bits(stretch_positive_.data(), words_of(s), s, rows, positive);
      }
    }
    return smallest;
  }

  void put_all_bits(const Stretch& s, int64_t rows) {
    std::vector<uint64_t> all(static_cast<size_t>(rows), all_bits(s.cols));
    put_bits(all.data(), 1, s, rows, keys_.data());
  }

  // Moves a stretch's bits to its columns' places among the row's.
  void put_bits(const uint64_t* from, int64_t words, const Stretch& s, int64_t rows,
                uint64_t* to) const {
    const int64_t shift = s.first_col & 63;
    if (job_.words == 1) {
      for (int64_t i = 0; i < rows; ++i) to[i] |= from[i] << shift;
      return;
    }
    to += s.first_col >> 6;
    for (int64_t i = 0; i < rows; ++i, to += job_.words)
      for (int64_t w = 0; w < words; ++w) {
        const uint64_t bits = *from++;
        to[w] |= bits << shift;
        const uint64_t carried = shift != 0 ? bits >> (64 - shift) : 0;
        if (carried != 0) to[w + 1] |= carried;
      }
  }

  void find_negative(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i)
      for (const Stretch& s : stretches_)
        for (int64_t j = 0; j < s.cols; ++j) {
          const double v = s.x[i * s.stride + j];
          if (v < 0.0 && !std::isinf(v)) note(negative, row + i, s.first_col + j, v);
        }
  }

  void find_infinite(int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t before = infinite.count;
      for (const Stretch& s : stretches_)
        for (int64_t j = 0; j < s.cols; ++j) {
          const double v = s.x[i * s.stride + j];
          if (std::isinf(v)) note(infinite, row + i, s.first_col + j, v);
        }
      if (infinite.count != before) continue;
      for (int64_t g = 0; g < job_.n_groups; ++g)
        overflow |= !std::isfinite(job_.row_sums[g * job_.n_rows + row + i]);
    }
  }

  static void note(Fault& fault, int64_t row, int64_t col, double value) {
    if (fault.count++ == 0) {
      fault.row = row;
      fault.col = col;
      fault.value = value;
    }
  }
};

void merge_fault(Fault& into, const Fault& from) {
  if (from.count && (!into.count || from.row < into.row)) {
    const int64_t count = into.count;
    into = from;
    into.count += count;
  } else {
    into.count += from.count;
  }
}

void merge_tables(std::vector<Worker>& workers, const Job& job, const IdMemory& new_ids,
                  Observation& out) {
  Worker& first = workers[0];
  std::vector<std::vector<int32_t>> renamed(workers.size());
  for (size_t t = 1; t < workers.size(); ++t) {
    Worker& other = workers[t];
    for (int64_t k = 0; k < other.patterns.size(); ++k) {
      const int32_t id =
          first.patterns.find_or_insert(&other.patterns.keys[k * job.words]);
      renamed[t].push_back(id);
      if (id == static_cast<int32_t>(first.sums.size())) {
        first.sums.push_back(std::move(other.sums[k]));
        first.counts.push_back(other.counts[k]);
      } else {
        first.sums[id].absorb(other.sums[k]);
        first.counts[id] += other.counts[k];
      }
    }
  }
  out.n_patterns = first.patterns.size();
  out.keys = std::move(first.patterns.keys);
  out.sums.resize(static_cast<size_t>(out.n_patterns * job.n_cols));
  out.counts = std::move(first.counts);
  for (int64_t k = 0; k < out.n_patterns; ++k)
    first.sums[k].write(&out.sums[static_cast<size_t>(k * job.n_cols)]);
  out.id_width = out.n_patterns <= 256 ? 1 : out.n_patterns <= 65536 ? 2 : 4;
  char* ids = static_cast<char*>(new_ids(out.id_width));
  run_on_threads(static_cast<int>(workers.size()), [&](int t) {
    const int64_t at = workers[t].begin();
    if (out.id_width == 1)
      workers[t].ids.write(renamed[t], reinterpret_cast<uint8_t*>(ids) + at);
    if (out.id_width == 2)
      workers[t].ids.write(renamed[t], reinterpret_cast<uint16_t*>(ids) + at);
    if (out.id_width == 4)
      workers[t].ids.write(renamed[t], reinterpret_cast<int32_t*>(ids) + at);
  });
}

}  // namespace

Observation observe(const std::vector<Part>& parts, int64_t n_rows, int64_t n_groups,
                    double* row_sums, const IdMemory& new_ids, const Options& options) {
  Observation out;
  out.n_rows = n_rows;
  out.n_groups = n_groups;
  for (const Part& part : parts) out.n_cols += part.n_cols;
  out.words = (out.n_cols + 63) / 64;

  static const Isa isa = choose_isa();
  const auto lies_ready = [](const Part& part) {
    return part.dtype == Dtype::f64 && part.col_stride == 8 &&
           part.row_stride % 8 == 0 && part.mask == nullptr && part.validity == nullptr;
  };
  const auto n_parts = static_cast<int64_t>(parts.size());
  const bool direct = options.scale == 1.0 &&
                      (n_parts == 1 || out.n_cols >= kColsWorthReading * n_parts) &&
                      std::all_of(parts.begin(), parts.end(), lies_ready);
  for (int64_t g = 0; g < n_groups; ++g)
    if (std::none_of(parts.begin(), parts.end(),
                     [g](const Part& part) { return part.sum_group == g; }))
      std::fill_n(row_sums + g * n_rows, n_rows, 0.0);
  std::atomic<bool> go_wide{false};
  const Job job{parts,    n_rows,  out.n_cols, out.words, n_groups,
                row_sums, options, isa,        direct,    go_wide};

  const int64_t useful = std::max<int64_t>(1, n_rows * out.n_cols / kCellsPerThread);
  const int threads = static_cast<int>(
      std::clamp<int64_t>(options.n_threads, 1, std::min(useful, n_rows)));
  std::vector<Worker> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t)
    workers.emplace_back(job, n_rows * t / threads, n_rows * (t + 1) / threads);

  run_on_threads(threads, [&](int t) { workers[t].observe_table(); });
  out.wide = go_wide;
  if (out.wide) {
    for (Worker& worker : workers) worker.ids.release();
    out.bits.resize(static_cast<size_t>(n_rows * out.words));
    out.positive.resize(out.bits.size());
    run_on_threads(threads, [&](int t) {
      workers[t].observe_wide(out.bits.data(), out.positive.data());
    });
    for (size_t t = 1; t < workers.size(); ++t)
      workers[0].sums[0].absorb(workers[t].sums[0]);
    out.col_sums.resize(static_cast<size_t>(out.n_cols));
    workers[0].sums[0].write(out.col_sums.data());
  } else {
    merge_tables(workers, job, new_ids, out);
  }
  for (const Worker& worker : workers) {
    merge_fault(out.negative, worker.negative);
    merge_fault(out.infinite, worker.infinite);
    out.total += worker.total;
    out.overflow |= worker.overflow;
    out.has_zero |= worker.has_zero;
  }
  // No sum of cells of at least 0 is above that of all of them.
  if (!std::isfinite(out.total) || out.negative.count != 0) {
    for (const double s : out.sums) out.overflow |= !std::isfinite(s);
    for (const double s : out.col_sums) out.overflow |= !std::isfinite(s);
  }
  return out;
}

template <typename Id>
void expand_rows(double* row_sums, const Id* pattern_id, const double* scale, int64_t n,
                 int n_threads) {
  const int threads = static_cast<int>(
      std::clamp<int64_t>(n_threads, 1, std::max<int64_t>(1, n / kCellsPerThread)));
  run_on_threads(threads, [&](int t) {
    for (int64_t i = n * t / threads; i < n * (t + 1) / threads; ++i)
      row_sums[i] *= scale[pattern_id[i]];
  });
}

template void expand_rows(double*, const uint8_t*, const double*, int64_t, int);
template void expand_rows(double*, const uint16_t*, const double*, int64_t, int);
template void expand_rows(double*, const int32_t*, const double*, int64_t, int);

}  // namespace a1gm
