#!/usr/bin/env python3
"""Writes checkpoints of the published dimensions with random bfloat16 weights. The bytes are the same on every machine.

    make_checkpoints.py --out DIR   DIR/acestep-v15-turbo, DIR/vae, DIR/Qwen3-Embedding-0.6B, DIR/acestep-5Hz-lm-0.6B

Needs nothing but Python 3. File layout and tensor names follow the original ACE-Step 1.5 checkpoints. The tokenizers are those
of carillon-nano, with more audio codes.
"""

import argparse
import array
import hashlib
import json
import math
import os
import pathlib
import random
import shutil
import struct
import zipfile

NANO = pathlib.Path(__file__).resolve().parents[2] / "models/carillon-nano"

BLOCK = 1 << 18  # random values, drawn once; each tensor reuses them from an offset derived from its name


class Noise:
    """Writes normally distributed bfloat16 values with a given standard deviation."""

    def __init__(self):
        generator = random.Random(20260101)
        self.values = array.array("f", (generator.gauss(0.0, 1.0) for _ in range(BLOCK)))
        self.blocks = {}

    def encode(self, values):
        raw = array.array("f", values).tobytes()
        halves = bytearray(len(raw) // 2)
        halves[0::2] = raw[2::4]
        halves[1::2] = raw[3::4]
        return bytes(halves)

    def block(self, deviation):
        if deviation not in self.blocks:
            self.blocks[deviation] = self.encode(v * deviation for v in self.values)
        return self.blocks[deviation]

    def write(self, file, name, count, deviation):
        block = self.block(deviation)
        width = len(block) // BLOCK
        start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") % BLOCK
        remaining = count * width
        first = block[start * width :][:remaining]
        file.write(first)
        remaining -= len(first)
        while remaining > 0:
            file.write(block[:remaining])
            remaining -= min(remaining, len(block))


class Tensors:
    """Named tensors, stored in the order of their names like published files: random weights scaled by fan-in, or
    constants."""

    def __init__(self):
        self.entries = []

    def random(self, name, shape, deviation):
        # Rounds the deviation to a power of two to limit the number of deviations: each needs its own noise.
        self.entries.append((name, shape, "random", 2.0 ** round(math.log2(deviation))))

    def constant(self, name, shape, value):
        self.entries.append((name, shape, "constant", value))

    def linear(self, name, outputs, inputs, bias=False):
        self.random(name + ".weight", [outputs, inputs], 1 / math.sqrt(inputs))
        if bias:
            self.constant(name + ".bias", [outputs], 0.0)

    def norm(self, name, width):
        self.constant(name + ".weight", [width], 1.0)

    def save(self, path):
        self.entries.sort()
        header, offset = {"__metadata__": {"format": "pt"}}, 0
        for name, shape, _, _ in self.entries:
            length = math.prod(shape) * 2
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + length]}
            offset += length
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        noise = Noise()
        with open(path + ".part", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for name, shape, kind, value in self.entries:
                if kind == "random":
                    noise.write(file, name, math.prod(shape), value)
                else:
                    file.write(noise.encode([value]) * math.prod(shape))
        os.replace(path + ".part", path)


def qwen3(config, prefix=""):
    t = Tensors()
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    t.random(prefix + "embed_tokens.weight", [config["vocab_size"], hidden], 1 / math.sqrt(hidden))
    for index in range(config["num_hidden_layers"]):
        encoder_layer(t, f"{prefix}layers.{index}", hidden, inner, queries, keys, head)
    t.norm(prefix + "norm", hidden)
    return t


def attention(t, name, width, queries, keys, head):
    t.linear(name + ".q_proj", queries, width)
    t.linear(name + ".k_proj", keys, width)
    t.linear(name + ".v_proj", keys, width)
    t.linear(name + ".o_proj", width, queries)
    t.norm(name + ".q_norm", head)
    t.norm(name + ".k_norm", head)


def mlp(t, name, width, inner):
    t.linear(name + ".gate_proj", inner, width)
    t.linear(name + ".up_proj", inner, width)
    t.linear(name + ".down_proj", width, inner)


def encoder_layer(t, name, width, inner, queries, keys, head):
    t.norm(name + ".input_layernorm", width)
    attention(t, name + ".self_attn", width, queries, keys, head)
    t.norm(name + ".post_attention_layernorm", width)
    mlp(t, name + ".mlp", width, inner)


def dit(config):
    t = Tensors()
    hidden, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    latent, patch, text = config["audio_acoustic_hidden_dim"], config["patch_size"], config["text_hidden_dim"]
    encoder = (hidden, inner, queries, keys, head)

    t.random("decoder.proj_in.1.weight", [hidden, config["in_channels"], patch], 1 / math.sqrt(config["in_channels"] * patch))
    t.constant("decoder.proj_in.1.bias", [hidden], 0.0)
    for name in ("decoder.time_embed", "decoder.time_embed_r"):
        t.linear(name + ".linear_1", hidden, 256, bias=True)
        t.linear(name + ".linear_2", hidden, hidden, bias=True)
        t.linear(name + ".time_proj", 6 * hidden, hidden, bias=True)
    t.linear("decoder.condition_embedder", hidden, hidden, bias=True)
    for index in range(config["num_hidden_layers"]):
        layer = f"decoder.layers.{index}"
        t.norm(layer + ".self_attn_norm", hidden)
        attention(t, layer + ".self_attn", hidden, queries, keys, head)
        t.norm(layer + ".cross_attn_norm", hidden)
        attention(t, layer + ".cross_attn", hidden, queries, keys, head)
        t.norm(layer + ".mlp_norm", hidden)
        mlp(t, layer + ".mlp", hidden, inner)
        t.random(layer + ".scale_shift_table", [1, 6, hidden], 1 / math.sqrt(hidden))
    t.norm("decoder.norm_out", hidden)
    t.random("decoder.scale_shift_table", [1, 2, hidden], 1 / math.sqrt(hidden))
    t.random("decoder.proj_out.1.weight", [hidden, latent, patch], 1 / math.sqrt(hidden))
    t.constant("decoder.proj_out.1.bias", [latent], 0.0)

    t.linear("encoder.text_projector", hidden, text)
    t.linear("encoder.lyric_encoder.embed_tokens", hidden, text, bias=True)
    for index in range(config["num_lyric_encoder_hidden_layers"]):
        encoder_layer(t, f"encoder.lyric_encoder.layers.{index}", *encoder)
    t.norm("encoder.lyric_encoder.norm", hidden)
    t.linear("encoder.timbre_encoder.embed_tokens", hidden, config["timbre_hidden_dim"], bias=True)
    t.random("encoder.timbre_encoder.special_token", [1, 1, hidden], 1.0)
    for index in range(config["num_timbre_encoder_hidden_layers"]):
        encoder_layer(t, f"encoder.timbre_encoder.layers.{index}", *encoder)
    t.norm("encoder.timbre_encoder.norm", hidden)
    t.random("null_condition_emb", [1, 1, hidden], 1.0)

    t.linear("tokenizer.audio_acoustic_proj", hidden, latent, bias=True)
    t.linear("tokenizer.attention_pooler.embed_tokens", hidden, hidden, bias=True)
    t.random("tokenizer.attention_pooler.special_token", [1, 1, hidden], 1.0)
    for index in range(config["num_attention_pooler_hidden_layers"]):
        encoder_layer(t, f"tokenizer.attention_pooler.layers.{index}", *encoder)
    t.norm("tokenizer.attention_pooler.norm", hidden)
    levels = len(config["fsq_input_levels"])
    t.linear("tokenizer.quantizer.project_in", levels, hidden, bias=True)
    t.linear("tokenizer.quantizer.project_out", hidden, levels, bias=True)
    t.linear("detokenizer.embed_tokens", hidden, hidden, bias=True)
    t.random("detokenizer.special_tokens", [1, config["pool_window_size"], hidden], 1.0)
    for index in range(config["num_attention_pooler_hidden_layers"]):
        encoder_layer(t, f"detokenizer.layers.{index}", *encoder)
    t.norm("detokenizer.norm", hidden)
    t.linear("detokenizer.proj_out", latent, hidden, bias=True)
    return t


def vae(config):
    t = Tensors()
    ratios, multiples = config["downsampling_ratios"], [1] + config["channel_multiples"]

    def conv(name, outputs, inputs, kernel, gain=1.0, bias=True):
        t.constant(name + ".weight_g", [outputs, 1, 1], gain)
        t.random(name + ".weight_v", [outputs, inputs, kernel], 1 / math.sqrt(inputs * kernel))
        if bias:
            t.constant(name + ".bias", [outputs], 0.0)

    def snake(name, channels):
        t.constant(name + ".alpha", [1, channels, 1], 0.0)
        t.constant(name + ".beta", [1, channels, 1], 0.0)

    def residual_units(name, channels):
        for unit in (1, 2, 3):
            snake(f"{name}.res_unit{unit}.snake1", channels)
            conv(f"{name}.res_unit{unit}.conv1", channels, channels, 7)
            snake(f"{name}.res_unit{unit}.snake2", channels)
            conv(f"{name}.res_unit{unit}.conv2", channels, channels, 1, gain=0.5)

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
        name = f"decoder.block.{index}.conv_t1"
        t.constant(name + ".weight_g", [inputs, 1, 1], math.sqrt(stride / 2))
        t.random(name + ".weight_v", [inputs, outputs, 2 * stride], 1 / math.sqrt(outputs * 2 * stride))
        t.constant(name + ".bias", [outputs], 0.0)
        residual_units(f"decoder.block.{index}", outputs)
    snake("decoder.snake1", width)
    conv("decoder.conv2", config["audio_channels"], width, 7, bias=False)
    return t


def silence_latent(path, channels, frames):
    """Writes the archive format of torch.save for one float32 tensor [1, channels, frames]."""
    generator = random.Random(7)
    values = array.array("f")
    for _ in range(channels):
        level = generator.gauss(0.0, 0.5)
        values.extend(level + 0.05 * math.sin(frame / 9.0) for frame in range(frames))
    integer = lambda n: b"J" + struct.pack("<i", n)
    text = lambda s: b"X" + struct.pack("<I", len(s)) + s.encode()
    pickle = (
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(("
        + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + integer(len(values)) + b"tQK\x00("
        + integer(1) + integer(channels) + integer(frames) + b"t("
        + integer(channels * frames) + integer(frames) + integer(1)
        + b"t\x89ccollections\nOrderedDict\n)RtR."
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in (("data.pkl", pickle), ("byteorder", b"little"), ("data/0", values.tobytes()), ("version", b"3\n")):
            archive.writestr(zipfile.ZipInfo("silence_latent/" + name, (2026, 1, 1, 0, 0, 0)), content)


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
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)


def folder(*parts):
    path = os.path.join(*parts)
    os.makedirs(path, exist_ok=True)
    return path


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
    names = ("acestep-v15-turbo", "vae", "Qwen3-Embedding-0.6B", "acestep-5Hz-lm-0.6B")
    dit_place, vae_place, text_place, lm_place = (folder(out, name) for name in names)
    vae_settings = vae_config(decoder=128, latent=64)
    write_json(vae_place, "config.json", vae_settings)
    vae(vae_settings).save(os.path.join(vae_place, "diffusion_pytorch_model.safetensors"))
    levels = [8, 8, 8, 5, 5, 5]
    for place, vocabulary, architecture, source, codes in (
        (text_place, 151669, "Qwen3Model", "text_encoder", 0),
        (lm_place, 217204, "Qwen3ForCausalLM", "lm", math.prod(levels)),
    ):
        rows = tokenizer(source, place, codes)
        settings = qwen3_config(max(rows, vocabulary), 1024, 3072, 28, 16, 8, 128, architecture)
        write_json(place, "config.json", settings)
        qwen3(settings).save(os.path.join(place, "model.safetensors"))
    dit_settings = dit_config(2048, 6144, 24, 16, 8, 128, text=1024, latent=64, levels=levels, encoders=(8, 4, 2))
    silence_latent(os.path.join(dit_place, "silence_latent.pt"), dit_settings["audio_acoustic_hidden_dim"], 15000)
    dit(dit_settings).save(os.path.join(dit_place, "model.safetensors"))
    # config.json is written last: a directory that has it is complete.
    write_json(dit_place, "config.json", dit_settings)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="directory to write into")
    write(parser.parse_args().out)


if __name__ == "__main__":
    main()
