"""A data set of a few seconds, and a model and a checkpoint of a few thousand weights, in a temporary folder."""
import json
import math
import tempfile
from argparse import Namespace
from pathlib import Path

import torch

import checkpoint
import pack
import train
from audio_tokenizer import AudioTokenizer
from data import SILENCE, Data
from dit import AceStep
from latent_space import MEL_ROWS, Parts
from oobleck import Decoder
from transformer import Qwen3

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
LOWS, TIMBRE = Parts.of(4).lows, Parts.of(4).timbre
VAE = {**vae_config(4, 4), "downsampling_ratios": [8, 4, 6, 10], "channel_multiples": [1, 2, 2, 2],
       "oscillators": {"mean": [-6.0] * LOWS, "deviation": [1.5] * LOWS, "floor": 2e-3, "subtracted": 4e-3, "loudest": 3.0}}
TOKENS = {"<|im_end|>": 16, "<|audio_code_0|>": 20}
CONFIGS = {
    "config.json": DIT, "text_encoder/config.json": QWEN3, "lm/config.json": QWEN3, "vae/config.json": VAE,
    "lm/tokenizer.json": {"added_tokens": [{"id": id, "content": content} for content, id in TOKENS.items()]},
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
    pack.write_wav(path, torch.stack([left, left / 2], 1).short())


def write_pieces(pieces):
    pieces.mkdir()
    for index in range(4):
        for track, hertz in {"mix": 220, "bass": 110, "drums": 330}.items():
            write_wav(pieces / f"piece{index}/{track}.wav", hertz * (1 + index), 96000 + 9600 * index)
    (pieces / "pieces.jsonl").write_text("".join(json.dumps(record(index)) + "\n" for index in range(4)))


def write_checkpoint(start):
    """Random weights."""
    torch.manual_seed(1)

    def random_weights(module):
        """Zeros would keep gradients from other weights."""
        for weight in module.parameters():
            if not weight.any():
                torch.nn.init.normal_(weight, std=0.1)
        return module.state_dict()

    weights = {
        checkpoint.DIT: {**random_weights(AceStep(DIT)), **random_weights(AudioTokenizer(DIT))},
        checkpoint.TEXT_ENCODER: random_weights(Qwen3(QWEN3)), checkpoint.LM: random_weights(Qwen3(QWEN3)),
        checkpoint.VAE: {**{f"decoder.{name}": weight for name, weight in random_weights(Decoder(VAE)).items()},
                         "encoder.timbre_mean": torch.zeros(MEL_ROWS),
                         "encoder.timbre_components": torch.randn(TIMBRE, MEL_ROWS) / 20},
    }
    for name, tensors in weights.items():
        checkpoint.write_safetensors(start / name, tensors)
    for name, value in CONFIGS.items():
        (start / name).write_text(json.dumps(value))
    torch.save(torch.randn(1, 4, 400).bfloat16(), start / SILENCE)


class Tiny:
    """A temporary folder in which stages run as train.py runs them."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.start = self.root / "start"
        write_pieces(self.root / "pieces")
        write_checkpoint(self.start)
        self.data = self.packed(self.root / "data")

    def packed(self, out, *options):
        places = {"--pieces": self.root / "pieces", "--data": out, "--start": self.start, "--shard": 0}
        pack.main([*(str(word) for place in places.items() for word in place), *options])
        (out / "training.json").write_text('{"unconditionalPrompt": [15, 13, 14], "genres": ["folk", "jazz"]}')
        return Data(out, self.start)

    def options(self, stage, steps=0):
        work = self.root / "work"
        work.mkdir(exist_ok=True)
        return Namespace(stage=stage, stages=[stage], state=work / f"{stage}.pt", work=work, out=self.root / "out",
                         start=self.start, device="cpu", threads=1, steps=steps, crop_seconds=0.2, learning_rate=3e-4, planner_pieces=None, planner_config=None,
                         batch=1 if stage in ("dit", "guidance") else 4,
                         average_decay=0, save_minutes=9, log_steps=1, measure_steps=0, seed=1)

    def train(self, stage, steps):
        train.train(self.data, self.options(stage, steps), lambda figures: None)

    def prepared(self, stage):
        """Its module, after two steps of the stage before it."""
        if stage == "guidance" and not self.options("dit").state.exists():
            self.train("dit", 2)
        return train.make_stage(self.data, self.options(stage))
