#include "addon/call.h"

#include <algorithm>
#include <map>
#include <set>
#include <thread>

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

WorkerThread& WorkerThread::render(const std::string& device) { return named("render on " + device); }
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

Napi::Error to_js(Napi::Env env, const Error& error) {
  auto result = Napi::Error::New(env, error.what());
  result.Set("code", Napi::String::New(env, error_code_name(error.code())));
  return result;
}

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
  auto* const call = new Call(env);
  call->channel_ = Channel::New(env, Napi::Function::New(env, [](const Napi::CallbackInfo&) {}), "carillon", 0, 1,
                                [call](Napi::Env) { delete call; });
  call->read_options(env, options);
  remember(call->cancelled_);
  return call;
}

Control Call::control() {
  return {cancelled_.get(), [this](const Progress& progress) { post_progress(progress); }};
}

void Call::read_options(Napi::Env env, const Napi::Value& options) {
  if (!options.IsObject()) return;
  const auto object = options.As<Napi::Object>();
  if (const auto progress = object.Get("onProgress"); progress.IsFunction()) {
    on_progress_ = Napi::Persistent(progress.As<Napi::Function>());
  }
  if (const auto event = object.Get("onEvent"); event.IsFunction()) {
    on_event_ = Napi::Persistent(event.As<Napi::Function>());
  }
  const auto signal = object.Get("signal");
  if (!signal.IsObject()) return;
  signal_ = Napi::Persistent(signal.As<Napi::Object>());
  *cancelled_ = signal_.Get("aborted").ToBoolean();
  const auto on_abort = Napi::Function::New(env, [flag = cancelled_](const Napi::CallbackInfo&) { *flag = true; });
  on_abort_ = Napi::Persistent(on_abort);
  signal_.Value()
      .Get("addEventListener")
      .As<Napi::Function>()
      .Call(signal_.Value(), {Napi::String::New(env, "abort"), on_abort});
}

void Call::run(const WorkWithEvents& work) {
  MakeValue make_value;
  try {
    const Control control = this->control();
    control.check();
    make_value = work(control, [this](MakeValue make_event) { send_event(std::move(make_event)); });
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
  try {
    std::rethrow_exception(error);
  } catch (...) {
    error_ = current_error();
  }
  if (error_->code() == ErrorCode::kOutOfMemory) release_cached_memory();
  finish();
}

void Call::finish() {
  forget(cancelled_);
  auto channel = channel_;
  channel.BlockingCall([this](Napi::Env env, Napi::Function) { settle(env); });
  channel.Release();
}

void Call::send_event(MakeValue make_event) {
  channel_.BlockingCall([this, make_event = std::move(make_event)](Napi::Env env, Napi::Function) {
    if (!on_event_.IsEmpty()) on_event_.Call({make_event(env)});
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
  if (!progress || on_progress_.IsEmpty()) return;
  auto event = Napi::Object::New(env);
  event.Set("stage", stage_name(progress->stage));
  event.Set("done", static_cast<double>(progress->done));
  event.Set("total", static_cast<double>(progress->total));
  on_progress_.Call({event});
}

void Call::settle(Napi::Env env) {
  deliver_progress(env);
  if (!signal_.IsEmpty()) {
    signal_.Value()
        .Get("removeEventListener")
        .As<Napi::Function>()
        .Call(signal_.Value(), {Napi::String::New(env, "abort"), on_abort_.Value()});
  }
  if (error_) {
    deferred_.Reject(to_js(env, *error_).Value());
    return;
  }
  try {
    deferred_.Resolve(make_value_(env));
  } catch (const Napi::Error& error) {
    deferred_.Reject(error.Value());
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
