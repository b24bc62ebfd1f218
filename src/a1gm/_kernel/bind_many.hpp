// The Python face of many small tables.
#pragma once

#include <nanobind/nanobind.h>

namespace a1gm {

void bind_many(nanobind::module_& m);

}  // namespace a1gm
