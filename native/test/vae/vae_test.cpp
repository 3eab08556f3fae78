#include "core/vae/vae.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.h"
#include "core/runtime/error.h"
#include "core/vae/networks.h"
#include "kernels/cpu.h"
#include "test/differences.h"
#include "test/tiny_vae.h"

using namespace carillon;
using namespace carillon::test;

namespace {

at::Tensor noise(at::IntArrayRef shape) { return at::randn(shape, at::detail::createCPUGenerator(3)); }

struct Loaded {
  VaeConfig config;
  Oobleck encoder, decoder;
};

Loaded load(const std::string& directory, at::ScalarType dtype, std::optional<Products> chosen = {}) {
  const Placement placement{at::kCPU, dtype};
  const VaeConfig config = VaeConfig::read(directory);
  const Weights weights = Checkpoint::open(directory).weights(placement);
  const Products products = chosen.value_or(choose_products(placement, config));
  return {config, Oobleck::load_encoder(weights.sub("encoder"), config, products),
          Oobleck::load_decoder(weights.sub("decoder"), config, products)};
}

/// Writes a VAE in which all units of the last decoder block are zero, so that the decoder's end runs in parts.
std::string write_vae_without_last_units() {
  return write_tiny_vae(WeightLayout::kPlain, 4, [](Tensors& tensors) {
    for (const char* unit : {"1", "2", "3"}) {
      for (const char* part : {".conv2.weight", ".conv2.bias"}) {
        tensors[std::string("decoder.block.4.res_unit") + unit + part].zero_();
      }
    }
  });
}

/// The result of decoding, and the parts of each item that were reported while decoding ran.
struct Decoding {
  std::vector<std::vector<at::Tensor>> parts;
  at::Tensor result;

  /// [channels, samples]
  at::Tensor joined(int64_t item) const { return at::cat(parts.at(static_cast<size_t>(item))).t(); }
};

/// [B, channels, samples]
at::Tensor decode(const Vae& vae, const at::Tensor& latents) { return at::stack(vae.decode(latents, Control())); }

Decoding decode_with_listener(const Vae& vae, const at::Tensor& latents) {
  Decoding decoding;
  decoding.parts.resize(static_cast<size_t>(latents.size(0)));
  decoding.result = at::stack(vae.decode(latents, Control(), [&](int64_t item, const at::Tensor& audio) {
    EXPECT(audio.is_contiguous());
    decoding.parts.at(static_cast<size_t>(item)).push_back(audio);
  }));
  return decoding;
}

}  // namespace

TEST("vae: decodes the same from all three weight layouts") {
  const Placement placement{at::kCPU, at::kFloat};
  const at::Tensor latents = noise({1, 4, 5});
  const at::Tensor expected =
      decode(Vae::load(write_tiny_vae(WeightLayout::kWeightNorm), placement, Control()), latents);
  EXPECT((expected.sizes() == at::IntArrayRef{1, 2, 5 * 1920}));
  for (const WeightLayout layout : {WeightLayout::kParametrizations, WeightLayout::kPlain}) {
    const at::Tensor audio = decode(Vae::load(write_tiny_vae(layout), placement, Control()), latents);
    EXPECT(relative_error(audio, expected) < 1e-3);
  }
}

TEST("vae: tiles cover every frame once and stay within the song") {
  constexpr int64_t kOverlap = 16;
  for (const TileWidths& widths : {TileWidths{.window = 128}, TileWidths{.window = 128, .has_full_last_tile = true},
                                   TileWidths{.window = 128, .first = 40}}) {
    for (const int64_t frames : {129, 234, 235, 500}) {
      int64_t next = 0, width = widths.first;
      for (const Tile& tile : plan_tiles(frames, kOverlap, widths)) {
        EXPECT_EQ(tile.begin, next);
        next = tile.end;
        const int64_t computed = tile.window_end - tile.window_begin;
        EXPECT(tile.begin < tile.end && tile.window_begin >= 0 && tile.window_end <= frames);
        EXPECT(widths.has_full_last_tile || tile.window_end < frames ? computed == width : computed <= width);
        EXPECT(tile.begin - tile.window_begin >= kOverlap || tile.window_begin == 0);
        EXPECT(tile.window_end - tile.end == kOverlap || tile.window_end == frames);
        width = std::min(2 * width, widths.window);
      }
      EXPECT_EQ(next, frames);
    }
  }
  EXPECT_EQ(plan_tiles(128, kOverlap, {.window = 128}).size(), size_t{1});
  EXPECT_THROWS(plan_tiles(100, kOverlap, {.window = 128, .first = 32}), "not wider than its overlaps");
}

TEST("vae: tiles overlap by the receptive field") {
  VaeConfig config{};
  config.downsampling_ratios = {2, 4, 4, 6, 10};
  EXPECT_EQ(tile_overlap_frames(config), 10);
  config.downsampling_ratios = {10, 6, 4, 4, 2};
  EXPECT_EQ(tile_overlap_frames(config), 32);
}

TEST("vae: tiled decoding and encoding equal a single run") {
  const c10::InferenceMode inference;
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    // CPU kernels sum every output in a fixed order, so tiled results are bit-equal.
    const bool has_kernels = dtype == at::kFloat ? kernels::has_float_tiles() : kernels::has_avx512();
    const double tolerance = has_kernels ? 0.0 : dtype == at::kFloat ? 1e-3 : 5e-2;
    const Loaded vae = load(directory, dtype);
    const at::Tensor latents = noise({1, 4, 70});
    const at::Tensor whole = at::stack(decode_tiled(vae.decoder, latents, vae.config, 70, Control()));
    const at::Tensor tiled = at::stack(decode_tiled(vae.decoder, latents, vae.config, 48, Control()));
    EXPECT(relative_error(tiled, whole) <= tolerance);

    const at::Tensor audio = noise({1, 2, 70 * 1920 + 700});
    const at::Tensor moments = encode_tiled(vae.encoder, audio, vae.config, 71, Control());
    EXPECT_EQ(moments.size(2), 70);
    EXPECT(relative_error(encode_tiled(vae.encoder, audio, vae.config, 48, Control()), moments) <= tolerance);
  }
}

TEST("vae: float32 kernels match libtorch") {
  if (!kernels::has_float_tiles()) SKIP("float tiles need AVX2");
  const c10::InferenceMode inference;
  const Loaded fast = load(write_tiny_vae(WeightLayout::kWeightNorm), at::kFloat);
  const Loaded plain = load(write_tiny_vae(WeightLayout::kWeightNorm), at::kFloat, Products::kLibtorch);
  SignalPool pool;
  for (const int64_t frames : {1, 2, 9}) {
    const at::Tensor latents = noise({1, 4, frames}), audio = noise({1, 2, frames * 1920});
    EXPECT(relative_error(fast.decoder.decode(latents, pool), plain.decoder.decode(latents, pool)) < 1e-3);
    EXPECT(relative_error(fast.encoder.encode(audio, pool), plain.encoder.encode(audio, pool)) < 1e-3);
  }
}

TEST("vae: running the end of the decoder in parts gives the audio of a single run") {
  const c10::InferenceMode inference;
  const std::string directory = write_vae_without_last_units();
  const Loaded plain = load(directory, at::kFloat, Products::kLibtorch);
  SignalPool pool;
  for (const int64_t frames : {1, 9}) {
    const at::Tensor latents = noise({1, 4, frames});
    const at::Tensor expected = plain.decoder.decode(latents, pool);
    const Loaded fast = load(directory, at::kFloat);
    const at::Tensor difference = fast.decoder.decode(latents, pool) - expected;
    EXPECT((difference.abs().max() / expected.abs().max()).item<double>() < 1e-3);
  }
  const Loaded half = load(directory, at::kBFloat16);
  const at::Tensor latents = noise({1, 4, 70});
  const at::Tensor whole = at::stack(decode_tiled(half.decoder, latents, half.config, 70, Control()));
  const at::Tensor tiled = at::stack(decode_tiled(half.decoder, latents, half.config, 48, Control()));
  EXPECT(relative_error(tiled, whole) <= (half.decoder.is_time_major() ? 0.0 : 5e-2));
}

TEST("vae: bfloat16 kernels match float32 in libtorch") {
  if (!kernels::has_avx512()) SKIP("they need AVX512-BF16");
  const c10::InferenceMode inference;
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm);
  const Loaded exact = load(directory, at::kFloat, Products::kLibtorch);
  const Loaded fast = load(directory, at::kBFloat16, Products::kBfloat16);
  SignalPool pool;
  const at::Tensor latents = noise({1, 4, 9}), audio = noise({1, 2, 5 * 1920});
  EXPECT(relative_error(fast.decoder.decode(latents, pool), exact.decoder.decode(latents, pool)) < 0.1);
  EXPECT(relative_error(fast.encoder.encode(audio, pool), exact.encoder.encode(audio, pool)) < 0.1);
}

TEST("vae: a bfloat16 model keeps 40 dB of float32 audio and latents where integers multiply, in tiles too") {
  const c10::InferenceMode inference;
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm, 16, {}, /*decoder_channels=*/32);
  const Loaded fast = load(directory, at::kBFloat16), exact = load(directory, at::kFloat, Products::kLibtorch);
  if (fast.decoder.products != Products::kFixed) SKIP("integers multiply on CPUs with AVX512-BF16 and without AMX");
  constexpr double kFortyDecibels = 1e-2;
  const at::Tensor latents = noise({1, 16, 45}), audio = noise({1, 2, 45 * 1920 + 7});
  const at::Tensor whole = at::stack(decode_tiled(fast.decoder, latents, fast.config, 45, Control()));
  const at::Tensor moments = encode_tiled(fast.encoder, audio, fast.config, 45, Control());
  EXPECT(relative_error(whole, at::stack(decode_tiled(exact.decoder, latents, exact.config, 45, Control()))) <
         kFortyDecibels);
  EXPECT(relative_error(moments, encode_tiled(exact.encoder, audio, exact.config, 45, Control())) < kFortyDecibels);
  EXPECT(at::equal(at::stack(decode_tiled(fast.decoder, latents, fast.config, 36, Control())), whole));
  EXPECT(at::equal(encode_tiled(fast.encoder, audio, fast.config, 36, Control()), moments));
  latents[0][3][30] = NAN;
  EXPECT(at::stack(decode_tiled(fast.decoder, latents, fast.config, 45, Control())).isnan().any().item<bool>());
}

TEST("vae: bfloat16 in libtorch is close to float32") {
  const c10::InferenceMode inference;
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm);
  const VaeConfig config = VaeConfig::read(directory);
  const at::Tensor latents = noise({2, 4, 9});
  const auto decode_in = [&](at::ScalarType dtype) {
    const Weights weights = Checkpoint::open(directory).weights({at::kCPU, dtype});
    SignalPool pool;
    return Oobleck::load_decoder(weights.sub("decoder"), config, Products::kLibtorch).decode(latents, pool);
  };
  EXPECT(relative_error(decode_in(at::kBFloat16), decode_in(at::kFloat)) < 0.1);
}

TEST("vae: a listener gets the result in parts, the first before the rest is decoded") {
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Vae vae = Vae::load(directory, {at::kCPU, dtype}, Control());
    for (const int64_t frames : {3, 150}) {
      const at::Tensor latents = noise({2, 4, frames});
      const Decoding decoding = decode_with_listener(vae, latents);
      EXPECT(at::equal(decoding.result, decode(vae, latents)));
      for (const int64_t item : {0, 1}) EXPECT(at::equal(decoding.joined(item), decoding.result[item]));
      const bool is_early = frames > 128 && choose_products(vae.placement(), vae.config()) != Products::kLibtorch;
      EXPECT_EQ(decoding.parts[0].size(), size_t{is_early ? 2u : 1u});
    }
  }
  std::atomic<bool> cancelled{false};
  const Control control(&cancelled, {});
  int64_t parts = 0;
  EXPECT_THROWS(Vae::load(directory, {at::kCPU, at::kFloat}, Control()).decode(noise({1, 4, 150}), control,
                                         [&](int64_t, const at::Tensor&) {
                                           ++parts;
                                           cancelled = true;
                                         }),
                "cancelled");
  EXPECT_EQ(parts, 1);
}

TEST("vae: decoding a batch equals decoding its items alone") {
  const Vae vae = Vae::load(write_tiny_vae(WeightLayout::kWeightNorm), {at::kCPU, at::kBFloat16}, Control());
  const at::Tensor latents = noise({2, 4, 6});
  const at::Tensor both = decode(vae, latents);
  EXPECT(relative_error(both.narrow(0, 1, 1), decode(vae, latents.narrow(0, 1, 1))) < 1e-2);
}

TEST("vae: on a CPU a song of a batch has the same bytes as alone") {
  const std::string directory = write_tiny_vae(WeightLayout::kWeightNorm);
  for (const std::optional<Products> products : {std::optional<Products>(), std::optional(Products::kLibtorch)}) {
    const Loaded vae = load(directory, at::kFloat, products);
    const at::Tensor latents = noise({3, 4, 50});
    const auto together = decode_tiled(vae.decoder, latents, vae.config, /*window=*/128, Control());
    for (int64_t item = 0; item < 3; ++item) {
      const auto alone = decode_tiled(vae.decoder, latents.narrow(0, item, 1), vae.config, 128, Control());
      EXPECT(together.at(static_cast<size_t>(item)).equal(alone.at(0)));
    }
  }
}

TEST("vae: the deviation of the posterior is positive and has the shape of its mean") {
  const Vae vae = Vae::load(write_tiny_vae(WeightLayout::kWeightNorm), {at::kCPU, at::kFloat}, Control());
  const Vae::Posterior posterior = vae.encode(noise({1, 2, 3 * 1920 + 1919}), Control());
  EXPECT((posterior.mean.sizes() == at::IntArrayRef{1, 4, 3}));
  EXPECT((posterior.std.sizes() == at::IntArrayRef{1, 4, 3}));
  EXPECT(posterior.std.min().item<float>() > 0);
}

TEST("vae: decoding reports its tiles and can be cancelled") {
  const Vae vae = Vae::load(write_tiny_vae(WeightLayout::kWeightNorm), {at::kCPU, at::kFloat}, Control());
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

TEST("vae: rejects wrong shapes and damaged checkpoints") {
  const std::string directory = write_tiny_vae(WeightLayout::kPlain);
  const Vae vae = Vae::load(directory, {at::kCPU, at::kFloat}, Control());
  EXPECT_THROWS(vae.decode(noise({1, 5, 3}), Control()), "latents must be [batch, 4, length]");
  EXPECT_THROWS(vae.encode(noise({1, 1, 1920}), Control()), "audio must be [batch, 2, length]");
  EXPECT_THROWS(vae.encode(noise({1, 2, 1919}), Control()), "shorter than one latent frame");
  std::string config = tiny_vae_config(4);
  const std::string key = "\"decoder_channels\": ";
  config.replace(config.find(key), key.size() + 1, key + "6");
  write_file(directory + "/config.json", config);
  EXPECT_THROWS(Vae::load(directory, {at::kCPU, at::kFloat}, Control()), "decoder.conv1");
}

/// Writes a VAE with a spectral encoder of 20 channels and invented statistics of a data set.
std::string write_spectral_vae() {
  const at::Tensor rows = at::arange(320, at::kDouble), number = at::arange(1, 5, at::kDouble).unsqueeze(1);
  const std::string directory = write_tiny_vae(WeightLayout::kPlain, 20, [&](Tensors& tensors) {
    for (auto it = tensors.begin(); it != tensors.end();) {
      it = it->first.starts_with("encoder.") ? tensors.erase(it) : std::next(it);
    }
    tensors["encoder.timbre_mean"] = (rows / 320 - 6).to(at::kFloat);
    tensors["encoder.timbre_components"] = ((rows * 0.01 * number).cos() / 20).to(at::kFloat);
  });
  const std::string config = tiny_vae_config(20);
  write_file(directory + "/config.json", config.substr(0, config.size() - 1) + R"(,
    "oscillators": {"mean": [-3, -2.8, -2.6, -2.4, -2.2, -2], "deviation": [1, 1.2, 1.4, 1.6, 1.8, 2]},
    "spectral_encoder": {"clock_channels": 2, "timbre_channels": 4, "pitch_classes": 8}})");
  return directory;
}

TEST("vae: the spectral encoder matches the latents of the training code") {
  const Vae vae = Vae::load(write_spectral_vae(), {at::kCPU, at::kFloat}, Control());
  EXPECT(vae.unused_tensors().empty());
  const at::Tensor turns = at::arange(8 * 1920 + 1919, at::kDouble) * (2 * M_PI / 48000);  // phase of 1 Hz
  const at::Tensor left = 0.3 * (46.2493 * turns).sin() + 0.1 * (440 * turns).sin() * (1 + 0.5 * (3 * turns).sin());
  const at::Tensor audio = at::stack({left, 0.2 * (1000 * turns).sin()}).unsqueeze(0).to(at::kFloat);
  const auto posterior = vae.encode(audio.narrow(2, 0, 8 * 1920), Control());
  EXPECT((posterior.mean.sizes() == at::IntArrayRef{1, 20, 8}));
  EXPECT(posterior.std.gt(0).all().item<bool>());
  // Latents of the same tones, computed by scripts/nano/training/latent_space.py.
  const at::Tensor expected = at::tensor(
      {-0.3249, -0.0055, 0.0054,  -0.2661, -0.8150, -1.5598, 0.0,    0.0,     15.0499, 4.4221,
       2.8831,  -1.9218, 4.4298,  0.2725,  5.4604,  1.1757,  -1.0517, -2.0068, -2.5490, -2.7341,
       -2.8881, -0.1937, 0.4422,  -0.3992, -2.7618, -3.0559, 0.0,    0.0,     11.2100, 3.6667,
       3.5076,  -1.4199, 7.7120,  -2.3014, 9.4428,  -1.1854, -3.6623, -3.6670, -3.6672, -3.6673},
      at::kDouble);
  const at::Tensor found = at::cat({posterior.mean[0].select(1, 0), posterior.mean[0].select(1, 4)});
  EXPECT((found - expected).abs().max().item<double>() < 0.02);  // logarithms are steep near silence
  EXPECT(at::equal(vae.encode(audio, Control()).mean, posterior.mean));  // ignores an incomplete last frame
}

TEST("vae: the spectral encoder gives the same latents for a part as for the whole, and can be cancelled") {
  const Vae vae = Vae::load(write_spectral_vae(), {at::kCPU, at::kFloat}, Control());
  const at::Tensor audio = 0.1 * noise({1, 2, 300 * 1920});
  const at::Tensor whole = vae.encode(audio, Control()).mean;
  const at::Tensor part = vae.encode(audio.narrow(2, 200 * 1920, 100 * 1920), Control()).mean;
  const auto inner = [](const at::Tensor& latents, int64_t first) { return latents.narrow(2, first, 90); };
  EXPECT((inner(whole, 205) - inner(part, 5)).abs().max().item<double>() < 1e-3);
  std::atomic<bool> cancelled{true};
  EXPECT_THROWS(vae.encode(audio, Control(&cancelled, {})), "cancelled");
}

TEST("vae: adds oscillators at their semitones to the decoded audio, from first to last sample") {
  constexpr int64_t kFrames = 150, kHop = 1920;  // more than a tile
  const std::string directory = write_tiny_vae(WeightLayout::kPlain), config = tiny_vae_config(4);
  const Placement placement{at::kCPU, at::kFloat};
  const Vae plain = Vae::load(directory, placement, Control());
  write_file(directory + "/config.json", config.substr(0, config.size() - 1) +
                                             R"(, "oscillators": {"mean": [-2, -3], "deviation": [1, 0.5]}})");
  const Vae vae = Vae::load(directory, placement, Control());
  at::Tensor latents = noise({2, 4, kFrames});
  latents.narrow(1, 0, 2).copy_(at::tensor({0.5f, -1.0f}).view({1, 2, 1}).expand({2, 2, kFrames}));
  const at::Tensor played = play_oscillators(latents, vae.config());
  EXPECT((played.sizes() == at::IntArrayRef{2, 1, kFrames * kHop}));
  const at::Tensor whole = decode(vae, latents);
  EXPECT(at::equal(whole, decode(plain, latents) + played));
  const Decoding decoding = decode_with_listener(vae, latents);
  EXPECT(at::equal(decoding.result, whole));
  for (const int64_t item : {0, 1}) EXPECT(at::equal(decoding.joined(item), whole[item]));

  const at::Tensor time = at::arange(kFrames * kHop, at::kDouble) / 48000;
  const auto wave = [&](double hertz, double turns) { return ((time * hertz + turns) * (2 * M_PI)).cos(); };
  const at::Tensor expected = std::exp(-1.5) * wave(41.20344461, 0) + std::exp(-3.5) * wave(43.65352893, 0.6180339887);
  EXPECT((played - expected.to(at::kFloat)).abs().max().item<double>() < 1e-3);

  latents[1][0].fill_(9);  // clamped to the limit `loudest`
  const at::Tensor loudest = play_oscillators(latents, vae.config())[1];
  EXPECT_NEAR(loudest.abs().max().item<double>(), std::exp(0.3) + std::exp(-3.5), 0.01);

  VaeConfig above = vae.config();
  above.oscillators.subtracted = std::exp(-3.5);  // the amplitude of the second semitone
  const at::Tensor first = play_oscillators(latents, above)[0];
  EXPECT_NEAR(first.abs().max().item<double>(), std::sqrt(std::exp(-3.0) - std::exp(-7.0)), 1e-3);

  latents[0][0][75] = 1.5;  // affects samples from the middle of the frame before to the middle of the frame after
  const at::Tensor change = (play_oscillators(latents, vae.config()) - played)[0][0];
  EXPECT(change.narrow(0, 75 * kHop, kHop).abs().max().item<double>() > 0.2);
  EXPECT(!change.narrow(0, 0, 74 * kHop + kHop / 2).any().item<bool>());
  EXPECT(!change.narrow(0, 76 * kHop + kHop / 2, kHop).any().item<bool>());
}
