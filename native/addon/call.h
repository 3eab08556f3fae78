#pragma once
#include <napi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/control.h"
#include "core/runtime/error.h"

namespace carillon::addon {

/// One native thread that runs tasks in the order they were given. Lanes live as long as the process.
class Lane {
 public:
  /// The lane of text encoder, DiT and VAE of a device, by the name that it was asked for by.
  static Lane& render(const std::string& device);
  /// The lane of the language model, so that the next job's planning runs beside this job's rendering.
  static Lane& language();
  /// The lane of adapter training: a run takes hours, and nothing else may wait for it.
  static Lane& training();
  static std::vector<Lane*> all();

  void add(std::function<void()> task);
  /// Waits until every task given so far has ended, but no longer than this; false where some have not.
  bool drain(std::chrono::steady_clock::time_point deadline);

 private:
  Lane();
  static Lane& named(const std::string& name);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
};

/// A JS Error with the `code` of the core's error.
Napi::Error to_js(Napi::Env env, const Error& error);

/// One long call: a promise on the JS side, work on a lane, the caller's AbortSignal and progress callback between.
/// Its JS references may only die on the JS thread, so the thread-safe function's finalizer owns it; the lane
/// does not touch it after releasing the channel.
class Call {
 public:
  /// Makes a JS value, on the JS thread.
  using MakeValue = std::function<Napi::Value(Napi::Env)>;
  /// Runs on the lane; what it returns makes the promise's value.
  using Work = std::function<MakeValue(const Control&)>;
  /// Hands a value to the caller's onEvent: in order, none left out, all before the promise settles.
  using Tell = std::function<void(MakeValue)>;
  using TellingWork = std::function<MakeValue(const Control&, const Tell&)>;

  /// `options` is the CallOptions object of src/engine/addon.ts. Rejects with an Error whose `code` names the
  /// failure; a signal that already fired rejects before any work.
  static Napi::Promise start(Napi::Env env, Lane& lane, const Napi::Value& options, Work work);
  /// `options` is the RenderCall or the TrainingCall object.
  static Napi::Promise start(Napi::Env env, Lane& lane, const Napi::Value& options, TellingWork work);

 private:
  using Channel = Napi::ThreadSafeFunction;

  explicit Call(Napi::Env env) : deferred_(Napi::Promise::Deferred::New(env)) {}
  void listen(Napi::Env env, const Napi::Value& options);
  void run(const TellingWork& work);  // on the lane
  void tell(MakeValue make_event);
  void post_progress(const Progress& progress);
  void deliver_progress(Napi::Env env);
  void settle(Napi::Env env);

  Napi::Promise::Deferred deferred_;
  Channel channel_;
  std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
  Napi::ObjectReference signal_;
  Napi::FunctionReference on_abort_;
  Napi::FunctionReference on_progress_;
  Napi::FunctionReference on_event_;

  std::mutex mutex_;
  std::optional<Progress> unseen_progress_;  // the newest not yet delivered: a slow event loop skips the others

  MakeValue make_value_;
  std::optional<Error> error_;
};

/// Cancels every call of this environment and waits for the lanes, but no longer than this: one step of a model cannot
/// be interrupted. False where a lane still computes.
bool stop_all_calls(std::chrono::milliseconds limit);

}  // namespace carillon::addon
