#include "core/runtime/error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <new>

#include "core/runtime/device.h"

namespace carillon {

namespace {

bool says(const std::string& message, std::initializer_list<const char*> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](const char* phrase) { return message.find(phrase) != std::string::npos; });
}

/// describe_free_memory(), or an empty text if a GPU does not answer: the error to report is the first one.
std::string free_memory() {
  try {
    return describe_free_memory();
  } catch (...) {
    return "";
  }
}

Error out_of_memory(const std::string& cause) {
  const std::string free = free_memory();
  return Error(ErrorCode::kOutOfMemory,
               "not enough memory: use a shorter duration, a smaller batch or a smaller model, or free memory on the "
               "device (" +
                   cause + (free.empty() ? "" : "; " + free) + ")");
}

/// Recognises errors that libtorch reports only as text. Each of its libraries words an out-of-memory error
/// differently.
Error error_of(const std::string& message) {
  if (is_device_lost()) {
    return Error(ErrorCode::kDeviceLost,
                 "the GPU has failed permanently; restart the process to use it again (" + message + ")");
  }
  if (says(message, {"out of memory", "DefaultCPUAllocator: ", "ALLOC_FAILED", "ALLOCATION_FAILED",
                     "CUBLAS_STATUS_NOT_INITIALIZED"})) {
    return out_of_memory(message);
  }
  if (says(message, {"no kernel image is available"})) {
    return Error(ErrorCode::kBadArgument,
                 "this libtorch has no kernels for this generation of GPUs: set SVC_DEVICE=cpu, or set LIBTORCH to a "
                 "build that has them (" +
                     message + ")");
  }
  return Error(ErrorCode::kInternal, message);
}

}  // namespace

Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const c10::OutOfMemoryError& error) {
    return out_of_memory(error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return out_of_memory("main memory");
  } catch (const c10::Error& error) {
    return error_of(error.what_without_backtrace());
  } catch (const std::filesystem::filesystem_error& error) {  // writers turn theirs into kStorage
    return Error(ErrorCode::kBadCheckpoint, error.what());
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, error.what());
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

void fail(ErrorCode code, const std::string& message) { throw Error(code, message); }

void require(bool holds, const std::string& message) {
  if (!holds) fail(ErrorCode::kBadArgument, message);
}

}  // namespace carillon
