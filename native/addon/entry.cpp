#include "addon/entry.h"

namespace carillon::addon {
namespace {

Napi::Error with_code(Napi::Error error, ErrorCode code) {
  error.Set("code", Napi::String::New(error.Env(), name_of_choice(code)));
  return error;
}

}  // namespace

Napi::Error to_js(Napi::Env env, const Error& error) {
  return with_code(Napi::Error::New(env, error.what()), error.code());
}

Napi::Error bad_argument(Napi::Env env, const std::string& message) {
  return with_code(Napi::TypeError::New(env, message), ErrorCode::kBadArgument);
}

}  // namespace carillon::addon
