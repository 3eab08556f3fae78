"""Checkpoints in the original layout, bfloat16: reads the one to start from, writes the trained one."""
import ctypes
import json
import shutil

import torch

from audio_tokenizer import AudioTokenizer
from data import SILENCE
from latent_space import LatentSpace
from optimizer import read_average

VAE, TEXT_ENCODER, LM, DIT = ("vae/diffusion_pytorch_model.safetensors", "text_encoder/model.safetensors",
                              "lm/model.safetensors", "model.safetensors")
TOKENIZER_PARTS = ("tokenizer", "detokenizer")
TYPES = {"BF16": torch.bfloat16, "F32": torch.float32}


def write_safetensors(path, tensors):
    halves = {name: tensors[name].bfloat16().contiguous() for name in sorted(tensors)}
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in halves.items():
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in halves.values():
            file.write(ctypes.string_at(tensor.data_ptr(), tensor.nbytes))


def read_safetensors(path):
    data = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = (start + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(data[first:last], dtype=TYPES[entry["dtype"]]).view(entry["shape"])
    return tensors


def below(tensors, prefix):
    """Tensors whose names start with `prefix.`, without it."""
    return {name[len(prefix) + 1:]: tensor for name, tensor in tensors.items() if name.startswith(prefix + ".")}


def without(tensors, *prefixes):
    return {name: tensor for name, tensor in tensors.items() if name.split(".")[0] not in prefixes}


def export(work, start, out, planner_config=None):
    """Writes what the stages have learnt so far; stages without a state keep the weights that they start from. The language
    model's config is `planner_config`, if there is one."""
    def weights_of(*stages):
        for stage in stages:
            path = work / f"{stage}.pt"
            if path.exists():
                return read_average(path)
        return start_from(start, stages[-1])

    dit, vae = weights_of("guidance", "dit"), read_safetensors(start / VAE)
    written = {
        VAE: {**vae, **without(weights_of("decoder"), "discriminator")},
        TEXT_ENCODER: below(dit, "text_encoder"),
        LM: without(weights_of("lm"), "words_head"),
        DIT: {**without(dit, "text_encoder", "words_head"), **tokenizer_weights(start)},
    }
    for name, tensors in written.items():
        write_safetensors(out / name, tensors)
    for path in (*start.rglob("*.json"), start / SILENCE):
        shutil.copyfile(path, out / path.relative_to(start))
    if planner_config:
        shutil.copyfile(planner_config, out / "lm/config.json")


def latent_space_of(vae):
    """Latent space of a checkpoint's folder `vae`."""
    weights = below(read_safetensors(vae / VAE.removeprefix("vae/")), "encoder")
    config = json.loads((vae / "config.json").read_text())
    return LatentSpace(config, {name: weight.float() for name, weight in weights.items()})


def start_from(checkpoint, stage):
    """Weights of a checkpoint under the names of a stage's module."""
    if stage == "decoder":
        return {name: tensor for name, tensor in read_safetensors(checkpoint / VAE).items() if name.startswith(stage)}
    if stage == "lm":
        return read_safetensors(checkpoint / LM)
    text = read_safetensors(checkpoint / TEXT_ENCODER)
    dit = without(read_safetensors(checkpoint / DIT), *TOKENIZER_PARTS)
    return {**dit, **{f"text_encoder.{name}": tensor for name, tensor in text.items()}}


def tokenizer_weights(checkpoint):
    dit = read_safetensors(checkpoint / DIT)
    return {name: tensor for name, tensor in dit.items() if name.split(".")[0] in TOKENIZER_PARTS}


def audio_tokenizer_of(checkpoint):
    tokenizer = AudioTokenizer(json.loads((checkpoint / "config.json").read_text()))
    tokenizer.load_state_dict(tokenizer_weights(checkpoint))
    return tokenizer.requires_grad_(False)
