// Functions that place rows by column factors, for the module that bind.cpp makes.
#pragma once

#include <nanobind/nanobind.h>

namespace a1gm {

void bind_place(nanobind::module_& m);

}  // namespace a1gm
