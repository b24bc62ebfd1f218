// Tables as Python gives them, and frames by the C interface of Arrow: columns by address.
#include "bind.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

namespace a1gm {
namespace {

constexpr const char* kStream = "arrow_array_stream";
constexpr int64_t kWide = 16;  // columns per row from which a matrix is read by rows

// The types of numbers: as Arrow names them, as the kernel does, and as arrays do.
struct Kind {
  const char* format;
  Dtype dtype;
  nb::dlpack::dtype of_array;
};
const Kind kKinds[] = {
    {"g", Dtype::f64, nb::dtype<double>()},   {"f", Dtype::f32, nb::dtype<float>()},
    {"l", Dtype::i64, nb::dtype<int64_t>()},  {"i", Dtype::i32, nb::dtype<int32_t>()},
    {"s", Dtype::i16, nb::dtype<int16_t>()},  {"c", Dtype::i8, nb::dtype<int8_t>()},
    {"L", Dtype::u64, nb::dtype<uint64_t>()}, {"I", Dtype::u32, nb::dtype<uint32_t>()},
    {"S", Dtype::u16, nb::dtype<uint16_t>()}, {"C", Dtype::u8, nb::dtype<uint8_t>()},
    {"", Dtype::u8, nb::dtype<bool>()}};

// The first type for which this holds, or null.
template <typename F>
const Kind* find_kind(F&& holds) {
  const Kind* const found = std::find_if(std::begin(kKinds), std::end(kKinds), holds);
  return found == std::end(kKinds) ? nullptr : found;
}

// ----------------------------------------------------------------------------- reading
// Notes where the columns lie; false if some are not plain numbers.
bool find_columns(const ArrowSchema& schema, Columns& out) {
  const ArrowArray& table = out.array;
  if (schema.format == nullptr || std::strcmp(schema.format, "+s") != 0 ||
      table.n_children != schema.n_children || table.n_children == 0 || table.length <= 0 ||
      (table.n_buffers > 0 && table.buffers[0] != nullptr && table.null_count != 0))
    return false;
  out.n_rows = table.length;
  out.parts.reserve(static_cast<size_t>(table.n_children));
  for (int64_t j = 0; j < table.n_children; ++j) {
    const ArrowArray& column = *table.children[j];
    const ArrowSchema& type = *schema.children[j];
    const Kind* const kind = find_kind(
        [&](const Kind& k) { return std::strcmp(k.format, type.format) == 0; });
    const int64_t first = column.offset + table.offset;
    if (kind == nullptr || type.dictionary != nullptr || column.n_buffers != 2 ||
        column.buffers[1] == nullptr || column.length < table.offset + table.length)
      return false;
    Part part;
    const int64_t size = kind->of_array.bits / 8;
    part.data = static_cast<const char*>(column.buffers[1]) + first * size;
    part.dtype = kind->dtype;
    part.n_cols = 1;
    part.row_stride = part.col_stride = size;
    if (column.null_count != 0)
      part.validity = static_cast<const uint8_t*>(column.buffers[0]);
    part.bit_offset = part.validity == nullptr ? 0 : first;
    out.parts.push_back(part);
  }
  return true;
}

nb::object read_stream(nb::handle capsule) {
  auto* const stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule.ptr(), kStream));
  if (stream == nullptr) throw nb::python_error();
  if (stream->release == nullptr) return nb::none();  // it was read before
  Owned<ArrowSchema> schema;
  auto columns = std::make_unique<Columns>();
  if (stream->get_schema(stream, &schema) != 0) return nb::none();
  if (stream->get_next(stream, &columns->array) != 0 ||
      columns->array.release == nullptr || !find_columns(schema, *columns))
    return nb::none();
  Owned<ArrowArray> more;  // rows in several pieces
  if (stream->get_next(stream, &more) != 0 || more.release != nullptr) return nb::none();
  return nb::cast(columns.release(), nb::rv_policy::take_ownership);
}

// A column as the tuple that a list of parts would have.
nb::object part_of(nb::handle self, int64_t k) {
  const Columns& columns = nb::cast<const Columns&>(self);
  const auto n_parts = static_cast<int64_t>(columns.parts.size());
  if (k < 0) k += n_parts;
  if (k < 0 || k >= n_parts) throw nb::index_error();
  const Part& part = columns.parts[static_cast<size_t>(k)];
  nb::object validity = nb::none();
  if (part.validity != nullptr) {
    const auto n = static_cast<size_t>((part.bit_offset + columns.n_rows + 7) / 8);
    validity = nb::cast(nb::ndarray<nb::numpy, const uint8_t>(part.validity, {n}, self));
  }
  const Kind* const kind = find_kind([&](const Kind& k) { return k.dtype == part.dtype; });
  const size_t shape[] = {static_cast<size_t>(columns.n_rows), 1};
  nb::ndarray<nb::numpy, nb::ro> values(part.data, 2, shape, self, nullptr, kind->of_array);
  return nb::make_tuple(values, nb::none(), validity, part.bit_offset);
}

nb::tuple as_list(nb::handle self) {
  nb::list parts(self);
  return nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(&PyList_Type)),
                        nb::make_tuple(parts));
}

// ----------------------------------------------------------------------------- writing
// An array whose columns are given away; gone with the last struct that points to it.
struct Frame {
  ~Frame() {
    if (!nb::is_alive()) {
      owner.release();
      return;
    }
    Locked locked;  // the last reader may be a thread without it
    owner.reset();
  }
  nb::object owner;
  const double* data = nullptr;
  int64_t n_rows = 0, stride = 0;
  std::vector<std::string> names;
  bool is_read = false;
};

std::shared_ptr<Frame>& frame_of(ArrowArrayStream* stream) {
  return *static_cast<std::shared_ptr<Frame>*>(stream->private_data);
}

// Children of a struct and what they point to. A reader may keep one without the others.
template <typename T>
struct Children {
  explicit Children(std::shared_ptr<Frame> frame)
      : frame(std::move(frame)), list(this->frame->names.size()), buffers(2 * list.size() + 1) {
    for (T& child : list) pointers.push_back(&child);
  }
  const std::shared_ptr<Frame> frame;
  std::vector<T> list;
  std::vector<T*> pointers;
  std::vector<const void*> buffers;  // two of each child, and that of the struct: null
};

template <typename T>
void release(T* one) {
  for (int64_t j = 0; j < one->n_children; ++j)
    if (one->children[j]->release != nullptr) one->children[j]->release(one->children[j]);
  one->release = nullptr;
  delete static_cast<std::shared_ptr<Children<T>>*>(one->private_data);
}

// Gives the children to a struct. Each of them, and the struct, holds all.
template <typename T>
void give(const std::shared_ptr<Children<T>>& children, T* out) {
  out->n_children = static_cast<int64_t>(children->list.size());
  out->children = children->pointers.data();
  const auto hold = [&](T* one) {
    one->release = release<T>;
    one->private_data = new std::shared_ptr<Children<T>>(children);
  };
  hold(out);
  for (T* const child : children->pointers) hold(child);
}

int give_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  constexpr int64_t kNullable = 2;
  const auto children = std::make_shared<Children<ArrowSchema>>(frame_of(stream));
  *out = {};
  out->format = "+s";
  out->name = "";
  for (size_t j = 0; j < children->list.size(); ++j) {
    ArrowSchema& child = children->list[j];
    child.format = "g";
    child.name = children->frame->names[j].c_str();
    child.flags = kNullable;
  }
  give(children, out);
  return 0;
}

int give_rows(ArrowArrayStream* stream, ArrowArray* out) {
  Frame& frame = *frame_of(stream);
  *out = {};
  if (std::exchange(frame.is_read, true)) return 0;
  const auto children = std::make_shared<Children<ArrowArray>>(frame_of(stream));
  out->length = frame.n_rows;
  out->n_buffers = 1;
  out->buffers = &children->buffers.back();
  for (size_t j = 0; j < children->list.size(); ++j) {
    ArrowArray& child = children->list[j];
    child.length = frame.n_rows;
    child.n_buffers = 2;
    child.buffers = &children->buffers[2 * j];
    child.buffers[1] = frame.data + static_cast<int64_t>(j) * frame.stride;
  }
  give(children, out);
  return 0;
}

void drop_stream(ArrowArrayStream* stream) {
  delete &frame_of(stream);
  stream->release = nullptr;
}

void drop_capsule(PyObject* capsule) {
  auto* const stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kStream));
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

// A stream of one piece whose columns are those of an array, each contiguous; None where
// a name is no text that Arrow can hold.
nb::object write_stream(nb::handle values, const nb::list& names) {
  using Array = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
  const auto array = nb::cast<Array>(values, false);
  auto frame = std::make_shared<Frame>();
  frame->owner = nb::borrow(values);
  frame->data = array.data();
  frame->n_rows = rows_of(array);
  frame->stride = array.stride(1);
  for (const nb::handle name : names) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (text == nullptr) PyErr_Clear();
    if (text == nullptr || std::strlen(text) != static_cast<size_t>(size)) return nb::none();
    frame->names.emplace_back(text);
  }
  auto* const stream =
      new ArrowArrayStream{give_schema, give_rows,
                           [](ArrowArrayStream*) -> const char* { return nullptr; },
                           drop_stream, new std::shared_ptr<Frame>(frame)};
  PyObject* const capsule = PyCapsule_New(stream, kStream, drop_capsule);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

}  // namespace

Table::Table(nb::handle entries) {
  if (nb::isinstance<Columns>(entries)) {
    const Columns& columns = nb::cast<const Columns&>(entries);
    kept_columns_ = nb::borrow(entries);
    parts = columns.parts;
    n_rows = columns.n_rows;
    n_cols = static_cast<int64_t>(parts.size());
    return;
  }
  for (const nb::handle entry : nb::cast<nb::list>(entries)) add(nb::cast<nb::tuple>(entry));
}

void Table::add(nb::tuple fields) {
  auto array = nb::cast<AnyArray>(fields[0]);
  Part part;
  part.data = static_cast<const char*>(array.data());
  const Kind* const kind =
      find_kind([&](const Kind& k) { return k.of_array == array.dtype(); });
  if (kind == nullptr) throw nb::type_error("a part must be of numbers");
  part.dtype = kind->dtype;
  n_rows = static_cast<int64_t>(array.shape(0));
  part.n_cols = static_cast<int64_t>(array.shape(1));
  n_cols += part.n_cols;
  const auto item = static_cast<int64_t>(array.itemsize());
  part.row_stride = array.stride(0) * item;
  part.col_stride = array.stride(1) * item;
  kept_.push_back(std::move(array));
  if (!fields[1].is_none()) {
    auto mask = nb::cast<AnyArray>(fields[1]);
    part.mask = static_cast<const uint8_t*>(mask.data());
    part.mask_row_stride = mask.stride(0);
    part.mask_col_stride = mask.stride(1);
    kept_.push_back(std::move(mask));
  }
  if (!fields[2].is_none()) {
    auto bitmap = nb::cast<In<uint8_t, 1>>(fields[2]);
    part.validity = bitmap.data();
    part.bit_offset = nb::cast<int64_t>(fields[3]);
    kept_.emplace_back(bitmap);
  }
  // Columns of a matrix that is stored column by column are parts of their own, which are
  // placed column by column, unless there are many of few rows.
  const bool by_columns = part.dtype == Dtype::f64 && part.row_stride == 8 &&
                          part.col_stride != 8 && part.mask == nullptr &&
                          part.n_cols <= kWide * n_rows;
  const int64_t n = by_columns ? part.n_cols : 1;
  if (by_columns) part.n_cols = 1;
  for (int64_t j = 0; j < n; ++j, part.data += part.col_stride) parts.push_back(part);
}

void bind_table(nb::module_& m) {
  nb::class_<Columns>(m, "Columns")
      .def("__len__", [](const Columns& columns) { return columns.parts.size(); })
      .def("__getitem__", [](nb::handle self, int64_t k) { return part_of(self, k); })
      .def("__reduce__", [](nb::handle self) { return as_list(self); })
      .def_prop_ro("n_rows", [](const Columns& columns) { return columns.n_rows; })
      .def_prop_ro("are_float64", [](const Columns& columns) {
        return std::all_of(columns.parts.begin(), columns.parts.end(),
                           [](const Part& part) { return part.dtype == Dtype::f64; });
      });
  m.def("read_stream", &read_stream);
  m.def("write_stream", &write_stream);
}

}  // namespace a1gm
