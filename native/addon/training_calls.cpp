#include <variant>

#include "addon/call.h"
#include "addon/entry.h"
#include "addon/exports.h"
#include "addon/values.h"
#include "core/runtime/device.h"
#include "core/training/adapter_training.h"

namespace carillon::addon {

namespace {

AdapterDesign design_of(const Napi::Object& object) {
  const auto kind = text_of(object, "kind");
  if (kind == "lora") {
    return LoraDesign{
        .rank = integer_of(object, "rank"),
        .alpha = number_of(object, "alpha"),
        .dropout = number_of(object, "dropout"),
    };
  }
  if (kind == "lokr") {
    return LokrDesign{
        .dimension = integer_of(object, "dimension"),
        .alpha = number_of(object, "alpha"),
        .factor = integer_of(object, "factor"),
        .decompose_both = flag_of(object, "decomposeBoth"),
        .use_tucker = flag_of(object, "useTucker"),
        .use_scalar = flag_of(object, "useScalar"),
        .weight_decompose = flag_of(object, "weightDecompose"),
    };
  }
  throw bad_argument(object.Env(), "unknown adapter kind '" + kind + "'");
}

/// Converts all training options except the placement. The training thread chooses the placement, because the search
/// for a device can take long.
TrainingOptions options_of(const Napi::Object& object) {
  TrainingOptions options;
  options.model = source_of(object, "model");
  options.model_name = text_of(object, "modelName");
  options.adapter = design_of(object_of(object, "adapter"));
  options.data_set_name = text_of(object, "dataSetName");
  options.samples = texts_of(object, "samples");
  options.output_directory = text_of(object, "outputDirectory");
  options.learning_rate = number_of(object, "learningRate");
  options.epochs = integer_of(object, "epochs");
  options.batch_size = integer_of(object, "batchSize");
  options.gradient_accumulation = integer_of(object, "gradientAccumulation");
  options.save_every_epochs = integer_of(object, "saveEveryEpochs");
  options.shift = number_of(object, "shift");
  options.seed = static_cast<uint64_t>(integer_of(object, "seed"));
  options.gradient_checkpointing = flag_of(object, "gradientCheckpointing");
  options.timestep_sampling = choice_of(object, "timestepSampling", kChoices<TimestepSampling>);
  options.trim_condition = flag_of(object, "trimCondition");
  if (has(object, "conditionDropout")) options.condition_dropout = number_of(object, "conditionDropout");
  if (has(object, "resumeFrom")) options.resume_from = text_of(object, "resumeFrom");
  return options;
}

/// Converts an event of the trainer to a TrainingEvent of src/engine/addon.ts.
struct EventToJs {
  Napi::Env env;

  NewObject made(const char* kind) const { return NewObject(env).set("kind", kind); }

  Napi::Value operator()(const training_event::SamplesLoaded& event) const {
    return made("loaded").set("samples", event.samples);
  }
  Napi::Value operator()(const training_event::RunStart& event) const {
    return made("started")
        .set("device", event.device)
        .set("precision", event.precision)
        .set("trainableParameters", event.trainable_parameters)
        .set("totalSteps", event.total_steps);
  }
  Napi::Value operator()(const training_event::RunResume& event) const {
    return made("resumed").set("epoch", event.epoch).set("step", event.step).set("hasOptimizer", event.has_optimizer);
  }
  Napi::Value operator()(const training_event::StepDone& event) const {
    return made("step")
        .set("epoch", event.epoch)
        .set("step", event.step)
        .set("loss", event.loss)
        .set("learningRate", event.learning_rate)
        .set("gradientNorm", event.gradient_norm);
  }
  Napi::Value operator()(const training_event::StepSkipped& event) const {
    return made("skipped")
        .set("epoch", event.epoch)
        .set("step", event.step)
        .set("notFinite", event.not_finite)
        .set("parameters", event.parameters);
  }
  Napi::Value operator()(const training_event::EpochDone& event) const {
    return made("epoch").set("epoch", event.epoch).set("seconds", event.seconds).set("loss", event.loss);
  }
  Napi::Value operator()(const training_event::CheckpointSaved& event) const {
    return made("checkpoint").set("epoch", event.epoch).set("path", event.path);
  }
  Napi::Value operator()(const training_event::RunNotice& event) const {
    return made("notice").set("text", event.text);
  }
};

Napi::Value to_js(Napi::Env env, const TrainingResult& result) {
  return NewObject(env)
      .set("outcome", result.completed ? "completed" : "stopped")
      .set("path", result.path)
      .set("steps", result.steps);
}

}  // namespace

Napi::Value train(const Napi::CallbackInfo& info) {
  const auto object = object_of(info[0], "options");
  auto work = [options = options_of(object), device = text_of(object, "device"), dtype = text_of(object, "dtype")](
                  const Control& control, const Call::SendEvent& send) mutable -> Call::MakeValue {
    options.placement = choose_placement(device, dtype);
    options.placement.weights = WeightForm::kDense;
    use_own_stream(options.placement.device, false);
    const auto on_event = [&send](const TrainingEvent& event) {
      if (send) send([event](Napi::Env env) { return std::visit(EventToJs{env}, event); });
    };
    const auto result = carillon::train(options, on_event, control);
    return [result](Napi::Env env) { return to_js(env, result); };
  };
  return Call::start(info.Env(), WorkerThread::training(), info[1], std::move(work));
}

}  // namespace carillon::addon
