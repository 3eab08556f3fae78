#!/usr/bin/env python3
"""Writes checkpoints of the published dimensions with random bfloat16 weights.

    make_checkpoints.py --out DIR   DIR/acestep-v15-turbo, DIR/vae, DIR/Qwen3-Embedding-0.6B, DIR/acestep-5Hz-lm-0.6B

Needs torch. File layout and tensor names follow the original ACE-Step 1.5 checkpoints, as do the modules of carillon-nano. The
tokenizers are those of carillon-nano, with more audio codes.
"""

import argparse
import json
import math
import pathlib
import shutil
import sys

import torch

PROJECT = pathlib.Path(__file__).resolve().parents[2]
NANO = PROJECT / "models/carillon-nano"
sys.path.insert(0, str(PROJECT / "scripts/nano/training"))

from audio_tokenizer import AudioTokenizer  # noqa: E402
from checkpoint import write_safetensors  # noqa: E402
from dit import AceStep  # noqa: E402
from transformer import Qwen3  # noqa: E402

NOISE = torch.randn(1 << 18, generator=torch.Generator().manual_seed(20260101))


def shapes_of(kind, config):
    """Names and shapes of a module's tensors, which are not allocated."""
    with torch.device("meta"):
        return {name: tensor.shape for name, tensor in kind(config).state_dict().items()}


def weights(shapes):
    """Noise scaled by fan-in; scales of norms and convolutions are 1, biases and the exponents of snakes 0."""
    tensors = {}
    for name, shape in shapes.items():
        if name.endswith((".bias", ".alpha", ".beta")):
            tensors[name] = torch.zeros(shape)
        elif name.endswith(".weight_g") or len(shape) == 1:
            tensors[name] = torch.ones(shape)
        else:
            noise = (NOISE.roll(len(tensors)) / math.sqrt(math.prod(shape[1:]))).bfloat16()
            count = math.prod(shape)
            tensors[name] = noise.repeat(math.ceil(count / len(noise)))[:count].view(shape)
    return tensors


def vae(config):
    """Names and shapes of diffusers' AutoencoderOobleck."""
    shapes, ratios, multiples = {}, config["downsampling_ratios"], [1] + config["channel_multiples"]

    def conv(name, outputs, inputs, kernel):
        shapes[name + ".weight_g"], shapes[name + ".weight_v"] = [outputs, 1, 1], [outputs, inputs, kernel]
        shapes[name + ".bias"] = [outputs]

    def snake(name, channels):
        shapes[name + ".alpha"] = shapes[name + ".beta"] = [1, channels, 1]

    def residual_units(name, channels):
        for unit in (1, 2, 3):
            snake(f"{name}.res_unit{unit}.snake1", channels)
            conv(f"{name}.res_unit{unit}.conv1", channels, channels, 7)
            snake(f"{name}.res_unit{unit}.snake2", channels)
            conv(f"{name}.res_unit{unit}.conv2", channels, channels, 1)

    width = config["encoder_hidden_size"]
    conv("encoder.conv1", width, config["audio_channels"], 7)
    for index, stride in enumerate(ratios):
        inputs, outputs = width * multiples[index], width * multiples[index + 1]
        residual_units(f"encoder.block.{index}", inputs)
        snake(f"encoder.block.{index}.snake1", inputs)
        conv(f"encoder.block.{index}.conv1", outputs, inputs, 2 * stride)
    snake("encoder.snake1", width * multiples[-1])
    # `width` is twice the number of latent channels: the encoder returns mean and scale of the posterior.
    conv("encoder.conv2", width, width * multiples[-1], 3)

    width = config["decoder_channels"]
    conv("decoder.conv1", width * multiples[-1], config["decoder_input_channels"], 7)
    for index, stride in enumerate(reversed(ratios)):
        inputs, outputs = width * multiples[-1 - index], width * multiples[-2 - index]
        snake(f"decoder.block.{index}.snake1", inputs)
        conv(f"decoder.block.{index}.conv_t1", inputs, outputs, 2 * stride)
        shapes[f"decoder.block.{index}.conv_t1.bias"] = [outputs]
        residual_units(f"decoder.block.{index}", outputs)
    snake("decoder.snake1", width)
    conv("decoder.conv2", config["audio_channels"], width, 7)
    del shapes["decoder.conv2.bias"]
    return shapes


def silence_latent(path, channels, frames):
    levels = 0.5 * torch.randn(channels, 1, generator=torch.Generator().manual_seed(7))
    torch.save((levels + 0.05 * torch.sin(torch.arange(frames) / 9))[None], path)


def tokenizer(source, directory, audio_codes):
    """Writes the tokenizer of a module of carillon-nano, with `audio_codes` audio codes. Returns the number of ids."""
    document = json.loads((NANO / source / "tokenizer.json").read_text(encoding="utf-8"))
    added = [token for token in document["added_tokens"] if "audio_code" not in token["content"]]
    last = added[-1]
    added += [{**last, "id": last["id"] + 1 + code, "content": f"<|audio_code_{code}|>"} for code in range(audio_codes)]
    write_json(directory, "tokenizer.json", {**document, "added_tokens": added})
    shutil.copy(NANO / source / "tokenizer_config.json", directory)
    return added[-1]["id"] + 1


def write_json(directory, name, value):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def qwen3_config(vocabulary, hidden, inner, layers, heads, keys, head, architecture):
    return {
        "model_type": "qwen3", "architectures": [architecture], "vocab_size": vocabulary, "hidden_size": hidden,
        "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": keys, "head_dim": head, "rms_norm_eps": 1e-6, "tie_word_embeddings": True,
        "max_position_embeddings": 40960, "hidden_act": "silu", "attention_bias": False, "rope_theta": 1000000,
        "torch_dtype": "bfloat16",
    }


def dit_config(hidden, inner, layers, heads, keys, head, text, latent, levels, encoders):
    lyric, timbre, pooler = encoders
    return {
        "model_type": "acestep", "architectures": ["AceStepConditionGenerationModel"], "model_version": "turbo",
        "is_turbo": True, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": keys, "head_dim": head, "in_channels": 3 * latent,
        "audio_acoustic_hidden_dim": latent, "patch_size": 2, "sliding_window": 128, "use_sliding_window": True,
        "layer_types": [("sliding_attention", "full_attention")[i % 2] for i in range(layers)],
        "rms_norm_eps": 1e-6, "rope_theta": 1000000, "rope_scaling": None, "attention_bias": False,
        "attention_dropout": 0.0, "hidden_act": "silu", "max_position_embeddings": 32768, "text_hidden_dim": text,
        "timbre_hidden_dim": latent, "timbre_fix_frame": 750, "num_lyric_encoder_hidden_layers": lyric,
        "num_timbre_encoder_hidden_layers": timbre, "num_attention_pooler_hidden_layers": pooler,
        "num_audio_decoder_hidden_layers": layers, "pool_window_size": 5, "fsq_dim": hidden,
        "fsq_input_levels": levels, "fsq_input_num_quantizers": 1, "vocab_size": math.prod(levels) + 3,
        "data_proportion": 0.5, "timestep_mu": -0.4, "timestep_sigma": 1.0, "dtype": "bfloat16",
    }


def vae_config(decoder, latent):
    return {
        "_class_name": "AutoencoderOobleck", "encoder_hidden_size": 2 * latent, "decoder_channels": decoder,
        "decoder_input_channels": latent, "downsampling_ratios": [2, 4, 4, 6, 10],
        "channel_multiples": [1, 2, 4, 8, 16], "audio_channels": 2, "sampling_rate": 48000,
    }


def write(out):
    dit_place, vae_place = out / "acestep-v15-turbo", out / "vae"
    vae_settings = vae_config(decoder=128, latent=64)
    write_json(vae_place, "config.json", vae_settings)
    write_safetensors(vae_place / "diffusion_pytorch_model.safetensors", weights(vae(vae_settings)))
    levels = [8, 8, 8, 5, 5, 5]
    for name, vocabulary, architecture, source, codes in (
        ("Qwen3-Embedding-0.6B", 151669, "Qwen3Model", "text_encoder", 0),
        ("acestep-5Hz-lm-0.6B", 217204, "Qwen3ForCausalLM", "lm", math.prod(levels)),
    ):
        rows = tokenizer(source, out / name, codes)
        settings = qwen3_config(max(rows, vocabulary), 1024, 3072, 28, 16, 8, 128, architecture)
        write_json(out / name, "config.json", settings)
        write_safetensors(out / name / "model.safetensors", weights(shapes_of(Qwen3, settings)))
    dit_settings = dit_config(2048, 6144, 24, 16, 8, 128, text=1024, latent=64, levels=levels, encoders=(8, 4, 2))
    shapes = {**shapes_of(AceStep, dit_settings), **shapes_of(AudioTokenizer, dit_settings)}
    write_safetensors(dit_place / "model.safetensors", weights(shapes))
    silence_latent(dit_place / "silence_latent.pt", dit_settings["audio_acoustic_hidden_dim"], 15000)
    # config.json is written last: a directory that has it is complete.
    write_json(dit_place, "config.json", dit_settings)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory to write into")
    write(parser.parse_args().out)
