// Renders songs with adapters from tiny checkpoints.
#include <ATen/ATen.h>

#include "core/runtime/error.h"
#include "core/tasks/renderer.h"
#include "test/tiny_adapter.h"
#include "test/tiny_renderer.h"

using namespace carillon;
using namespace carillon::test;

namespace {

const Renderer::Directories& checkpoints() {
  static const Renderer::Directories written = write_checkpoints();
  return written;
}

Renderer load(const Renderer::Residency& residency = {}) { return test::load(checkpoints(), residency); }

/// Renders a job with these adapters.
at::Tensor song(Renderer& renderer, const std::vector<ActiveAdapter>& adapters = {}) {
  RenderJob job = plain_job();
  job.adapters = adapters;
  return first_song(renderer, job);
}

std::string write_style(int64_t layer) {
  const std::string name = "layers." + std::to_string(layer) + ".self_attn.v_proj";
  return write_peft(lora_tensors({{name, 16, 32}}, peft_key));
}

std::shared_ptr<const Adapter> read(const Renderer& renderer, const std::string& path) {
  return std::make_shared<const Adapter>(renderer.load_adapter(path));
}

}  // namespace

TEST("renderer: adapters of a job do not affect other jobs") {
  Renderer renderer = load();
  const at::Tensor base = song(renderer);
  const auto first = read(renderer, write_style(0)), second = read(renderer, write_style(1));
  EXPECT(song(renderer).equal(base));
  const at::Tensor with_first = song(renderer, {{first, 1}});
  EXPECT(!with_first.equal(base));
  const at::Tensor with_second = song(renderer, {{second, 1}});
  EXPECT(!with_second.equal(base) && !with_second.equal(with_first));
  const at::Tensor with_half = song(renderer, {{first, 0.5}});
  EXPECT(!with_half.equal(with_first) && !with_half.equal(base));
  EXPECT(song(renderer, {{first, 0}}).equal(base));
  EXPECT(song(renderer, {{first, 1}}).equal(with_first));
  const at::Tensor with_both = song(renderer, {{first, 1}, {second, -0.5}});
  EXPECT(!with_both.equal(with_first) && !with_both.equal(base));
  EXPECT(song(renderer, {{first, 1}, {second, 0}}).equal(with_first));
  EXPECT(song(renderer, {{first, 1}, {second, -0.5}}).equal(with_both));
  EXPECT(song(renderer).equal(base));
}

TEST("renderer: a model that is loaded for each use gives the same songs with adapters") {
  Renderer resident = load(), passing = load({.model = false, .text_encoder_and_vae = false});
  const std::string path = write_style(0);
  const at::Tensor base = song(resident);
  const auto resident_style = read(resident, path), passing_style = read(passing, path);
  const at::Tensor expected = song(resident, {{resident_style, 0.8}});
  EXPECT(song(passing, {{passing_style, 0.8}}).equal(expected));
  EXPECT(song(passing, {{passing_style, 0.8}}).equal(expected));
  EXPECT(song(passing).equal(base));
}

TEST("renderer: a job with adapters that cannot be merged fails, and the next uses the base model") {
  Renderer renderer = load();
  const at::Tensor base = song(renderer);
  const auto style = read(renderer, write_style(0));
  Adapter broken = *style;
  broken.modules[0].w2.left = at::zeros({3, kTinyRank});
  EXPECT_THROWS(song(renderer, {{style, 1}, {std::make_shared<const Adapter>(broken), 1}}), "");
  EXPECT(song(renderer).equal(base));
}
