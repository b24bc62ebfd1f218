// The elimination of `cell_error.hpp` for cores that fill in little: bands, trees.
//
// Rows and columns are the nodes of one graph, whose edges are the observed cells. Each
// has the fitted cell as conductance and the data's cell minus the fitted one as
// current, so that nothing is a difference of sums. Rounding is followed edge by edge.
#pragma once

#include <cstdint>
#include <optional>

#include "reduce/peel.hpp"
#include "scale/cell_error.hpp"

namespace a1gm {

// Newton's method until the cells are settled and the margins within tol. `cells` are
// those of the whole table. Nothing when the elimination would take more than
// `most_work` visits of an edge, which is known before any number is computed.
std::optional<Edges> settle_by_sparse_edges(const Reduced& core, const PairView& cells,
                                            double tol, int64_t max_steps,
                                            int64_t most_work, double* w, double* h);

}  // namespace a1gm
