#include "bind_arrow.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "bind_arrays.hpp"

namespace a1gm {
namespace {

constexpr const char* kStream = "arrow_array_stream";

// ----------------------------------------------------------------------------- reading
struct Kind {
  const char* format;
  Dtype dtype;
  int64_t size;
};
constexpr Kind kKinds[] = {{"g", Dtype::f64, 8}, {"f", Dtype::f32, 4}, {"l", Dtype::i64, 8},
                           {"i", Dtype::i32, 4}, {"s", Dtype::i16, 2}, {"c", Dtype::i8, 1},
                           {"L", Dtype::u64, 8}, {"I", Dtype::u32, 4}, {"S", Dtype::u16, 2},
                           {"C", Dtype::u8, 1}};

const Kind* kind_of(const ArrowSchema& column) {
  if (column.dictionary != nullptr || column.format == nullptr) return nullptr;
  for (const Kind& kind : kKinds)
    if (std::strcmp(kind.format, column.format) == 0) return &kind;
  return nullptr;
}

// Released when it goes out of scope, whatever was found.
template <typename T>
struct Owned : T {
  Owned() : T{} {}
  ~Owned() {
    if (this->release != nullptr) this->release(this);
  }
};

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
    const Kind* const kind = kind_of(*schema.children[j]);
    const int64_t first = column.offset + table.offset;
    if (kind == nullptr || column.n_buffers != 2 || column.buffers[1] == nullptr ||
        column.length < table.offset + table.length)
      return false;
    Part part;
    part.data = static_cast<const char*>(column.buffers[1]) + first * kind->size;
    part.dtype = kind->dtype;
    part.n_cols = 1;
    part.row_stride = part.col_stride = kind->size;
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
  require(stream->release != nullptr, "the stream was read before");
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

template <typename T>
nb::object view(const Part& part, int64_t n_rows, nb::handle owner) {
  const size_t n = static_cast<size_t>(n_rows);
  return nb::cast(nb::ndarray<nb::numpy, const T>(part.data, {n, 1}, owner));
}

nb::object values_of(const Part& part, int64_t n, nb::handle owner) {
  switch (part.dtype) {
    case Dtype::f64: return view<double>(part, n, owner);
    case Dtype::f32: return view<float>(part, n, owner);
    case Dtype::i64: return view<int64_t>(part, n, owner);
    case Dtype::i32: return view<int32_t>(part, n, owner);
    case Dtype::i16: return view<int16_t>(part, n, owner);
    case Dtype::i8: return view<int8_t>(part, n, owner);
    case Dtype::u64: return view<uint64_t>(part, n, owner);
    case Dtype::u32: return view<uint32_t>(part, n, owner);
    case Dtype::u16: return view<uint16_t>(part, n, owner);
    default: return view<uint8_t>(part, n, owner);
  }
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
  return nb::make_tuple(values_of(part, columns.n_rows, self), nb::none(), validity,
                        part.bit_offset, 0);
}

bool is_single(const Columns& columns, Dtype dtype) {
  for (const Part& part : columns.parts)
    if (part.dtype != dtype) return false;
  return true;
}

nb::tuple as_list(nb::handle self) {
  nb::list parts(self);
  return nb::make_tuple(nb::borrow(reinterpret_cast<PyObject*>(&PyList_Type)),
                        nb::make_tuple(parts));
}

// ----------------------------------------------------------------------------- writing
// What an exported struct and its children share; gone with the last of them.
template <typename T>
struct Shared {
  explicit Shared(size_t n) : refs(static_cast<int>(n) + 1), children(n), pointers(n) {
    for (size_t j = 0; j < n; ++j) pointers[j] = &children[j];
  }
  virtual ~Shared() = default;
  std::atomic<int> refs;
  std::vector<T> children;
  std::vector<T*> pointers;

  static void release(T* one) {
    for (int64_t j = 0; j < one->n_children; ++j)
      if (one->children[j]->release != nullptr) one->children[j]->release(one->children[j]);
    one->release = nullptr;
    auto* const shared = static_cast<Shared*>(one->private_data);
    if (--shared->refs == 0) delete shared;
  }
};

struct SchemaMemory : Shared<ArrowSchema> {
  using Shared::Shared;
  std::vector<std::string> names;
};

struct ArrayMemory : Shared<ArrowArray> {
  using Shared::Shared;
  ~ArrayMemory() override {
    if (!nb::is_alive()) {
      owner.release();
      return;
    }
    Locked locked;  // the last reader may be a thread without it
    owner.reset();
  }
  nb::object owner;
  const void* nothing[1] = {nullptr};
  std::vector<const void*> buffers;
};

struct Frame {
  nb::object owner;
  const double* data;
  int64_t n_rows, stride;
  std::vector<std::string> names;
  bool is_read = false;
};

Frame& frame_of(ArrowArrayStream* stream) {
  return *static_cast<Frame*>(stream->private_data);
}

int give_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  const Frame& frame = frame_of(stream);
  const size_t n = frame.names.size();
  auto* const memory = new SchemaMemory(n);
  memory->names = frame.names;
  void* const shared = static_cast<Shared<ArrowSchema>*>(memory);
  constexpr int64_t kNullable = 2;
  for (size_t j = 0; j < n; ++j)
    memory->children[j] = {"g",     memory->names[j].c_str(), nullptr,
                           kNullable, 0,                      nullptr,
                           nullptr, Shared<ArrowSchema>::release, shared};
  *out = {"+s",
          "",
          nullptr,
          0,
          static_cast<int64_t>(n),
          memory->pointers.data(),
          nullptr,
          Shared<ArrowSchema>::release,
          shared};
  return 0;
}

int give_rows(ArrowArrayStream* stream, ArrowArray* out) {
  Frame& frame = frame_of(stream);
  *out = {};
  if (frame.is_read) return 0;
  frame.is_read = true;
  const size_t n = frame.names.size();
  auto* const memory = new ArrayMemory(n);
  memory->owner = std::move(frame.owner);
  memory->buffers.resize(2 * n, nullptr);
  void* const shared = static_cast<Shared<ArrowArray>*>(memory);
  for (size_t j = 0; j < n; ++j) {
    memory->buffers[2 * j + 1] = frame.data + static_cast<int64_t>(j) * frame.stride;
    memory->children[j] = {frame.n_rows, 0,       0,       2,
                           0,            &memory->buffers[2 * j], nullptr, nullptr,
                           Shared<ArrowArray>::release, shared};
  }
  *out = {frame.n_rows,
          0,
          0,
          1,
          static_cast<int64_t>(n),
          memory->nothing,
          memory->pointers.data(),
          nullptr,
          Shared<ArrowArray>::release,
          shared};
  return 0;
}

void drop_stream(ArrowArrayStream* stream) {
  Locked locked;
  delete static_cast<Frame*>(stream->private_data);
  stream->release = nullptr;
}

void drop_capsule(PyObject* capsule) {
  auto* const stream =
      static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kStream));
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

nb::object write_stream(nb::handle given, const nb::list& names) {
  nb::ndarray<const double, nb::ndim<2>, nb::device::cpu> array;
  require(nb::try_cast(given, array, false) &&
              (array.shape(0) <= 1 || array.stride(0) == 1),
          "values must be an array of float64 whose columns are contiguous");
  require(array.shape(1) == names.size(), "names must be one text per column");
  auto frame = std::make_unique<Frame>();
  frame->owner = nb::borrow(given);
  frame->data = array.data();
  frame->n_rows = static_cast<int64_t>(array.shape(0));
  frame->stride = array.stride(1);
  frame->names.reserve(names.size());
  for (const nb::handle name : names) {
    Py_ssize_t size = 0;
    const char* const text =
        PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8AndSize(name.ptr(), &size) : nullptr;
    if (text == nullptr) PyErr_Clear();
    require(text != nullptr && std::strlen(text) == static_cast<size_t>(size),
            "names must be one text per column");
    frame->names.emplace_back(text);
  }
  auto* const stream =
      new ArrowArrayStream{give_schema, give_rows,
                           [](ArrowArrayStream*) -> const char* { return nullptr; },
                           drop_stream, frame.release()};
  PyObject* const capsule = PyCapsule_New(stream, kStream, drop_capsule);
  if (capsule == nullptr) throw nb::python_error();
  return nb::steal(capsule);
}

}  // namespace

void bind_arrow(nb::module_& m) {
  nb::class_<Columns>(m, "Columns")
      .def("__len__", [](const Columns& columns) { return columns.parts.size(); })
      .def("__getitem__", [](nb::handle self, int64_t k) { return part_of(self, k); })
      .def("__reduce__", [](nb::handle self) { return as_list(self); })
      .def_prop_ro("n_rows", [](const Columns& columns) { return columns.n_rows; })
      .def_prop_ro("are_float64", [](const Columns& columns) {
        return is_single(columns, Dtype::f64);
      });
  m.def("read_stream", &read_stream, nb::arg("stream"));
  m.def("write_stream", &write_stream, nb::arg("values"), nb::arg("names"));
}

}  // namespace a1gm
