#include "core/runtime/resident.h"

#include "test/test.h"

using namespace carillon;

namespace {

/// Counts loads and living instances.
struct Counted {
  static inline int loads = 0, alive = 0;
  Counted() { ++loads, ++alive; }
  Counted(Counted&&) noexcept { ++alive; }
  ~Counted() { --alive; }
  static void reset() { loads = alive = 0; }
};

}  // namespace

TEST("resident: a resident model is loaded once and kept") {
  Counted::reset();
  const ResidentModel<Counted> model([](const Control&) { return Counted(); }, true, Control());
  EXPECT_EQ(Counted::alive, 1);
  model.acquire(Control());
  model.acquire(Control());
  EXPECT_EQ(Counted::loads, 1);
  EXPECT_EQ(Counted::alive, 1);
}

TEST("resident: a model that is not resident is unloaded with the last pointer to it") {
  Counted::reset();
  const ResidentModel<Counted> model([](const Control&) { return Counted(); }, false, Control());
  EXPECT_EQ(Counted::loads, 0);
  {
    const auto held = model.acquire(Control());
    EXPECT_EQ(Counted::alive, 1);
  }
  EXPECT_EQ(Counted::alive, 0);
  model.acquire(Control());
  EXPECT_EQ(Counted::loads, 2);
}
