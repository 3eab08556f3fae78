#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/checkpoint/config.h"
#include "pretraining/draw.h"
#include "pretraining/latents.h"
#include "pretraining/pieces.h"

namespace carillon::pretraining {

/// Token ids of unequal length, padded on the right: [B, L] int64, and bool where they are.
struct PaddedIds {
  at::Tensor ids, mask;
};
PaddedIds pad(const std::vector<const TokenIds*>& rows);

/// What the DiT learns from in one step: items of any task type, as the renderer would put them to it.
struct TaskBatch {
  at::Tensor target;                               // [B, T, C], with the clock of its beats
  at::Tensor source;                               // [B, T, C]
  at::Tensor chunk_mask;                           // [B, T, C]
  at::Tensor is_cover;                             // [B] bool: the source is to be read through its audio codes
  at::Tensor is_track_task;                        // [B] bool: extract, lego or complete
  at::Tensor counted;                              // [B, T, 1] float32: 1 for frames of the piece, 0 for padding
  at::Tensor text, text_mask, lyrics, lyric_mask;  // [B, L] int64 and bool
  at::Tensor timbre;                               // [B, timbre_fix_frame, C]
  at::Tensor facts;                                // [B, number_count]: what the texts say (facts.h)
  std::vector<double> bpm;
};

/// Makes batches of pieces of similar length, all on the CPU.
class TaskBatches {
 public:
  /// At most `longest_frames` of a piece are used at once: its start as often as some place further in.
  /// `genres`: of the whole data set.
  TaskBatches(const DitConfig& config, const std::vector<Piece>& pieces, const std::vector<std::string>& genres,
              const Latents& latents, int64_t longest_frames);

  TaskBatch draw(int64_t batch, Draw& draw) const;
  /// Text2music for pieces of all lengths, from their start: always the same.
  TaskBatch spread(int64_t batch) const;

 private:
  struct Item;
  Item text2music(const Piece& piece, int64_t first, int64_t frames) const;
  Item any_task(const Piece& piece, Draw& draw) const;
  void make_repaint(Item& item, Draw& draw) const;
  void make_track_task(Item& item, const Piece& piece, const std::string& task, int64_t first) const;
  at::Tensor timbre_of(const Piece& piece, Draw& draw) const;
  TaskBatch collate(const std::vector<Item>& items) const;

  DitConfig config_;
  std::vector<std::string> genres_;
  const Latents& latents_;
  int64_t longest_frames_;
  std::vector<const Piece*> by_length_;
};

}  // namespace carillon::pretraining
