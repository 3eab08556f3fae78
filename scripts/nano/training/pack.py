"""pack.py --data DIR --model DIR --out FILE [--audio-share 1] [--from CHECKPOINT]

Puts all that training reads into one file: the model's configs and tokenizers, the records of the pieces, their latents,
and the audio of a share of them, which the decoder learns from.
"""
import argparse
import json
import sys
import wave
from pathlib import Path

import torch

from checkpoint import latent_space_of
from data import MIX, SILENCE, read_pieces, rest_without, save
from latent_space import LatentSpace

SILENCE_FRAMES = 15000  # 600 s, the longest song
STEADY_FRAME = 50       # far enough from the start that silence sounds the same from there on


def read_wav(path):
    """PCM of 16 bits, stereo, 48 kHz: int16 [samples, 2]."""
    with wave.open(str(path)) as file:
        if file.getparams()[:3] != (2, 2, 48000):
            raise ValueError(f"{path}: expected a WAV file of 16 bits, 48 kHz and two channels")
        return torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16).view(-1, 2)


def pack(data, model, audio_share, start, report):
    files = {name: (data / name).read_text() for name in ("pieces.jsonl", "words.jsonl", "genres.json")}
    files.update({f"model/{path.relative_to(model)}": path.read_text() for path in sorted(model.rglob("*.json"))})
    records = {record["id"]: record for record in map(json.loads, files["pieces.jsonl"].splitlines())}
    splits = read_pieces(files["pieces.jsonl"], data / "pieces.jsonl")
    space = latent_space_of(start / "vae") if start else LatentSpace.measure(
        json.loads(files["model/vae/config.json"]), lambda piece: read_wav(data / records[piece.id]["mix"]), splits.train)

    def latents_of(audio):
        whole = audio.shape[0] // space.hop * space.hop
        return space(audio[None, :whole].mT)[0].T.bfloat16().contiguous()

    heard = {piece.id for split in (splits.train, splits.held_out) for index, piece in enumerate(split)
             if index * audio_share % 1 < audio_share}
    latents, sounds, everything = {}, {}, splits.train + splits.held_out
    for done, piece in enumerate(everything, 1):
        record = records[piece.id]
        tracks = {track: read_wav(data / path) for track, path in {MIX: record["mix"], **record["stems"]}.items()}
        if piece.id in heard:
            sounds[piece.id] = tracks
        mix = tracks[MIX] / 32768
        own = latents[piece.id] = {MIX: latents_of(mix)}
        for track in piece.stems:
            stem = tracks[track] / 32768
            own[track], own[rest_without(track)] = latents_of(stem), latents_of(mix - stem)
        if done % 50 == 0 or done == len(everything):
            report({"stage": "latents", "done": done, "total": len(everything)})
    start = latents_of(torch.zeros(2 * STEADY_FRAME * space.hop, 2))[:STEADY_FRAME + 1]
    silence = torch.cat([start[:-1], start[-1:].expand(SILENCE_FRAMES - STEADY_FRAME, -1)])
    return {"files": files, "latents": latents, "audio": sounds, "measured": space.measured, SILENCE: silence}


def main(arguments):
    parser = argparse.ArgumentParser(prog="pack.py", allow_abbrev=False)
    parser.add_argument("--data", type=Path, required=True, help="pieces.jsonl and the audio")
    parser.add_argument("--model", type=Path, required=True, help="config.json files, tokenizers and training.json")
    parser.add_argument("--out", type=Path, required=True, help="the file")
    parser.add_argument("--audio-share", type=float, default=1, help="0 .. 1: of the pieces, those with their audio")
    parser.add_argument("--from", dest="start", type=Path, help="a checkpoint to go on from, whose latents are made")
    options = parser.parse_args(arguments)
    packed = pack(options.data, options.model, options.audio_share, options.start,
                  lambda line: print(json.dumps(line), flush=True))
    save(packed, options.out)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (ValueError, OSError) as error:
        sys.exit(f"pack.py: {error}")
