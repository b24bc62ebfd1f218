// Masks of bits and what is found with them, between Python and the kernel.
#pragma once

#include "bind_arrays.hpp"
#include "pass/observe.hpp"
#include "pass/patterns.hpp"
#include "scale/solve.hpp"

namespace a1gm {

using Given = nb::handle;  // an array of the caller that nobody has looked at yet

// Checked bits of as many columns as somebody else says.
inline BitMask mask_of(Matrix<uint64_t>& bits, int64_t n_cols) {
  check_bit_shape(bits.rows(), n_cols, bits.cols());
  const BitMask mask{bits.data(), bits.rows(), n_cols, bits.cols()};
  check_bits(mask);
  return mask;
}

// Bits and margins of a mask, as most functions take them.
struct Margins {
  Margins(Given given_bits, Given given_row_sums, Given given_col_sums)
      : bits(given_bits, "bits"),
        row_sums(given_row_sums, "row_sums"),
        col_sums(given_col_sums, "col_sums"),
        mask(mask_of(bits, col_sums.rows())) {
    require(row_sums.rows() == mask.n, "row_sums must be one number per row");
    R = row_sums.data();
    C = col_sums.data();
  }
  Matrix<uint64_t> bits;
  Vector<double> row_sums, col_sums;
  BitMask mask;
  const double *R, *C;
};

// Memory for the pattern of each row, which `array` will hold.
inline IdMemory id_memory(size_t n_rows, nb::object& array) {
  return [&array, n_rows](int width) -> void* {
    nb::gil_scoped_acquire acquire;
    return with_id_type(width, [&](auto id) -> void* {
      auto [ids, made] = new_array<decltype(id)>({n_rows});
      array = made;
      return ids;
    });
  };
}

inline nb::object wide_tuple(Observation& o, size_t n_rows) {
  const auto words = static_cast<size_t>(o.words);
  return nb::make_tuple(to_numpy(std::move(o.bits), {n_rows, words}),
                        to_numpy(std::move(o.positive), {n_rows, words}),
                        to_numpy(std::move(o.col_sums)), o.has_zero);
}

inline nb::tuple fault_tuple(const Fault& f) {
  return nb::make_tuple(f.count, f.row, f.col, f.value);
}

// Calls `solve` without the interpreter's lock; None when it declines.
template <typename F>
nb::object solved(F&& solve) {
  Plain plain;
  bool found = false;
  {
    Unlocked unlocked;
    found = solve(plain);
  }
  if (!found) return nb::none();
  return nb::make_tuple(to_numpy(std::move(plain.line_factor)),
                        to_numpy(std::move(plain.line_scale)),
                        to_numpy(std::move(plain.col_factor)), plain.n_iter,
                        plain.newton, plain.gap, plain.step);
}

}  // namespace a1gm
