#include "pretraining/latents.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <functional>
#include <string_view>

#include "core/runtime/error.h"
#include "core/vae/vae.h"
#include "pretraining/wav.h"

namespace carillon::pretraining {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVae = "vae";          // metadata: which encoder made the file
constexpr const char* kSilence = "silence";  // file and tensor
constexpr int64_t kSilenceFrames = 15000;    // 600 s, the longest song
constexpr int64_t kSteadyFrame = 50;         // far enough from the start that silence sounds the same from there on

std::string path_of(const std::string& directory, const std::string& id) { return directory + "/" + id + ".safetensors"; }

/// What tells one encoder from another.
std::string fingerprint(const std::string& vae_directory) {
  const Safetensors file = Safetensors::open(vae_directory + "/diffusion_pytorch_model.safetensors");
  size_t value = 0;
  for (const std::string& name : file.names()) {
    if (name.rfind("encoder.", 0) != 0) continue;
    const at::Tensor tensor = file.tensor(name).contiguous();
    const std::string_view bytes(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
    value = value * 31 + std::hash<std::string_view>()(bytes);
  }
  return std::to_string(value);
}

bool is_made_by(const std::string& path, const std::string& vae) {
  if (!fs::exists(path)) return false;
  const auto metadata = Safetensors::open(path).metadata();
  const auto found = metadata.find(kVae);
  return found != metadata.end() && found->second == vae;
}

/// audio [2, samples] -> [frames, C] bfloat16.
at::Tensor encode(const Vae& vae, const at::Tensor& audio) {
  return vae.encode(audio.unsqueeze(0), Control()).mean[0].t().to(at::kBFloat16).contiguous();
}

at::Tensor encode_silence(const Vae& vae) {
  const int64_t hop = vae.config().samples_per_frame();
  const at::Tensor start = encode(vae, at::zeros({vae.config().audio_channels, 2 * kSteadyFrame * hop}));
  const at::Tensor steady = start.narrow(0, kSteadyFrame, 1).expand({kSilenceFrames - kSteadyFrame, -1});
  return at::cat({start.narrow(0, 0, kSteadyFrame), steady});
}

at::Tensor encode_file(const Vae& vae, const std::string& path) {
  const Wav wav = Wav::open(path);
  return encode(vae, wav.read(0, wav.samples()));
}

}  // namespace

void make_latents(const Pieces& pieces, const std::string& vae_directory, const std::string& directory,
                  const Placement& placement, const std::function<void(const std::string&)>& report) {
  fs::create_directories(directory);
  const std::string made_by = fingerprint(vae_directory);
  const Vae vae = Vae::load(vae_directory, placement, Control());
  const auto keep = [&](const std::string& id, const std::map<std::string, at::Tensor>& tensors) {
    save_safetensors(path_of(directory, id), tensors, {{kVae, made_by}});
  };
  if (!is_made_by(path_of(directory, kSilence), made_by)) keep(kSilence, {{kSilence, encode_silence(vae)}});
  std::vector<const Piece*> all;
  for (const auto* split : {&pieces.train, &pieces.held_out}) {
    for (const Piece& piece : *split) all.push_back(&piece);
  }
  constexpr size_t kReportEvery = 50;
  for (size_t i = 0; i < all.size(); ++i) {
    const Piece& piece = *all[i];
    if (!is_made_by(path_of(directory, piece.id), made_by)) {
      std::map<std::string, at::Tensor> tensors = {{kMix, encode_file(vae, piece.mix)}};
      for (const auto& [track, path] : piece.stems) tensors[track] = encode_file(vae, path);
      keep(piece.id, tensors);
    }
    if ((i + 1) % kReportEvery == 0 || i + 1 == all.size()) {
      report("{\"stage\": \"latents\", \"done\": " + std::to_string(i + 1) +
             ", \"total\": " + std::to_string(all.size()) + "}");
    }
  }
}

Latents::Latents(const std::string& directory, const std::vector<Piece>& pieces) : silence_(read_silence(directory)) {
  for (const Piece& piece : pieces) files_.emplace(piece.id, Safetensors::open(path_of(directory, piece.id)));
}

at::Tensor Latents::of(const Piece& piece, const std::string& track) const {
  return files_.at(piece.id).tensor(track).to(at::kFloat);
}

int64_t Latents::frames(const Piece& piece) const { return files_.at(piece.id).shape(kMix)[0]; }

at::Tensor read_silence(const std::string& directory) {
  return Safetensors::open(path_of(directory, kSilence)).tensor(kSilence).to(at::kFloat).unsqueeze(0);
}

}  // namespace carillon::pretraining
