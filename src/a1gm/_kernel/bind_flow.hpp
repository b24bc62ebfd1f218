// The network of a core, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

#include "reduce/peel.hpp"

namespace a1gm {

// Row factors that fit the rows exactly, and the column sums they give.
nanobind::tuple sweep_of(const Reduced& core, nanobind::handle given_h);

void bind_flow(nanobind::module_& m);

}  // namespace a1gm
