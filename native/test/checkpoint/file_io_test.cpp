#include "core/checkpoint/file_io.h"

#include <ATen/ATen.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/file_size_limit.h"
#include "test/test.h"

using namespace carillon;
namespace fs = std::filesystem;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

size_t files_in(const std::string& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), {}));
}

/// Runs `write`, which must fail with kStorage, and returns its message.
template <typename Write>
std::string storage_error(const Write& write) {
  try {
    write();
  } catch (const Error& error) {
    EXPECT(error.code() == ErrorCode::kStorage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST("mapped file: rejects a pipe, socket or device without blocking") {
  const std::string directory = test::fixture_directory(), pipe = directory + "/pipe", link = directory + "/link";
  EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(pipe, link);
  for (const std::string& path : {pipe, link, directory, std::string("/dev/zero")}) {
    EXPECT_THROWS(MappedFile::open(path), path + ": not a regular file");
    EXPECT_THROWS(Json::read_file(path), path + ": not a regular file");
  }
}

TEST("mapped file: rejects files of /proc") {
  EXPECT_THROWS(MappedFile::open("/proc/self/status"), "the file is empty");
}

TEST("atomic file: the file appears at commit") {
  const std::string directory = test::fixture_directory(), path = directory + "/a.txt";
  {
    AtomicFile file(path);
    file.write("first ");
    file.write("second");
    EXPECT(!fs::exists(path));
    file.commit();
  }
  EXPECT_EQ(text_of(path), std::string("first second"));
  write_file_atomically(path, "other");
  EXPECT_EQ(text_of(path), std::string("other"));
  EXPECT_EQ(files_in(directory), size_t{1});
}

TEST("atomic file: without a commit the old file stays and no temporary file remains") {
  const std::string directory = test::fixture_directory(), path = directory + "/a.txt";
  write_file_atomically(path, "old");
  {
    AtomicFile(path).write("new");
  }
  EXPECT_EQ(text_of(path), std::string("old"));
  EXPECT_EQ(files_in(directory), size_t{1});
}

TEST("atomic file: a failed write is a storage error with path and reason, and keeps the old file") {
  const std::string directory = test::fixture_directory(), path = directory + "/a.safetensors";
  EXPECT_EQ(storage_error([&] { write_file_atomically(directory + "/none/a.txt", "x"); }),
            directory + "/none/a.txt cannot be written: No such file or directory");

  save_safetensors(path, {{"w", at::ones({2})}});
  const std::string old = text_of(path);
  {
    const test::FileSizeLimit limit(4096);
    EXPECT_EQ(storage_error([&] { save_safetensors(path, {{"w", at::ones({100000})}}); }),
              path + " cannot be written: File too large");
  }
  EXPECT_EQ(text_of(path), old);
  EXPECT_EQ(files_in(directory), size_t{1});
}
