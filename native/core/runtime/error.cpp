#include "core/runtime/error.h"

#include <c10/util/Exception.h>

#include <new>

namespace carillon {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadArgument:
      return "BAD_ARGUMENT";
    case ErrorCode::kSongTooLong:
      return "SONG_TOO_LONG";
    case ErrorCode::kBadCheckpoint:
      return "BAD_CHECKPOINT";
    case ErrorCode::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case ErrorCode::kCancelled:
      return "CANCELLED";
    case ErrorCode::kNotFinite:
      return "NOT_FINITE";
    case ErrorCode::kStorage:
      return "STORAGE";
    case ErrorCode::kInternal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

Error current_error() {
  static const char* const kMemoryAdvice =
      "not enough memory: use a shorter duration, a smaller batch or a smaller model, or free memory on the device";
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const c10::OutOfMemoryError& error) {
    return Error(ErrorCode::kOutOfMemory, std::string(kMemoryAdvice) + " (" + error.what_without_backtrace() + ")");
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kOutOfMemory, kMemoryAdvice);
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const bool memory = message.find("DefaultCPUAllocator: ") != std::string::npos ||  // the CPU allocator's only mark
                        message.find("CUDA out of memory") != std::string::npos;
    return memory ? Error(ErrorCode::kOutOfMemory, std::string(kMemoryAdvice) + " (" + message + ")")
                  : Error(ErrorCode::kInternal, message);
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, error.what());
  } catch (...) {
    return Error(ErrorCode::kInternal, "an exception of unknown type");
  }
}

void fail(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace carillon
