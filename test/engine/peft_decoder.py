"""The decoder of a model for PEFT."""

import torch
from safetensors.torch import load_file


def read_decoder(model_directory):
    """Returns the decoder's linear projections. PEFT needs only their names and weights, so all other modules are empty."""
    decoder = torch.nn.Module()
    for name, weight in load_file(f"{model_directory}/model.safetensors").items():
        if not name.startswith("decoder.layers.") or not name.endswith("_proj.weight"):
            continue
        *path, leaf, _ = name.removeprefix("decoder.").split(".")
        parent = decoder
        for part in path:
            if not hasattr(parent, part):
                parent.add_module(part, torch.nn.Module())
            parent = getattr(parent, part)
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        linear.weight.data = weight.float()
        parent.add_module(leaf, linear)
    return decoder
