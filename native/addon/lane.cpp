#include "addon/lane.h"

#include <thread>

namespace carillon::addon {

// Never destroyed: a thread of a lane may outlive static destruction.
Lane& Lane::render() {
  static Lane* const lane = new Lane;
  return *lane;
}

Lane& Lane::language() {
  static Lane* const lane = new Lane;
  return *lane;
}

Lane& Lane::training() {
  static Lane* const lane = new Lane;
  return *lane;
}

Lane::Lane() { std::thread(&Lane::work, this).detach(); }

void Lane::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

bool Lane::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return tasks_.empty() && !busy_; });
}

void Lane::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    {
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
      lock.lock();
    }
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace carillon::addon
