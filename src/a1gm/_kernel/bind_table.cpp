// Tables as Python gives them: a list of (array, mask, validity, bit offset, group).
#include "bind_arrays.hpp"

#include "bind_arrow.hpp"

namespace a1gm {
namespace {

constexpr int64_t kMostGroups = 1 << 16;
constexpr int64_t kMostApart = 1 << 20;  // columns that are parts of their own

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
  throw std::invalid_argument("a part must be of float64, float32, integers or bools");
}

}  // namespace

Table::Table(nb::handle entries, int64_t n_groups) {
  require(n_groups >= 1 && n_groups <= kMostGroups, "n_groups must be 1 to 65,536");
  if (!take_columns(entries)) {
    if (!nb::isinstance<nb::list>(entries))
      throw nb::type_error("a table must be a list of parts");
    parts.reserve(nb::len(entries));
    for (const nb::handle entry : nb::borrow<nb::list>(entries)) add(entry, n_groups);
  }
  require(n_rows >= 0, "at least one part is needed");
  require(n_rows <= kMostCells / std::max(n_cols, n_groups),
          "a table must have fewer than 2^60 cells");
}

bool Table::take_columns(nb::handle given) {
  if (!nb::isinstance<Columns>(given)) return false;
  const Columns& columns = nb::cast<const Columns&>(given);
  kept_columns_ = nb::borrow(given);
  parts = columns.parts;
  n_rows = columns.n_rows;
  n_cols = static_cast<int64_t>(parts.size());
  return true;
}

void Table::add(nb::handle entry, int64_t n_groups) {
  require(nb::isinstance<nb::tuple>(entry) && nb::len(entry) == 5,
          "a part must be a tuple of array, mask, validity, bit offset and group");
  const auto fields = nb::borrow<nb::tuple>(entry);
  AnyArray array;
  require(nb::try_cast(fields[0], array, false) && array.ndim() == 2,
          "a part must be a two-dimensional array");
  Part part;
  part.data = static_cast<const char*>(array.data());
  part.dtype = dtype_of(array);
  part.n_cols = static_cast<int64_t>(array.shape(1));
  const auto item = static_cast<int64_t>(array.itemsize());
  part.row_stride = array.stride(0) * item;
  part.col_stride = array.stride(1) * item;
  const auto rows = static_cast<int64_t>(array.shape(0));
  require(n_rows < 0 || rows == n_rows, "parts must have the same number of rows");
  n_rows = rows;
  require(part.n_cols >= 1, "a part must have at least one column");
  require(part.n_cols <= kMostCells - n_cols, "a table must have fewer than 2^60 cells");
  n_cols += part.n_cols;
  if (!fields[1].is_none()) add_mask(fields[1], array, part);
  if (!fields[2].is_none()) add_validity(fields[2], fields[3], part);
  require(nb::try_cast(fields[4], part.sum_group) && part.sum_group >= 0 &&
              part.sum_group < n_groups,
          "a part's group must be 0 or more and below n_groups");
  kept_.push_back(std::move(array));
  add_columns(part);
}

// Columns of a matrix that is stored column by column are parts of their own: those
// are gathered four at a time.
void Table::add_columns(Part part) {
  const bool by_columns = part.dtype == Dtype::f64 && part.row_stride == 8 &&
                          part.col_stride != 8 && part.mask == nullptr &&
                          part.n_cols <= kMostApart;
  const int64_t n = by_columns ? part.n_cols : 1;
  if (by_columns) part.n_cols = 1;
  for (int64_t j = 0; j < n; ++j, part.data += part.col_stride) parts.push_back(part);
}

void Table::add_mask(nb::handle given, const AnyArray& array, Part& part) {
  AnyArray mask;
  require(nb::try_cast(given, mask, false) && mask.ndim() == 2 && mask.itemsize() == 1 &&
              mask.shape(0) == array.shape(0) && mask.shape(1) == array.shape(1),
          "a mask must be bool and of its part's shape");
  part.mask = static_cast<const uint8_t*>(mask.data());
  part.mask_row_stride = mask.stride(0);
  part.mask_col_stride = mask.stride(1);
  kept_.push_back(std::move(mask));
}

void Table::add_validity(nb::handle given, nb::handle offset, Part& part) {
  AnyArray bitmap;
  require(nb::try_cast(given, bitmap, false) && bitmap.ndim() == 1 &&
              bitmap.dtype() == nb::dtype<uint8_t>() &&
              (bitmap.shape(0) <= 1 || bitmap.stride(0) == 1),
          "a validity bitmap must be a contiguous array of uint8");
  require(part.n_cols == 1, "a validity bitmap belongs to a part of one column");
  const auto n_bits = static_cast<int64_t>(bitmap.shape(0)) * 8;
  require(nb::try_cast(offset, part.bit_offset) && part.bit_offset >= 0 &&
              part.bit_offset <= n_bits && n_rows <= n_bits - part.bit_offset,
          "a validity bitmap must have a bit for every row");
  part.validity = static_cast<const uint8_t*>(bitmap.data());
  kept_.push_back(std::move(bitmap));
}

}  // namespace a1gm
