"""A data set of a few seconds and the configs of a model of a few thousand weights, packed in a fresh folder."""
import json
import math
import tempfile
import wave
from argparse import Namespace
from pathlib import Path

import torch

import pack
import train
from data import Data

HOP = 1920
torch.set_num_threads(1)  # its tensors are small


def tone(hertz, frames, amplitude=0.2):
    """On both channels, [1, 2, samples] at 48 kHz."""
    time = torch.arange(frames * HOP, dtype=torch.double) / 48000
    return (amplitude * (2 * math.pi * hertz * time).sin()).float().expand(1, 2, -1).contiguous()


def hiss(items, frames):
    return 0.1 * torch.randn(items, 2, frames * HOP, generator=torch.Generator().manual_seed(1))


def vae_config(latents, decoder_channels):
    return {"sampling_rate": 48000, "audio_channels": 2,
            "decoder_channels": decoder_channels, "decoder_input_channels": latents,
            "downsampling_ratios": [10, 8, 6, 4], "channel_multiples": [1, 1, 1, 1]}


TRANSFORMER = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
               "num_key_value_heads": 1, "head_dim": 8, "rms_norm_eps": 1e-6, "rope_theta": 10000}
DIT = {**TRANSFORMER, "in_channels": 12, "audio_acoustic_hidden_dim": 4, "patch_size": 2, "sliding_window": 8,
       "layer_types": ["sliding_attention", "full_attention"], "text_hidden_dim": 16, "timbre_hidden_dim": 4,
       "timbre_fix_frame": 20, "fsq_dim": 16, "num_lyric_encoder_hidden_layers": 1,
       "num_timbre_encoder_hidden_layers": 1, "num_attention_pooler_hidden_layers": 1, "pool_window_size": 5,
       "fsq_input_levels": [4, 4]}
QWEN3 = {**TRANSFORMER, "vocab_size": 40}
MODEL = {
    "config.json": DIT, "text_encoder/config.json": QWEN3, "lm/config.json": QWEN3,
    "vae/config.json": {**vae_config(4, 4), "downsampling_ratios": [8, 4, 6, 10], "channel_multiples": [1, 2, 2, 2]},
    "lm/tokenizer.json": {"added_tokens": [{"id": 16, "content": "<|im_end|>"},
                                           {"id": 20, "content": "<|audio_code_0|>"}]},
    "training.json": {"unconditionalPrompt": [15, 13, 14], "stages": {}},
}


def record(index):
    def request(own):
        return {"textTokenIds": [own, 5, 6], "bareTextTokenIds": [5, own], "lyricTokenIds": [own, 7],
                "lmPromptTokenIds": [own, 2, 3], "lmThinkTokenIds": [13, 14, own]}

    name = f"piece{index}"
    return {"id": name, "split": "train" if index < 2 else "heldout", "genre": "jazz", "bpm": 120,
            "keyScale": "A minor", "timeSignature": "4", "mix": f"{name}/mix.wav",
            "sections": [{"name": "Verse", "startSeconds": 0, "endSeconds": 1}],
            "stems": {track: f"{name}/{track}.wav" for track in ("bass", "drums")}, **request(1 + index),
            "variants": [request(1 + index)],
            "tasks": {"cover": [8, 5], "repaint": [9, 5], "extract": {"bass": [10, 5]}, "lego": {"drums": [11, 5]},
                      "complete": {"bass": [12, 5]}}}


def write_wav(path, hertz, samples):
    """A tone that fades, 16 bits, stereo."""
    time = torch.arange(samples) / 48000
    left = 12000 * (2 * math.pi * hertz * time).sin() * (-time).exp()
    path.parent.mkdir(exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 48000, 0, "NONE", ""))
        file.writeframes(bytes(torch.stack([left, left / 2], 1).short().untyped_storage()))


def write_files(root):
    data, records = root / "data", [record(index) for index in range(4)]
    data.mkdir()
    for index in range(4):
        for track, hertz in {"mix": 220, "bass": 110, "drums": 330}.items():
            write_wav(data / f"piece{index}/{track}.wav", hertz * (1 + index), 96000 + 9600 * index)
    for name in ("pieces.jsonl", "words.jsonl"):
        (data / name).write_text("".join(json.dumps(line) + "\n" for line in records))
    (data / "genres.json").write_text('["folk", "jazz"]')
    for name, value in MODEL.items():
        path = root / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


class Tiny:
    """Its folder goes with it. Stages run in it as train.py runs them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        write_files(self.root)
        self.pack = self.root / "data.pt"
        self.data = self.packed(self.pack)

    def packed(self, out, *options):
        pack.main(["--data", str(self.root / "data"), "--model", str(self.root / "model"), "--out", str(out), *options])
        return Data(out)

    def options(self, stage, steps=0):
        work = self.root / "work"
        work.mkdir(exist_ok=True)
        return Namespace(stage=stage, state=work / f"{stage}.pt", work=work, out=self.root / "out", start=None,
                         device="cpu", minutes=None, hours=None, steps=steps, compile=False, batch=4, crop_seconds=0.2,
                         learning_rate=3e-4, warmup_steps=1, average_decay=0, save_minutes=9, log_steps=1,
                         measure_steps=0, seed=1)

    def train(self, stage, steps):
        train.train(self.data, self.options(stage, steps), lambda figures: None)

    def prepared(self, stage):
        """Its module, where the stages before have hardly run."""
        if stage in train.WITH_TOKENIZER and not self.options("tokenizer").state.exists():
            self.train("tokenizer", 2)
        if stage == "guidance" and not self.options("dit").state.exists():
            self.train("dit", 2)
        return train.make_stage(self.data, self.options(stage))
