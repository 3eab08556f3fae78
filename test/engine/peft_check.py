"""Loads an adapter into a decoder with PEFT: peft_check.py MODEL ADAPTER.

Prints JSON: the modules PEFT wrapped, its warnings, the largest change of a weight, and the largest difference
between that change and alpha / r * B A of the file.
"""

import json
import sys
import warnings

import peft
from safetensors.torch import load_file
from peft_decoder import read_decoder

model_directory, adapter_directory = sys.argv[1:]

decoder = read_decoder(model_directory)
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
