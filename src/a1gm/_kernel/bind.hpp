// Arrays and tables between Python and the kernel. Callers are this package's own
// modules, which give arrays that fit together; a file of statistics is checked where it
// is read. nanobind checks types and dimensions, and copies what is not contiguous.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "bit_mask.hpp"
#include "interrupt.hpp"
#include "read/table_part.hpp"

// The C data and stream interface of Arrow, as its specification lays them out.
extern "C" {

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

}  // extern "C"

namespace a1gm {
namespace nb = nanobind;

template <typename T, size_t kDims>
using In = nb::ndarray<const T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
template <typename T, size_t kDims>
using InOut = nb::ndarray<T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;
using Doubles = In<double, 1>;
using Bits = In<uint64_t, 2>;
using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

template <typename Array>
int64_t rows_of(const Array& array) {
  return static_cast<int64_t>(array.shape(0));
}

inline BitMask mask_of(const Bits& bits, int64_t n_cols) {
  return {bits.data(), rows_of(bits), n_cols, static_cast<int64_t>(bits.shape(1))};
}

// Takes the interpreter's lock. A thread that wants it while the process exits is ended
// by Python, which unwinds its stack through frames that nothing may leave, and the
// process is aborted. Such a thread waits here for ever instead.
template <typename F>
auto take_lock(F&& take) noexcept {
  try {
    return take();
  } catch (...) {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

// Holds the interpreter's lock, whether or not the thread had it.
class Locked {
 public:
  Locked() : state_(take_lock(PyGILState_Ensure)) {}
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;

 private:
  const PyGILState_STATE state_;
};

// Runs without the interpreter's lock, and stops when a signal asks for it.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()), call_(ask), before_(working) {
    working = {&call_, true};
  }
  ~Unlocked() {
    working = before_;
    take_lock([this] { PyEval_RestoreThread(state_); });
  }
  Unlocked(const Unlocked&) = delete;

 private:
  static void ask() {
    Locked locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  PyThreadState* const state_;
  Call call_;
  const Working before_;  // of a call in whose signal handler this one is made
};

template <typename F>
auto unlocked(F&& f) {
  Unlocked lock;
  return f();
}

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

template <typename T>
nb::object copy_of(const std::vector<T>& values) {
  return to_numpy(std::vector<T>(values));
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

// A struct of Arrow, released when it goes out of scope.
template <typename T>
struct Owned : T {
  Owned() : T{} {}
  Owned(const Owned&) = delete;
  ~Owned() {
    if (this->release != nullptr) this->release(this);
  }
};

// The columns of a frame in one piece, in the memory of their owner.
struct Columns {
  Owned<ArrowArray> array;
  std::vector<Part> parts;
  int64_t n_rows = 0;
};

// A table in the caller's memory, held until this is gone: `Columns`, or a list of
// (array, mask, validity, bit offset).
struct Table {
  explicit Table(nb::handle entries);
  std::vector<Part> parts;
  int64_t n_rows = 0, n_cols = 0;

 private:
  void add(nb::tuple fields);
  std::vector<AnyArray> kept_;
  nb::object kept_columns_;
};

void bind_table(nb::module_& m);  // and Arrow in and out
void bind_pass(nb::module_& m);
void bind_solve(nb::module_& m);
void bind_place(nb::module_& m);
void bind_cells(nb::module_& m);

}  // namespace a1gm
