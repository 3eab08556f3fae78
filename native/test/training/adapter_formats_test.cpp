// Tests of saved adapters: the files, and whether a merged model equals the model in training.
#include <ATen/ATen.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <set>

#include "core/adapters/adapter.h"
#include "core/checkpoint/json.h"
#include "core/checkpoint/tensor_file.h"
#include "core/diffusion/flow_matching.h"
#include "core/training/adapter_formats.h"
#include "core/training/optimizer.h"
#include "core/training/trainable_adapter.h"
#include "test/tiny_ace_step.h"
#include "test/training/training_run.h"

using namespace carillon;
using namespace carillon::test;

namespace {

at::Tensor some_velocity(const Dit& dit, double time = 0.5) {
  return dit
      .velocity(random_tensor({1, 16, kTinyLatent}, 31), dit.embed_context(random_tensor({1, 16, 2 * kTinyLatent}, 32)),
                dit.modulate(at::full({1}, time)), dit.make_cross_cache(random_tensor({1, 6, kTinyEncoder}, 33)))
      .detach();
}

/// Velocity of a fresh model from `directory` with the adapter in `files` merged at `strength`.
at::Tensor merged_velocity(const std::string& directory, const std::string& files, double strength) {
  AceStep model = AceStep::load(directory, {at::kCPU, at::kFloat}, Control());
  const auto checkpoint = Checkpoint::open(directory);
  merge_adapters(model.dit, checkpoint.weights({at::kCPU, at::kFloat}).sub("decoder"),
                 {{std::make_shared<const Adapter>(read_adapter(files, adapter_targets(model.dit))), strength}});
  return some_velocity(model.dit);
}

const AdapterDesign kDesigns[] = {
    Lora{.rank = 3, .alpha = 5, .dropout = 0.1},
    Lokr{.dimension = 16, .alpha = 5, .weight_decompose = false},
    Lokr{.dimension = 16, .alpha = 5},
    Lokr{.dimension = 2, .alpha = 5, .factor = 4, .weight_decompose = false},
    Lokr{.dimension = 2, .alpha = 5, .factor = 4},
    Lokr{.dimension = 1, .alpha = 3, .decompose_both = true, .use_scalar = true, .weight_decompose = false},
    Lokr{.dimension = 1, .alpha = 3, .decompose_both = true, .use_scalar = true}};

/// Trains `adapter` on one sample with fixed noise at time 0.5, until the loss is below `enough` or after `max_steps`.
/// Returns the loss before and after.
std::pair<double, double> overfit(const Dit& dit, const TrainableAdapter& adapter, int64_t max_steps,
                                  double learning_rate, double enough) {
  const FlowMatchingBatch batch{.data = random_tensor({1, 16, kTinyLatent}, 1),
                                .noise = random_tensor({1, 16, kTinyLatent}, 2),
                                .times = at::full({1}, 0.5),
                                .context = random_tensor({1, 16, 2 * kTinyLatent}, 3),
                                .encoder_states = random_tensor({1, 6, kTinyEncoder}, 4)};
  const std::vector<at::Tensor> parameters = tensors_of(adapter.parameters());
  torch::optim::AdamW optimizer = make_adamw(parameters);
  const double first = flow_matching_loss(dit, batch).item<double>();
  for (int64_t step = 0; step < max_steps; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = flow_matching_loss(dit, batch);
    if (loss.item<double>() < enough) break;
    loss.backward();
    clip_gradients(parameters, 1.0);
    apply_gradients(optimizer, learning_rate);
  }
  return {first, flow_matching_loss(dit, batch).item<double>()};
}

}  // namespace

TEST("adapter saving: a LoRA has exactly the two files and keys of PEFT") {
  AceStep model = tiny_ace_step({});
  const TrainableAdapter adapter(model.dit, Lora{.rank = 3, .alpha = 5, .dropout = 0.1}, 1);
  const std::string folder = fixture_directory();
  save_adapter(adapter, folder, "tiny", "{}");
  const Safetensors file = Safetensors(folder + "/adapter/adapter_model.safetensors");
  EXPECT(file.metadata() == (std::map<std::string, std::string>{{"format", "pt"}}));
  std::set<std::string> expected;
  for (const auto& module : adapter.modules()) {
    const std::string name = "base_model.model." + module.name;
    expected.insert({name + ".lora_A.weight", name + ".lora_B.weight"});
    EXPECT(file.shape(name + ".lora_A.weight") == (std::vector<int64_t>{3, module.weight.size(1)}));
    EXPECT(file.shape(name + ".lora_B.weight") == (std::vector<int64_t>{module.weight.size(0), 3}));
    EXPECT(file.tensor(name + ".lora_A.weight").scalar_type() == at::kFloat);
  }
  EXPECT_EQ(expected.size(), size_t{2 * 8 * kTinyLayers});
  const auto names = file.names();
  EXPECT((std::set<std::string>(names.begin(), names.end()) == expected));
  EXPECT(file.has("base_model.model.layers.1.cross_attn.o_proj.lora_B.weight"));
}

TEST("adapter saving: the config of a LoRA is the one that PEFT expects") {
  AceStep model = tiny_ace_step({});
  const TrainableAdapter adapter(model.dit, Lora{.rank = 3, .alpha = 5, .dropout = 0.1}, 1);
  const std::string folder = fixture_directory();
  save_adapter(adapter, folder, "tiny", "{}");
  std::ifstream stream(folder + "/adapter/adapter_config.json");
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  EXPECT_EQ(text, std::string(R"({
  "alpha_pattern": {},
  "auto_mapping": null,
  "base_model_name_or_path": "tiny",
  "bias": "none",
  "exclude_modules": null,
  "fan_in_fan_out": false,
  "inference_mode": true,
  "init_lora_weights": true,
  "layers_pattern": null,
  "layers_to_transform": null,
  "loftq_config": {},
  "lora_alpha": 5,
  "lora_bias": false,
  "lora_dropout": 0.1,
  "megatron_config": null,
  "megatron_core": "megatron.core",
  "modules_to_save": null,
  "peft_type": "LORA",
  "r": 3,
  "rank_pattern": {},
  "revision": null,
  "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"],
  "task_type": "FEATURE_EXTRACTION",
  "use_dora": false,
  "use_rslora": false
}
)"));
}

TEST("adapter saving: a LoKr is one LyCORIS file, with w1 undecomposed and the scalar folded in") {
  AceStep model = tiny_ace_step({});
  const LokrDesign design = Lokr{.dimension = 1, .alpha = 3, .decompose_both = true, .use_scalar = true};
  const TrainableAdapter adapter(model.dit, design, 1);
  disturb(adapter);
  const std::string folder = fixture_directory();
  save_adapter(adapter, folder, "tiny", R"({"seed": 1})");
  const Safetensors file = Safetensors(folder + "/lokr_weights.safetensors");
  EXPECT_EQ(file.metadata().at("algo"), std::string("lokr"));
  EXPECT_EQ(file.metadata().at("format"), std::string("lycoris"));
  EXPECT_EQ(file.metadata().at("run_metadata"), std::string(R"({"seed": 1})"));
  EXPECT_EQ(file.metadata().at("lokr_config"),
            std::string(R"({"bypass_mode": false, "decompose_both": false, "factor": -1, "full_matrix": false, )"
                        R"("linear_alpha": 3, "linear_dim": 1, "rs_lora": false, )"
                        R"("target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"], )"
                        R"("unbalanced_factorization": false, "use_scalar": false, "use_tucker": false, )"
                        R"("weight_decompose": true})"));
  EXPECT_EQ(file.names().size(), size_t{5 * 8 * kTinyLayers});
  const std::string name = "lycoris_layers_0_self_attn_q_proj";  // 32 x 32, that is (4 * 8) x (4 * 8)
  const auto& lokr = static_cast<const TrainedLokr&>(*adapter.modules()[0].delta);
  EXPECT(file.shape(name + ".alpha").empty());
  EXPECT_EQ(file.tensor(name + ".alpha").item<double>(), 3.0);
  EXPECT(at::equal(file.tensor(name + ".lokr_w1"), at::matmul(lokr.w1.a, lokr.w1.b) * lokr.scalar));
  EXPECT(file.shape(name + ".lokr_w2_a") == (std::vector<int64_t>{8, 1}));
  EXPECT(file.shape(name + ".lokr_w2_b") == (std::vector<int64_t>{1, 8}));
  EXPECT(file.shape(name + ".dora_scale") == (std::vector<int64_t>{32, 1}));
}

TEST("adapter saving: a LoKr with two undecomposed factors stores its dimension as alpha") {
  AceStep model = tiny_ace_step({});
  const TrainableAdapter adapter(model.dit, Lokr{.dimension = 16, .alpha = 5, .weight_decompose = false}, 1);
  const std::string folder = fixture_directory();
  save_adapter(adapter, folder, "tiny", "{}");
  const Safetensors file = Safetensors(folder + "/lokr_weights.safetensors");
  EXPECT_EQ(file.tensor("lycoris_layers_0_self_attn_q_proj.alpha").item<double>(), 16.0);
  EXPECT(file.has("lycoris_layers_0_self_attn_q_proj.lokr_w2"));
  EXPECT(!file.has("lycoris_layers_0_self_attn_q_proj.dora_scale"));
  EXPECT_EQ(Json::parse(file.metadata().at("lokr_config"), "lokr_config").get_int("linear_alpha"), int64_t{5});
}

TEST("adapter saving: merging the saved adapter reproduces the trained model, for every design") {
  for (const bool is_xl : {false, true}) {
    const std::string directory = write_tiny_ace_step({.is_xl = is_xl});
    for (const AdapterDesign& design : kDesigns) {
      AceStep model = AceStep::load(directory, {at::kCPU, at::kFloat}, Control());
      const at::Tensor base = some_velocity(model.dit);
      const TrainableAdapter adapter(model.dit, design, 1);
      disturb(adapter);
      const at::Tensor trained = some_velocity(model.dit);
      const std::string folder = fixture_directory();
      save_adapter(adapter, folder, "tiny", "{}");
      EXPECT(largest_difference(trained, base) > 1e-2);
      EXPECT(largest_difference(merged_velocity(directory, folder, 1.0), trained) < 1e-5);
      EXPECT_EQ(largest_difference(merged_velocity(directory, folder, 0.0), base), 0.0);
    }
  }
}

TEST("adapter saving: an overfitted adapter reproduces its sample after loading") {
  if (kIsSanitized) SKIP(kTooSlowSanitized);
  // Enlarge the output layer. Its random weights are small and would limit the effect of attention.
  const auto with_wide_head = [](Tensors& tensors) { tensors["decoder.proj_out.1.weight"].mul_(5); };
  const std::string directory = write_tiny_ace_step({}, with_wide_head);
  for (const AdapterDesign& design :
       {AdapterDesign(Lora{.rank = 16, .alpha = 32, .dropout = 0}),
        AdapterDesign(Lokr{.dimension = 64, .weight_decompose = false}), AdapterDesign(Lokr{})}) {
    AceStep model = AceStep::load(directory, {at::kCPU, at::kFloat}, Control());
    const TrainableAdapter adapter(model.dit, design, 1);
    const auto [first, last] = overfit(model.dit, adapter, 400, 1e-2, 0.05);
    EXPECT(last < 0.1 * first);
    EXPECT(last < 0.1);  // a zero velocity has a loss of about 2
    const std::string folder = fixture_directory();
    save_adapter(adapter, folder, "tiny", "{}");
    EXPECT(largest_difference(merged_velocity(directory, folder, 1.0), some_velocity(model.dit)) < 1e-4);
  }
}
