#include "threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#include <signal.h>
#endif

#include "interrupt.hpp"

namespace a1gm {
namespace {

// The tasks of one call; it lives until the last of them is done.
struct Tasks {
  const int n;
  const Task task;
  void* const context;
  Call* const call;  // to be stopped with its caller
  int next = 0, running = 0;
  std::condition_variable done{};
};

// Threads that wait for tasks: a new one costs more than a short pass. The caller takes
// what no other thread has begun, so it never waits for one that is busy or asleep.
class Pool {
 public:
  void share(Tasks& tasks) {
    std::unique_lock lock(mutex_);
    waiting_.push_back(&tasks);
    start_threads(tasks.n - 1);
    if (tasks.n == 2)
      wake_.notify_one();
    else
      wake_.notify_all();
    while (tasks.next < tasks.n) run_next(tasks, lock);
    tasks.done.wait(lock, [&tasks] { return tasks.running == 0; });
  }

 private:
  // Takes a task and runs it, without the lock.
  void run_next(Tasks& tasks, std::unique_lock<std::mutex>& lock) {
    const int t = tasks.next++;
    if (tasks.next == tasks.n)
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &tasks));
    ++tasks.running;
    lock.unlock();
    tasks.task(tasks.context, t);
    lock.lock();
    // With the lock: the caller's tasks are gone once it has seen the last one end.
    if (--tasks.running == 0) tasks.done.notify_one();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return !waiting_.empty(); });
      Tasks& tasks = *waiting_.front();
      working = {tasks.call, false};
      run_next(tasks, lock);
    }
  }

  // No more than cores: others would only take turns.
  void start_threads(int wanted) {
    static const int most = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (wanted = std::min(wanted, most); n_threads_ < wanted; ++n_threads_) {
      try {
        start_thread();
      } catch (const std::exception&) {
        return;  // no thread to be had: the caller does the work
      }
    }
  }

  void start_thread() {
#if defined(__unix__) || defined(__APPLE__)
    sigset_t all, before;  // signals are for the threads of the interpreter
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct Restore {
      const sigset_t& mask;
      ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
    } restore{before};
#endif
    std::thread([this] { work(); }).detach();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Tasks*> waiting_;  // with tasks that nobody has begun
  int n_threads_ = 0;
};

Pool* pool = nullptr;

// Never destroyed: its threads wait until the process ends. A child process has none of
// its parent's threads, and the locks may be held by them: it gets a pool of its own.
Pool& the_pool() {
  static const bool made = [] {
    pool = new Pool;
#if defined(__unix__) || defined(__APPLE__)
    pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });
#endif
    return true;
  }();
  static_cast<void>(made);
  return *pool;
}

}  // namespace

void share_tasks(int n, Task task, void* context) {
  Tasks tasks{n, task, context, working.call};
  the_pool().share(tasks);
}

}  // namespace a1gm
