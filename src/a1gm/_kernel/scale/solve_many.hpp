// Many small tables, each from its cells to its factors, on threads.
#pragma once

#include <cstdint>
#include <vector>

#include "read/table_part.hpp"
#include "scale/solve.hpp"

namespace a1gm {

struct Cells {  // where a table lies
  const std::vector<Part>* parts;
  int64_t n_rows;
};

struct SmallFit {
  bool settled = false;  // the rest is there only if it is
  int64_t n_cols = 0, words = 0;
  std::vector<double> row_factor;
  std::vector<char> ids;  // pattern of each row, in numbers of `id_width` bytes
  int id_width = 1;
  std::vector<uint64_t> keys;
  std::vector<int64_t> counts;
  std::vector<double> sums;
  Plain plain;
};

struct ManyOptions {
  int64_t table_cells;  // a smaller pattern table is always kept
  double tol;
  int64_t max_sweeps, max_steps;
  double least;  // a total below needs another scale
  int n_threads;
};

// Observes and solves each table as `observe` and `solve_plain` do on one thread. Left
// to others: tables with bad or negative cells, what `solve_plain` declines, more
// patterns than a table of them holds, and totals that are too small or overflow.
std::vector<SmallFit> solve_many(const std::vector<Cells>& tables,
                                 const ManyOptions& options);

}  // namespace a1gm
