// Arrays of the caller, checked and kept alive while they are read; arrays for the
// caller.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "checks.hpp"
#include "interrupt.hpp"
#include "read/table_part.hpp"

namespace a1gm {
namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

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

// Runs without the interpreter's lock, and stops when a signal says so.
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

template <typename T>
constexpr const char* kTypeName = nullptr;
template <>
inline constexpr const char* kTypeName<double> = "float64";
template <>
inline constexpr const char* kTypeName<int64_t> = "int64";
template <>
inline constexpr const char* kTypeName<int32_t> = "int32";
template <>
inline constexpr const char* kTypeName<uint64_t> = "uint64";

// A vector or matrix of exactly this type. Only its shape is known until `data` is
// called, which copies numbers that do not lie one after another.
template <typename T, int kDims>
class In {
 public:
  In(nb::handle given, const char* name) {
    if (nb::try_cast(given, array_, false) && array_.ndim() == kDims &&
        array_.dtype() == nb::dtype<T>())
      return;
    throw std::invalid_argument(std::string(name) + " must be a " +
                                (kDims == 1 ? "one" : "two") +
                                "-dimensional array of " + kTypeName<T>);
  }
  int64_t rows() const { return static_cast<int64_t>(array_.shape(0)); }
  int64_t cols() const { return kDims == 2 ? static_cast<int64_t>(array_.shape(1)) : 1; }

  const T* data() {
    const char* base = static_cast<const char*>(array_.data());
    const int64_t n = rows(), m = cols();
    const int64_t down = array_.stride(0), along = kDims == 2 ? array_.stride(1) : 1;
    if ((n <= 1 || down == m) && (m <= 1 || along == 1) &&
        reinterpret_cast<uintptr_t>(base) % alignof(T) == 0)
      return static_cast<const T*>(array_.data());
    copy_.resize(static_cast<size_t>(n * m));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < m; ++j)
        std::memcpy(&copy_[static_cast<size_t>(i * m + j)],
                    base + (i * down + j * along) * static_cast<int64_t>(sizeof(T)),
                    sizeof(T));
    return copy_.data();
  }

 private:
  AnyArray array_;
  std::vector<T> copy_;
};

template <typename T>
using Vector = In<T, 1>;
template <typename T>
using Matrix = In<T, 2>;

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

// A table in the caller's memory, a list of parts or `Columns`, held until this is gone.
struct Table {
  Table(nb::handle entries, int64_t n_groups);
  std::vector<Part> parts;
  int64_t n_rows = -1, n_cols = 0;

 private:
  void add(nb::handle entry, int64_t n_groups);
  bool take_columns(nb::handle given);
  void add_columns(Part part);
  void add_mask(nb::handle given, const AnyArray& array, Part& part);
  void add_validity(nb::handle given, nb::handle offset, Part& part);
  std::vector<AnyArray> kept_;
  nb::object kept_columns_;
};

}  // namespace a1gm
