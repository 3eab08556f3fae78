#include "core/lm/generate.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "core/lm/batch.h"
#include "core/lm/decoder.h"
#include "core/runtime/device.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

/// Maximum number of rows in a batch that several requests share. Up to this number, the CPU result of a row is bitwise
/// the same in a batch as alone.
constexpr int64_t kMaxSharedRows = 16;
/// A batch gets room for other requests only if its cache then takes at most the free memory divided by this number.
constexpr int64_t kFreeMemoryDivisor = 4;
/// Extra tokens per row, if a batch has room for other requests. Such rows are also a quarter longer than the first
/// request needs, because later requests may be longer.
constexpr int64_t kSpareTokens = 128;

void check_request(const LanguageRequest& request, const CausalLm& model, const Vocabulary& vocabulary,
                   int64_t max_context_tokens) {
  if (vocabulary.size() > model.config().vocab_size) {
    fail(ErrorCode::kBadArgument, "the tokenizer has " + std::to_string(vocabulary.size()) +
                                      " tokens, but the language model has " +
                                      std::to_string(model.config().vocab_size) + ": tokenizer and model do not match");
  }
  check_jobs(request.jobs, vocabulary, max_context_tokens);
}

/// Limits of the batch that starts with `first`. With enough memory the batch has room for more and longer requests.
BatchLimits limits_of(const LanguageRequest& first, const CausalLm& model, int64_t rows_per_song,
                      int64_t max_context_tokens, int64_t max_songs) {
  const BatchLimits own{std::ssize(first.jobs), longest_row(first.jobs), max_context_tokens};
  const int64_t song_token_bytes = model.cache_bytes_per_token() * rows_per_song;
  const int64_t free_bytes = available_memory(model.placement().device);
  check_cache(own.songs * rows_per_song, rows_per_song, own.row_tokens * model.cache_bytes_per_token(), free_bytes);
  if (!first.jobs.front().shares_batch) return own;
  const int64_t row_tokens = std::min(max_context_tokens, own.row_tokens * 5 / 4 + kSpareTokens);
  const int64_t affordable = free_bytes / kFreeMemoryDivisor / (row_tokens * song_token_bytes);
  const int64_t songs = std::min({max_songs, kMaxSharedRows / rows_per_song, affordable});
  return songs > own.songs ? BatchLimits{songs, row_tokens, max_context_tokens} : own;
}

}  // namespace

void check_cache(int64_t rows, int64_t rows_per_song, int64_t row_bytes, int64_t free_bytes) {
  if (rows * row_bytes <= free_bytes) return;
  const auto gigabytes = [](int64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
    return std::string(text);
  };
  const int64_t songs = rows / rows_per_song, fitting = free_bytes / (row_bytes * rows_per_song);
  fail(ErrorCode::kOutOfMemory, "the KV cache of " + std::to_string(songs) + (songs == 1 ? " song" : " songs") +
                                    " takes " + gigabytes(rows * row_bytes) + ", but " + gigabytes(free_bytes) +
                                    " are free: " +
                                    (fitting > 0 ? "SVC_BATCH_MAX=" + std::to_string(fitting) + " fits"
                                                 : std::string("shorten the song or the lyrics")));
}

void generate(const CausalLm& model, const Vocabulary& vocabulary, MaskCache& masks,
              std::shared_ptr<LanguageRequest> first, RequestQueue& queue, int64_t max_context_tokens,
              int64_t max_songs) {
  std::unique_ptr<Decoder> decoder;
  std::optional<Batch> batch;
  try {
    check_request(*first, model, vocabulary, max_context_tokens);
    const int64_t rows_per_song = first->jobs.front().cfg_scale > 1.0 ? 2 : 1;
    const BatchLimits limits = limits_of(*first, model, rows_per_song, max_context_tokens, max_songs);
    decoder = make_decoder(model, limits.songs * rows_per_song, limits.row_tokens);
    batch.emplace(*decoder, vocabulary, masks, first->jobs.front(), limits, queue);
  } catch (...) {
    return first->reject(std::current_exception());
  }
  batch->run(first);
}

}  // namespace carillon
