// Functions that read cell weights, for the module that bind.cpp makes.
#pragma once

#include <nanobind/nanobind.h>

namespace a1gm {

void bind_weights(nanobind::module_& m);

}  // namespace a1gm
