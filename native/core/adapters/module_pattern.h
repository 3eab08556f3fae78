#pragma once
#include <functional>
#include <string>

namespace carillon {

/// Whether a key of alpha_pattern or rank_pattern is a plain module name or the end of one.
bool is_module_name(const std::string& key);

/// A key of PEFT's alpha_pattern or rank_pattern as a function that matches module names. A key is a regular expression
/// of Python. It matches the whole name, or the part after a dot; an alternative that starts with ^ matches only the whole
/// name. Throws kBadArgument for syntax that is not supported: anchors elsewhere, look-around, back references, flags. The
/// function throws kBadCheckpoint if matching takes too much memory.
std::function<bool(const std::string&)> module_pattern(const std::string& key);

}  // namespace carillon
