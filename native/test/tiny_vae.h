#pragma once
// Writes an Oobleck autoencoder of a few thousand random weights to a fresh directory.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <functional>
#include <string>
#include <vector>

#include "test/checkpoint_files.h"
#include "test/test.h"

namespace carillon::test {

/// Storage layouts of a convolution's weight. All of them give the same weight.
enum class WeightLayout { kWeightNorm, kParametrizations, kPlain };

/// Fills a checkpoint tensor by tensor. The encoder outputs mean and scale of each latent channel.
class TinyVaeWriter {
 public:
  TinyVaeWriter(WeightLayout layout, int64_t latent_channels, int64_t decoder_channels = 4)
      : layout_(layout), latent_(latent_channels), narrow_(decoder_channels) {}

  Tensors write() {
    const std::vector<int64_t> ratios = {2, 4, 4, 6, 10}, widths = {1, 1, 2, 4, 8, 16};
    const int64_t wide = 2 * latent_, narrow = narrow_;  // channels at the audio end of encoder and decoder
    convolution("encoder.conv1", {wide, 2, 7}, wide);
    convolution("decoder.conv1", {16 * narrow, latent_, 7}, 16 * narrow);
    for (size_t i = 0; i < ratios.size(); ++i) {
      const std::string encoder = "encoder.block." + std::to_string(i);
      const std::string decoder = "decoder.block." + std::to_string(ratios.size() - 1 - i);
      units(encoder, wide * widths[i]);
      snake(encoder + ".snake1", wide * widths[i]);
      convolution(encoder + ".conv1", {wide * widths[i + 1], wide * widths[i], 2 * ratios[i]}, wide * widths[i + 1]);
      snake(decoder + ".snake1", narrow * widths[i + 1]);
      convolution(decoder + ".conv_t1", {narrow * widths[i + 1], narrow * widths[i], 2 * ratios[i]},
                  narrow * widths[i]);
      units(decoder, narrow * widths[i]);
    }
    snake("encoder.snake1", 16 * wide);
    convolution("encoder.conv2", {wide, 16 * wide, 3}, wide);
    snake("decoder.snake1", narrow);
    convolution("decoder.conv2", {2, narrow, 7}, 0);
    return std::move(tensors_);
  }

 private:
  at::Tensor random(at::IntArrayRef shape) { return at::randn(shape, generator_); }

  void convolution(const std::string& name, const std::vector<int64_t>& shape, int64_t bias) {
    const at::Tensor v = random(shape);
    const at::Tensor norm = at::linalg_vector_norm(v, 2, at::IntArrayRef{1, 2}, true);
    const at::Tensor g = at::full_like(norm, 0.6);
    if (layout_ == WeightLayout::kWeightNorm) {
      tensors_[name + ".weight_g"] = g;
      tensors_[name + ".weight_v"] = v;
    } else if (layout_ == WeightLayout::kParametrizations) {
      tensors_[name + ".parametrizations.weight.original0"] = g;
      tensors_[name + ".parametrizations.weight.original1"] = v;
    } else {
      tensors_[name + ".weight"] = v * g / norm;
    }
    if (bias > 0) tensors_[name + ".bias"] = random({bias}) * 0.1;
  }

  void snake(const std::string& name, int64_t channels) {
    tensors_[name + ".alpha"] = random({1, channels, 1}) * 0.3;
    tensors_[name + ".beta"] = random({1, channels, 1}) * 0.3;
  }

  void units(const std::string& block, int64_t channels) {
    for (const char* unit : {".res_unit1", ".res_unit2", ".res_unit3"}) {
      snake(block + unit + ".snake1", channels);
      snake(block + unit + ".snake2", channels);
      convolution(block + unit + ".conv1", {channels, channels, 7}, channels);
      convolution(block + unit + ".conv2", {channels, channels, 1}, channels);
    }
  }

  WeightLayout layout_;
  int64_t latent_, narrow_;
  at::Generator generator_ = at::detail::createCPUGenerator(7);
  Tensors tensors_;
};

inline std::string tiny_vae_config(int64_t latent_channels, int64_t decoder_channels = 4) {
  return R"({"sampling_rate": 48000, "audio_channels": 2, "decoder_channels": )" + std::to_string(decoder_channels) +
         R"(, "encoder_hidden_size": )" + std::to_string(2 * latent_channels) + R"(, "decoder_input_channels": )" + std::to_string(latent_channels) +
         R"(, "downsampling_ratios": [2, 4, 4, 6, 10], "channel_multiples": [1, 2, 4, 8, 16]})";
}

/// Writes the checkpoint. `change` can modify the tensors before they are written.
inline std::string write_tiny_vae(WeightLayout layout, int64_t latent_channels = 4,
                                  const std::function<void(Tensors&)>& change = {}, int64_t decoder_channels = 4) {
  const std::string directory = fixture_directory();
  Tensors tensors = TinyVaeWriter(layout, latent_channels, decoder_channels).write();
  if (change) change(tensors);
  write_safetensors(directory + "/diffusion_pytorch_model.safetensors", tensors);
  write_file(directory + "/config.json", tiny_vae_config(latent_channels, decoder_channels));
  return directory;
}

}  // namespace carillon::test
