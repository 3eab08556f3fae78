#include "pretraining/export.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <filesystem>
#include <map>
#include <string_view>

#include "core/checkpoint/file_io.h"
#include "core/checkpoint/safetensors.h"
#include "pretraining/dit_stage.h"
#include "pretraining/latents.h"
#include "pretraining/train_state.h"

namespace carillon::pretraining {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

/// Files of a folder of the model that say how to read its weights.
void copy_descriptions(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (entry.path().extension() == ".json" && entry.path().filename() != "config.json") {
      fs::copy_file(entry.path(), to / entry.path().filename(), fs::copy_options::overwrite_existing);
    }
  }
  fs::copy_file(from / "config.json", to / "config.json", fs::copy_options::overwrite_existing);
}

void save_weights(const Tensors& tensors, const fs::path& path) {
  fs::create_directories(path.parent_path());
  Tensors halves;
  for (const auto& [name, tensor] : tensors) halves[name] = tensor.to(at::kBFloat16);
  save_safetensors(path.string(), halves, {{"format", "pt"}});
}

/// Splits off what stands below `prefix.`, without it.
Tensors take_below(Tensors& tensors, const std::string& prefix) {
  Tensors below;
  for (auto entry = tensors.begin(); entry != tensors.end();) {
    const bool inside = entry->first.rfind(prefix + ".", 0) == 0;
    if (inside) below[entry->first.substr(prefix.size() + 1)] = entry->second;
    entry = inside ? tensors.erase(entry) : std::next(entry);
  }
  return below;
}

/// What the stages of encoder and decoder have learnt.
void export_vae(const fs::path& model, const std::string& work, const fs::path& out) {
  Tensors vae = TrainState::read_average(state_path(work, "encoder"));
  vae.merge(TrainState::read_average(state_path(work, "decoder")));
  take_below(vae, "discriminator");
  save_weights(vae, out / "diffusion_pytorch_model.safetensors");
  copy_descriptions(model, out);
}

/// As torch.save writes it: [1, C, frames].
void save_silence(const std::string& latents, const fs::path& path) {
  const at::Tensor silence = read_silence(latents).transpose(1, 2).contiguous();
  const std::vector<char> bytes = torch::jit::pickle_save(silence);
  write_file_atomically(path.string(), std::string_view(bytes.data(), bytes.size()));
}

}  // namespace

std::string state_path(const std::string& work, const std::string& stage) {
  return work + "/" + stage + ".safetensors";
}

void export_checkpoint(const std::string& model, const std::string& work, const std::string& latents,
                       const std::string& out) {
  const fs::path from(model), to(out);
  Tensors dit = TrainState::read_average(state_path(work, "guidance"));
  const Tensors text_encoder = take_below(dit, kTextEncoder);
  take_below(dit, kWordsHead);
  for (const auto& [name, tensor] : TrainState::read_average(state_path(work, "tokenizer"))) dit[name] = tensor;
  export_vae(from / "vae", work, to / "vae");
  save_weights(text_encoder, to / "text_encoder" / "model.safetensors");
  copy_descriptions(from / "text_encoder", to / "text_encoder");
  Tensors lm = TrainState::read_average(state_path(work, "lm"));
  take_below(lm, kWordsHead);
  save_weights(lm, to / "lm" / "model.safetensors");
  copy_descriptions(from / "lm", to / "lm");
  save_weights(dit, to / "model.safetensors");
  save_silence(latents, to / "silence_latent.pt");
  copy_descriptions(from, to);
}

}  // namespace carillon::pretraining
