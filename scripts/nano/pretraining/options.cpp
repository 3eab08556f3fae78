#include "pretraining/options.h"

#include <map>
#include <sstream>

#include "core/runtime/error.h"

namespace carillon::pretraining {
namespace {

double number(const std::string& name, const std::string& text) {
  size_t end = 0;
  double value = -1;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end == 0 || end != text.size() || !(value >= 0)) {
    fail(ErrorCode::kBadArgument, name + " takes a number that is not negative, not '" + text + "'");
  }
  return value;
}

int64_t whole(const std::string& name, const std::string& text) {
  const double value = number(name, text);
  if (value != static_cast<double>(static_cast<int64_t>(value))) {
    fail(ErrorCode::kBadArgument, name + " takes a whole number, not '" + text + "'");
  }
  return static_cast<int64_t>(value);
}

/// Whole numbers between commas.
std::vector<int64_t> list(const std::string& name, const std::string& text) {
  std::vector<int64_t> values;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) values.push_back(whole(name, part));
  return values;
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  std::map<std::string, std::string*> texts = {{"--data", &options.data}, {"--model", &options.model},
                                               {"--work", &options.work}, {"--from", &options.from},
                                               {"--out", &options.out},   {"--device", &options.device},
                                               {"--dtype", &options.dtype}};
  std::map<std::string, double*> numbers = {{"--minutes", &options.minutes},
                                            {"--crop-seconds", &options.crop_seconds},
                                            {"--learning-rate", &options.learning_rate},
                                            {"--average-decay", &options.average_decay},
                                            {"--cooldown-minutes", &options.cooldown_minutes},
                                            {"--save-minutes", &options.save_minutes}};
  std::map<std::string, int64_t*> counts = {{"--steps", &options.steps},
                                            {"--batch", &options.batch},
                                            {"--warmup-steps", &options.warmup_steps},
                                            {"--log-steps", &options.log_steps},
                                            {"--measure-steps", &options.measure_steps},
                                            {"--seed", &options.seed}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name.rfind("--", 0) != 0 && options.stage.empty()) {
      options.stage = name;
      continue;
    }
    const bool is_list = name == "--unconditional-prompt";
    const bool known = is_list || texts.count(name) + numbers.count(name) + counts.count(name) > 0;
    if (!known) fail(ErrorCode::kBadArgument, "unknown argument '" + name + "'");
    if (i + 1 == arguments.size()) fail(ErrorCode::kBadArgument, name + " needs a value");
    const std::string& value = arguments[++i];
    if (is_list) options.unconditional_prompt = list(name, value);
    if (const auto text = texts.find(name); text != texts.end()) *text->second = value;
    if (const auto real = numbers.find(name); real != numbers.end()) *real->second = number(name, value);
    if (const auto count = counts.find(name); count != counts.end()) *count->second = whole(name, value);
  }
  if (options.batch < 1) fail(ErrorCode::kBadArgument, "--batch is at least 1");
  return options;
}

}  // namespace carillon::pretraining
