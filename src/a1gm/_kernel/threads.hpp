// Work on several threads, with errors that reach the caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <vector>

#include "interrupt.hpp"

namespace a1gm {

constexpr int64_t kCellsPerThread = 1 << 17;  // fewer do not pay for a thread

// As many of the threads asked for as the work pays for.
inline int useful_threads(int asked, int64_t n_cells,
                          int64_t per_thread = kCellsPerThread) {
  return static_cast<int>(
      std::clamp<int64_t>(asked, 1, std::max<int64_t>(1, n_cells / per_thread)));
}

// Calls task(0) ... task(n - 1), which must not throw, here and on lasting threads.
using Task = void (*)(void* context, int t);
void share_tasks(int n, Task task, void* context);

// Calls work(0) ... work(n - 1), here and on other threads as far as those are free; no
// call may wait for another. Waits for all of them; the first error, such as memory that
// cannot be had, is thrown here.
template <typename F>
void run_on_threads(int n, F&& work) {
  if (n == 1) return work(0);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(n));
  auto guarded = [&work, &errors](int t) {
    try {
      work(t);
    } catch (...) {
      errors[static_cast<size_t>(t)] = std::current_exception();
    }
  };
  share_tasks(
      n, [](void* call, int t) { (*static_cast<decltype(guarded)*>(call))(t); }, &guarded);
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace a1gm
