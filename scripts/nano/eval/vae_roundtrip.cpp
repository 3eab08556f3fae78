// carillon-vae-roundtrip VAE_DIRECTORY IN OUT [IN OUT ...]: what the autoencoder makes of recordings (README.md).
#include <ATen/ATen.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/runtime/error.h"
#include "core/runtime/placement.h"
#include "core/vae/vae.h"

namespace carillon {
namespace {

/// Float32 samples of all channels, one channel after another -> [1, channels, samples].
at::Tensor read_audio(const std::string& path, int64_t channels) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file || bytes.empty() || bytes.size() % (channels * sizeof(float)) != 0) {
    fail(ErrorCode::kBadArgument, path + " holds no float32 samples of " + std::to_string(channels) + " channels");
  }
  const auto samples = static_cast<int64_t>(bytes.size() / (channels * sizeof(float)));
  return at::from_blob(const_cast<char*>(bytes.data()), {1, channels, samples}, at::kFloat).clone();
}

void write_audio(const std::string& path, const at::Tensor& audio) {
  const at::Tensor samples = audio.contiguous();
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(samples.const_data_ptr()), static_cast<std::streamsize>(samples.nbytes()));
  if (!file.flush()) fail(ErrorCode::kStorage, path + " cannot be written");
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3 || arguments.size() % 2 == 0) {
    fail(ErrorCode::kBadArgument, "usage: carillon-vae-roundtrip VAE_DIRECTORY IN OUT [IN OUT ...]");
  }
  const Control control;
  const Vae vae = Vae::load(arguments[0], choose_placement("auto", "auto"), control);
  for (size_t i = 1; i < arguments.size(); i += 2) {
    const at::Tensor audio = read_audio(arguments[i], vae.config().audio_channels);
    write_audio(arguments[i + 1], vae.decode(vae.encode(audio, control).mean, control));
  }
}

}  // namespace
}  // namespace carillon

int main(int count, char** values) {
  try {
    carillon::run(std::vector<std::string>(values + 1, values + count));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
