"""Input of training: the packed data set (records, latents, audio of a share of the pieces), the model's configs, and the
random choices of a step."""
import json
import random
from array import array
from collections import namedtuple
from dataclasses import dataclass
from mmap import MAP_SHARED

import torch

from facts import Facts

MIX, SILENCE = "mix", "silence_latent.pt"

Request = namedtuple("Request", "text bare_text lyrics plan_prompt plan")


@dataclass
class Piece:
    id: str
    facts: Facts
    sections: list    # their starts and ends, in seconds
    stems: list       # tracks; empty if they were not kept
    requests: list    # prompts of tasks belong to the first
    task_texts: dict  # by (task, track); track is None for cover and repaint


def read_pieces(text, source):
    """Pieces to train on and held-out ones, a record a line (scripts/nano/dataset/record.ts). Errors name `source`."""
    records = [json.loads(line) for line in text.splitlines()]
    return [[read_piece(record, source) for record in records if record["split"] == split]
            for split in ("train", "heldout")]


def read_piece(record, source):
    def request(words):
        names = ("textTokenIds", "bareTextTokenIds", "lyricTokenIds", "lmPromptTokenIds", "lmThinkTokenIds")
        return Request(*(array("H", words[name]) for name in names))  # lists would take ten times the memory

    try:
        facts = Facts.of(record["genre"], record["bpm"], record["keyScale"], record["timeSignature"])
    except ValueError as error:
        raise ValueError(f"{source}, {record['id']}: {error}") from error
    tasks = record["tasks"]
    texts = {(name, None): array("H", tasks[name]) for name in ("cover", "repaint")}
    for name in ("extract", "lego", "complete"):
        texts.update({(name, track): array("H", ids) for track, ids in tasks[name].items()})
    sections = [(section["startSeconds"], section["endSeconds"]) for section in record["sections"]]
    return Piece(record["id"], facts, sections, sorted(record["stems"]),
                 [request(words) for words in (record, *record["variants"])], texts)


class Data:
    """The folder `data` with shards and training.json, and the checkpoint `start` with configs and tokenizers. Shards are
    mapped: values are read when they are used. `train` and `held_out` have latents; `composed` are all pieces to train on,
    also those of shards with codes only."""

    def __init__(self, data, start):
        shards = sorted(data.glob("shard-*.pt"))
        if not shards:
            raise ValueError(f"{data} has no shards: make them with pack.py")
        torch.serialization.set_default_mmap_options(MAP_SHARED)  # private pages would count against the memory limit
        self.start, self.latents, self.sounds, self.codes = start, {}, {}, {}
        self.train, self.held_out, self.composed = [], [], []
        for path in shards:
            shard = torch.load(path, mmap=True)
            self.latents.update(shard["latents"])
            self.sounds.update(shard["audio"])
            self.codes.update(shard["codes"])
            new, held_out = read_pieces(shard["records"], path)
            self.composed.extend(new)
            self.train.extend(piece for piece in new if piece.id in shard["latents"])
            self.held_out.extend(piece for piece in held_out if piece.id in shard["latents"])
        if not self.train or not self.held_out:
            raise ValueError(f"{data} must contain pieces of both splits, train and heldout")
        self.silence = torch.load(start / SILENCE)[0].T.float()  # [frames, C], as long as the longest song
        training = json.loads((data / "training.json").read_text())
        self.genres, self.unconditional_prompt = training["genres"], training["unconditionalPrompt"]

    def json(self, name):
        return json.loads((self.start / name).read_text())

    def config(self, part=""):
        return self.json(f"{part}/config.json" if part else "config.json")

    def latents_of(self, piece, track=MIX):
        """[T, C] of one track or of the mix."""
        return self.latents[piece.id][track].float()

    def frames(self, piece):
        return len(self.latents[piece.id][MIX])

    def heard(self, pieces):
        """Pieces whose audio was packed."""
        return [piece for piece in pieces if piece.id in self.sounds]

    def audio(self, piece, first, count, track=MIX):
        """Samples first .. first + count - 1, zero beyond the end: [2, count] in -1 .. 1."""
        cut = self.sounds[piece.id][track][first:first + count]
        return torch.nn.functional.pad(cut.T / 32768, (0, count - len(cut)))


def rest_without(track):
    """The name of the latents of a mix without one of its tracks."""
    return "rest without " + track


def save(value, path):
    """Replaces the file atomically."""
    partial = path.with_name(path.name + ".part")
    torch.save(value, partial)
    partial.replace(path)


def pad_ids(rows):
    """Token ids padded on the right [B, L], and a mask of the ids."""
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


class Draw(random.Random):
    """Random choices of one step, and the share of the run's steps that are done. Choices depend on seed and step alone:
    a resumed run draws the same as an uninterrupted one."""

    def __init__(self, seed, step, progress=0.0):
        super().__init__(f"{seed}/{step}")
        self.progress = progress
        self.generator = torch.Generator().manual_seed(self.getrandbits(62))

    def normal(self, shape):
        return torch.randn(shape, generator=self.generator)
