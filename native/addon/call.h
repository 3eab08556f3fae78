#pragma once
#include <napi.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/control.h"
#include "core/runtime/error.h"

namespace carillon::addon {

/// A native thread that runs tasks in order. It lives as long as the process.
class WorkerThread {
 public:
  /// Thread that runs the text encoder, DiT and VAE of a device. `device` is the name in the load options. Throws
  /// kBadArgument for a name that no device can have, because such threads would never end.
  static WorkerThread& render(const std::string& device);
  /// Thread for the language model. It is separate so that the next job can be planned while the current one is
  /// rendered.
  static WorkerThread& language();
  /// Thread for adapter training. It is separate because training takes hours.
  static WorkerThread& training();
  static std::vector<WorkerThread*> all();

  /// `task` must not throw.
  void add(std::function<void()> task);
  /// Whether tasks are queued behind the running one.
  bool has_waiting();
  /// Waits until all tasks are done or the deadline has passed. Returns false if tasks remain.
  bool drain(std::chrono::steady_clock::time_point deadline);

 private:
  WorkerThread();
  static WorkerThread& named(const std::string& name);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
};

/// A long-running call from JS, with a promise, an AbortSignal and a progress callback. The work runs on a worker
/// thread. The finalizer of `channel_` (a thread-safe function) deletes the call on the JS thread, because JS
/// references may be released only there. The worker thread must not use the call after releasing `channel_`.
class Call {
 public:
  /// Function that creates a JS value. Runs on the JS thread.
  using MakeValue = std::function<Napi::Value(Napi::Env)>;
  /// The work of a call. Runs on the worker thread and returns a function that creates the promise's value.
  using Work = std::function<MakeValue(const Control&)>;
  /// Function that passes an event to the JS callback onEvent; empty if the caller has none. Events arrive in order and
  /// before the promise settles; none is dropped.
  using SendEvent = std::function<void(MakeValue)>;
  using WorkWithEvents = std::function<MakeValue(const Control&, const SendEvent&)>;

  /// `options` is the CallOptions object of src/engine/addon.ts; it may be absent. The promise rejects with an Error
  /// whose `code` names the failure. If the signal is already aborted, it rejects without starting the work. If a
  /// callback throws, the call is cancelled, and the promise rejects with what the callback threw.
  static Napi::Promise start(Napi::Env env, WorkerThread& thread, const Napi::Value& options, Work work);
  /// The same for work that sends events. `options` is a RenderCall or TrainingCall object of src/engine/addon.ts.
  static Napi::Promise start(Napi::Env env, WorkerThread& thread, const Napi::Value& options, WorkWithEvents work);

  /// Creates a call without starting work. The caller must then call `resolve` or `reject` exactly once, on any thread.
  /// Either of them deletes the call.
  static Call* create(Napi::Env env, const Napi::Value& options);
  Napi::Promise promise() const { return deferred_.Promise(); }
  Control control();
  void resolve(MakeValue make_value);
  void reject(const std::exception_ptr& error);

 private:
  using Channel = Napi::ThreadSafeFunction;

  /// The caller's options. Absent ones are empty.
  struct Options {
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
    Napi::ObjectReference signal;
    Napi::FunctionReference on_abort, on_progress, on_event;
  };

  Call(Napi::Env env, Options options)
      : deferred_(Napi::Promise::Deferred::New(env)),
        options_(std::move(options)),
        listens_(!options_.on_event.IsEmpty()) {}
  /// Throws a TypeError for an option of the wrong type. Subscribes to the signal.
  static Options read_options(Napi::Env env, const Napi::Value& value);
  void run(const WorkWithEvents& work);  // on the worker thread
  void finish();
  void send_event(MakeValue make_event);
  void post_progress(const Progress& progress);
  // The functions below run on the JS thread.
  void deliver_progress(Napi::Env env);
  void notify(Napi::Env env, const Napi::FunctionReference& listener, const MakeValue& make_value);
  void unsubscribe(Napi::Env env);
  void settle(Napi::Env env);

  Napi::Promise::Deferred deferred_;
  Options options_;
  const bool listens_;
  Channel channel_;
  std::optional<Napi::Error> listener_error_;  // what a callback threw

  std::mutex mutex_;
  std::optional<Progress> pending_progress_;  // newest report that JS has not received; replaces older ones

  MakeValue make_value_;
  std::optional<Error> error_;
};

/// Cancels every call of this process. A running model step cannot be interrupted, so this waits up to `limit` for the
/// worker threads to become idle. Returns false if a thread is still busy.
bool stop_all_calls(std::chrono::milliseconds limit);

}  // namespace carillon::addon
