"""round_trip.py VAE_DIRECTORY IN OUT [IN OUT ...]

Encodes recordings and decodes them again: WAV files of 16 bits, as long as the whole latent frames of the input.
"""
import json
import sys
from pathlib import Path

import torch

from checkpoint import below, latent_space_of, read_safetensors
from latent_space import hop_of
from oobleck import Decoder
from pack import read_wav, write_wav


@torch.no_grad()
def main(directory, *paths):
    config = json.loads((directory / "config.json").read_text())
    space, decoder = latent_space_of(directory), Decoder(config)
    decoder.load_state_dict(below(read_safetensors(directory / "diffusion_pytorch_model.safetensors"), "decoder"))
    for source, target in zip(paths[::2], paths[1::2]):
        audio = read_wav(source).T[None] / 32768
        whole = audio.shape[2] // hop_of(config) * hop_of(config)
        partial = target.with_name(target.name + ".part")
        write_wav(partial, (decoder(space(audio[..., :whole]))[0].clamp(-1, 1) * 32767).round().short().T)
        partial.replace(target)


if __name__ == "__main__":
    try:
        main(*map(Path, sys.argv[1:]))
    except (ValueError, OSError, TypeError) as error:
        sys.exit(f"round_trip.py: {error}")
