"""Loads an adapter into a decoder with PEFT: peft_check.py MODEL ADAPTER.

Prints JSON: the modules PEFT wrapped, its warnings, the largest change of a weight, and the largest difference
between that change and alpha / r * B A of the file.
"""

import json
import sys
import warnings

import peft
import torch
from safetensors.torch import load_file

model_directory, adapter_directory = sys.argv[1:]

# PEFT needs only the names and weights of the linear projections, so all other modules are empty.
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

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = peft.PeftModel.from_pretrained(decoder, adapter_directory)

config = json.load(open(f"{adapter_directory}/adapter_config.json"))
tensors = load_file(f"{adapter_directory}/adapter_model.safetensors")
modules, change, difference = 0, 0.0, 0.0
for name, module in model.named_modules():
    if not hasattr(module, "get_delta_weight"):
        continue
    a, b = (tensors[f"{name}.lora_{part}.weight"] for part in "AB")
    delta = module.get_delta_weight("default")
    modules += 1
    change = max(change, delta.abs().max().item())
    difference = max(difference, (delta - config["lora_alpha"] / config["r"] * b @ a).abs().max().item())
print(
    json.dumps(
        {
            "modules": modules,
            "warnings": [str(warning.message) for warning in caught],
            "largestChange": change,
            "largestDifference": difference,
        }
    )
)
