#include "core/lm/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/lm/run_ahead.h"
#include "core/lm/sampler.h"

namespace carillon {
namespace {

constexpr int64_t kPrefillChunk = 512;
constexpr int64_t kMinStepsAhead = 4;

std::exception_ptr not_finite() {
  try {
    fail_not_finite();
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

Batch::Batch(Decoder& decoder, const Vocabulary& vocabulary, MaskCache& masks, const LanguageJob& options,
             BatchLimits limits, RequestQueue& queue)
    : decoder_(decoder),
      vocabulary_(vocabulary),
      masks_(masks),
      options_(options),
      limits_(limits),
      queue_(queue),
      guided_(options.cfg_scale > 1.0),
      chooser_(decoder, vocabulary, options_),
      rows_(static_cast<size_t>(limits.songs), nullptr) {}

void Batch::run(std::shared_ptr<LanguageRequest> first) {
  try {
    admit(std::move(first));
    for (;;) {
      admit_waiting();
      if (members_.empty()) return;
      if (run_ahead()) continue;
      chooser_.choose(drop_not_finite(feed()));
      resolve_finished();
    }
  } catch (...) {
    if (joining_) joining_->reject(std::current_exception());
    while (!members_.empty()) drop(members_.front(), std::current_exception());
  }
}

bool Batch::can_join(const LanguageRequest& request) const {
  if (request.jobs.empty()) return false;
  const LanguageJob& job = request.jobs.front();
  return options_.shares_batch && job.shares_batch && has_same_sampling(job, options_) &&
         std::ssize(request.jobs) <= std::count(rows_.begin(), rows_.end(), nullptr) &&
         longest_row(request.jobs) <= limits_.row_tokens;
}

void Batch::admit_waiting() {
  for (;;) {
    auto request = joining_ ? std::exchange(joining_, nullptr) : next_request();
    if (!request) return;
    try {
      check_jobs(request->jobs, vocabulary_, limits_.context_tokens);
    } catch (...) {
      request->reject(std::current_exception());
      continue;
    }
    admit(std::move(request));
  }
}

std::shared_ptr<LanguageRequest> Batch::next_request() {
  return queue_.take([this](const LanguageRequest& request) { return can_join(request); });
}

/// Adds a request to the batch: feeds its prompts and chooses the first token of each of its rows.
void Batch::admit(std::shared_ptr<LanguageRequest> request) {
  Member& member = members_.emplace_back(Member{std::move(request), {}});
  try {
    add_rows(member);
    chooser_.choose(prefill(member));
  } catch (...) {
    drop(member, std::current_exception());
  }
  resolve_finished();
}

void Batch::add_rows(Member& member) {
  auto free = rows_.begin();
  for (const LanguageJob& job : member.request->jobs) {
    free = std::find(free, rows_.end(), nullptr);
    const int64_t cache_row = free - rows_.begin();
    decoder_.clear_row(cache_row);
    if (guided_) decoder_.clear_row(cache_row + limits_.songs);
    *free = &member.rows.emplace_back(
        BatchRow{job, ProgramCursor(job.program, job.max_new_tokens, vocabulary_, masks_), cache_row});
  }
}

void Batch::drop(Member& member, const std::exception_ptr& error) {
  const auto request = member.request;
  remove(member);
  request->reject(error);
}

void Batch::remove(Member& member) {
  for (const BatchRow& row : member.rows) rows_[static_cast<size_t>(row.cache_row)] = nullptr;
  members_.remove_if([&](const Member& other) { return &other == &member; });
}

/// Feeds each distinct prompt of a request once, in its own pass. Other rows with the same prompt get a copy of its
/// cache row.
HiddenStates Batch::prefill(Member& member) {
  std::vector<std::pair<const std::vector<int32_t>*, int64_t>> prompts;  // prompt and cache row; conditional rows first
  for (const BatchRow& row : member.rows) prompts.emplace_back(&row.job.prompt, row.cache_row);
  for (const BatchRow& row : member.rows) {
    if (guided_) prompts.emplace_back(&row.job.negative_prompt, row.cache_row + limits_.songs);
  }
  std::vector<size_t> source(prompts.size());
  int64_t total = 0, done = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto same = [&](const auto& prompt) { return *prompt.first == *prompts[i].first; };
    source[i] = static_cast<size_t>(std::find_if(prompts.begin(), prompts.end(), same) - prompts.begin());
    if (source[i] == i) total += static_cast<int64_t>(prompts[i].first->size());
  }
  std::vector<at::Tensor> last(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& [prompt, cache_row] = prompts[i];
    if (source[i] == i) {
      last[i] = prefill(member.request->control, *prompt, cache_row, done, total);
      done += static_cast<int64_t>(prompt->size());
    } else {
      decoder_.copy_row(prompts[source[i]].second, cache_row);
      last[i] = last[source[i]];
    }
  }
  HiddenStates hidden;
  const auto middle = last.begin() + static_cast<std::ptrdiff_t>(member.rows.size());
  hidden.conditional = at::cat(std::vector<at::Tensor>(last.begin(), middle));
  if (guided_) hidden.unconditional = at::cat(std::vector<at::Tensor>(middle, last.end()));
  std::vector<int64_t> choosing;
  for (BatchRow& row : member.rows) {
    if (row.unfed() == 0 && !row.cursor.done()) choosing.push_back(static_cast<int64_t>(hidden.rows.size()));
    hidden.rows.push_back(&row);
  }
  return hidden.of(choosing);
}

at::Tensor Batch::prefill(const Control& control, const std::vector<int32_t>& prompt, int64_t cache_row, int64_t done,
                          int64_t total) {
  const auto ids = at::tensor(prompt, at::kInt).to(at::kLong).unsqueeze(0);
  at::Tensor hidden;
  for (int64_t begin = 0; begin < ids.size(1); begin += kPrefillChunk) {
    control.report(Stage::kPrefill, done + begin, total);
    hidden = decoder_.feed(ids.narrow(1, begin, std::min(kPrefillChunk, ids.size(1) - begin)), {cache_row});
  }
  control.report(Stage::kPrefill, done + ids.size(1), total);
  return hidden;
}

/// Feeds the unfed ids of each unfinished row. All rows with exactly one unfed id share a pass, which reads each weight
/// once. A row with several forced ids gets its own pass, so that its rounding does not depend on the other rows.
HiddenStates Batch::feed() {
  std::vector<BatchRow*> single;
  std::vector<HiddenStates> parts;
  for (BatchRow* row : rows_) {
    if (row == nullptr || row->cursor.done()) continue;
    if (row->unfed() == 1) {
      single.push_back(row);
    } else {
      parts.push_back(feed({row}));
    }
  }
  if (!single.empty()) parts.push_back(feed(single));
  if (parts.size() == 1) return parts.front();
  HiddenStates all;
  std::vector<at::Tensor> conditional, unconditional;
  for (const HiddenStates& part : parts) {
    all.rows.insert(all.rows.end(), part.rows.begin(), part.rows.end());
    conditional.push_back(part.conditional);
    if (guided_) unconditional.push_back(part.unconditional);
  }
  all.conditional = at::cat(conditional);
  if (guided_) all.unconditional = at::cat(unconditional);
  return all;
}

/// Feeds rows that have equal numbers of unfed ids.
HiddenStates Batch::feed(const std::vector<BatchRow*>& rows) {
  const size_t length = rows.front()->unfed();
  std::vector<int64_t> cache_rows, ids;
  for (BatchRow* row : rows) {
    ids.insert(ids.end(), row->cursor.ids().begin() + static_cast<int64_t>(row->fed), row->cursor.ids().end());
    row->fed += length;
    cache_rows.push_back(row->cache_row);
  }
  const auto count = static_cast<int64_t>(rows.size());
  auto ids_of_rows = at::tensor(ids, at::kLong).view({count, static_cast<int64_t>(length)});
  if (guided_) {
    ids_of_rows = at::cat({ids_of_rows, ids_of_rows});
    for (const BatchRow* row : rows) cache_rows.push_back(row->cache_row + limits_.songs);
  }
  const auto last = decoder_.feed(ids_of_rows, cache_rows);
  return {rows, last.narrow(0, 0, count), guided_ ? last.narrow(0, count, count) : at::Tensor()};
}

/// Lets the device run several tokens ahead of the CPU, while all rows use the same mask (for example, for audio codes)
/// and no request joins. Returns false if the device chose no token.
bool Batch::run_ahead() {
  const auto device = decoder_.on_device();
  if (!device) return false;
  const TokenMask* mask = nullptr;
  int64_t steps = std::numeric_limits<int64_t>::max();
  std::vector<RunAheadRow> ahead_rows;
  for (const BatchRow* row : rows_) {
    if (row == nullptr || row->cursor.done()) {
      ahead_rows.push_back({});
      continue;
    }
    const auto& cursor = row->cursor;
    if (row->unfed() != 1 || cursor.at_boundary() || (mask != nullptr && mask != &cursor.mask())) return false;
    mask = &cursor.mask();
    steps = std::min(steps, cursor.choices_from_same_mask());
    ahead_rows.push_back({cursor.ids().back(), row->job.seed, cursor.ids()});
  }
  if (steps < kMinStepsAhead) return false;
  RunAhead ahead(device->model, device->cache, options_, *mask, ahead_rows, steps);
  for (int64_t step = 0; step < steps && !members_.empty() && !joining_; ++step) {
    append_ids(ahead.next(), device->cache);
    resolve_finished();
    joining_ = next_request();
  }
  return true;
}

/// Appends one id to each unfinished row. A negative id stands for logits that are not finite and fails the request of
/// its row.
void Batch::append_ids(const std::vector<int64_t>& ids, KvCache& cache) {
  std::set<Member*> broken;
  for (BatchRow* row : rows_) {
    if (row == nullptr || row->cursor.done()) continue;
    const int64_t id = ids[static_cast<size_t>(row->cache_row)];
    if (id < 0) {
      broken.insert(&member_of(*row));
      continue;
    }
    row->cursor.push(static_cast<int32_t>(id));
    ++row->fed;
    cache.extend(row->cache_row, 1);
    if (guided_) cache.extend(row->cache_row + limits_.songs, 1);
  }
  for (Member* member : broken) drop(*member, not_finite());
}

/// Removes the rows of requests whose hidden states are not finite. These requests fail; the others continue.
HiddenStates Batch::drop_not_finite(const HiddenStates& hidden) {
  if (members_.size() == 1) return hidden;  // with a single request TokenChooser::choose throws instead
  at::Tensor finite = hidden.conditional.isfinite().all(1);
  if (guided_) finite = finite & hidden.unconditional.isfinite().all(1);
  finite = finite.cpu();
  std::set<Member*> broken;
  for (size_t line = 0; line < hidden.rows.size(); ++line) {
    if (!finite.const_data_ptr<bool>()[line]) broken.insert(&member_of(*hidden.rows[line]));
  }
  if (broken.empty()) return hidden;
  std::vector<int64_t> lines;
  for (size_t line = 0; line < hidden.rows.size(); ++line) {
    if (!broken.contains(&member_of(*hidden.rows[line]))) lines.push_back(static_cast<int64_t>(line));
  }
  const HiddenStates rest = hidden.of(lines);
  for (Member* member : broken) drop(*member, not_finite());
  return rest;
}

Batch::Member& Batch::member_of(const BatchRow& row) {
  return *std::find_if(members_.begin(), members_.end(), [&](const Member& member) {
    return std::any_of(member.rows.begin(), member.rows.end(), [&](const BatchRow& own) { return &own == &row; });
  });
}

/// Reports progress, and removes finished and cancelled requests.
void Batch::resolve_finished() {
  for (auto next = members_.begin(); next != members_.end();) {
    Member& member = *next++;
    try {
      report(member);
    } catch (...) {
      drop(member, std::current_exception());
      continue;
    }
    if (!std::all_of(member.rows.begin(), member.rows.end(), [](const BatchRow& row) { return row.cursor.done(); }))
      continue;
    const auto request = member.request;
    auto results = results_of(member);
    remove(member);
    request->resolve(std::move(results));
  }
}

std::vector<LanguageResult> Batch::results_of(const Member& member) {
  std::vector<LanguageResult> results;
  for (const BatchRow& row : member.rows) results.push_back({row.cursor.ids(), row.cursor.finished()});
  return results;
}

void Batch::report(const Member& member) {
  size_t done = 0;
  int64_t total = 0;
  bool is_open = false;
  for (const BatchRow& row : member.rows) {
    done = std::max(done, row.cursor.ids().size());
    const auto length = exact_length(row.job.program);
    is_open |= !length;
    total = std::max(total, length.value_or(0));
  }
  member.request->control.report(member.request->jobs.front().stage, static_cast<int64_t>(done), is_open ? 0 : total);
}

}  // namespace carillon
