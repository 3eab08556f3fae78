#include <ATen/ATen.h>

#include <atomic>
#include <utility>
#include <vector>

#include "core/dit/condition_encoder.h"
#include "core/tasks/task_inputs.h"
#include "test/tiny_ace_step.h"

using namespace carillon;
using namespace carillon::test;

namespace {

at::Tensor timbre_state(const AceStep& model) {
  const at::Tensor clip = random_tensor({1, kTinyTimbreFrames, kTinyLatent}, 5);
  return model.encoder.encode_timbre(clip);
}

}  // namespace

TEST("conditions: only the XL family uses the special timbre token") {
  const auto doubled = [](Tensors& tensors) { tensors["encoder.timbre_encoder.special_token"] *= 2.0; };
  EXPECT(timbre_state(tiny_ace_step({})).equal(timbre_state(tiny_ace_step({}, doubled))));
  EXPECT(!timbre_state(tiny_ace_step({.is_xl = true})).equal(timbre_state(tiny_ace_step({.is_xl = true}, doubled))));
}

TEST("conditions: each song of a job has the same states as alone; they can be cancelled") {
  const AceStep model = tiny_ace_step({});
  const auto song = [](int64_t text, int64_t lyrics) {
    return PromptStates{random_tensor({1, text, kTinyText}, 20), {}, random_tensor({1, lyrics, kTinyText}, 21)};
  };
  const std::vector<PromptStates> songs = {song(5, 40), song(3, 1), song(7, 23)};
  const auto together = encode_conditions(model, songs, {}, Control()).task;
  for (size_t i = 0; i < songs.size(); ++i) {
    const at::Tensor alone = encode_conditions(model, {songs[i]}, {}, Control()).task.at(0);
    EXPECT_EQ(alone.size(1), songs[i].lyrics.size(1) + 1 + songs[i].text.size(1));
    EXPECT(together[i].equal(alone));
  }
  std::vector<PromptStates> with_plain = songs;
  for (PromptStates& each : with_plain) each.plain_text = random_tensor({1, 4, kTinyText}, 22);
  std::vector<PromptStates> swapped = with_plain;
  for (PromptStates& each : swapped) std::swap(each.text, each.plain_text);
  const EncodedPrompts both = encode_conditions(model, with_plain, {}, Control());
  const EncodedPrompts exchanged = encode_conditions(model, swapped, {}, Control());
  for (size_t i = 0; i < songs.size(); ++i) {
    EXPECT(both.task[i].equal(together[i]));
    EXPECT(both.plain[i].equal(exchanged.task[i]) && both.task[i].equal(exchanged.plain[i]));
  }
  std::atomic<bool> cancelled{true};
  EXPECT_THROWS(encode_conditions(model, songs, {}, Control(&cancelled, {})), "cancelled");
}

TEST("conditions: lyrics encoded one after another have the same states as alone") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor first = random_tensor({1, 40, kTinyText}, 8), second = random_tensor({1, 3, kTinyText}, 9);
  const at::Tensor both = model.encoder.encode_lyrics(at::cat({first, second}, 1), {.lengths = {40, 3}});
  EXPECT(largest_difference(both.narrow(1, 0, 40), model.encoder.encode_lyrics(first)) < 1e-5);
  EXPECT(largest_difference(both.narrow(1, 40, 3), model.encoder.encode_lyrics(second)) < 1e-5);
}

TEST("conditions: padding does not change states of real lyric tokens") {
  const AceStep model = tiny_ace_step({});
  const at::Tensor lyrics = random_tensor({1, 6, kTinyText}, 8);
  const at::Tensor padded = at::cat({lyrics, random_tensor({1, 3, kTinyText}, 9)}, 1);
  const at::Tensor mask = at::arange(9).unsqueeze(0) < 6;
  EXPECT(largest_difference(model.encoder.encode_lyrics(padded, {.key_mask = mask}).narrow(1, 0, 6),
                            model.encoder.encode_lyrics(lyrics)) < 1e-5);
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
  const at::Tensor own = make_context(model, {source, mask, /*reads_codes=*/true});
  const at::Tensor hints = model.detokenizer.hints(model.tokenizer.tokenize(source, model.silence).quantized);
  EXPECT(largest_difference(own[0].narrow(1, 0, kTinyLatent), hints[0].narrow(0, 0, 12)) < 1e-5);
  EXPECT(make_context(model, {source, mask}).narrow(2, 0, kTinyLatent).equal(source));
}
