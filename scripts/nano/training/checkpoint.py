"""The checkpoint in the original layout, bfloat16: written from what the stages have learnt, and read to start from."""
import ctypes
import json

import torch

from data import SILENCE
from latent_space import LatentSpace
from optimizer import read_average

VAE, TEXT_ENCODER, LM, DIT = ("vae/diffusion_pytorch_model.safetensors", "text_encoder/model.safetensors",
                              "lm/model.safetensors", "model.safetensors")
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
    """What stands below `prefix.`, without it."""
    return {name[len(prefix) + 1:]: tensor for name, tensor in tensors.items() if name.startswith(prefix + ".")}


def without(tensors, *prefixes):
    return {name: tensor for name, tensor in tensors.items() if name.split(".")[0] not in prefixes}


def export(data, work, out):
    def average_of(stage):
        return read_average(work / f"{stage}.pt")

    dit = average_of("guidance")
    written = {
        VAE: {**data.timbre(), **without(average_of("decoder"), "discriminator")},
        TEXT_ENCODER: below(dit, "text_encoder"),
        LM: without(average_of("lm"), "words_head"),
        DIT: {**without(dit, "text_encoder", "words_head"), **average_of("tokenizer")},
    }
    for name, tensors in written.items():
        write_safetensors(out / name, tensors)
    for name, text in data.files.items():
        if name.startswith("model/") and not name.endswith("training.json"):
            (out / name.removeprefix("model/")).write_text(text)
    (out / "vae/config.json").write_text(json.dumps(data.vae_config(), indent=2) + "\n")
    torch.save(data.silence.T[None].bfloat16().contiguous(), out / f"{SILENCE}_latent.pt")


def latent_space_of(vae):
    """The space whose latents a checkpoint's folder `vae` hears and plays."""
    config = json.loads((vae / "config.json").read_text())
    weights = read_safetensors(vae / VAE.removeprefix("vae/"))
    lows = {f"low_{name}s": torch.tensor(config["oscillators"][name]) for name in ("mean", "deviation")}
    timbre = {name: weight.float() for name, weight in below(weights, "encoder").items()}
    return LatentSpace(config, {**lows, **timbre})


def check_tokenizer(data, checkpoint, stage):
    """Weights that read words know the ids of their own tokenizer alone."""
    part = {"words": "text_encoder", "dit": "text_encoder", "lm": "lm"}.get(stage)
    path = checkpoint / f"{part}/tokenizer.json"
    if part and path.exists() and path.read_text() != data.files.get(f"model/{part}/tokenizer.json"):
        raise ValueError(f"stage {stage} cannot start from {checkpoint}, whose {part} has another tokenizer than the data set: "
                         "begin without --from, or make a new data set by train.ts --from")


def start_from(checkpoint, stage):
    """Weights of an exported checkpoint by the names that a stage has for them."""
    if stage == "decoder":
        return {name: tensor for name, tensor in read_safetensors(checkpoint / VAE).items() if name.startswith(stage)}
    if stage == "lm":
        return read_safetensors(checkpoint / LM)
    text = {f"text_encoder.{name}": tensor for name, tensor in read_safetensors(checkpoint / TEXT_ENCODER).items()}
    if stage == "words":
        return text
    dit, codes = read_safetensors(checkpoint / DIT), ("tokenizer", "detokenizer")
    if stage == "tokenizer":
        return {name: tensor for name, tensor in dit.items() if name.split(".")[0] in codes}
    return {**without(dit, *codes), **text}
