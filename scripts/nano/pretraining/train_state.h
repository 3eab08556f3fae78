#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/parameters.h"

namespace carillon::pretraining {

/// What a stage has learnt so far: its weights, their moving average and the moments of AdamW (Loshchilov and Hutter,
/// 2019) or of Muon. One file holds all of it, so that a run that was cut goes on with the bytes of one that was not.
class TrainState {
 public:
  /// `product_dtype`: of the products of matrices that a step of the optimiser takes.
  explicit TrainState(std::shared_ptr<Parameters> parameters, at::ScalarType product_dtype = at::kFloat)
      : parameters_(std::move(parameters)), product_dtype_(product_dtype) {}

  const std::shared_ptr<Parameters>& parameters() const { return parameters_; }
  int64_t step() const { return step_; }

  struct Update {
    double gradient_norm;  // before clipping
    bool applied;          // false where a gradient was not finite: nothing changed but the step
  };
  /// Clips the leaves' gradients to norm 1, steps the weights, follows with the average, clears the gradients.
  /// The average's decay grows from 0 to `average_decay`, so that it forgets the first values soon.
  Update update(double learning_rate, double average_decay);

  /// Runs `body` with the averaged weights in place of the trained ones.
  void with_average(const std::function<void()>& body);

  /// Replaces the file whole. Throws kStorage.
  void save(const std::string& path) const;
  /// Throws kBadCheckpoint.
  void load(const std::string& path);
  /// Only the averaged weights of a saved state, by name. Throws kBadArgument where its stage has not run.
  static std::map<std::string, at::Tensor> read_average(const std::string& path);

 private:
  struct Companions {
    at::Tensor average, first_moment, second_moment;
  };
  struct Learning {
    at::Tensor weight, gradient;
    Companions* companions;
  };
  Companions& companions(const std::string& name);
  void step_by_adam(const std::vector<Learning>& learning, double learning_rate);
  void step_by_muon(const std::vector<Learning>& learning, double learning_rate);

  std::shared_ptr<Parameters> parameters_;
  at::ScalarType product_dtype_;
  std::map<std::string, Companions> companions_;
  int64_t step_ = 0;
};

}  // namespace carillon::pretraining
