#pragma once

#include <nanobind/nanobind.h>

namespace a1gm {

void bind_sums(nanobind::module_& m);

}  // namespace a1gm
