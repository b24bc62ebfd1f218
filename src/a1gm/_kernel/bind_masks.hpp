// Masks of bits and what is found with them, between Python and the kernel.
#pragma once

#include <optional>
#include <string>

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

// Observed pairs, row by row, with their sums and weights.
struct Pairs {
  Pairs(Given given_ptr, Given given_cols, Given given_sums, Given given_weights,
        int64_t n_cols)
      : ptr(given_ptr, "ptr"), cols(given_cols, "cols"), sums(given_sums, "sums") {
    if (!given_weights.is_none()) weights.emplace(given_weights, "weights");
    require(ptr.rows() >= 1, "ptr must begin with 0");
    check_lines(ptr.rows() - 1, n_cols);
    require(sums.rows() == cols.rows(), "sums must be one number per pair");
    require(!weights || weights->rows() == cols.rows(),
            "weights must be one number per pair");
    view = {ptr.rows() - 1, n_cols,      ptr.data(),
            cols.data(),    sums.data(), weights ? weights->data() : nullptr};
  }
  void check() const { check_pairs(view, n_pairs()); }
  int64_t n_pairs() const { return cols.rows(); }
  Vector<int64_t> ptr;
  Vector<int32_t> cols;
  Vector<double> sums;
  std::optional<Vector<double>> weights;
  PairView view;
};

// A number per row and one per column of the core.
template <typename T>
struct CoreNumbers {
  CoreNumbers(const Reduced& r, Given rows, Given cols, const std::string& row_name,
              const std::string& col_name)
      : of_rows(rows, row_name.c_str()), of_cols(cols, col_name.c_str()) {
    require(of_rows.rows() == static_cast<int64_t>(r.core_rows.size()),
            (row_name + " must be one number per row of the core").c_str());
    require(of_cols.rows() == static_cast<int64_t>(r.core_cols.size()),
            (col_name + " must be one number per column of the core").c_str());
  }
  Vector<T> of_rows, of_cols;
};

// Memory for the pattern of each row, which `array` will hold.
inline IdMemory id_memory(size_t n_rows, nb::object& array) {
  return [&array, n_rows](int width) -> void* {
    Locked locked;
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
