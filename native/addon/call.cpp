#include "addon/call.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "addon/entry.h"
#include "addon/values.h"
#include "core/runtime/device.h"

namespace carillon::addon {

namespace {

std::mutex threads_mutex;

/// Never destroyed, because a worker thread may outlive static destruction.
std::map<std::string, WorkerThread*>& threads() {
  static auto* const all = new std::map<std::string, WorkerThread*>;
  return *all;
}

}  // namespace

WorkerThread& WorkerThread::named(const std::string& name) {
  const std::lock_guard lock(threads_mutex);
  WorkerThread*& thread = threads()[name];
  if (thread == nullptr) thread = new WorkerThread;
  return *thread;
}

WorkerThread& WorkerThread::render(const std::string& device) {
  check_device_name(device);
  return named("render on " + device);
}
WorkerThread& WorkerThread::language() { return named("language"); }
WorkerThread& WorkerThread::training() { return named("training"); }

std::vector<WorkerThread*> WorkerThread::all() {
  const std::lock_guard lock(threads_mutex);
  std::vector<WorkerThread*> all;
  for (const auto& [name, thread] : threads()) all.push_back(thread);
  return all;
}

WorkerThread::WorkerThread() { std::thread(&WorkerThread::work, this).detach(); }

void WorkerThread::add(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

bool WorkerThread::has_waiting() {
  const std::lock_guard lock(mutex_);
  return !tasks_.empty();
}

bool WorkerThread::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return tasks_.empty() && !busy_; });
}

void WorkerThread::work() {
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

namespace {

Error error_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (...) {
    return current_error();
  }
}

std::mutex running_mutex;
std::set<std::shared_ptr<std::atomic<bool>>> running_flags;

void remember(const std::shared_ptr<std::atomic<bool>>& flag) {
  const std::lock_guard lock(running_mutex);
  running_flags.insert(flag);
}

void forget(const std::shared_ptr<std::atomic<bool>>& flag) {
  const std::lock_guard lock(running_mutex);
  running_flags.erase(flag);
}

}  // namespace

Napi::Promise Call::start(Napi::Env env, WorkerThread& thread, const Napi::Value& options, Work work) {
  return start(env, thread, options,
               [work = std::move(work)](const Control& control, const SendEvent&) { return work(control); });
}

Napi::Promise Call::start(Napi::Env env, WorkerThread& thread, const Napi::Value& options, WorkWithEvents work) {
  Call* const call = create(env, options);
  const auto promise = call->promise();
  thread.add([call, work = std::move(work)] { call->run(work); });
  return promise;
}

Call* Call::create(Napi::Env env, const Napi::Value& options) {
  // The channel keeps the process alive until the call settles, so no exception may follow its creation.
  auto call = std::unique_ptr<Call>(new Call(env, read_options(env, options)));
  remember(call->options_.cancelled);
  const auto unused = entry(env, "carillon", [](const Napi::CallbackInfo& info) { return info.Env().Undefined(); });
  call->channel_ = Channel::New(env, unused, "carillon", 0, 1, [held = call.get()](Napi::Env) { delete held; });
  return call.release();
}

Control Call::control() {
  return {options_.cancelled.get(), [this](const Progress& progress) { post_progress(progress); }};
}

Call::Options Call::read_options(Napi::Env env, const Napi::Value& value) {
  Options options;
  if (value.IsUndefined() || value.IsNull()) return options;
  const auto object = object_of(value, "call");
  if (has(object, "onProgress")) options.on_progress = Napi::Persistent(function_of(object, "onProgress"));
  if (has(object, "onEvent")) options.on_event = Napi::Persistent(function_of(object, "onEvent"));
  if (!has(object, "signal")) return options;
  const auto signal = object_of(object, "signal");
  const auto subscribe = function_of(signal, "addEventListener");
  function_of(signal, "removeEventListener");
  *options.cancelled = flag_of(signal, "aborted");
  const auto on_abort = entry(env, "onAbort", [flag = options.cancelled](const Napi::CallbackInfo& info) {
    *flag = true;
    return info.Env().Undefined();
  });
  options.signal = Napi::Persistent(signal);
  options.on_abort = Napi::Persistent(on_abort);
  subscribe.Call(signal, {Napi::String::New(env, "abort"), on_abort});
  return options;
}

void Call::run(const WorkWithEvents& work) {
  MakeValue make_value;
  try {
    const Control control = this->control();
    control.check();
    const SendEvent send = [this](MakeValue make_event) { send_event(std::move(make_event)); };
    make_value = work(control, listens_ ? send : nullptr);
  } catch (...) {
    return reject(std::current_exception());
  }
  resolve(std::move(make_value));
}

void Call::resolve(MakeValue make_value) {
  make_value_ = std::move(make_value);
  finish();
}

void Call::reject(const std::exception_ptr& error) {
  error_ = error_of(error);
  if (error_->code() == ErrorCode::kOutOfMemory) {
    try {
      release_cached_memory();
    } catch (...) {  // the GPU is lost as well
      error_ = current_error();
    }
  }
  finish();
}

void Call::finish() {
  forget(options_.cancelled);
  auto channel = channel_;
  channel.BlockingCall([this](Napi::Env env, Napi::Function) { settle(env); });
  channel.Release();
}

void Call::send_event(MakeValue make_event) {
  channel_.BlockingCall([this, make_event = std::move(make_event)](Napi::Env env, Napi::Function) {
    notify(env, options_.on_event, make_event);
  });
}

void Call::post_progress(const Progress& progress) {
  bool first;
  {
    const std::lock_guard lock(mutex_);
    first = !pending_progress_.has_value();
    pending_progress_ = progress;
  }
  if (!first) return;
  channel_.BlockingCall([this](Napi::Env env, Napi::Function) { deliver_progress(env); });
}

void Call::deliver_progress(Napi::Env env) {
  std::optional<Progress> progress;
  {
    const std::lock_guard lock(mutex_);
    progress.swap(pending_progress_);
  }
  if (!progress) return;
  notify(env, options_.on_progress, [&](Napi::Env) -> Napi::Value {
    const auto& [stage, done, total] = *progress;
    return NewObject(env).set("stage", name_of_choice(stage)).set("done", done).set("total", total);
  });
}

void Call::notify(Napi::Env env, const Napi::FunctionReference& listener, const MakeValue& make_value) {
  if (listener.IsEmpty() || listener_error_) return;
  try {
    listener.Call({make_value(env)});
  } catch (const Napi::Error& error) {
    listener_error_ = error;
  } catch (...) {
    listener_error_ = to_js(env, current_error());
  }
  if (listener_error_) *options_.cancelled = true;
}

void Call::unsubscribe(Napi::Env env) {
  if (options_.signal.IsEmpty()) return;
  const auto signal = options_.signal.Value();
  function_of(signal, "removeEventListener").Call(signal, {Napi::String::New(env, "abort"), options_.on_abort.Value()});
}

void Call::settle(Napi::Env env) {
  deliver_progress(env);
  try {
    unsubscribe(env);
    if (listener_error_) throw Napi::Error(*listener_error_);
    if (error_) throw to_js(env, *error_);
    deferred_.Resolve(make_value_(env));
  } catch (const Napi::Error& error) {
    deferred_.Reject(error.Value());
  } catch (...) {
    deferred_.Reject(to_js(env, current_error()).Value());
  }
}

bool stop_all_calls(std::chrono::milliseconds limit) {
  {
    const std::lock_guard lock(running_mutex);
    for (const auto& flag : running_flags) *flag = true;
  }
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const auto threads = WorkerThread::all();
  return std::all_of(threads.begin(), threads.end(), [&](WorkerThread* thread) { return thread->drain(deadline); });
}

}  // namespace carillon::addon
