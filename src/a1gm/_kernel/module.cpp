// The Python face of the compiled kernel: `a1gm._kernel._native`. Every function has
// a NumPy twin of the same name and signature in reference.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "lines.hpp"
#include "nested.hpp"
#include "observe.hpp"
#include "peel.hpp"
#include "solve.hpp"

namespace nb = nanobind;
using namespace a1gm;

namespace {

template <typename T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

// Hands a vector's memory to NumPy without copying it.
template <typename T>
nb::object to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept {
    delete static_cast<std::vector<T>*>(p);
  });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape, owner));
}

template <typename T>
nb::object to_numpy(std::vector<T>&& values) {
  const size_t n = values.size();
  return to_numpy(std::move(values), {n});
}

// Uninitialised memory: a zero fill would be a second pass over it. Huge
// pages for the long ones: page faults would cost as much as the pass itself.
template <typename T>
std::pair<T*, nb::object> new_array(std::initializer_list<size_t> shape) {
  size_t n = 1;
  for (const size_t s : shape) n *= s;
  const size_t bytes = (n > 0 ? n : 1) * sizeof(T);
  void* data = nullptr;
#if defined(__linux__)
  constexpr size_t kHuge = size_t{1} << 21;
  if (bytes >= 2 * kHuge) {
    data = std::aligned_alloc(kHuge, (bytes + kHuge - 1) / kHuge * kHuge);
    if (data != nullptr) madvise(data, bytes, MADV_HUGEPAGE);
  }
#endif
  if (data == nullptr) data = std::malloc(bytes);
  if (data == nullptr) throw std::bad_alloc();
  nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
  T* values = static_cast<T*>(data);
  return {values, nb::cast(nb::ndarray<nb::numpy, T>(values, shape, owner))};
}

Dtype dtype_of(const AnyArray& array) {
  const nb::dlpack::dtype d = array.dtype();
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(d.code);
  if (code == Code::Float && d.bits == 64) return Dtype::f64;
  if (code == Code::Float && d.bits == 32) return Dtype::f32;
  if (code == Code::Bool) return Dtype::u8;
  const bool is_signed = code == Code::Int;
  if (is_signed || code == Code::UInt) switch (d.bits) {
      case 64: return is_signed ? Dtype::i64 : Dtype::u64;
      case 32: return is_signed ? Dtype::i32 : Dtype::u32;
      case 16: return is_signed ? Dtype::i16 : Dtype::u16;
      case 8: return is_signed ? Dtype::i8 : Dtype::u8;
      default: break;
    }
  throw std::invalid_argument("the kernel reads float64, float32, integers and bools");
}

Part part_of(const nb::tuple& entry) {
  const auto array = nb::cast<AnyArray>(entry[0]);
  if (array.ndim() != 2) throw std::invalid_argument("a part must be 2-D");
  Part part;
  part.data = static_cast<const char*>(array.data());
  part.dtype = dtype_of(array);
  part.n_cols = static_cast<int64_t>(array.shape(1));
  const int64_t item = array.itemsize();
  part.row_stride = array.stride(0) * item;
  part.col_stride = array.stride(1) * item;
  if (!entry[1].is_none()) {
    const auto mask = nb::cast<AnyArray>(entry[1]);
    if (mask.ndim() != 2 || mask.itemsize() != 1 || mask.shape(0) != array.shape(0) ||
        mask.shape(1) != array.shape(1))
      throw std::invalid_argument("a mask must be bool and of its part's shape");
    part.mask = static_cast<const uint8_t*>(mask.data());
    part.mask_row_stride = mask.stride(0);
    part.mask_col_stride = mask.stride(1);
  }
  if (!entry[2].is_none()) {
    const auto bitmap = nb::cast<In<uint8_t>>(entry[2]);
    part.validity = bitmap.data();
    part.bit_offset = nb::cast<int64_t>(entry[3]);
    const int64_t need = part.bit_offset + static_cast<int64_t>(array.shape(0));
    if (part.n_cols != 1 || need > static_cast<int64_t>(bitmap.shape(0)) * 8)
      throw std::invalid_argument("a validity bitmap belongs to one whole column");
  }
  part.sum_group = nb::cast<int>(entry[4]);
  return part;
}

nb::tuple fault_tuple(const Fault& f) {
  return nb::make_tuple(f.count, f.row, f.col, f.value);
}

// The parts of a table and its number of rows.
std::pair<std::vector<Part>, int64_t> parts_of(const nb::list& entries,
                                               int64_t n_groups) {
  std::vector<Part> parts;
  int64_t n_rows = -1;
  for (const nb::handle entry : entries) {
    const auto tuple = nb::cast<nb::tuple>(entry);
    const auto rows = static_cast<int64_t>(nb::cast<AnyArray>(tuple[0]).shape(0));
    if (n_rows >= 0 && rows != n_rows)
      throw std::invalid_argument("parts must have the same number of rows");
    n_rows = rows;
    parts.push_back(part_of(tuple));
    if (parts.back().sum_group < 0 || parts.back().sum_group >= n_groups)
      throw std::invalid_argument("a part's group must be below n_groups");
  }
  if (n_rows < 0) throw std::invalid_argument("at least one part is needed");
  return {std::move(parts), n_rows};
}

nb::tuple observe_parts(const nb::list& entries, int64_t n_groups, int n_threads,
                        double scale, int64_t table_cells, bool keep_table) {
  const auto [parts, n_rows] = parts_of(entries, n_groups);
  Options options;
  options.n_threads = n_threads;
  options.scale = scale;
  options.table_cells = table_cells;
  options.keep_table = keep_table;
  const auto n = static_cast<size_t>(n_rows);
  auto [row_sums, row_sums_array] =
      new_array<double>({static_cast<size_t>(n_groups), n});
  nb::object ids_array = nb::none();
  const IdMemory new_ids = [&ids_array, n](int width) -> void* {
    nb::gil_scoped_acquire acquire;
    auto keep = [&ids_array](auto made) -> void* {
      ids_array = made.second;
      return made.first;
    };
    if (width == 1) return keep(new_array<uint8_t>({n}));
    if (width == 2) return keep(new_array<uint16_t>({n}));
    return keep(new_array<int32_t>({n}));
  };
  Observation o;
  {
    nb::gil_scoped_release release;
    o = observe(parts, n_rows, n_groups, row_sums, new_ids, options);
  }
  const auto m = static_cast<size_t>(o.n_cols), words = static_cast<size_t>(o.words);
  const auto k = static_cast<size_t>(o.n_patterns);
  nb::object statistics =
      o.wide ? nb::object(nb::make_tuple(to_numpy(std::move(o.bits), {n, words}),
                                         to_numpy(std::move(o.positive), {n, words}),
                                         to_numpy(std::move(o.col_sums)), o.has_zero))
             : nb::object(nb::make_tuple(ids_array,
                                         to_numpy(std::move(o.keys), {k, words}),
                                         to_numpy(std::move(o.counts)),
                                         to_numpy(std::move(o.sums), {k, m})));
  return nb::make_tuple(row_sums_array, o.wide, statistics, o.total, o.overflow,
                        fault_tuple(o.negative), fault_tuple(o.infinite));
}

template <typename Id>
void expand(nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> row_sums,
            In<Id> ids, In<double> scale, int n_threads) {
  if (ids.shape(0) != row_sums.shape(0))
    throw std::invalid_argument("one pattern number per row");
  nb::gil_scoped_release release;
  expand_rows(row_sums.data(), ids.data(), scale.data(),
              static_cast<int64_t>(ids.shape(0)), n_threads);
}

std::optional<Reduced> reduce_mask(In2<uint64_t> bits, In<double> row_sums,
                                   In<double> col_sums, bool rows_distinct,
                                   bool force) {
  Reduced out;
  nb::gil_scoped_release release;
  if (!merge_twins(bits.data(), static_cast<int64_t>(bits.shape(0)),
                   static_cast<int64_t>(col_sums.shape(0)),
                   static_cast<int64_t>(bits.shape(1)), row_sums.data(),
                   col_sums.data(), rows_distinct, force, out))
    return std::nullopt;
  return out;
}

Reduced reduce_table(In2<uint64_t> keys, In2<double> sums) {
  nb::gil_scoped_release release;
  return peel_pairs(pairs_of_table(keys.data(), sums.data(),
                                   static_cast<int64_t>(sums.shape(0)),
                                   static_cast<int64_t>(sums.shape(1)),
                                   static_cast<int64_t>(keys.shape(1))));
}

nb::object solve_nested(In2<uint64_t> bits, const nb::list& entries,
                        In<double> col_sums, double scale, int n_threads) {
  const auto [parts, n_rows] = parts_of(entries, 1);
  const auto n = static_cast<int64_t>(bits.shape(0));
  const auto m = static_cast<int64_t>(col_sums.shape(0));
  if (n != n_rows) throw std::invalid_argument("one line of bits per row");
  Nesting nesting;
  std::vector<double> h(static_cast<size_t>(m)), reach;
  bool nested = false;
  {
    nb::gil_scoped_release release;
    nested = find_nesting(bits.data(), n, m, static_cast<int64_t>(bits.shape(1)), nesting);
    if (nested) {
      std::vector<double> before(static_cast<size_t>(nesting.n_steps));
      sum_before_steps(parts, n, nesting, scale, n_threads, before.data());
      nested_factors(nesting, before.data(), col_sums.data(), m, h.data());
      const std::vector<double> steps = reach_of_steps(nesting, h.data());
      for (const int32_t depth : nesting.depth) reach.push_back(steps[depth]);
    }
  }
  if (!nested) return nb::none();
  return nb::make_tuple(to_numpy(std::move(h)), to_numpy(std::move(reach)));
}

nb::object tuple_of(Plain&& plain) {
  return nb::make_tuple(to_numpy(std::move(plain.line_factor)),
                        to_numpy(std::move(plain.line_scale)),
                        to_numpy(std::move(plain.col_factor)), plain.n_iter, plain.gap);
}

nb::object solve_table(In2<uint64_t> keys, In2<double> sums, double tol,
                       int64_t max_sweeps) {
  Plain plain;
  bool solved = false;
  {
    nb::gil_scoped_release release;
    solved = solve_plain(keys.data(), sums.data(), static_cast<int64_t>(sums.shape(0)),
                         static_cast<int64_t>(sums.shape(1)),
                         static_cast<int64_t>(keys.shape(1)), tol, max_sweeps, plain);
  }
  return solved ? tuple_of(std::move(plain)) : nb::none();
}

nb::object solve_mask(In2<uint64_t> bits, In<double> row_sums, In<double> col_sums,
                      double tol, int64_t max_sweeps, int n_threads) {
  if (row_sums.shape(0) != bits.shape(0))
    throw std::invalid_argument("one sum per row");
  Plain plain;
  bool solved = false;
  {
    nb::gil_scoped_release release;
    const BitMask mask{bits.data(), static_cast<int64_t>(bits.shape(0)),
                       static_cast<int64_t>(col_sums.shape(0)),
                       static_cast<int64_t>(bits.shape(1))};
    solved = solve_wide(mask, row_sums.data(), col_sums.data(), tol, max_sweeps,
                        n_threads, plain);
  }
  return solved ? tuple_of(std::move(plain)) : nb::none();
}

Reduced reduce_pairs(In<int64_t> ptr, In<int32_t> cols, In<double> sums,
                     std::optional<In<double>> weights, int64_t n_cols) {
  nb::gil_scoped_release release;
  const PairView pairs{static_cast<int64_t>(ptr.shape(0)) - 1,
                       n_cols,
                       ptr.data(),
                       cols.data(),
                       sums.data(),
                       weights ? weights->data() : nullptr};
  return peel_pairs(pairs);
}

nb::tuple scale_core(const Reduced& r, In<double> h_start, double tol,
                     int64_t max_sweeps, int64_t patience, int n_threads) {
  auto [w, w_array] = new_array<double>({r.R.size()});
  auto [h, h_array] = new_array<double>({r.C.size()});
  std::copy_n(h_start.data(), r.C.size(), h);
  // Cells per column spread the sums: a start that is one sweep nearer.
  if (sweeps_by_rows(r.rows))
    for (size_t j = 0; j < r.col_degree.size(); ++j) h[j] /= r.col_degree[j];
  Sweeps s;
  {
    nb::gil_scoped_release release;
    s = sweeps_by_rows(r.rows)
            ? scale_by_rows(r.rows, r.R.data(), r.C.data(), w, h, tol, max_sweeps,
                            patience, n_threads)
            : scale(r.rows, r.cols, r.R.data(), r.C.data(), w, h, tol, max_sweeps,
                    patience);
  }
  return nb::make_tuple(w_array, h_array, s.n, s.gap, s.done);
}

nb::tuple replay_log(const Reduced& r, In<double> core_w, In<double> core_h) {
  const auto n = static_cast<size_t>(r.n_rows), m = static_cast<size_t>(r.n_cols);
  auto [w, w_array] = new_array<double>({n});
  auto [h, h_array] = new_array<double>({m});
  auto [row_label, row_label_array] = new_array<int32_t>({n});
  auto [col_label, col_label_array] = new_array<int32_t>({m});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::fill_n(w, n, nan);
  std::fill_n(h, m, nan);
  for (size_t k = 0; k < r.core_rows.size(); ++k) w[r.core_rows[k]] = core_w.data()[k];
  for (size_t k = 0; k < r.core_cols.size(); ++k) h[r.core_cols[k]] = core_h.data()[k];
  replay(r, w, h, row_label, col_label);
  return nb::make_tuple(w_array, h_array, row_label_array, col_label_array);
}

template <typename T>
nb::object copy_of(const std::vector<T>& values) {
  return to_numpy(std::vector<T>(values));
}

nb::tuple core_mask(const Reduced& r) {
  return nb::make_tuple(copy_of(r.rows.ptr), copy_of(r.rows.index),
                        r.rows.lists_missing,
                        r.rows.weight.empty() ? nb::none() : copy_of(r.rows.weight));
}

}  // namespace

NB_MODULE(_native, m) {
  m.def("observe", &observe_parts, nb::arg("parts"), nb::arg("n_groups"),
        nb::arg("n_threads"), nb::arg("scale"), nb::arg("table_cells"),
        nb::arg("keep_table"));
  m.def("expand_rows", &expand<uint8_t>, nb::arg("row_sums").noconvert(),
        nb::arg("pattern_id").noconvert(), nb::arg("scale"), nb::arg("n_threads"));
  m.def("expand_rows", &expand<uint16_t>, nb::arg("row_sums").noconvert(),
        nb::arg("pattern_id").noconvert(), nb::arg("scale"), nb::arg("n_threads"));
  m.def("expand_rows", &expand<int32_t>, nb::arg("row_sums").noconvert(),
        nb::arg("pattern_id").noconvert(), nb::arg("scale"), nb::arg("n_threads"));
  m.def("solve_nested", &solve_nested, nb::arg("bits"), nb::arg("parts"),
        nb::arg("col_sums"), nb::arg("scale"), nb::arg("n_threads"));
  m.def("solve_plain", &solve_table, nb::arg("keys"), nb::arg("sums"), nb::arg("tol"),
        nb::arg("max_sweeps"));
  m.def("solve_wide", &solve_mask, nb::arg("bits"), nb::arg("row_sums"),
        nb::arg("col_sums"), nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("n_threads"));
  m.def("reduce_mask", &reduce_mask, nb::arg("bits"), nb::arg("row_sums"),
        nb::arg("col_sums"), nb::arg("rows_distinct"), nb::arg("force"));
  m.def("reduce_table", &reduce_table, nb::arg("keys"), nb::arg("sums"));
  m.def("reduce_pairs", &reduce_pairs, nb::arg("ptr"), nb::arg("cols"),
        nb::arg("sums"), nb::arg("weights").none(), nb::arg("n_cols"));
  nb::class_<Reduced>(m, "Reduced")
      .def_prop_ro("core_shape",
                   [](const Reduced& r) {
                     return nb::make_tuple(r.core_rows.size(), r.core_cols.size());
                   })
      .def_prop_ro("n_roots",
                   [](const Reduced& r) {
                     int64_t n = 0;
                     for (const LogEntry& e : r.log) n += e.step == Step::root;
                     return n;
                   })
      .def_prop_ro("n_core_blocks", [](const Reduced& r) { return r.n_core_blocks; })
      .def_prop_ro("n_listed", [](const Reduced& r) { return r.rows.index.size(); })
      .def_prop_ro("core_row_sums", [](const Reduced& r) { return copy_of(r.R); })
      .def_prop_ro("core_col_sums", [](const Reduced& r) { return copy_of(r.C); })
      .def_prop_ro("core_row_block", [](const Reduced& r) { return copy_of(r.row_label); })
      .def_prop_ro("core_col_block", [](const Reduced& r) { return copy_of(r.col_label); })
      .def_prop_ro("core_mask", &core_mask)
      .def("scale", &scale_core, nb::arg("h"), nb::arg("tol"), nb::arg("max_sweeps"),
           nb::arg("patience"), nb::arg("n_threads") = 1)
      .def("replay", &replay_log, nb::arg("core_w"), nb::arg("core_h"));
}
