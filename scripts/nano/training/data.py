"""What training reads: one file with the words, latents and audio of a data set, and the random choices of a step."""
import json
import random
from collections import namedtuple
from dataclasses import dataclass

import torch

from facts import Facts
from latent_space import Parts

MIX, SILENCE = "mix", "silence"

Request = namedtuple("Request", "text bare_text lyrics plan_prompt plan")


@dataclass
class Piece:
    id: str
    facts: Facts
    sections: list    # their starts and ends, in seconds
    stems: list       # tracks; empty where they were not kept
    requests: list    # the first is the one that the tasks' prompts are of
    task_texts: dict  # by (task, track); track is None for cover and repaint


@dataclass
class Pieces:
    train: list
    held_out: list


def read_pieces(text, source):
    """A record a line (scripts/nano/dataset/record.ts); `source` is named where one cannot be read."""
    splits = {"train": [], "heldout": []}
    for line in text.splitlines():
        record = json.loads(line)
        splits[record["split"]].append(read_piece(record, source))
    if not all(splits.values()):
        raise ValueError(f"{source}: needs pieces of both splits, train and heldout")
    return Pieces(splits["train"], splits["heldout"])


def read_piece(record, source):
    def request(words):
        return Request(words["textTokenIds"], words["bareTextTokenIds"], words["lyricTokenIds"],
                       words["lmPromptTokenIds"], words["lmThinkTokenIds"])

    try:
        facts = Facts.of(record["genre"], record["bpm"], record["keyScale"], record["timeSignature"])
    except ValueError as error:
        raise ValueError(f"{source}, {record['id']}: {error}") from error
    tasks = record["tasks"]
    texts = {(name, None): tasks[name] for name in ("cover", "repaint")}
    for name in ("extract", "lego", "complete"):
        texts.update({(name, track): ids for track, ids in tasks[name].items()})
    sections = [(section["startSeconds"], section["endSeconds"]) for section in record["sections"]]
    return Piece(record["id"], facts, sections, sorted(record["stems"]),
                 [request(words) for words in (record, *record["variants"])], texts)


class Data:
    """The file that pack.py writes, mapped: reading is free until values are used. Nothing else is needed to train."""

    def __init__(self, path):
        if not path.exists():
            raise ValueError(f"{path} is missing: make it with pack.py")
        packed = torch.load(path, mmap=True)
        self.path, self.files = path, packed["files"]  # texts by path: configs, tokenizers, records
        self.latents, self.sounds, self.measured = packed["latents"], packed["audio"], packed["measured"]
        self.silence = packed[SILENCE].float()  # [frames, C], as long as the longest song
        self.genres = self.json("genres.json")
        self.pieces = read_pieces(self.files["pieces.jsonl"], f"{path}, pieces.jsonl")

    def json(self, name):
        return json.loads(self.files[name])

    def config(self, part=""):
        return self.json(f"model/{part}/config.json" if part else "model/config.json")

    def vae_config(self):
        """The autoencoder's config with what the engine needs to hear and to play latents: which channels say what, means and
        deviations of those that oscillators play."""
        config = self.config("vae")
        parts = Parts.of(config["decoder_input_channels"])
        oscillators = {name: self.measured[f"low_{name}s"].tolist() for name in ("mean", "deviation")}
        encoder = {"clock_channels": parts.beats, "timbre_channels": parts.timbre, "pitch_classes": parts.pitches}
        return {**config, "oscillators": oscillators, "spectral_encoder": encoder}

    def timbre(self):
        """What the engine's encoder has for weights."""
        return {f"encoder.timbre_{name}": self.measured[f"timbre_{name}"] for name in ("mean", "components")}

    def words(self):
        """Pieces that were composed and described but not rendered."""
        return read_pieces(self.files["words.jsonl"], f"{self.path}, words.jsonl")

    def latents_of(self, piece, track=MIX):
        """[T, C] of one track or of the mix."""
        return self.latents[piece.id][track].float()

    def frames(self, piece):
        return len(self.latents[piece.id][MIX])

    def heard(self, pieces):
        """Those of `pieces` whose audio was packed."""
        return [piece for piece in pieces if piece.id in self.sounds]

    def samples(self, piece, track=MIX):
        return len(self.sounds[piece.id][track])

    def audio(self, piece, first, count, track=MIX):
        """Samples first .. first + count - 1, those beyond the end zero: [2, count] in -1 .. 1."""
        cut = self.sounds[piece.id][track][first:first + count]
        return torch.nn.functional.pad(cut.T / 32768, (0, count - len(cut)))

    def middle(self, piece, count):
        return self.audio(piece, max(0, (self.samples(piece) - count) // 2), count)


def rest_without(track):
    """The name of the latents of a mix without one of its tracks."""
    return "rest without " + track


def save(value, path):
    """Replaces the file whole, so that a cut run leaves the old one."""
    partial = path.with_name(path.name + ".part")
    torch.save(value, partial)
    partial.replace(path)


def pad_ids(rows):
    """Token ids padded on the right [B, L], and True where they are."""
    ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


class Draw(random.Random):
    """The random choices of one step, and how much of the run's steps or minutes are used up, 0 .. 1. Seed and step alone decide
    the choices, on any device: a resumed run goes on as an uninterrupted one would."""

    def __init__(self, seed, step, progress=0.0):
        super().__init__(f"{seed}/{step}")
        self.progress = progress
        self.generator = torch.Generator().manual_seed(self.getrandbits(62))

    def normal(self, shape):
        return torch.randn(shape, generator=self.generator)
