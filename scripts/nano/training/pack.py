"""pack.py --pieces DIR --data DIR --start CHECKPOINT --shard NUMBER [--audio-share 1 | --codes-only]

Packs a folder of rendered pieces into DATA/shard-NUMBER.pt: records, audio codes, latents, and audio of a share of the pieces
for the decoder. With --codes-only, which suffices for the language model: records and codes.
"""
import argparse
import json
import sys
import wave
from pathlib import Path

import torch

from checkpoint import audio_tokenizer_of, latent_space_of
from data import MIX, SILENCE, read_pieces, rest_without, save


def read_wav(path):
    """PCM of 16 bits, stereo, 48 kHz: int16 [samples, 2]."""
    with wave.open(str(path)) as file:
        if file.getparams()[:3] != (2, 2, 48000):
            raise ValueError(f"{path}: expected a WAV file with 16 bits, 48 kHz and two channels")
        return torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16).view(-1, 2)


def write_wav(path, samples):
    """int16 [samples, 2], as `read_wav` reads it."""
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 48000, 0, "NONE", ""))
        file.writeframes(bytes(samples.contiguous().untyped_storage()))


def latents_of(space, audio):
    """Audio [samples, 2] -> latents [frames, C]."""
    whole = audio.shape[0] // space.hop * space.hop
    return space(audio[None, :whole].mT)[0].T.half().contiguous()


def pack(options):
    text, records = (options.pieces / "pieces.jsonl").read_text(), {}
    for record in map(json.loads, text.splitlines()):
        records[record["id"]] = record
    options.data.mkdir(parents=True, exist_ok=True)
    space, tokenizer = latent_space_of(options.start / "vae"), audio_tokenizer_of(options.start)
    silence = torch.load(options.start / SILENCE)[0].T.float()
    latents, sounds, codes = {}, {}, {}
    for split in read_pieces(text, options.pieces):
        for index, piece in enumerate(split):
            record = records[piece.id]
            paths = {MIX: record["mix"], **record["stems"]}
            tracks = {track: read_wav(options.pieces / name) for track, name in paths.items()}
            mix = tracks[MIX] / 32768
            own = {MIX: latents_of(space, mix)}
            codes[piece.id] = tokenizer.codes(own[MIX].float(), silence)
            if options.codes_only:
                continue
            if index * options.audio_share % 1 < options.audio_share:
                sounds[piece.id] = tracks
            latents[piece.id] = own
            for track in piece.stems:
                stem = tracks[track] / 32768
                own[track], own[rest_without(track)] = latents_of(space, stem), latents_of(space, mix - stem)
    save({"records": text, "latents": latents, "audio": sounds, "codes": codes}, options.data / f"shard-{options.shard:04}.pt")


def main(arguments):
    parser = argparse.ArgumentParser(prog="pack.py", allow_abbrev=False)
    parser.add_argument("--pieces", type=Path, required=True, help="pieces.jsonl and audio")
    parser.add_argument("--data", type=Path, required=True, help="the folder of shards")
    parser.add_argument("--start", type=Path, required=True, help="checkpoint of the latent space")
    parser.add_argument("--shard", type=int, required=True, help="number of the shard")
    parser.add_argument("--codes-only", action="store_true", help="keep neither latents nor audio")
    parser.add_argument("--audio-share", type=float, default=1, help="0 .. 1: of the pieces, those with their audio")
    pack(parser.parse_args(arguments))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(f"pack.py: {error}")
