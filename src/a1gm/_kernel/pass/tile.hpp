// The innermost loops: a tile of rows is scanned, then added to its patterns' sums.
#pragma once

#include <cstdint>
#include <vector>

namespace a1gm {

constexpr int64_t kNarrow = 32;  // columns of a narrow tile, whose sums fit registers
constexpr int64_t kPadding = 3;  // a stretch's last vector may end past its columns

// What a scan does. It is asked for one of these, and says which of them it has done:
// keys, when it can do no more.
enum class Scan {
  keys,      // observed bits and sum of each row
  columns,   // and the column sums of the tile; narrow tiles only
  added,     // keys, and every row is added to a run
};

// What a tile scan finds, the smallest cell and, when asked for, the bits of the
// positive cells included.
struct TileScan {
  uint64_t* keys;
  uint64_t* positive;  // may be null
  double* sums;
  double smallest = 0.0;
  Scan asked = Scan::keys, done = Scan::keys;
  double* columns = nullptr;  // where column sums go
  double* run = nullptr;      // where rows are added; long rows with `positive` only
};

// The open run of a pattern: its sums and how many rows are in it.
struct Run {
  double* sums;
  int64_t rows;
};

// A place of the small cache of patterns of one word.
struct KnownKey {
  uint64_t key = 0;
  int32_t id = -1;
};
constexpr uint64_t kKeyMix = 0x9e3779b97f4a7c15ULL;

// Where a key has its place in the cache: the upper bits of a product.
struct KeyPlace {
  uint64_t factor = kKeyMix;
  int shift = 0;
  uint64_t operator()(uint64_t key) const { return (key * factor) >> shift; }
};

// Where rows of narrow tables go as they are scanned: to the runs of their patterns.
struct RowSink {
  KnownKey* known;
  KeyPlace place;
  Run* runs;
  int32_t* ids;                // out: the pattern of each row
  std::vector<int32_t>& full;  // out: patterns whose run is due to be closed
  void* owner;
  // Numbers a key that is not among the known; may move the runs and the places.
  int32_t (*number)(void* owner, uint64_t key, RowSink& sink);
};

// The fastest versions that this processor runs, for cells of float64 or float32.
template <typename T>
struct Isa {
  // Scans rows of `cols` cells, at least one, `stride` apart.
  void (*scan)(const T* x, int64_t stride, int64_t rows, int64_t cols,
               int64_t words, TileScan& out);
  // Adds row i to acc[i]; accumulators are padded to whole vectors.
  void (*add)(const T* x, int64_t stride, int64_t rows, int64_t cols,
              double* const* acc);
  // Scans at most kNarrow columns and adds each row where it belongs, in one go; null
  // where that is not faster. For scans without `positive`.
  void (*scan_and_add)(const T* x, int64_t stride, int64_t rows, int64_t cols,
                       TileScan& out, RowSink& sink) = nullptr;
};

template <typename T>
Isa<T> choose_isa();

}  // namespace a1gm
