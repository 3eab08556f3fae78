#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace carillon::addon {

/// One native thread that runs tasks in the order they were given. Lanes live as long as the process.
class Lane {
 public:
  /// The lane of text encoder, DiT and VAE.
  static Lane& render();
  /// The lane of the language model, so that the next job's planning runs beside this job's rendering.
  static Lane& language();
  /// The lane of adapter training: a run takes hours, and nothing else may wait for it.
  static Lane& training();

  void add(std::function<void()> task);
  /// Waits until every task given so far has ended, but no longer than this; false where some have not.
  bool drain(std::chrono::steady_clock::time_point deadline);

 private:
  Lane();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
};

}  // namespace carillon::addon
