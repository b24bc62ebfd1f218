// Frames as the C interface of Arrow hands them on: columns by address.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "read/arrow_abi.hpp"
#include "read/table_part.hpp"

namespace a1gm {

// The columns of a frame in one piece, in the memory of their owner.
class Columns {
 public:
  Columns() = default;
  Columns(const Columns&) = delete;
  ~Columns() {
    if (array.release != nullptr) array.release(&array);
  }
  ArrowArray array{};
  std::vector<Part> parts;
  int64_t n_rows = 0;
};

void bind_arrow(nanobind::module_& m);

}  // namespace a1gm
