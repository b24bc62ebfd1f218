#include "place/place.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "interrupt.hpp"
#include "place/tile.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// Rows are placed a tile at a time: rows that lie side by side, or have to be gathered,
// in tiles that stay in the first-level cache; columns in runs, in the second-level one.
constexpr int64_t kRowTile = 8 * 1024, kColumnTile = 512 * 1024;  // bytes
constexpr int64_t kMaxRows = 64, kMaxRun = 4096;
constexpr int64_t kGatheredRows = 16;  // fewer are not worth a look at every column
// Cells that a thread takes at a time. Two threads that write to one fresh page of 2 MB
// would each ask for it and clear it, so stretches of long tables are longer than that.
constexpr int64_t kFewCells = 1 << 16, kManyCells = 1 << 20;
constexpr int64_t kStreamed = 1 << 20;  // cells that no cache will hold until they are read
constexpr int64_t kColsPerSum = 2048;  // longer rows are summed with compensation

bool is_column(const Part& part) { return part.n_cols == 1; }

// Zeros that begin with a cache line: a vector that straddles two is slow to store.
class Numbers {
 public:
  void resize(size_t n) {
    memory_.assign(n + kPadding, 0.0);
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    first_ = memory_.data() + (kLine - address / 8 % kLine) % kLine;
    n_ = n;
  }
  double* data() { return first_; }
  double& operator[](size_t i) { return first_[i]; }
  void clear() { std::fill_n(first_, n_, 0.0); }

 private:
  static constexpr size_t kLine = 8, kPadding = kLine + 4;
  std::vector<double> memory_;
  double* first_ = nullptr;
  size_t n_ = 0;
};

// How a table is read, and the tiles and stretches of rows that it is cut into.
struct Layout {
  Layout(const Placing& job, bool wants_columns, bool keeps_nulls)
      : keeps_nulls(keeps_nulls) {
    const auto& parts = job.parts;
    by_columns = wants_columns && job.n_cols > 1 &&
                 std::all_of(parts.begin(), parts.end(), is_column);
    in_place = parts.size() == 1 && lies_as<double>(parts[0]);
    const int64_t row_bytes = 8 * job.n_cols;
    tile_rows = by_columns ? std::clamp(kColumnTile / row_bytes & -kMaxRows,  // whole lines
                                        kMaxRows, kMaxRun)
                           : std::clamp(kRowTile / row_bytes,
                                        in_place ? int64_t{1} : kGatheredRows, kMaxRows);
    // The same for any number of threads, so that sums are, too.
    const int64_t cells =
        std::clamp(job.n_rows * job.n_cols / 32, kFewCells, kManyCells);
    length = std::max<int64_t>(1, cells / (tile_rows * job.n_cols)) * tile_rows;
    count = (job.n_rows + length - 1) / length;
  }
  bool by_columns, in_place;
  bool keeps_nulls;  // columns may be used with their bitmaps, where they lie
  int64_t tile_rows, length, count;
};

// A tile of rows: where its cells are and, once they are found, the factors of its rows.
struct Tile {
  int64_t row, rows;
  const double* x = nullptr;  // rows that lie `stride` apart, unless by columns
  int64_t stride = 0;
  bool has_empty = false;  // a row observes nothing: its factor is NaN
};

// What one thread needs to place rows.
class Placer {
 public:
  Placer(const Placing& job, const Layout& layout, const double* h)
      : job(job),
        layout(layout),
        h(h),
        isa(choose_place_isa()),
        largest_(std::max(1.0, *std::max_element(h, h + job.n_cols))) {
    const auto rows = static_cast<size_t>(layout.tile_rows);
    factors_.resize(rows + 4);
    reach_.resize(rows + 4);
    if (!layout.in_place) scratch_.resize(rows * static_cast<size_t>(job.n_cols));
    if (layout.by_columns) columns_.resize(static_cast<size_t>(job.n_cols));
  }

  // Calls use(tile) for the rows from `begin` to `end`; false where it must decline.
  template <typename F>
  bool place(int64_t begin, int64_t end, F&& use) {
    for (int64_t row = begin; row < end; row += layout.tile_rows) {
      Tile tile{row, std::min(layout.tile_rows, end - row)};
      poll_.worked(tile.rows * job.n_cols);
      read(tile);
      if (!find_factors(tile)) return false;
      use(tile);
    }
    return true;
  }

  double* w() { return factors_.data(); }
  const Column& column(int64_t j) const { return columns_[static_cast<size_t>(j)]; }

  const Placing& job;
  const Layout& layout;
  const double* const h;  // padded to whole vectors
  const PlaceIsa isa;

 private:
  void read(Tile& tile) {
    if (layout.by_columns) {
      for (int64_t j = 0; j < job.n_cols; ++j) columns_[j] = read_column(tile, j);
    } else if (layout.in_place) {
      const Part& part = job.parts[0];
      tile.x = reinterpret_cast<const double*>(part.data + tile.row * part.row_stride);
      tile.stride = part.row_stride / 8;
    } else {
      load_tile(job.parts, tile.row, tile.rows, job.n_cols, 1.0, scratch_.data());
      tile.x = scratch_.data();
      tile.stride = job.n_cols;
    }
  }

  Column read_column(const Tile& tile, int64_t j) {
    const Part& part = job.parts[static_cast<size_t>(j)];
    const bool is_readable =
        part.validity == nullptr || (layout.keeps_nulls && isa.reads_bitmaps);
    if (is_readable && is_plain_column(part)) return column_of(part, tile.row);
    double* const to = scratch_.data() + j * layout.tile_rows;
    load_column(part, tile.row, tile.rows, to);
    return {to};
  }

  // Row sums and sums of h, for the columns from `first` on; the smallest cell.
  double measure(const Tile& tile, int64_t first, int64_t cols) {
    factors_.clear();
    reach_.clear();
    if (!layout.by_columns)
      return isa.measure_rows(tile.x + first, tile.stride, tile.rows, cols, h + first,
                              w(), reach_.data());
    return isa.measure_columns(columns_.data() + first, tile.rows, cols, h + first, w(),
                               reach_.data());
  }

  double measure_long_rows(const Tile& tile) {
    const auto rows = static_cast<size_t>(tile.rows);
    std::vector<double> sums(2 * rows), reach(2 * rows);  // pairs of high and low part
    double least = 0.0;
    for (int64_t j = 0; j < job.n_cols; j += kColsPerSum) {
      least = std::min(least, measure(tile, j, std::min(kColsPerSum, job.n_cols - j)));
      for (size_t i = 0; i < rows; ++i) {
        two_sum(factors_[i], sums[2 * i], sums[2 * i + 1]);
        two_sum(reach_[i], reach[2 * i], reach[2 * i + 1]);
      }
    }
    for (size_t i = 0; i < rows; ++i) {
      factors_[i] = sums[2 * i] + sums[2 * i + 1];
      reach_[i] = reach[2 * i] + reach[2 * i + 1];
    }
    return least;
  }

  bool find_factors(Tile& tile) {
    const double least = job.n_cols <= kColsPerSum ? measure(tile, 0, job.n_cols)
                                                   : measure_long_rows(tile);
    if (least < 0.0 && !job.takes_negatives) return false;
    bool is_right = true, has_empty = false;
    for (int64_t i = 0; i < tile.rows; ++i) {
      const double sum = factors_[i], w = sum / reach_[i], size = std::abs(w);
      is_right &= (sum == 0.0) | ((size >= kLeast) & (size * largest_ <= kMost));
      has_empty |= w != w;
      factors_[i] = w;
    }
    tile.has_empty = has_empty;
    return is_right;
  }

  Poll poll_;
  const double largest_;  // of h, or 1: no fitted value is above w times this
  Numbers factors_, reach_, scratch_;
  std::vector<Column> columns_;
};

// Calls run(placer, stretch, first row, last row) for every stretch, on threads, which
// take them one after another; false as soon as one declines.
template <typename F>
bool place_all(const Placing& job, const Layout& layout, F&& run) {
  std::vector<double> h(job.h, job.h + job.n_cols);
  h.resize(h.size() + 4, 0.0);
  const int threads = static_cast<int>(
      std::min<int64_t>(useful_threads(job.n_threads, job.n_rows * job.n_cols),
                        std::max<int64_t>(1, layout.count)));
  std::atomic<int64_t> next{0};
  std::atomic<bool> holds{true};
  run_on_threads(threads, [&](int) {
    Placer placer(job, layout, h.data());
    for (int64_t k = next++; k < layout.count && holds; k = next++) {
      const int64_t end = std::min(job.n_rows, (k + 1) * layout.length);
      if (!run(placer, k, k * layout.length, end)) holds = false;
    }
  });
  return holds;
}

// --------------------------------------------------------------------------- filling
bool is_one_column(const Target& target) { return target.n_cols == 1; }

class Filler {
 public:
  Filler(Placer& placer, const double* otherwise, const std::vector<Target>& targets)
      : p_(placer), otherwise_(otherwise), targets_(targets) {
    const Target& first = targets[0];
    writes_rows_ = targets.size() == 1 && first.data != nullptr && !first.is_single &&
                   first.col_stride == 8 && !p_.layout.by_columns;
    const int64_t cols = p_.layout.by_columns ? 1 : p_.job.n_cols;
    if (!writes_rows_) filled_.resize(static_cast<size_t>(p_.layout.tile_rows * cols));
  }

  void write(const Tile& tile) {
    if (tile.has_empty) note_empty(tile);
    if (p_.layout.by_columns)
      for (int64_t j = 0; j < p_.job.n_cols; ++j) write_column(tile, j);
    else
      write_rows(tile);
  }

  EmptyRows empty;
  bool fits = true;  // all numbers are within the range of their targets

 private:
  void note_empty(const Tile& tile) {
    for (int64_t i = 0; i < tile.rows; ++i) {
      if (p_.w()[i] == p_.w()[i]) continue;
      if (empty.count++ == 0) empty.first = tile.row + i;
    }
  }

  void write_rows(const Tile& tile) {
    const Target& first = targets_[0];
    double* out = filled_.data();
    int64_t stride = p_.job.n_cols;
    if (writes_rows_) {
      out = reinterpret_cast<double*>(first.data + tile.row * first.row_stride);
      stride = first.row_stride / 8;
    }
    p_.isa.fill_rows(tile.x, tile.stride, tile.rows, p_.job.n_cols, p_.h, p_.w(), out,
                     stride);
    if (tile.has_empty)
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t j = 0; j < p_.job.n_cols; ++j)
          put_otherwise(out[i * stride + j], j);
    if (!writes_rows_) fits &= store_tile(out, stride, tile.rows, targets_, tile.row);
  }

  void write_column(const Tile& tile, int64_t j) {
    const Target& to = targets_[static_cast<size_t>(j)];
    if (to.data == nullptr) return;
    const bool is_direct = !to.is_single && to.row_stride == 8;
    double* const out =
        is_direct ? reinterpret_cast<double*>(to.data) + tile.row : filled_.data();
    const bool stream = is_direct && p_.job.n_rows * p_.job.n_cols >= kStreamed;
    p_.isa.fill_column(p_.column(j), tile.rows, p_.h[j], p_.w(), out, stream);
    if (tile.has_empty)
      for (int64_t i = 0; i < tile.rows; ++i) put_otherwise(out[i], j);
    if (!is_direct) fits &= store_tile(out, 1, tile.rows, {to}, tile.row);
  }

  // A cell that is missing still is one of a row that observes nothing.
  void put_otherwise(double& cell, int64_t j) const {
    if (cell != cell) cell = otherwise_[j];
  }

  Placer& p_;
  const double* otherwise_;
  const std::vector<Target>& targets_;
  bool writes_rows_;
  Numbers filled_;
};

// The sum over the cells of a tile, by the loop for rows or that for columns.
template <typename Rows, typename Column>
double sum_of(Placer& p, const Tile& tile, Rows of_rows, Column of_column) {
  double* const w = p.w();
  for (int64_t i = 0; tile.has_empty && i < tile.rows; ++i)
    if (w[i] != w[i]) w[i] = 0.0;  // it has no cells
  if (!p.layout.by_columns)
    return (p.isa.*of_rows)(tile.x, tile.stride, tile.rows, p.job.n_cols, p.h, w);
  double sum = 0.0;
  for (int64_t j = 0; j < p.job.n_cols; ++j)
    sum += (p.isa.*of_column)(p.column(j).cells, tile.rows, p.h[j], w);
  return sum;
}

// The sum over all cells, and that of the row factors; the same for any number of
// threads.
template <typename Rows, typename Column>
bool sum_all(const Placing& job, Rows of_rows, Column of_column, Sums& sums) {
  const Layout layout(job, true, false);
  std::vector<Sums> found(static_cast<size_t>(layout.count));
  const bool holds =
      place_all(job, layout, [&](Placer& p, int64_t k, int64_t begin, int64_t end) {
        double hi = 0.0, lo = 0.0;
        Sums& own = found[static_cast<size_t>(k)];
        const bool is_right = p.place(begin, end, [&](const Tile& tile) {
          two_sum(sum_of(p, tile, of_rows, of_column), hi, lo);
          for (int64_t i = 0; i < tile.rows; ++i) own.factors += p.w()[i];
        });
        own.cells = hi + lo;
        return is_right;
      });
  double hi = 0.0, lo = 0.0;
  for (const Sums& part : found) {
    two_sum(part.cells, hi, lo);
    sums.factors += part.factors;
  }
  sums.cells = hi + lo;
  return holds && std::isfinite(sums.cells);
}

}  // namespace

bool row_factors(const Placing& job, double* factors) {
  const Layout layout(job, true, true);
  return place_all(job, layout, [&](Placer& p, int64_t, int64_t begin, int64_t end) {
    return p.place(begin, end, [&](const Tile& tile) {
      std::copy_n(p.w(), tile.rows, factors + tile.row);
    });
  });
}

bool fill_rows(const Placing& job, const double* otherwise,
               const std::vector<Target>& targets, EmptyRows& empty) {
  const Layout layout(job, std::all_of(targets.begin(), targets.end(), is_one_column), true);
  std::vector<EmptyRows> found(static_cast<size_t>(layout.count));
  const bool holds =
      place_all(job, layout, [&](Placer& p, int64_t k, int64_t begin, int64_t end) {
        Filler filler(p, otherwise, targets);
        const bool is_right =
            p.place(begin, end, [&](const Tile& tile) { filler.write(tile); });
        found[static_cast<size_t>(k)] = filler.empty;
        return is_right && filler.fits;
      });
  for (const EmptyRows& some : found) {
    if (empty.count == 0) empty.first = some.first;
    empty.count += some.count;
  }
  return holds;
}

bool divergence(const Placing& job, Sums& sums) {
  return sum_all(job, &PlaceIsa::diverge_rows, &PlaceIsa::diverge_column, sums);
}

bool pearson(const Placing& job, Sums& sums) {
  return sum_all(job, &PlaceIsa::scatter_rows, &PlaceIsa::scatter_column, sums);
}

}  // namespace a1gm
