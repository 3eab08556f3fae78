#include "core/runtime/error.h"

namespace carillon {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadArgument: return "BAD_ARGUMENT";
    case ErrorCode::kBadCheckpoint: return "BAD_CHECKPOINT";
    case ErrorCode::kOutOfMemory: return "OUT_OF_MEMORY";
    case ErrorCode::kCancelled: return "CANCELLED";
    case ErrorCode::kNotFinite: return "NOT_FINITE";
    case ErrorCode::kInternal: return "INTERNAL";
  }
  return "INTERNAL";
}

void fail(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace carillon
