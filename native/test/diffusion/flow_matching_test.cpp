#include "core/diffusion/flow_matching.h"
#include "test/tiny_ace_step.h"

using namespace carillon;
using namespace carillon::test;

namespace {

void expect_times(const Schedule& found, const Schedule& expected) {
  EXPECT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}

const Schedule kShift3 = {1, 21.0 / 22, 0.9, 5.0 / 6, 0.75, 9.0 / 14, 0.5, 0.3};

}  // namespace

TEST("schedule: base models follow the shift formula") {
  const Schedule times = shifted_schedule(20, 3.0);
  EXPECT_EQ(times.size(), 20u);
  EXPECT_NEAR(times[1], 0.982759, 1e-6);
  EXPECT_NEAR(times[10], 0.75, 1e-6);
  EXPECT_NEAR(times[19], 0.136364, 1e-6);
  EXPECT_EQ(next_time(times, 18), times[19]);
  EXPECT_EQ(next_time(times, 19), 0.0);
  EXPECT_THROWS(shifted_schedule(0, 3.0), "1 to 1000, not 0");
  EXPECT_THROWS(shifted_schedule(2'000'000'000, 3.0), "1 to 1000");
  EXPECT_THROWS(shifted_schedule(8, 0.0), "positive");
}

TEST("schedule: custom times of a turbo model snap to those of its tables") {
  expect_times(snap_to_turbo_times({0.97, 0.76, 0.615, 0.5, 0.395, 0.28, 0.18, 0.085, 0.0}),
               {21.0 / 22, 10.0 / 13, 0.625, 0.5, 0.4, 0.3, 2.0 / 9, 0.125});
  EXPECT_EQ(snap_to_turbo_times(Schedule(30, 0.5)).size(), 20u);
}

TEST("schedule: custom times must descend to 0") {
  expect_times(custom_schedule({1.0, 0.6, 0.2, 0.0}), {1.0, 0.6, 0.2});
  expect_times(custom_schedule({0.9}), {0.9});
  EXPECT_THROWS(custom_schedule({0.5, 0.6}), "0.6");
  EXPECT_THROWS(custom_schedule({1.1, 0.5}), "1.1");
  EXPECT_THROWS(custom_schedule({0.5, 0.0, 0.2}), "descend");
  EXPECT_THROWS(custom_schedule({0.0}), "at least one value");
}

TEST("schedule: turbo models use the number of steps but not the shift") {
  Denoise job = {.inference_steps = 8};
  job.shift = 1.0;
  expect_times(schedule_of(job, true), kShift3);
  job.inference_steps = 20;
  expect_times(schedule_of(job, true), shifted_schedule(20, 3.0));
  expect_times(schedule_of(job, false), shifted_schedule(20, 1.0));
  job.timesteps = {0.97, 0.31, 0.0};
  expect_times(schedule_of(job, true), {21.0 / 22, 0.3});
  expect_times(schedule_of(job, false), {0.97, 0.31});
  job.free_timesteps = true;
  expect_times(schedule_of(job, true), {0.97, 0.31});
}

TEST("schedule: nearest_step finds the nearest evaluation, and the earlier one in a tie") {
  EXPECT_NEAR(kShift3[nearest_step(kShift3, 0.6)], 9.0 / 14, 1e-9);
  EXPECT_EQ(nearest_step(kShift3, 0.0), 7u);
  EXPECT_EQ(nearest_step({0.5, 0.25}, 0.375), 0u);
}
