#pragma once
#include <functional>
#include <string>

namespace carillon {

/// The files of one run below its output directory (reference training.md 8.1): checkpoints/, final/ and the log.
/// A folder is there whole or not at all. Every refusal of the disk is kStorage naming the path.
class RunFiles {
 public:
  /// Creates the directory and its log, which a continued run goes on writing.
  RunFiles(const std::string& output_directory, bool is_continued);
  ~RunFiles();
  RunFiles(const RunFiles&) = delete;
  RunFiles& operator=(const RunFiles&) = delete;

  /// `fill` writes into the folder it is given, which then takes the place of `name` (checkpoints/NAME or final).
  /// Returns the path.
  std::string publish(const std::string& name, const std::function<void(const std::string& folder)>& fill);

  /// Adds a line, a JSON object, to logs/metrics.jsonl: whole or, where the disk refuses, not at all.
  void log(const std::string& json);

 private:
  std::string root_;
  int log_;
};

}  // namespace carillon
