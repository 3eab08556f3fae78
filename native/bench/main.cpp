// carillon-bench NAME --checkpoints DIR [--device D] [--dtype T] [--size N] [--repetitions N] [--json] [--on-demand]
//
// Times one part of the engine at real model size: one warm-up, then the repetitions. With --on-demand a line
// `ready` is printed after the warm-up, and then the seconds of one repetition for every line that is read, so that
// a driver can alternate between this program and another.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "bench/benchmark.h"
#include "core/runtime/error.h"

namespace carillon::bench {
namespace {

struct Options {
  std::string name, checkpoints, device = "auto", dtype = "auto";
  int64_t size = 0, repetitions = 5;
  bool json = false, on_demand = false;
};

int64_t positive(const std::string& option, const std::string& text) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoll(text) < 1) {
    fail(ErrorCode::kBadArgument, option + " takes a positive whole number, not '" + text + "'");
  }
  return std::stoll(text);
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) fail(ErrorCode::kBadArgument, argument + " needs a value");
      return arguments[++i];
    };
    if (argument == "--checkpoints")
      options.checkpoints = value();
    else if (argument == "--device")
      options.device = value();
    else if (argument == "--dtype")
      options.dtype = value();
    else if (argument == "--size")
      options.size = positive(argument, value());
    else if (argument == "--repetitions")
      options.repetitions = positive(argument, value());
    else if (argument == "--json")
      options.json = true;
    else if (argument == "--on-demand")
      options.on_demand = true;
    else if (argument.rfind("--", 0) != 0 && options.name.empty())
      options.name = argument;
    else
      fail(ErrorCode::kBadArgument, "unknown argument '" + argument + "'");
  }
  if (options.checkpoints.empty()) fail(ErrorCode::kBadArgument, "--checkpoints DIR is missing");
  return options;
}

const Benchmark& find(const std::string& name) {
  std::string names;
  for (const Benchmark& benchmark : benchmarks()) {
    if (name == benchmark.name) return benchmark;
    names += std::string(names.empty() ? "" : ", ") + benchmark.name;
  }
  fail(ErrorCode::kBadArgument, "unknown benchmark '" + name + "': use one of " + names);
}

void run(const Options& options) {
  const Benchmark& benchmark = find(options.name);
  Settings settings{options.checkpoints, choose_placement(options.device, options.dtype),
                    options.size > 0 ? options.size : benchmark.default_size};
  const Repetition repeat = benchmark.prepare(settings);
  repeat();
  if (options.on_demand) {
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) std::cout << repeat() << std::endl;
    return;
  }
  std::vector<double> seconds;
  for (int64_t i = 0; i < options.repetitions; ++i) seconds.push_back(repeat());
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2], minimum = seconds.front();
  const std::string dtype = c10::toString(settings.placement.dtype), device = settings.placement.device.str();
  if (options.json) {
    std::printf(
        "{\"name\": \"%s\", \"size\": %lld, \"sizeUnit\": \"%s\", \"device\": \"%s\", \"dtype\": \"%s\", "
        "\"threads\": %d, \"repetitions\": %zu, \"medianSeconds\": %.6f, \"minSeconds\": %.6f}\n",
        benchmark.name, static_cast<long long>(settings.size), benchmark.size_unit, device.c_str(), dtype.c_str(),
        at::get_num_threads(), seconds.size(), median, minimum);
    return;
  }
  std::printf("%s: %s (%lld %s; %s, %s, %d threads)\nmedian %.4f s, min %.4f s of %zu\n", benchmark.name,
              benchmark.measures, static_cast<long long>(settings.size), benchmark.size_unit, device.c_str(),
              dtype.c_str(), at::get_num_threads(), median, minimum, seconds.size());
}

}  // namespace
}  // namespace carillon::bench

int main(int argc, char** argv) {
  try {
    carillon::bench::run(carillon::bench::parse({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "carillon-bench: %s\n", error.what());
    return 1;
  }
}
