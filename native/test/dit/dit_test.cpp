#include "core/dit/dit.h"

#include <ATen/ATen.h>

#include "core/diffusion/flow_matching.h"
#include "test/tiny_ace_step.h"

using namespace carillon;
using namespace carillon::test;

namespace {

const TinySize kSizes[] = {{.is_xl = false, .is_turbo = false}, {.is_xl = true, .is_turbo = false}};

/// Random inputs of the DiT.
struct Inputs {
  at::Tensor state, context, encoder_states, times;
  Inputs(int64_t batch, int64_t frames, int64_t length)
      : state(random_tensor({batch, frames, kTinyLatent}, 1)),
        context(random_tensor({batch, frames, 2 * kTinyLatent}, 2)),
        encoder_states(random_tensor({batch, length, kTinyEncoder}, 3)),
        times(at::full({1}, 0.6)) {}
};

at::Tensor velocity(const Dit& dit, const Inputs& in) {
  return dit.velocity(in.state, dit.embed_context(in.context), dit.modulate(in.times),
                      dit.make_cross_cache(in.encoder_states));
}

}  // namespace

TEST("dit: the sinusoid matches the reference, cosines first") {
  const at::Tensor one = sinusoid(at::full({1}, 1.0), 256)[0], third = sinusoid(at::full({1}, 0.3), 256)[0];
  EXPECT_NEAR(one[0].item<double>(), 0.562379, 2e-5);
  EXPECT_NEAR(one[1].item<double>(), 0.789627, 2e-4);
  EXPECT_NEAR(one[64].item<double>(), -0.839072, 2e-5);
  EXPECT_NEAR(one[128].item<double>(), 0.826880, 2e-5);
  EXPECT_NEAR(third[0].item<double>(), -0.022097, 2e-5);
  EXPECT_NEAR(third[192].item<double>(), 0.141120, 2e-5);
}

TEST("dit: the split patch embedding equals the strided convolution") {
  Tensors weights;
  const AceStep model = tiny_ace_step({}, [&](Tensors& tensors) { weights = tensors; });
  const Inputs in(2, 8, 3);
  const at::Tensor weight = weights["decoder.proj_in.1.weight"], bias = weights["decoder.proj_in.1.bias"];
  const at::Tensor channels = at::cat({in.context, in.state}, 2).transpose(1, 2);
  const at::Tensor joint = at::conv1d(channels, weight, bias, 2).transpose(1, 2);
  const at::Tensor by_frame = weight.permute({0, 2, 1});
  PatchEmbedding split{2,
                       {{by_frame.narrow(2, 0, 2 * kTinyLatent).reshape({-1, 4 * kTinyLatent})}, bias},
                       {{by_frame.narrow(2, 2 * kTinyLatent, kTinyLatent).reshape({-1, 2 * kTinyLatent})}, {}}};
  EXPECT(largest_difference(split.embed_context(in.context) + split.embed_state(in.state), joint) < 1e-5);
  EXPECT(largest_difference(model.dit.embed_context(in.context).tokens, split.embed_context(in.context)) < 1e-6);
}

TEST("dit: an odd length gives the same as the even length with a zero frame, cropped") {
  for (const auto& size : kSizes) {
    const AceStep model = tiny_ace_step(size);
    Inputs odd(2, 13, 5), even = odd;
    even.state = at::constant_pad_nd(odd.state, {0, 0, 0, 1});
    even.context = at::constant_pad_nd(odd.context, {0, 0, 0, 1});
    EXPECT_EQ(velocity(model.dit, odd).size(1), 13);
    EXPECT_EQ(largest_difference(velocity(model.dit, odd), velocity(model.dit, even).narrow(1, 0, 13)), 0.0);
  }
}

TEST("dit: an unconditional row equals cross-attention over a null sequence of any length") {
  for (const auto& size : kSizes) {
    const AceStep model = tiny_ace_step(size);
    const Inputs in(2, 12, 7);
    const auto twice = [](const at::Tensor& x) { return at::cat({x, x}); };
    const ContextTokens context = model.dit.embed_context(twice(in.context));
    const at::Tensor both = model.dit.velocity(twice(in.state), context, model.dit.modulate(in.times),
                                               model.dit.make_cross_cache(in.encoder_states, model.null_condition));
    for (const int64_t length : {1, 9}) {
      Inputs null = in;
      null.encoder_states = model.null_condition.expand({2, length, -1});
      EXPECT(largest_difference(both.narrow(0, 2, 2), velocity(model.dit, null)) < 1e-5);
    }
    EXPECT(largest_difference(both.narrow(0, 0, 2), velocity(model.dit, in)) < 1e-5);
    EXPECT(largest_difference(both.narrow(0, 0, 2), both.narrow(0, 2, 2)) > 1e-3);
  }
}

TEST("dit: items of a batch are independent") {
  for (const auto& size : kSizes) {
    const AceStep model = tiny_ace_step(size);
    const Inputs in(3, 20, 6);
    const at::Tensor together = velocity(model.dit, in);
    for (int64_t item = 0; item < 3; ++item) {
      Inputs alone = in;
      alone.state = in.state.narrow(0, item, 1);
      alone.context = in.context.narrow(0, item, 1);
      alone.encoder_states = in.encoder_states.narrow(0, item, 1);
      EXPECT(largest_difference(together.narrow(0, item, 1), velocity(model.dit, alone)) < 1e-5);
    }
  }
}

TEST("dit: omitting the second time equals passing the first time twice") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor times = at::tensor({1.0f, 0.3f});
  const Modulation constant = model.dit.modulate(times), computed = model.dit.modulate(times, times);
  EXPECT(largest_difference(constant.layers, computed.layers) < 1e-5);
  EXPECT(largest_difference(constant.output, computed.output) < 1e-5);
  EXPECT(largest_difference(constant.layers, model.dit.modulate(times, at::zeros({2})).layers) > 1e-2);
  EXPECT(largest_difference(constant.at(1).layers, model.dit.modulate(times.narrow(0, 1, 1)).layers) < 1e-5);
}

TEST("dit: velocity in training equals inference and has gradients for trained parameters") {
  AceStep model = tiny_ace_step({.is_xl = true});
  Inputs in(2, 10, 4);
  const auto by_layer = [&] {
    return model.dit.velocity_by_layer(in.state, model.dit.embed_context(in.context), model.dit.modulate(in.times),
                                       in.encoder_states, {}, run_layer);
  };
  EXPECT(largest_difference(by_layer(), velocity(model.dit, in)) < 1e-5);

  for (const Projection& projection : model.dit.projections()) {
    if (projection.name.find("cross_attn.v_proj") == std::string::npos) continue;
    const at::Tensor change = at::zeros_like(projection.weight().data).requires_grad_();
    projection.linear->branches.push_back(
        {projection.first_row, projection.rows, [=](const at::Tensor& x) { return at::linear(x, change); }});
    flow_matching_loss(model.dit, {.data = random_tensor({2, 10, kTinyLatent}, 7),
                                   .noise = in.state,
                                   .times = at::tensor({0.3f, 0.8f}),
                                   .context = in.context,
                                   .encoder_states = in.encoder_states})
        .backward();
    EXPECT(change.grad().abs().max().item<double>() > 0.0);
  }
}

TEST("dit: names a missing tensor") {
  EXPECT_THROWS(tiny_ace_step({}, [](Tensors& tensors) { tensors.erase("decoder.layers.1.mlp.up_proj.weight"); }),
                "decoder.layers.1.mlp.up_proj.weight");
}
