"""Writes adapters with PEFT: peft_adapters.py MODEL FOLDER.

Each case becomes FOLDER/CASE/peft, a folder as PEFT saves it, and FOLDER/CASE/reference.safetensors with the same
tensors and the scale that PEFT uses for each module: as an alpha, or multiplied into w1 of a LoKr without a rank.
"""

import sys

import peft
import torch
from safetensors.torch import load_file, save_file
from peft_decoder import read_decoder

model_directory, folder = sys.argv[1:]
targets = ["q_proj", "v_proj", "gate_proj"]
cases = {
    "patterns": peft.LoraConfig(
        r=4,
        lora_alpha=8,
        target_modules=targets,
        alpha_pattern={r".*self_attn\.[qk]_proj": 32, r"^layers\.\d+\.mlp.*": 1, "cross_attn.v_proj": 2},
        rank_pattern={r"layers\.0\..*q_proj": 2},
    ),
    "order": peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=targets, alpha_pattern={"self_attn.q_proj": 2, "q_proj": 32}
    ),
    "rslora": peft.LoraConfig(r=16, lora_alpha=8, target_modules=targets, use_rslora=True),
    "target_parameters": peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["v_proj"], target_parameters=["self_attn.q_proj.weight"]
    ),
    "loha": peft.LoHaConfig(r=4, alpha=8, target_modules=targets, alpha_pattern={"q_.*": 2}),
    "lokr_low_rank": peft.LoKrConfig(r=2, alpha=8, target_modules=targets, decompose_both=True),
    "lokr_whole": peft.LoKrConfig(r=64, alpha=32, target_modules=targets, rank_pattern={"v_proj": 128}),
}

for name, config in cases.items():
    torch.manual_seed(1)
    model = peft.get_peft_model(read_decoder(model_directory), config)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(f"{folder}/{name}/peft")
    # PEFT sorts the patterns when it saves, so only the loaded adapter has the scales that the folder describes.
    model = peft.PeftModel.from_pretrained(read_decoder(model_directory), f"{folder}/{name}/peft")
    tensors = load_file(f"{folder}/{name}/peft/adapter_model.safetensors")
    for module_name, module in model.named_modules():
        if not hasattr(module, "get_delta_weight"):
            continue
        scale, rank = module.scaling["default"], module.r["default"]
        module_name = module_name.removesuffix(".base_layer")
        w1 = f"{module_name}.lokr_w1"
        if w1 in tensors and f"{module_name}.lokr_w2" in tensors:
            tensors[w1] *= scale
        else:
            tensors[f"{module_name}.alpha"] = torch.tensor(float(scale * rank))
    save_file(tensors, f"{folder}/{name}/reference.safetensors")
