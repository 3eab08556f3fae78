#pragma once
#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "core/runtime/control.h"
#include "test/fake_cuda/counters.h"

namespace carillon::test {

using fake_cuda::Totals;

inline const at::Device kDevice(at::kCUDA, 0);  // the first simulated device

/// Counts device operations of the process since construction.
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

/// Counts the device operations of each token, step or tile: those between two progress reports of a stage.
class StageMeter {
 public:
  explicit StageMeter(Stage stage) : stage_(stage) {}

  Control control() {
    return Control(nullptr, [this](const Progress& progress) {
      if (progress.stage != stage_) return;
      const Totals used = since_last_.used();
      since_last_ = DeviceMeter();
      if (reports_++ > 0) uses_.push_back(used);
    });
  }

  int reports() const { return reports_; }
  /// Maximum of each count over all intervals. The first intervals count too, although graphs may be captured in them.
  Totals largest() const { return at_rank(uses_.size() - 1); }
  /// Median of each count.
  Totals median() const { return at_rank(uses_.size() / 2); }

 private:
  Totals at_rank(size_t rank) const {
    Totals totals;
    for (const auto field :
         {&Totals::launches, &Totals::synchronisations, &Totals::bytes_to_device, &Totals::bytes_to_host}) {
      std::vector<int64_t> counts;
      for (const Totals& used : uses_) counts.push_back(used.*field);
      std::sort(counts.begin(), counts.end());
      totals.*field = counts.at(rank);
    }
    return totals;
  }

  const Stage stage_;
  int reports_ = 0;
  DeviceMeter since_last_;
  std::vector<Totals> uses_;
};

}  // namespace carillon::test
