#pragma once
#include <stdexcept>
#include <string>

#include "core/runtime/choice.h"

namespace carillon {

/// Why a call into the core failed. The addon turns the code into the `code` of a JS Error.
enum class ErrorCode {
  kBadArgument,    // an argument is invalid; nothing was computed
  kSongTooLong,    // the song exceeds what the checkpoint can render
  kBadCheckpoint,  // a file is missing, damaged or of another model; the message names file and tensor
  kOutOfMemory,    // host or device memory ran out; the message suggests remedies
  kCancelled,      // the caller cancelled the call
  kNotFinite,      // a NaN or infinity appeared in a result
  kStorage,        // a file could not be written; the previous file is unchanged
  kDeviceLost,     // a GPU failed permanently; only a new process can use it again
  kInternal,       // a bug in Carillon or libtorch
};

template <>
inline constexpr Choices<ErrorCode> kChoices<ErrorCode> = {{"BAD_ARGUMENT", ErrorCode::kBadArgument},
                                                           {"SONG_TOO_LONG", ErrorCode::kSongTooLong},
                                                           {"BAD_CHECKPOINT", ErrorCode::kBadCheckpoint},
                                                           {"OUT_OF_MEMORY", ErrorCode::kOutOfMemory},
                                                           {"CANCELLED", ErrorCode::kCancelled},
                                                           {"NOT_FINITE", ErrorCode::kNotFinite},
                                                           {"STORAGE", ErrorCode::kStorage},
                                                           {"DEVICE_LOST", ErrorCode::kDeviceLost},
                                                           {"INTERNAL", ErrorCode::kInternal}};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

/// Throws Error(code, message).
[[noreturn]] void fail(ErrorCode code, const std::string& message);

/// Throws kBadArgument with `message` unless `holds` is true.
void require(bool holds, const std::string& message);

/// Converts the current exception to an Error with a code and a message without a stack trace. Call current_error() in
/// a catch block. An exception that is an Error already is returned unchanged.
Error current_error();

}  // namespace carillon
