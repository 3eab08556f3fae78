"""Batches of the DiT: items of any task type, with the same inputs as the engine's."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from data import MIX, pad_ids, rest_without
from facts import FRAMES_PER_SECOND, as_numbers, clock
from latent_space import Parts

STEM_WEIGHT = 3                          # pieces with stems are few and have a task for every track
TRACK_SHARE = 0.7                        # of their items: tasks on tracks
COVER_SHARE, REPAINT_SHARE = 0.25, 0.10  # of the others; the rest is text2music
TIMBRE_SHARE = 0.25                      # of items with a reference
AUTO_MASK_SHARE, BARE_TEXT_SHARE = 0.3, 0.4
FEWEST_FRAMES = 128                      # the engine's


@dataclass
class Item:
    """Latents are [T, C]; the timbre's T is fixed."""
    piece: object
    target: torch.Tensor
    source: torch.Tensor
    mask: torch.Tensor  # 1 where to generate, 0 where to keep
    timbre: torch.Tensor
    text: list
    lyrics: list
    is_cover: bool = False  # the source is to be read through its audio codes
    is_track_task: bool = False


@dataclass
class TaskBatch:
    items: list
    target: torch.Tensor     # [B, T, C], with its clock
    source: torch.Tensor
    mask: torch.Tensor
    counted: torch.Tensor    # [B, T, 1]: 1 for frames of the piece, 0 for padding
    timbre: torch.Tensor
    text: torch.Tensor       # ids [B, L]
    text_mask: torch.Tensor
    lyrics: torch.Tensor
    lyric_mask: torch.Tensor
    is_cover: torch.Tensor   # [B]
    is_track_task: torch.Tensor


class TaskBatches:
    """Makes batches on the CPU. Items are whole pieces, so that songs learn to begin and to end; those of a batch have one
    length, so nothing is padded."""

    def __init__(self, config, data, pieces):
        self.config, self.data, self.pieces = config, data, pieces
        self.weighted = [piece for piece in pieces for _ in range(STEM_WEIGHT if piece.stems else 1)]
        self.by_length = {}
        for piece in self.weighted:
            self.by_length.setdefault(data.frames(piece), []).append(piece)

    def draw(self, seconds, draw):
        """Pieces of `seconds` in all."""
        length = self.data.frames(draw.choice(self.weighted))
        count = max(1, round(seconds * FRAMES_PER_SECOND / length))
        return self.collate([self.any_task(draw.choice(self.by_length[length]), draw) for _ in range(count)])

    def requests(self, count, draw):
        """Texts of random pieces: ids [count, L], their mask, and numbers of the facts."""
        pieces = [draw.choice(self.pieces) for _ in range(count)]
        texts = [request_text(draw.choice(piece.requests), draw) for piece in pieces]
        return *pad_ids(texts), torch.stack([as_numbers(piece.facts, self.data.genres) for piece in pieces])

    def spread(self, count):
        """Text2music for pieces of all lengths: always the same."""
        sorted_pieces = sorted(self.pieces, key=self.data.frames)
        count = min(count, len(sorted_pieces))
        pieces = [sorted_pieces[index * len(sorted_pieces) // count] for index in range(count)]
        return self.collate([self.text2music(piece) for piece in pieces])

    def text2music(self, piece):
        target = self.data.latents_of(piece)
        silence = self.data.silence
        request = piece.requests[0]
        return Item(piece, target, silence[:len(target)], torch.ones_like(target),
                    silence[:self.config["timbre_fix_frame"]], request.text, request.lyrics)

    def any_task(self, piece, draw):
        item = self.text2music(piece)
        if draw.random() < TIMBRE_SHARE:
            item.timbre = self.timbre_of(piece, draw)
        if piece.stems and draw.random() < TRACK_SHARE:
            task = draw.choice([key for key in sorted(piece.task_texts, key=str) if key[1]])
            self.make_track_task(item, *task)
        elif (choice := draw.random()) < COVER_SHARE:
            task = ("cover", None)
            item.is_cover, item.source = True, item.target
        elif choice < COVER_SHARE + REPAINT_SHARE:
            task = ("repaint", None)
            make_repaint(item, draw)
        else:
            request = draw.choice(piece.requests)
            item.text = request_text(request, draw)
            item.lyrics = request.lyrics
            return item
        item.text = piece.task_texts[task]
        return item

    def make_track_task(self, item, task, track):
        """extract: the track from the mix. lego: the track to the rest of the mix. complete: the mix to the track."""
        def latents(name):
            return self.data.latents_of(item.piece, name)

        mix, item.is_track_task = item.target, True
        if task == "complete":
            item.source = latents(track)
        else:
            item.source, item.target = mix if task == "extract" else latents(rest_without(track)), latents(track)

    def timbre_of(self, piece, draw):
        mix, wanted = self.data.latents_of(piece, MIX), self.config["timbre_fix_frame"]
        mix = mix.repeat(max(1, math.ceil(wanted / len(mix))), 1)
        first = draw.randrange(len(mix) - wanted + 1) if len(mix) == self.data.frames(piece) else 0
        return mix[first:first + wanted]

    def collate(self, items):
        longest = max(FEWEST_FRAMES, *(len(item.target) for item in items))
        beats = Parts.of(items[0].target.shape[1]).beat_slice

        def padded(latents, silence):
            return torch.cat([latents, silence[:longest - len(latents)]])

        def with_clock(item):
            target, piece = item.target.clone(), item.piece
            hands = clock(piece.facts, piece.sections, len(target))
            target[:, beats] = hands[:, :beats.stop - beats.start]
            return padded(target, self.data.silence)

        ones = torch.ones(longest, items[0].target.shape[1])
        counted = [F.pad(torch.ones(len(item.target), 1), (0, 0, 0, longest - len(item.target))) for item in items]
        return TaskBatch(items, torch.stack([with_clock(item) for item in items]),
                         torch.stack([padded(item.source, self.data.silence) for item in items]),
                         torch.stack([padded(item.mask, ones) for item in items]), torch.stack(counted),
                         torch.stack([item.timbre for item in items]),
                         *pad_ids([item.text for item in items]), *pad_ids([item.lyrics for item in items]),
                         torch.tensor([item.is_cover for item in items]),
                         torch.tensor([item.is_track_task for item in items]))


def request_text(request, draw):
    return request.bare_text if draw.random() < BARE_TEXT_SHARE else request.text


def make_repaint(item, draw):
    frames = len(item.target)
    length = max(1, int(frames * draw.random()))
    inside = slice(first := draw.randrange(frames - length + 1), first + length)
    source = item.target.clone()
    source[inside] = item.source[inside]
    item.source = source
    # Some items keep a mask of ones. In the engine, such a mask lets the model decide what to repaint.
    if draw.random() >= AUTO_MASK_SHARE:
        item.mask = torch.zeros_like(item.target)
        item.mask[inside] = 1
