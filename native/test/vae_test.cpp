#include "core/vae/vae.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <atomic>
#include <fstream>
#include <map>
#include <sstream>

#include "core/checkpoint/checkpoint.h"
#include "core/runtime/error.h"
#include "core/vae/networks.h"
#include "core/vae/tiling.h"
#include "kernels/cpu.h"
#include "test/test.h"

using namespace carillon;

namespace {

/// A checkpoint directory with tensors that are made on the way.
class CheckpointWriter {
 public:
  void add(const std::string& name, const at::Tensor& tensor) { tensors_[name] = tensor.contiguous(); }

  std::string write(const std::string& config) const {
    const std::string directory = test::fixture_directory();
    std::ofstream(directory + "/config.json") << config;
    std::ostringstream entries;
    int64_t offset = 0;
    for (const auto& [name, tensor] : tensors_) {
      const int64_t end = offset + tensor.numel() * 4;
      entries << (offset == 0 ? '{' : ',') << '"' << name << R"(":{"dtype":"F32","shape":)" << tensor.sizes()
              << R"(,"data_offsets":[)" << offset << ',' << end << "]}";
      offset = end;
    }
    entries << '}';
    const std::string header = entries.str();
    std::ofstream file(directory + "/diffusion_pytorch_model.safetensors", std::ios::binary);
    const uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << header;
    for (const auto& [name, tensor] : tensors_) {
      file.write(static_cast<const char*>(tensor.const_data_ptr()), tensor.numel() * 4);
    }
    return directory;
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
};

constexpr const char* kConfig =
    R"({"sampling_rate": 48000, "audio_channels": 2, "encoder_hidden_size": 8, "decoder_channels": 4,
        "decoder_input_channels": 4, "downsampling_ratios": [2, 4, 4, 6, 10], "channel_multiples": [1, 2, 4, 8, 16]})";

enum class Spelling { kWeightNorm, kParametrizations, kPlain };

/// A small autoencoder; the three spellings of its weights mean the same numbers.
std::string write_vae(Spelling spelling) {
  const at::Generator generator = at::detail::createCPUGenerator(7);
  CheckpointWriter writer;
  const auto convolution = [&](const std::string& name, std::vector<int64_t> shape, int64_t bias) {
    const at::Tensor v = at::randn(shape, generator);
    const at::Tensor norm = at::linalg_vector_norm(v, 2, at::IntArrayRef{1, 2}, true);
    const at::Tensor g = at::full_like(norm, 0.6);
    if (spelling == Spelling::kWeightNorm) {
      writer.add(name + ".weight_g", g);
      writer.add(name + ".weight_v", v);
    } else if (spelling == Spelling::kParametrizations) {
      writer.add(name + ".parametrizations.weight.original0", g);
      writer.add(name + ".parametrizations.weight.original1", v);
    } else {
      writer.add(name + ".weight", v * g / norm);
    }
    if (bias > 0) writer.add(name + ".bias", at::randn({bias}, generator) * 0.1);
  };
  const auto snake = [&](const std::string& name, int64_t channels) {
    writer.add(name + ".alpha", at::randn({1, channels, 1}, generator) * 0.3);
    writer.add(name + ".beta", at::randn({1, channels, 1}, generator) * 0.3);
  };
  const auto units = [&](const std::string& block, int64_t channels) {
    for (const char* unit : {".res_unit1", ".res_unit2", ".res_unit3"}) {
      snake(block + unit + ".snake1", channels);
      snake(block + unit + ".snake2", channels);
      convolution(block + unit + ".conv1", {channels, channels, 7}, channels);
      convolution(block + unit + ".conv2", {channels, channels, 1}, channels);
    }
  };
  const std::vector<int64_t> ratios = {2, 4, 4, 6, 10}, widths = {1, 1, 2, 4, 8, 16};
  convolution("encoder.conv1", {8, 2, 7}, 8);
  convolution("decoder.conv1", {64, 4, 7}, 64);
  for (size_t i = 0; i < 5; ++i) {
    const std::string encoder = "encoder.block." + std::to_string(i), decoder = "decoder.block." + std::to_string(4 - i);
    units(encoder, 8 * widths[i]);
    snake(encoder + ".snake1", 8 * widths[i]);
    convolution(encoder + ".conv1", {8 * widths[i + 1], 8 * widths[i], 2 * ratios[i]}, 8 * widths[i + 1]);
    snake(decoder + ".snake1", 4 * widths[i + 1]);
    convolution(decoder + ".conv_t1", {4 * widths[i + 1], 4 * widths[i], 2 * ratios[i]}, 4 * widths[i]);
    units(decoder, 4 * widths[i]);
  }
  snake("encoder.snake1", 128);
  convolution("encoder.conv2", {8, 128, 3}, 8);
  snake("decoder.snake1", 4);
  convolution("decoder.conv2", {2, 4, 7}, 0);
  return writer.write(kConfig);
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  return ((actual - expected).norm() / expected.norm()).item<double>();
}

at::Tensor noise(at::IntArrayRef shape) { return at::randn(shape, at::detail::createCPUGenerator(3)); }

struct Loaded {
  VaeConfig config;
  Oobleck encoder, decoder;
};

Loaded load(const std::string& directory, at::ScalarType dtype) {
  const Placement placement{at::kCPU, dtype};
  const VaeConfig config = VaeConfig::read(directory);
  const Weights weights = Checkpoint::open(directory).weights(placement);
  const bool time_major = can_run_time_major(placement, config);
  return {config, Oobleck::load_encoder(weights.sub("encoder"), config, time_major),
          Oobleck::load_decoder(weights.sub("decoder"), config, time_major)};
}

}  // namespace

TEST("vae: the three spellings of a weight decode alike") {
  const Placement placement{at::kCPU, at::kFloat};
  const at::Tensor latents = noise({1, 4, 5});
  const at::Tensor expected = Vae::load(write_vae(Spelling::kWeightNorm), placement, Control()).decode(latents, Control());
  EXPECT((expected.sizes() == at::IntArrayRef{1, 2, 5 * 1920}));
  for (const Spelling spelling : {Spelling::kParametrizations, Spelling::kPlain}) {
    const at::Tensor audio = Vae::load(write_vae(spelling), placement, Control()).decode(latents, Control());
    EXPECT(relative_error(audio, expected) < 1e-3);
  }
}

TEST("vae: tiles cover every frame once and never reach past the ends") {
  const auto tiles = plan_tiles(500, 128);
  int64_t next = 0;
  for (const Tile& tile : tiles) {
    EXPECT_EQ(tile.begin, next);
    next = tile.end;
    EXPECT(tile.window_begin >= 0 && tile.window_end <= 500 && tile.window_end - tile.window_begin <= 128);
    EXPECT(tile.begin - tile.window_begin == kTileOverlapFrames || tile.window_begin == 0);
    EXPECT(tile.window_end - tile.end == kTileOverlapFrames || tile.window_end == 500);
  }
  EXPECT_EQ(next, 500);
  EXPECT_EQ(plan_tiles(128, 128).size(), size_t{1});
  EXPECT_THROWS(plan_tiles(100, 32), "not wider than its overlaps");
}

TEST("vae: tiled decoding and encoding equal the whole") {
  const c10::InferenceMode inference;
  const std::string directory = write_vae(Spelling::kWeightNorm);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    // The CPU kernels sum every output in one order, wherever a tile begins: equal to the last bit.
    const double tolerance = dtype == at::kBFloat16 && kernels::has_avx512() ? 0.0 : dtype == at::kFloat ? 1e-3 : 5e-2;
    const Loaded vae = load(directory, dtype);
    const at::Tensor latents = noise({1, 4, 70});
    const at::Tensor whole = decode_tiled(vae.decoder, latents, vae.config, 70, Control());
    EXPECT(relative_error(decode_tiled(vae.decoder, latents, vae.config, 48, Control()), whole) <= tolerance);

    const at::Tensor audio = noise({1, 2, 70 * 1920 + 700});
    const at::Tensor moments = encode_tiled(vae.encoder, audio, vae.config, 71, Control());
    EXPECT_EQ(moments.size(2), 70);
    EXPECT(relative_error(encode_tiled(vae.encoder, audio, vae.config, 48, Control()), moments) <= tolerance);
  }
}

TEST("vae: bfloat16 kernels follow libtorch's float32") {
  const std::string directory = write_vae(Spelling::kWeightNorm);
  const Vae exact = Vae::load(directory, {at::kCPU, at::kFloat}, Control());
  const Vae fast = Vae::load(directory, {at::kCPU, at::kBFloat16}, Control());
  const at::Tensor latents = noise({2, 4, 9});
  EXPECT(relative_error(fast.decode(latents, Control()), exact.decode(latents, Control())) < 0.1);
  const at::Tensor audio = noise({2, 2, 5 * 1920});
  EXPECT(relative_error(fast.encode(audio, Control()).mean, exact.encode(audio, Control()).mean) < 0.1);
}

TEST("vae: a batch is its items") {
  const Vae vae = Vae::load(write_vae(Spelling::kWeightNorm), {at::kCPU, at::kBFloat16}, Control());
  const at::Tensor latents = noise({2, 4, 6});
  const at::Tensor both = vae.decode(latents, Control());
  EXPECT(relative_error(both.narrow(0, 1, 1), vae.decode(latents.narrow(0, 1, 1), Control())) < 1e-2);
}

TEST("vae: the posterior's deviation is positive and shaped like its mean") {
  const Vae vae = Vae::load(write_vae(Spelling::kWeightNorm), {at::kCPU, at::kFloat}, Control());
  const Vae::Posterior posterior = vae.encode(noise({1, 2, 3 * 1920 + 1919}), Control());
  EXPECT((posterior.mean.sizes() == at::IntArrayRef{1, 4, 3}));
  EXPECT((posterior.std.sizes() == at::IntArrayRef{1, 4, 3}));
  EXPECT(posterior.std.min().item<float>() > 0);
}

TEST("vae: decoding reports its tiles and can be cancelled") {
  const Vae vae = Vae::load(write_vae(Spelling::kWeightNorm), {at::kCPU, at::kFloat}, Control());
  std::atomic<bool> cancelled{false};
  int64_t reports = 0;
  const Control control(&cancelled, [&](const Progress& progress) {
    EXPECT(progress.stage == Stage::kDecode);
    EXPECT_EQ(progress.done, reports++);
  });
  vae.decode(noise({1, 4, 3}), control);
  EXPECT_EQ(reports, 2);
  cancelled = true;
  EXPECT_THROWS(vae.decode(noise({1, 4, 3}), control), "cancelled");
}

TEST("vae: wrong shapes and damaged checkpoints are named") {
  const std::string directory = write_vae(Spelling::kPlain);
  const Vae vae = Vae::load(directory, {at::kCPU, at::kFloat}, Control());
  EXPECT_THROWS(vae.decode(noise({1, 5, 3}), Control()), "latents must be [batch, 4, length]");
  EXPECT_THROWS(vae.encode(noise({1, 1, 1920}), Control()), "audio must be [batch, 2, length]");
  EXPECT_THROWS(vae.encode(noise({1, 2, 1919}), Control()), "shorter than one latent frame");
  std::ofstream(directory + "/config.json") << std::string(kConfig).replace(std::string(kConfig).find("\"decoder_channels\": 4"), 21, "\"decoder_channels\": 6");
  EXPECT_THROWS(Vae::load(directory, {at::kCPU, at::kFloat}, Control()), "decoder.conv1");
}
