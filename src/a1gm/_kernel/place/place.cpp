#include "place/place.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "interrupt.hpp"
#include "place/tile.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace a1gm {
namespace {

// Rows are placed a tile at a time: rows that lie side by side, or have to be gathered,
// in tiles that stay in the first-level cache; columns in runs, in the second-level one.
constexpr int64_t kRowTile = 1 << 10, kColumnTile = 1 << 16;  // cells
constexpr int64_t kMaxRows = 64, kMaxRun = 4096;
constexpr int64_t kGatheredRows = 16;  // fewer are not worth a look at every column
// Cells that a thread takes at a time. Two threads that write to one fresh page of 2 MB
// would each ask for it and clear it, so stretches of long tables are longer than that.
constexpr int64_t kFewCells = 1 << 16, kManyCells = 1 << 20;
constexpr int64_t kStreamed = 1 << 20;  // cells that no cache will hold until they are read
constexpr int64_t kColsPerSum = 2048;  // longer rows are summed with compensation

// How a table is read, and the tiles and stretches of rows that it is cut into.
struct Layout {
  explicit Layout(const Placing& job, bool wants_columns = true)
      : by_columns(wants_columns && job.n_cols > 1 &&
                   std::all_of(job.parts.begin(), job.parts.end(),
                               [](const Part& part) { return part.n_cols == 1; })) {
    const bool in_place = job.parts.size() == 1 && lies_as<double>(job.parts[0]);
    tile_rows = by_columns ? std::clamp(kColumnTile / job.n_cols & -kMaxRows, kMaxRows, kMaxRun)
                           : std::clamp(kRowTile / job.n_cols,
                                        in_place ? int64_t{1} : kGatheredRows, kMaxRows);
    // The same for any number of threads, so that sums are, too.
    const int64_t cells =
        std::clamp(job.n_rows * job.n_cols / 32, kFewCells, kManyCells);
    length = std::max<int64_t>(1, cells / (tile_rows * job.n_cols)) * tile_rows;
    count = (job.n_rows + length - 1) / length;
  }
  bool by_columns;
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
        largest_(std::max(1.0, *std::max_element(h, h + job.n_cols))),
        reader_(job.parts, job.n_cols, layout.tile_rows),
        factors_(static_cast<size_t>(layout.tile_rows) + 4),
        reach_(factors_.size()),
        columns_(static_cast<size_t>(layout.by_columns ? job.n_cols : 0)) {
    for (int64_t j = 0; j < job.n_cols; ++j)
      if (h[j] == 0.0) zeros_.push_back(j);
  }

  // Calls use(tile) for the rows from `begin` to `end`; false where it must decline.
  template <typename F>
  bool place(int64_t begin, int64_t end, F&& use) {
    for (int64_t row = begin; row < end; row += layout.tile_rows) {
      const int64_t rows = std::min(layout.tile_rows, end - row);
      poll_.worked(rows * job.n_cols);
      Tile tile{row, rows};
      if (layout.by_columns)
        for (int64_t j = 0; j < job.n_cols; ++j) columns_[j] = reader_.column(j, row, rows);
      else
        tile.x = reader_.rows(row, rows);
      tile.stride = reader_.stride();
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
  // Row sums and sums of h, for the columns from `first` on; the smallest cell.
  double measure(const Tile& tile, int64_t first, int64_t cols) {
    std::fill(factors_.begin(), factors_.end(), 0.0);
    std::fill(reach_.begin(), reach_.end(), 0.0);
    if (layout.by_columns)
      return isa.measure_columns(&columns_[first], tile.rows, cols, h + first, w(),
                                 reach_.data());
    return isa.measure_rows(tile.x + first, tile.stride, tile.rows, cols, h + first, w(),
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
    if (zeros_.empty()) return is_right;
    return is_right && !has_empty && (job.takes_negatives || are_zeros(tile));
  }

  // Whether the cells of the columns of factor 0 are zeros.
  bool are_zeros(const Tile& tile) const {
    bool is_positive = false;
    for (const int64_t j : zeros_)
      for (int64_t i = 0; i < tile.rows; ++i) {
        const double cell = layout.by_columns ? column(j)[i] : tile.x[i * tile.stride + j];
        is_positive |= cell > 0.0;
      }
    return !is_positive;
  }

  Poll poll_;
  const double largest_;  // of h, or 1: no fitted value is above w times this
  TileReader reader_;
  std::vector<double> factors_, reach_;  // padded to whole vectors
  std::vector<Column> columns_;
  std::vector<int64_t> zeros_;  // columns of factor 0: they may hold only zeros
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
class Filler {
 public:
  Filler(Placer& placer, const double* otherwise, const std::vector<Target>& targets)
      : p_(placer), otherwise_(otherwise), targets_(targets), in_place_(true) {
    for (size_t j = 0; j < targets.size(); ++j)
      in_place_ &= targets[j].data != nullptr && targets[j].data == targets[0].data + j;
    holes.columns.resize(targets.size() + 4, 0.0);
    if (!in_place_ && !p_.layout.by_columns)
      filled_.resize(static_cast<size_t>(p_.layout.tile_rows * p_.job.n_cols));
  }

  void write(const Tile& tile) {
    if (tile.has_empty) note_empty(tile);
    if (p_.layout.by_columns)
      for (int64_t j = 0; j < p_.job.n_cols; ++j) write_column(tile, j);
    else
      write_rows(tile);
  }

  Holes holes;

 private:
  void write_rows(const Tile& tile) {
    const int64_t cols = p_.job.n_cols, stride = in_place_ ? targets_[0].stride : cols;
    double* const out =
        in_place_ ? targets_[0].data + tile.row * stride : filled_.data();
    p_.isa.fill_rows(tile.x, tile.stride, tile.rows, cols, p_.h, p_.w(), out, stride,
                     holes.columns.data());
    if (tile.has_empty)
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t j = 0; j < cols; ++j) put_otherwise(out[i * stride + j], j);
    if (in_place_) return;
    for (int64_t j = 0; j < cols; ++j) {
      const Target to = targets_[static_cast<size_t>(j)];
      for (int64_t i = 0; to.data != nullptr && i < tile.rows; ++i)
        to.data[(tile.row + i) * to.stride] = out[i * stride + j];
    }
  }

  void write_column(const Tile& tile, int64_t j) {
    const Target& to = targets_[static_cast<size_t>(j)];
    if (to.data == nullptr) return;
    double* const out = to.data + tile.row;
    const bool stream = p_.job.n_rows * p_.job.n_cols >= kStreamed;
    if (p_.isa.fill_column(p_.column(j), tile.rows, p_.h[j], p_.w(), out, stream))
      holes.columns[j] = std::numeric_limits<double>::quiet_NaN();
    if (tile.has_empty)
      for (int64_t i = 0; i < tile.rows; ++i) put_otherwise(out[i], j);
  }

  void note_empty(const Tile& tile) {
    for (int64_t i = 0; i < tile.rows; ++i) {
      if (p_.w()[i] == p_.w()[i]) continue;
      if (holes.n_empty++ == 0) holes.first_empty = tile.row + i;
    }
  }

  // A cell that is missing still is one of a row that observes nothing.
  void put_otherwise(double& cell, int64_t j) const {
    if (cell != cell) cell = otherwise_[j];
  }

  Placer& p_;
  const double* otherwise_;
  const std::vector<Target>& targets_;
  bool in_place_;  // the target's rows are written where they lie
  std::vector<double> filled_;
};

// The sum over all cells, and that of the row factors; the same for any number of
// threads.
template <typename Loop>
bool sum_all(const Placing& job, Loop of_tile, Sums& sums) {
  const Layout layout(job);
  std::vector<Sums> found(static_cast<size_t>(layout.count));
  const bool holds =
      place_all(job, layout, [&](Placer& p, int64_t k, int64_t begin, int64_t end) {
        double hi = 0.0, lo = 0.0, *const w = p.w();
        Sums& of_stretch = found[static_cast<size_t>(k)];
        const bool is_right = p.place(begin, end, [&](const Tile& tile) {
          for (int64_t i = 0; tile.has_empty && i < tile.rows; ++i)
            if (w[i] != w[i]) w[i] = 0.0;  // it has no cells
          const auto add = p.isa.*of_tile;
          double own = 0.0;
          if (!layout.by_columns)
            own = add({tile.x}, tile.stride, tile.rows, job.n_cols, w, p.h);
          else
            for (int64_t j = 0; j < job.n_cols; ++j)
              own += add(p.column(j), 0, 1, tile.rows, p.h + j, w);
          two_sum(own, hi, lo);
          for (int64_t i = 0; i < tile.rows; ++i) of_stretch.factors += w[i];
        });
        of_stretch.cells = hi + lo;
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

// --------------------------------------------------------------------------- squares
// Adds the squares of a row to pairs of high and low parts.
void add_row(const double* x, int64_t cols, double sum, double* hi, double* lo) {
  for (int64_t j = 0; j < cols; ++j) {
    const double square = x[j] * (x[j] / sum);
    two_sum(x[j] == x[j] ? square : 0.0, hi[j], lo[j]);
  }
}

bool is_zero(const double* x, int64_t cols) {
  return std::all_of(x, x + cols, [](double cell) { return !(cell < 0.0 || cell > 0.0); });
}

// The sums over the rows from `begin` to `end`.
void add_squares(const Squares& job, int64_t begin, int64_t end, double* hi, double* lo) {
  TileReader reader(job.parts, job.n_cols, kMaxRows);
  Poll poll;
  for (int64_t row = begin; row < end; row += kMaxRows) {
    const int64_t rows = std::min(kMaxRows, end - row);
    poll.worked(rows * job.n_cols);
    const double* x = reader.rows(row, rows);
    for (int64_t i = 0; i < rows; ++i, x += reader.stride()) {
      const double sum = job.row_sums[row + i];
      const int64_t at = job.lines[row + i] * job.n_cols;
      if (sum > 0.0)
        add_row(x, job.n_cols, sum, hi + at, lo + at);
      else if (!is_zero(x, job.n_cols))
        std::fill_n(hi + at, job.n_cols, std::numeric_limits<double>::quiet_NaN());
    }
  }
}

}  // namespace

bool row_factors(const Placing& job, double* factors) {
  const Layout layout(job);
  return place_all(job, layout, [&](Placer& p, int64_t, int64_t begin, int64_t end) {
    return p.place(begin, end, [&](const Tile& tile) {
      std::copy_n(p.w(), tile.rows, factors + tile.row);
    });
  });
}

bool fill_rows(const Placing& job, const double* otherwise,
               const std::vector<Target>& targets, Holes& holes) {
  const bool are_columns = std::all_of(targets.begin(), targets.end(),
                                       [](const Target& to) { return to.stride == 1; });
  const Layout layout(job, are_columns);
  std::vector<Holes> found(static_cast<size_t>(layout.count));
  const bool holds =
      place_all(job, layout, [&](Placer& p, int64_t k, int64_t begin, int64_t end) {
        Filler filler(p, otherwise, targets);
        const bool is_right =
            p.place(begin, end, [&](const Tile& tile) { filler.write(tile); });
        found[static_cast<size_t>(k)] = std::move(filler.holes);
        return is_right;
      });
  holes.columns.assign(targets.size(), 0.0);
  for (const Holes& some : found) {
    if (holes.n_empty == 0) holes.first_empty = some.first_empty;
    holes.n_empty += some.n_empty;
    for (size_t j = 0; j < targets.size() && j < some.columns.size(); ++j)
      holes.columns[j] += some.columns[j];
  }
  return holds;
}

bool divergence(const Placing& job, Sums& sums) {
  return sum_all(job, &PlaceIsa::diverge, sums);
}

bool pearson(const Placing& job, Sums& sums) {
  return sum_all(job, &PlaceIsa::scatter, sums);
}

std::vector<double> square_sums(const Squares& job) {
  const auto size = static_cast<size_t>(job.n_lines * job.n_cols);
  // Each thread has sums of its own, which must not be larger than what it reads.
  const auto most = std::max<int64_t>(kCellsPerThread, 4 * static_cast<int64_t>(size));
  const int threads = useful_threads(job.n_threads, job.n_rows * job.n_cols, most);
  std::vector<std::vector<double>> found(static_cast<size_t>(threads));
  run_on_threads(threads, [&](int t) {
    auto& sums = found[static_cast<size_t>(t)];
    sums.assign(2 * size, 0.0);
    add_squares(job, job.n_rows * t / threads, job.n_rows * (t + 1) / threads,
                sums.data(), sums.data() + size);
  });
  std::vector<double>& total = found[0];
  for (size_t t = 1; t < found.size(); ++t)
    for (size_t k = 0; k < size; ++k) {
      two_sum(found[t][k], total[k], total[size + k]);
      total[size + k] += found[t][size + k];
    }
  for (size_t k = 0; k < size; ++k) total[k] += total[size + k];
  total.resize(size);
  return total;
}

}  // namespace a1gm
