// Lets Ctrl-C stop a loop that runs without the interpreter's lock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

namespace a1gm {

// One call from Python. The thread that was called asks, some times a second, whether
// it must stop; the threads it has started look at the answer.
struct Call {
  explicit Call(void (*ask)()) : ask(ask) {}
  void (*const ask)();  // throws if the call must stop
  std::atomic<bool> stopped{false};
  std::chrono::steady_clock::time_point next{};  // when to ask; set by the first check
  static constexpr std::chrono::milliseconds kPause{50};
};

struct Stopped : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// The call that a thread works for, and whether it is the one that was called.
struct Working {
  Call* call = nullptr;
  bool asks = false;
};
inline thread_local Working working;

inline void check_interrupt() {
  if (working.call == nullptr) return;
  Call& call = *working.call;
  if (call.stopped.load(std::memory_order_relaxed)) throw Stopped();
  if (!working.asks) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < call.next) return;
  if (call.next.time_since_epoch().count() != 0) {
    try {
      call.ask();
    } catch (...) {
      call.stopped = true;
      throw;
    }
  }
  call.next = now + Call::kPause;
}

// Counts the work of a loop, in cells or so, and checks every millisecond of it.
class Poll {
 public:
  void worked(int64_t cells) {
    if ((left_ -= cells) > 0) return;
    left_ = kCells;
    check_interrupt();
  }

 private:
  static constexpr int64_t kCells = 1 << 20;
  int64_t left_ = kCells;
};

}  // namespace a1gm
