#include "core/training/run_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/checkpoint/atomic_file.h"
#include "core/runtime/error.h"

namespace carillon {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLog = "/logs/metrics.jsonl";

/// Runs what may throw a filesystem_error, and says it as kStorage.
template <typename Work>
void on_disk(const std::string& path, const Work& work) {
  try {
    work();
  } catch (const fs::filesystem_error& error) {
    fail(ErrorCode::kStorage, path + " cannot be written: " + error.code().message());
  }
}

/// The entries of a folder as they are now survive a loss of power.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

RunFiles::RunFiles(const std::string& output_directory, bool is_continued) : root_(output_directory) {
  const std::string path = root_ + kLog;
  on_disk(path, [&] { fs::create_directories(root_ + "/logs"); });
  log_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (is_continued ? 0 : O_TRUNC), 0666);
  if (log_ < 0) fail(ErrorCode::kStorage, path + " cannot be written: " + std::strerror(errno));
}

RunFiles::~RunFiles() { ::close(log_); }

std::string RunFiles::publish(const std::string& name, const std::function<void(const std::string& folder)>& fill) {
  // One run at a time writes here: what lies in these two was left by one that was killed.
  const fs::path target = fs::path(root_) / name, staging = fs::path(root_) / ".partial",
                 replaced = fs::path(root_) / ".replaced";
  try {
    on_disk(target.string(), [&] {
      fs::remove_all(staging);
      fs::remove_all(replaced);
      fs::create_directories(staging);
      fs::create_directories(target.parent_path());
      fill(staging.string());
      flush_folder(staging);
      if (fs::exists(target)) fs::rename(target, replaced);
      fs::rename(staging, target);
      flush_folder(target.parent_path());
      fs::remove_all(replaced);
    });
  } catch (...) {
    std::error_code ignored;  // the reason to give is the first one
    fs::remove_all(staging, ignored);
    throw;
  }
  return target.string();
}

void RunFiles::log(const std::string& json) {
  const std::string path = root_ + kLog, line = json + "\n";
  const off_t end = ::lseek(log_, 0, SEEK_END);
  const int error = write_all(log_, line.data(), line.size());
  if (error == 0) return;
  // The beginning of a line would spoil the next one, which a continued run writes behind it.
  std::error_code ignored;  // the reason to give is the first one
  fs::resize_file(path, static_cast<uintmax_t>(end), ignored);
  fail(ErrorCode::kStorage, path + " cannot be written: " + std::strerror(error));
}

}  // namespace carillon
