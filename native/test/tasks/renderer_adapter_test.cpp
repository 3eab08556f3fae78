// Songs under adapters, from a tiny checkpoint set.
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

at::Tensor song(Renderer& renderer) { return first_song(renderer, plain_job()); }

std::string write_style(int64_t layer) {
  const std::string name = "layers." + std::to_string(layer) + ".self_attn.v_proj";
  return write_peft(lora_tensors({{name, 16, 32}}, peft_key));
}

std::shared_ptr<const Adapter> read(const Renderer& renderer, const std::string& path) {
  return std::make_shared<const Adapter>(renderer.load_adapter(path));
}

}  // namespace

TEST("renderer: an adapter changes songs, another takes its place, and none brings the first song back") {
  Renderer renderer = load();
  const at::Tensor base = song(renderer);
  const auto first = read(renderer, write_style(0)), second = read(renderer, write_style(1));
  EXPECT(song(renderer).equal(base));
  renderer.apply_adapter(first, 1);
  const at::Tensor with_first = song(renderer);
  EXPECT(!with_first.equal(base));
  renderer.apply_adapter(second, 1);
  const at::Tensor with_second = song(renderer);
  EXPECT(!with_second.equal(base) && !with_second.equal(with_first));
  renderer.apply_adapter(first, 0.5);
  EXPECT(!song(renderer).equal(with_first) && !song(renderer).equal(base));
  renderer.apply_adapter(first, 0);
  EXPECT(song(renderer).equal(base));
  renderer.apply_adapter(first, 1);
  EXPECT(song(renderer).equal(with_first));
  renderer.apply_adapter(nullptr, 0);
  EXPECT(song(renderer).equal(base));
}

TEST("renderer: a model that is read for each use is merged each time") {
  Renderer resident = load(), passing = load({.model = false, .text_encoder_and_vae = false});
  const std::string path = write_style(0);
  const at::Tensor base = song(resident);
  resident.apply_adapter(read(resident, path), 0.8);
  passing.apply_adapter(read(passing, path), 0.8);
  const at::Tensor expected = song(resident);
  EXPECT(song(passing).equal(expected));
  EXPECT(song(passing).equal(expected));
  passing.apply_adapter(nullptr, 0);
  EXPECT(song(passing).equal(base));
}

TEST("renderer: an adapter at a strength that is none is refused, and what acts goes on acting") {
  Renderer renderer = load();
  const auto adapter = read(renderer, write_style(0));
  renderer.apply_adapter(adapter, 1);
  const at::Tensor styled = song(renderer);
  for (const double strength : {-0.1, 1.1, std::nan("")}) {
    EXPECT_THROWS(renderer.apply_adapter(nullptr, strength), "from 0 to 1");
  }
  EXPECT(song(renderer).equal(styled));
}
