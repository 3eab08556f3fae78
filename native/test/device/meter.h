#pragma once
#include <algorithm>

#include "core/runtime/control.h"
#include "test/fake_cuda/counters.h"

namespace carillon::test {

using fake_cuda::Totals;

/// What the process has asked of its devices since this was made.
class DeviceMeter {
 public:
  DeviceMeter() { fake_cuda_totals(&start_); }

  Totals used() const {
    Totals now;
    fake_cuda_totals(&now);
    return {now.launches - start_.launches, now.launches_on_shared_stream - start_.launches_on_shared_stream,
            now.synchronisations - start_.synchronisations,
            now.bytes_to_device - start_.bytes_to_device, now.bytes_to_host - start_.bytes_to_host};
  }

 private:
  Totals start_;
};

/// The most that a device was asked between two reports of a stage: for one token, step or tile.
class StageMeter {
 public:
  explicit StageMeter(Stage stage) : stage_(stage) {}

  Control control() {
    return Control(nullptr, [this](const Progress& progress) {
      if (progress.stage != stage_) return;
      const Totals used = since_last_.used();
      since_last_ = DeviceMeter();
      if (reports_++ > 0) take_larger(used);
    });
  }

  int reports() const { return reports_; }
  const Totals& largest() const { return largest_; }

 private:
  void take_larger(const Totals& used) {
    largest_.launches = std::max(largest_.launches, used.launches);
    largest_.synchronisations = std::max(largest_.synchronisations, used.synchronisations);
    largest_.bytes_to_device = std::max(largest_.bytes_to_device, used.bytes_to_device);
    largest_.bytes_to_host = std::max(largest_.bytes_to_host, used.bytes_to_host);
  }

  const Stage stage_;
  int reports_ = 0;
  DeviceMeter since_last_;
  Totals largest_;
};

}  // namespace carillon::test
