#pragma once
#include <napi.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "core/runtime/error.h"

namespace carillon::addon {

/// Converts an error of the core to a JS Error with the same `code`.
Napi::Error to_js(Napi::Env env, const Error& error);

/// A TypeError with the code BAD_ARGUMENT.
Napi::Error bad_argument(Napi::Env env, const std::string& message);

/// Creates a function that JS can call. `body` takes a Napi::CallbackInfo and returns a Napi::Value. All entries of the
/// addon are created here, because a C++ exception that leaves an entry ends the process. Exceptions of the core become
/// JS errors with a `code`; JS exceptions pass through, such as those of the caller's getters.
template <typename Body>
Napi::Function entry(Napi::Env env, const char* name, Body body) {
  return Napi::Function::New(
      env,
      [body = std::move(body)](const Napi::CallbackInfo& info) -> Napi::Value {
        try {
          return body(info);
        } catch (const Napi::Error&) {
          throw;
        } catch (...) {
          throw to_js(info.Env(), current_error());
        }
      },
      name);
}

/// Name and function of a method.
template <typename State>
using Method = std::pair<const char*, Napi::Value (*)(State&, const Napi::CallbackInfo&)>;

/// Gives `object` methods that share `state`.
template <typename State>
void add_methods(Napi::Object& object, State state, std::initializer_list<Method<State>> methods) {
  const auto shared = std::make_shared<State>(std::move(state));
  for (const auto& [name, method] : methods) {
    object.Set(name, entry(object.Env(), name, [shared, call = method](const Napi::CallbackInfo& info) {
                 return call(*shared, info);
               }));
  }
}

}  // namespace carillon::addon
