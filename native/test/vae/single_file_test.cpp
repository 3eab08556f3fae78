// Models in single files, as ComfyUI publishes them, give the same songs as models in folders.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "core/runtime/error.h"
#include "core/tasks/renderer.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

/// Number after ".block." in a tensor name; -1 if the name has no ".block.".
int block_of(const std::string& name) {
  const size_t at = name.find(".block.");
  return at == std::string::npos ? -1 : std::stoi(name.substr(at + 7));
}

/// Converts a tensor name of an autoencoder with five blocks to its name in stable-audio-tools.
std::string stable_audio_name(const std::string& name) {
  const bool is_decoder = name.starts_with("decoder.");
  const std::string network = is_decoder ? "decoder.layers." : "encoder.layers.";
  const auto place_of = [](const std::vector<std::string>& order, const std::string& part) {
    return std::to_string(std::find(order.begin(), order.end(), part) - order.begin());
  };
  const int block = block_of(name);
  if (block < 0) {
    const size_t part = name.find('.') + 1, tail = name.find('.', part);
    const std::string place = name.substr(part, tail - part);
    const std::string layer = place == "conv1" ? "0" : place == "snake1" ? "6" : "7";
    return network + layer + name.substr(tail);
  }
  const std::string begin = network + std::to_string(block + 1) + ".layers.";
  const size_t part = name.find('.', name.find(".block.") + 7) + 1, tail = name.find('.', part);
  const std::vector<std::string> order =
      is_decoder ? std::vector<std::string>{"snake1", "conv_t1", "res_unit1", "res_unit2", "res_unit3"}
                 : std::vector<std::string>{"res_unit1", "res_unit2", "res_unit3", "snake1", "conv1"};
  const std::string place = place_of(order, name.substr(part, tail - part));
  if (name.find("res_unit") == std::string::npos) return begin + place + name.substr(tail);
  const size_t end = name.find('.', tail + 1);
  const std::string inner = place_of({"snake1", "conv1", "snake2", "conv2"}, name.substr(tail + 1, end - tail - 1));
  return begin + place + ".layers." + inner + name.substr(end);
}

Tensors renamed(const Tensors& tensors, const std::function<std::string(const std::string&)>& name_of) {
  Tensors result;
  for (const auto& [name, tensor] : tensors) result[name_of(name)] = tensor;
  return result;
}

std::string write_single(const Tensors& tensors) {
  const std::string path = fixture_directory() + "/all.safetensors";
  write_safetensors(path, tensors);
  return path;
}

/// The tiny autoencoder in ComfyUI's layout. Names start with `prefix`. Alpha and beta of a snake have one dimension.
ModelSource comfy_vae(const std::string& prefix) {
  Tensors tensors = renamed(TinyVaeWriter(WeightLayout::kWeightNorm, kTinyLatent).write(),
                            [&](const std::string& name) { return prefix + stable_audio_name(name); });
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with(".alpha") || name.ends_with(".beta")) tensor = tensor.flatten();
  }
  tensors["other.weight"] = at::zeros({1});
  return {write_single(tensors), prefix, tiny_vae_config(kTinyLatent)};
}

}  // namespace

TEST("single file: an autoencoder with ComfyUI names gives the same results as with diffusers names") {
  const std::string folder = fixture_directory();
  write_file(folder + "/config.json", tiny_vae_config(kTinyLatent));
  write_safetensors(folder + "/model.safetensors", TinyVaeWriter(WeightLayout::kWeightNorm, kTinyLatent).write());
  const Vae expected = Vae::load(folder, kFloat32, Control());
  const at::Tensor latents = random_tensor({1, kTinyLatent, 6}, 3, 1.0), audio = recording(4, 5).unsqueeze(0);
  for (const std::string prefix : {"", "vae."}) {
    const Vae vae = Vae::load(comfy_vae(prefix), kFloat32, Control());
    EXPECT(vae.decode(latents, Control())[0].equal(expected.decode(latents, Control())[0]));
    EXPECT(vae.encode(audio, Control()).mean.equal(expected.encode(audio, Control()).mean));
    EXPECT_EQ(vae.unused_tensors().size(), size_t{prefix.empty() ? 1u : 0u});
  }
}

TEST("single file: silence is encoded by the autoencoder and constant after the first frames") {
  const Vae vae = Vae::load(comfy_vae(""), kFloat32, Control());
  const at::Tensor silence = vae.encode_silence(200, Control());
  const at::Tensor heard = vae.encode(at::zeros({1, 2, 80 * kSamplesPerFrame}), Control()).mean.transpose(1, 2);
  EXPECT(silence.sizes() == at::IntArrayRef({1, 200, kTinyLatent}));
  EXPECT((silence.narrow(1, 0, 40) - heard.narrow(1, 0, 40)).abs().max().item<double>() < 1e-5);
  EXPECT(silence.narrow(1, 50, 1).equal(silence.narrow(1, 199, 1)));
  EXPECT(!silence.narrow(1, 0, 1).equal(silence.narrow(1, 50, 1)));
  EXPECT(vae.encode_silence(3, Control()).equal(silence.narrow(1, 0, 3)));
}
