#include "pretraining/latents.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "pretraining/wav.h"

namespace carillon::pretraining {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSilence = "silence";  // file and tensor
constexpr int64_t kSilenceFrames = 15000;    // 600 s, the longest song
constexpr int64_t kSteadyFrame = 50;         // far enough from the start that silence sounds the same from there on

std::string path_of(const std::string& directory, const std::string& id) {
  return directory + "/" + id + ".safetensors";
}

/// audio [2, samples], cut to whole frames -> [frames, C] bfloat16.
at::Tensor latents_of(const LatentSpace& space, const at::Tensor& audio) {
  const int64_t samples = audio.size(1) / space.hop() * space.hop();
  return space(audio.narrow(1, 0, samples).unsqueeze(0))[0].t().to(at::kBFloat16).contiguous();
}

at::Tensor silence_of(const LatentSpace& space) {
  const at::Tensor start = latents_of(space, at::zeros({2, 2 * kSteadyFrame * space.hop()}));
  const at::Tensor steady = start.narrow(0, kSteadyFrame, 1).expand({kSilenceFrames - kSteadyFrame, -1});
  return at::cat({start.narrow(0, 0, kSteadyFrame), steady});
}

at::Tensor read_all(const std::string& path) {
  const Wav wav = Wav::open(path);
  return wav.read(0, wav.samples());
}

std::map<std::string, at::Tensor> all_of(const LatentSpace& space, const Piece& piece) {
  const at::Tensor mix = read_all(piece.mix);
  std::map<std::string, at::Tensor> tensors = {{kMix, latents_of(space, mix)}};
  for (const auto& [track, path] : piece.stems) {
    const at::Tensor stem = read_all(path);
    tensors[track] = latents_of(space, stem);
    tensors[rest_without(track)] = latents_of(space, mix - stem);
  }
  return tensors;
}

}  // namespace

std::string rest_without(const std::string& track) { return "without " + track; }

void make_latents(const Pieces& pieces, const LatentSpace& space, const std::string& directory,
                  const std::function<void(const std::string&)>& report) {
  fs::create_directories(directory);
  const std::string silence = path_of(directory, kSilence);
  if (!fs::exists(silence)) save_safetensors(silence, {{kSilence, silence_of(space)}});
  std::vector<const Piece*> all;
  for (const auto* split : {&pieces.train, &pieces.held_out}) {
    for (const Piece& piece : *split) all.push_back(&piece);
  }
  constexpr size_t kReportEvery = 50;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string path = path_of(directory, all[i]->id);
    if (!fs::exists(path)) save_safetensors(path, all_of(space, *all[i]));
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
