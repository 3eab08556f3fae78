#include <ATen/ATen.h>

#include "core/dit/condition_encoder.h"
#include "core/tasks/task_inputs.h"
#include "test/tiny_ace_step.h"

using namespace carillon;
using namespace carillon::test;

namespace {

at::Tensor timbre_state(const AceStep& model) {
  const at::Tensor clip = random_tensor({1, kTinyTimbreFrames, kTinyLatent}, 5);
  return model.encoder.encode_timbre(clip, at::zeros({1}, at::kLong), 1).states;
}

}  // namespace

TEST("conditions: packing keeps order and moves padding to the end") {
  const auto states = [](std::vector<float> values) { return at::tensor(values).reshape({1, -1, 1}); };
  const auto mask = [](std::vector<int64_t> values) { return at::tensor(values).unsqueeze(0).to(at::kBool); };
  const PackedStates lyrics{states({10, 11, 12}), mask({1, 1, 0})}, timbre{states({20}), mask({1})};
  const PackedStates text{states({30, 31}), mask({1, 0})};
  const PackedStates packed = pack(pack(lyrics, timbre), text);
  EXPECT(packed.states.flatten().equal(at::tensor({10.f, 11.f, 20.f, 30.f, 12.f, 31.f})));
  EXPECT(packed.mask.equal(mask({1, 1, 1, 1, 0, 0})));
}

TEST("conditions: only the XL family uses the special timbre token") {
  const auto doubled = [](Tensors& tensors) { tensors["encoder.timbre_encoder.special_token"] *= 2.0; };
  EXPECT(timbre_state(tiny_ace_step({})).equal(timbre_state(tiny_ace_step({}, doubled))));
  EXPECT(!timbre_state(tiny_ace_step({.is_xl = true})).equal(timbre_state(tiny_ace_step({.is_xl = true}, doubled))));
}

TEST("conditions: assigns reference clips to the items of a batch") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor clips = random_tensor({3, kTinyTimbreFrames, kTinyLatent}, 6);
  const auto timbre = model.encoder.encode_timbre(clips, at::tensor({0, 2, 2}, at::kLong), 3);
  EXPECT(timbre.mask.equal(at::tensor({1, 0, 0, 0, 1, 1}, at::kLong).reshape({3, 2}).to(at::kBool)));
  EXPECT_EQ(timbre.states[1].abs().max().item<double>(), 0.0);
  EXPECT_THROWS(model.encoder.encode_timbre(clips, at::tensor({0, 1, 3}, at::kLong), 3),
                "a reference clip is for item 3, but the batch has 3 items");
}

TEST("conditions: padding does not change states of real lyric tokens") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor lyrics = random_tensor({1, 6, kTinyText}, 8);
  const at::Tensor padded = at::cat({lyrics, random_tensor({1, 3, kTinyText}, 9)}, 1);
  const at::Tensor mask = at::arange(9).unsqueeze(0) < 6;
  EXPECT(largest_difference(model.encoder.encode_lyrics(padded, mask).narrow(1, 0, 6),
                            model.encoder.encode_lyrics(lyrics, at::ones({1, 6}, at::kBool))) < 1e-5);
}

TEST("audio tokenizer: pads an incomplete last group with the start of silence") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor latents = random_tensor({1, 13, kTinyLatent}, 10);
  const auto padded = at::cat({latents, model.silence_of(2)}, 1);
  const at::Tensor codes = model.tokenizer.tokenize(latents, model.silence).indices;
  EXPECT(codes.equal(model.tokenizer.tokenize(padded, model.silence).indices));
  EXPECT_EQ(codes.size(1), 3);
  EXPECT_THROWS(model.silence_of(kTinySilence + 1), "supports at most 200");
}

TEST("context: a cover gets the source decoded from its audio codes, other tasks get the source latents") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor source = random_tensor({2, 12, kTinyLatent}, 11), mask = at::ones_like(source);
  const at::Tensor is_cover = at::tensor({1, 0}, at::kLong).to(at::kBool);
  const at::Tensor own = make_context(model, {source, mask, is_cover, {}});
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.tokenize(source, model.silence).quantized);
  EXPECT(largest_difference(own[0].narrow(1, 0, kTinyLatent), hints[0].narrow(0, 0, 12)) < 1e-5);
  EXPECT(own[1].narrow(1, 0, kTinyLatent).equal(source[1]));
  const at::Tensor given = random_tensor({2, 15, kTinyLatent}, 12);
  const at::Tensor read = make_context(model, {source, mask, is_cover, given})[0].narrow(1, 0, kTinyLatent);
  EXPECT(read.equal(given[0].narrow(0, 0, 12)));
}
