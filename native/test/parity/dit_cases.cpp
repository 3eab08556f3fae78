// Goldens of single forward passes: DiT, condition encoder, audio tokenizer and detokenizer.
#include <ATen/ATen.h>

#include "core/diffusion/flow_matching.h"
#include "core/dit/ace_step.h"
#include "test/parity/case.h"
#include "test/parity/masked_conditions.h"

namespace carillon::parity {
namespace {

AceStep load_model(const Case& golden) {
  return AceStep::load(golden.checkpoint_directory, golden.placement, Control());
}

at::Tensor times(const Case& golden, const char* name) {
  return golden.stored_input(name).to(golden.placement.device, at::kFloat);
}

void lyric_encoder(Case& golden) {
  const at::Tensor mask = golden.input("attention_mask").to(at::kBool);
  const at::Tensor states = encode_lyrics(load_model(golden).encoder, golden.input("inputs_embeds"), mask);
  golden.compare("last_hidden_state", states, mask);
}

void timbre_encoder(Case& golden) {
  const auto timbre = encode_timbre(load_model(golden).encoder, golden.input("latents"), golden.input("order"));
  golden.compare("mask", timbre.mask.to(at::kLong));
  golden.compare("embeddings", timbre.states, timbre.mask);
}

void condition_encoder(Case& golden) {
  const auto packed = encode(load_model(golden).encoder, {
      .text_hidden_states = golden.input("text_hidden_states"),
      .text_mask = golden.input("text_attention_mask").to(at::kBool),
      .lyric_embeddings = golden.input("lyric_hidden_states"),
      .lyric_mask = golden.input("lyric_attention_mask").to(at::kBool),
      .timbre_latents = golden.input("timbre_latents"),
      .timbre_items = golden.input("timbre_order"),
  });
  golden.compare("encoder_attention_mask", packed.mask.to(at::kLong));
  golden.compare("encoder_hidden_states", packed.states, packed.mask);
}

void dit(Case& golden) {
  const Dit dit = load_model(golden).dit;
  const Modulation modulation = dit.modulate(times(golden, "timestep"), times(golden, "timestep_r"));
  golden.compare("velocity",
                 dit.velocity(golden.input("hidden_states"), dit.embed_context(golden.input("context_latents")),
                              modulation, dit.make_cross_cache(golden.input("encoder_hidden_states"))));
}

void audio_tokenizer(Case& golden) {
  const AceStep model = load_model(golden);
  const auto tokens =
      model.tokenizer.tokenize(golden.stored_input("latents").to(golden.placement.device), model.silence);
  golden.compare("quantized", tokens.quantized);
  golden.compare("indices", tokens.indices.unsqueeze(-1));
}

void detokenizer(Case& golden) {
  const AceStep model = load_model(golden);
  const at::Tensor quantized = model.tokenizer.embed(golden.input("codes"));
  golden.compare("quantized", quantized);
  golden.compare("hints", model.detokenizer.hints(quantized));
}

void training_loss(Case& golden) {
  const at::Tensor loss =
      flow_matching_loss(load_model(golden).dit, {.data = golden.input("target_latents"),
                                                  .noise = golden.input("noise"),
                                                  .times = times(golden, "timestep"),
                                                  .context = golden.input("context_latents"),
                                                  .encoder_states = golden.input("encoder_hidden_states")});
  golden.compare("loss", loss.reshape({1}));
}

[[maybe_unused]] const bool dit_registered[] = {
    register_module("lyric_encoder", Depth::kModule, lyric_encoder),
    register_module("timbre_encoder", Depth::kModule, timbre_encoder),
    register_module("condition_encoder", Depth::kModule, condition_encoder),
    register_module("dit", Depth::kModule, dit),
    register_module("audio_tokenizer", Depth::kModule, audio_tokenizer),
    register_module("detokenizer", Depth::kModule, detokenizer),
    register_module("training_loss", Depth::kModule, training_loss),
};

}  // namespace
}  // namespace carillon::parity
