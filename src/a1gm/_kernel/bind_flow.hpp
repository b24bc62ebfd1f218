// The network of a core, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

#include "reduce/peel.hpp"

namespace a1gm {

// Row factors that fit the rows exactly, and the column sums they give.
nanobind::tuple sweep_of(const Reduced& core, nanobind::handle given_h);

// Newton's method with the currents of single cells; None where it fills in too much.
nanobind::object settle_sparse_of(const Reduced& core, nanobind::handle w,
                                  nanobind::handle h, nanobind::handle ptr,
                                  nanobind::handle cols, nanobind::handle sums,
                                  double tol, int64_t max_steps, int64_t most_work);

void bind_flow(nanobind::module_& m);

}  // namespace a1gm
