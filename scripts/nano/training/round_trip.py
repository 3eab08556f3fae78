"""round_trip.py VAE_DIRECTORY IN OUT [IN OUT ...]

Encodes recordings and decodes the means of their latents: WAV files of 16 bits, as long as the whole latent frames of the
input.
"""
import json
import sys
import wave
from pathlib import Path

import torch

from checkpoint import below, read_safetensors
from latent_space import hop_of
from oobleck import Decoder, Encoder
from pack import read_wav


def half(kind, directory, config):
    module = kind(config)
    weights = read_safetensors(directory / "diffusion_pytorch_model.safetensors")
    module.load_state_dict({name: weight.float() for name, weight in below(weights, kind.__name__.lower()).items()})
    return module


@torch.no_grad()
def main(directory, *paths):
    config = json.loads((directory / "config.json").read_text())
    encoder, decoder = (half(kind, directory, config) for kind in (Encoder, Decoder))
    for source, target in zip(paths[::2], paths[1::2]):
        audio = read_wav(source).T[None] / 32768
        whole = audio.shape[2] // hop_of(config) * hop_of(config)
        means = encoder(audio[..., :whole])[:, :config["decoder_input_channels"]]
        samples = (decoder(means)[0].clamp(-1, 1) * 32767).round().short().T.contiguous()
        partial = target.with_name(target.name + ".part")
        with wave.open(str(partial), "wb") as file:
            file.setparams((2, 2, config["sampling_rate"], 0, "NONE", ""))
            file.writeframes(bytes(samples.untyped_storage()))
        partial.replace(target)


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:]))
    except (ValueError, OSError, TypeError) as error:
        sys.exit(f"round_trip.py: {error}")
