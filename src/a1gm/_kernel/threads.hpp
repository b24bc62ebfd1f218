// Work on several threads, with errors that reach the caller.
#pragma once

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace a1gm {

// Calls work(0) ... work(n - 1), each on a thread of its own but the first. Waits for
// all of them; the first error, such as memory that cannot be had, is thrown here.
template <typename F>
void run_on_threads(int n, F&& work) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(n));
  auto guarded = [&work, &errors](int t) {
    try {
      work(t);
    } catch (...) {
      errors[static_cast<size_t>(t)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(n));
  for (int t = 1; t < n; ++t) {
    try {
      threads.emplace_back(guarded, t);
    } catch (const std::system_error&) {
      guarded(t);  // no thread to be had: do it here
    }
  }
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace a1gm
