#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace carillon::pretraining {

/// The command line of carillon-pretrain.
struct Options {
  std::string stage;
  std::string data;   // the data set: pieces.jsonl and the audio
  std::string model;  // config.json files and tokenizers of the model to train
  std::string work;   // states of the stages and cached latents
  std::string from;   // a trained checkpoint to start from where the stage has no state yet
  std::string out;    // export: the checkpoint folder to write
  std::vector<int64_t> unconditional_prompt;  // lm: ids of guidance's other prompt, its empty think block included
  std::string device = "auto";
  std::string dtype = "float32";  // of activations and of the weights that they meet; the leaves stay float32
  int64_t steps = 1'000'000;  // in all, resumed ones included
  double minutes = 0;         // of this run; 0: no limit
  int64_t batch = 8;
  double crop_seconds = 1;  // vae and tokenizer: audio of one item of a batch
  double learning_rate = 3e-4;
  int64_t warmup_steps = 200;
  double cooldown_minutes = 0;   // at the end of the run's minutes, in which the learning rate falls to 0
  double average_decay = 0.999;  // of the moving average of the weights
  double save_minutes = 3;       // between two saved states
  int64_t log_steps = 20;
  int64_t measure_steps = 500;  // between two measurements on held-out pieces
  int64_t seed = 1;
};

/// Throws kBadArgument naming the argument.
Options parse_options(const std::vector<std::string>& arguments);

}  // namespace carillon::pretraining
