#include "pretraining/run.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <filesystem>

#include "core/checkpoint/safetensors.h"
#include "core/runtime/error.h"
#include "core/runtime/placement.h"
#include "pretraining/decoder_stage.h"
#include "pretraining/dit_stage.h"
#include "pretraining/encoder_stage.h"
#include "pretraining/export.h"
#include "pretraining/initial_weights.h"
#include "pretraining/lapped_transform.h"
#include "pretraining/latent_space.h"
#include "pretraining/lm_stage.h"
#include "pretraining/tokenizer_stage.h"
#include "pretraining/train.h"
#include "pretraining/words_stage.h"

namespace carillon::pretraining {
namespace {

std::string latents_of(const Options& options) { return options.work + "/latents"; }

/// Measured of the data set once.
LatentSpace space_of(const Options& options, const Pieces& pieces) {
  const VaeConfig config = VaeConfig::read(options.model + "/vae");
  const std::string path = options.work + "/space.safetensors";
  if (!std::filesystem::exists(path)) LatentSpace::measure(config, pieces.train).save(path);
  return LatentSpace::load(config, path);
}

/// Weights of a checkpoint folder that `--from` names, as the leaves of a stage.
void start_from(Parameters& parameters, const Options& options) {
  const std::string vae = "vae/diffusion_pytorch_model.safetensors", dit = "model.safetensors";
  const auto is_wanted = [&](const std::string& file, const std::string& name) {
    const auto is_below = [&](const std::string& part) { return name.rfind(part + ".", 0) == 0; };
    if (file == vae) return is_below(options.stage);
    if (file == dit) return (is_below("tokenizer") || is_below("detokenizer")) == (options.stage == "tokenizer");
    return true;
  };
  const auto read = [&](const std::string& file, const std::string& prefix) {
    const Safetensors tensors = Safetensors::open(options.from + "/" + file);
    for (const std::string& name : tensors.names()) {
      if (is_wanted(file, name)) parameters.set(prefix + name, tensors.tensor(name));
    }
  };
  if (options.stage == "encoder" || options.stage == "decoder") return read(vae, "");
  if (options.stage == "lm") return read("lm/model.safetensors", "");
  if (options.stage == "words") return read("text_encoder/model.safetensors", std::string(kTextEncoder) + ".");
  read(dit, "");
  if (options.stage == "dit") read("text_encoder/model.safetensors", std::string(kTextEncoder) + ".");
}

/// The averaged weights of a stage that ran before, which later ones use and do not change.
std::shared_ptr<Parameters> trained(const std::string& stage, const Options& options, at::Device device) {
  auto parameters = std::make_shared<Parameters>(device, initial_weights(options.seed));
  for (const auto& [name, tensor] : TrainState::read_average(state_path(options.work, stage))) {
    parameters->set(name, tensor);
  }
  return parameters;
}

}  // namespace

std::unique_ptr<TrainingStage> make_stage(const Options& options, Parameters& parameters, at::Device device) {
  if (options.stage == "words") {
    return std::make_unique<WordsStage>(Qwen3Config::read(options.model + "/text_encoder"),
                                        Pieces::read_words(options.data), options.batch, device);
  }
  const Pieces pieces = Pieces::read(options.data);
  if (options.stage == "encoder") {
    auto stage = std::make_unique<EncoderStage>(VaeConfig::read(options.model + "/vae"), pieces,
                                                space_of(options, pieces), options.batch, options.crop_seconds, device);
    stage->begin(parameters);
    return stage;
  }
  if (options.stage == "decoder") {
    const VaeConfig config = VaeConfig::read(options.model + "/vae");
    if (!parameters.has("decoder.conv1.weight")) {
      begin_decoder(parameters, config, space_of(options, pieces).wave_deviations());
    }
    return std::make_unique<DecoderStage>(config, pieces, latents_of(options), options.batch, options.crop_seconds,
                                          device);
  }
  const DitConfig config = DitConfig::read(options.model);
  if (options.stage == "tokenizer") {
    return std::make_unique<TokenizerStage>(config, pieces, latents_of(options), options.batch, options.crop_seconds,
                                            device);
  }
  if (options.stage == "dit" || options.stage == "guidance") {
    DitStage::begin(parameters, config, state_path(options.work, "words"));
    return std::make_unique<DitStage>(config, Qwen3Config::read(options.model + "/text_encoder"), pieces,
                                      latents_of(options), trained("tokenizer", options, device),
                                      /*with_guidance=*/options.stage == "guidance", options.batch,
                                      options.crop_seconds, device);
  }
  if (options.stage == "lm") {
    if (options.unconditional_prompt.empty()) fail(ErrorCode::kBadArgument, "lm needs --unconditional-prompt");
    const std::string directory = options.model + "/lm";
    return std::make_unique<LmStage>(Qwen3Config::read(directory), CodeTokens::read(directory), config, pieces,
                                     Pieces::read_words(options.data), latents_of(options),
                                     trained("tokenizer", options, device), options.unconditional_prompt, options.batch,
                                     device);
  }
  fail(ErrorCode::kBadArgument, "unknown stage '" + options.stage +
                                    "': use latents, encoder, decoder, tokenizer, words, dit, guidance, lm or export");
}

void run(const Options& options, const Report& report) {
  // Products in TF32 where the device has it: training does not notice.
  at::globalContext().setAllowTF32CuBLAS(true);
  at::globalContext().setAllowTF32CuDNN(true);
  std::filesystem::create_directories(options.work);
  if (options.stage == "export") {
    return export_checkpoint(options.model, options.work, latents_of(options), options.out);
  }
  if (options.stage == "latents") {
    const Pieces pieces = Pieces::read(options.data);
    return make_latents(pieces, space_of(options, pieces), latents_of(options), report);
  }
  const Placement placement = choose_placement(options.device, options.dtype);
  const auto parameters = std::make_shared<Parameters>(placement.device, initial_weights(options.seed));
  TrainState state(parameters, placement.dtype);
  const std::string path = state_path(options.work, options.stage);
  if (std::filesystem::exists(path)) {
    state.load(path);
  } else if (options.stage == "guidance") {
    for (const auto& [name, tensor] : TrainState::read_average(state_path(options.work, "dit"))) {
      parameters->set(name, tensor);
    }
  } else if (!options.from.empty()) {
    start_from(*parameters, options);
  }
  const auto stage = make_stage(options, *parameters, placement.device);
  train(*stage, state, path, placement.dtype, options, report);
}

}  // namespace carillon::pretraining
