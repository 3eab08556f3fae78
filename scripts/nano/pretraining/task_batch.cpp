#include "pretraining/task_batch.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "pretraining/beats.h"
#include "pretraining/latent_parts.h"

namespace carillon::pretraining {
namespace {

constexpr size_t kStemWeight = 3;    // pieces with stems are few, and hold as many lessons as they have tracks
constexpr double kTrackShare = 0.7;  // of their items: tasks on tracks
constexpr double kCoverShare = 0.25, kRepaintShare = 0.10;  // of the others; the rest: text2music
constexpr double kTimbreShare = 0.25;                       // of items with a reference
constexpr double kAutoMaskShare = 0.3, kBareTextShare = 0.15;
constexpr double kAutoMask = 1.0;       // every frame is open to change, as rendering says it
constexpr int64_t kFewestFrames = 128;  // as the renderer's
constexpr int64_t kLengthNeighbours = 4;

/// "extract drums", "lego bass", ...: those that this piece has.
std::string any_track_task(const Piece& piece, Draw& draw) {
  std::vector<std::string> tasks;
  for (const auto& [name, ids] : piece.task_texts) {
    if (name.find(' ') != std::string::npos) tasks.push_back(name);
  }
  return tasks[static_cast<size_t>(draw.below(std::ssize(tasks)))];
}

/// Latents [T, C] with the clock of a piece from one of its frames on.
at::Tensor with_beats(const at::Tensor& latents, const Facts& facts, int64_t first_frame) {
  const LatentParts parts = LatentParts::of(latents.size(1));
  at::Tensor all = latents.clone();
  all.narrow(1, parts.waves, parts.beats).copy_(beats(facts, first_frame, latents.size(0), parts.beats));
  return all;
}

}  // namespace

PaddedIds pad(const std::vector<const TokenIds*>& rows) {
  size_t longest = 0;
  for (const TokenIds* row : rows) longest = std::max(longest, row->size());
  const at::Tensor ids = at::zeros({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, at::kLong);
  const at::Tensor mask = at::zeros_like(ids, at::kBool);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto index = static_cast<int64_t>(i), length = static_cast<int64_t>(rows[i]->size());
    ids[index].narrow(0, 0, length).copy_(at::tensor(*rows[i], at::kLong));
    mask[index].narrow(0, 0, length).fill_(true);
  }
  return {ids, mask};
}

struct TaskBatches::Item {
  at::Tensor target, source, chunk_mask, timbre;  // [T, C]; timbre [timbre_fix_frame, C]
  bool is_cover = false, is_track_task = false;
  const TokenIds* text;
  const TokenIds* lyrics;
  const Facts* facts;
  int64_t first;  // frame of the piece
};

TaskBatches::TaskBatches(const DitConfig& config, const std::vector<Piece>& pieces,
                         const std::vector<std::string>& genres, const Latents& latents, int64_t longest_frames)
    : config_(config), genres_(genres), latents_(latents), longest_frames_(longest_frames) {
  for (const Piece& piece : pieces) by_length_.insert(by_length_.end(), piece.stems.empty() ? 1 : kStemWeight, &piece);
  std::stable_sort(by_length_.begin(), by_length_.end(),
                   [&](const Piece* a, const Piece* b) { return latents_.frames(*a) < latents_.frames(*b); });
}

TaskBatches::Item TaskBatches::text2music(const Piece& piece, int64_t first, int64_t frames) const {
  Item item;
  item.target = latents_.of(piece, kMix).narrow(0, first, frames);
  item.source = latents_.silence()[0].narrow(0, 0, frames);
  item.chunk_mask = at::ones_like(item.target);
  item.timbre = latents_.silence()[0].narrow(0, 0, config_.timbre_fix_frame);
  item.text = &piece.requests[0].text;
  item.lyrics = &piece.requests[0].lyrics;
  item.facts = &piece.facts;
  item.first = first;
  return item;
}

void TaskBatches::make_repaint(Item& item, Draw& draw) const {
  const int64_t frames = item.target.size(0);
  const auto length = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(frames) * draw.uniform()));
  const int64_t begin = draw.below(frames - length + 1);
  const at::Tensor silence = item.source.narrow(0, begin, length);
  item.source = item.target.clone();
  item.source.narrow(0, begin, length).copy_(silence);
  if (draw.uniform() < kAutoMaskShare) {
    item.chunk_mask = at::full_like(item.target, kAutoMask);
  } else {
    item.chunk_mask = at::zeros_like(item.target);
    item.chunk_mask.narrow(0, begin, length).fill_(1);
  }
}

/// extract: the track out of the mix. lego: the track beside the rest of the mix. complete: the mix around the track.
void TaskBatches::make_track_task(Item& item, const Piece& piece, const std::string& task, int64_t first) const {
  const int64_t frames = item.target.size(0);
  const auto crop = [&](const std::string& track) { return latents_.of(piece, track).narrow(0, first, frames); };
  const std::string name = task.substr(0, task.find(' ')), track = task.substr(task.find(' ') + 1);
  const at::Tensor mix = item.target;
  if (name == "complete") {
    item.source = crop(track);
  } else if (name == "extract") {
    item.source = mix;
    item.target = crop(track);
  } else {
    item.target = crop(track);
    item.source = crop(rest_without(track));
  }
}

at::Tensor TaskBatches::timbre_of(const Piece& piece, Draw& draw) const {
  const at::Tensor mix = latents_.of(piece, kMix);
  const int64_t wanted = config_.timbre_fix_frame, frames = mix.size(0);
  if (frames < wanted) return mix.repeat({(wanted + frames - 1) / frames, 1}).narrow(0, 0, wanted);
  return mix.narrow(0, draw.below(frames - wanted + 1), wanted);
}

TaskBatches::Item TaskBatches::any_task(const Piece& piece, Draw& draw) const {
  const int64_t all = latents_.frames(piece), frames = std::min(all, longest_frames_);
  const int64_t first = draw.uniform() < 0.5 ? 0 : draw.below(all - frames + 1);
  Item item = text2music(piece, first, frames);
  if (draw.uniform() < kTimbreShare) item.timbre = timbre_of(piece, draw);
  std::string task;
  if (!piece.stems.empty() && draw.uniform() < kTrackShare) {
    task = any_track_task(piece, draw);
    item.is_track_task = true;
    make_track_task(item, piece, task, first);
  } else if (const double choice = draw.uniform(); choice < kCoverShare) {
    task = "cover";
    item.is_cover = true;
    item.source = item.target;
  } else if (choice < kCoverShare + kRepaintShare) {
    task = "repaint";
    make_repaint(item, draw);
  } else {
    const Request& request = piece.requests[static_cast<size_t>(draw.below(std::ssize(piece.requests)))];
    item.text = draw.uniform() < kBareTextShare ? &request.bare_text : &request.text;
    item.lyrics = &request.lyrics;
    return item;
  }
  item.text = &piece.task_texts.at(task);
  return item;
}

TaskBatch TaskBatches::collate(const std::vector<Item>& items) const {
  int64_t longest = kFewestFrames;
  for (const Item& item : items) longest = std::max(longest, item.target.size(0));
  std::vector<at::Tensor> targets, sources, masks, counted, covers, track_tasks, timbres, facts;
  std::vector<double> bpm;
  std::vector<const TokenIds*> texts, lyrics;
  for (const Item& item : items) {
    const int64_t frames = item.target.size(0), missing = longest - frames;
    const at::Tensor silence = latents_.silence()[0].narrow(0, 0, missing);
    targets.push_back(at::cat({with_beats(item.target, *item.facts, item.first), silence}));
    sources.push_back(at::cat({item.source, silence}));
    masks.push_back(at::cat({item.chunk_mask, at::ones_like(silence)}));
    counted.push_back(at::cat({at::ones({frames, 1}), at::zeros({missing, 1})}));
    covers.push_back(at::full({}, item.is_cover, at::kBool));
    track_tasks.push_back(at::full({}, item.is_track_task, at::kBool));
    timbres.push_back(item.timbre);
    facts.push_back(as_numbers(*item.facts, genres_));
    bpm.push_back(item.facts->bpm);
    texts.push_back(item.text);
    lyrics.push_back(item.lyrics);
  }
  const PaddedIds text = pad(texts), lyric = pad(lyrics);
  return {at::stack(targets),
          at::stack(sources),
          at::stack(masks),
          at::stack(covers),
          at::stack(track_tasks),
          at::stack(counted),
          text.ids,
          text.mask,
          lyric.ids,
          lyric.mask,
          at::stack(timbres),
          at::stack(facts),
          bpm};
}

TaskBatch TaskBatches::draw(int64_t batch, Draw& draw) const {
  const int64_t pieces = std::ssize(by_length_), reach = std::min(pieces, kLengthNeighbours * batch);
  const int64_t nearby = draw.below(pieces - reach + 1);
  std::vector<Item> items;
  for (int64_t i = 0; i < batch; ++i) {
    items.push_back(any_task(*by_length_[static_cast<size_t>(nearby + draw.below(reach))], draw));
  }
  return collate(items);
}

TaskBatch TaskBatches::spread(int64_t batch) const {
  const int64_t entries = std::ssize(by_length_), count = std::min(batch, entries);
  std::vector<Item> items;
  for (int64_t i = 0; i < count; ++i) {
    const Piece& piece = *by_length_[static_cast<size_t>(i * entries / count)];
    items.push_back(text2music(piece, 0, std::min(latents_.frames(piece), longest_frames_)));
  }
  return collate(items);
}

}  // namespace carillon::pretraining
