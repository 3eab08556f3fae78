"""Makes goldens with acestep.cpp, an independent implementation on ggml: outputs of its stages for random weights.

    acestep_cpp_goldens.py --peer DIR --out DIR    writes checkpoints/, goldens/ and noise/ for carillon-parity

DIR of --peer is a clone of acestep.cpp, built in DIR/build. Needs torch, safetensors, numpy and gguf.

The sizes of the published models are constants in acestep.cpp, and some of its products and caches have 16 bits. So this
script compiles a copy of its sources with small sizes and float32, and converts the checkpoints to GGUF files in float32.
"""

import argparse
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import gguf
    import numpy
    import torch
    from safetensors.torch import save_file
except ModuleNotFoundError as error:
    sys.exit(f"{error}: CARILLON_PEER_PYTHON must name an interpreter with gguf, numpy, torch and safetensors")

PROJECT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT / "scripts/bench"))

import acestep_cpp  # noqa: E402
import make_checkpoints as layout  # noqa: E402

TEXT_ENCODER, LM, DIT, VAE = "Qwen3-Embedding-0.6B", "acestep-5Hz-lm-0.6B", "acestep-v15-turbo", "vae"
TEXT_WIDTH, WIDTH, INNER, HEADS, KEY_HEADS, HEAD = 12, 16, 40, 4, 2, 8
WINDOW, LYRIC_LAYERS, TIMBRE_LAYERS, DIT_LAYERS, CHANNELS, FRAMES = 8, 2, 2, 4, 64, 40
END_OF_TEXT = 256  # the other ids below it are bytes
IM_START, IM_END, THINK, THINK_END, FIRST_CODE, CODES = 257, 258, 259, 260, 261, 64
LEVELS = [8, 8, 8, 5, 5, 5]
DECODER_WIDTHS = [32, 16, 8, 4, 2]
LARGEST_ERROR = 1e-5


def transformer(width, layers):
    return [
        (r"(/\*hidden_size\*/) \d+", rf"\1 {width}"),
        (r"(/\*intermediate_size\*/) \d+", rf"\1 {INNER}"),
        (r"(/\*n_heads\*/) \d+", rf"\1 {HEADS}"),
        (r"(/\*n_kv_heads\*/) \d+", rf"\1 {KEY_HEADS}"),
        (r"(/\*head_dim\*/) \d+", rf"\1 {HEAD}"),
        *[(rf"(/\*n_layers\*/) {old}\b", rf"\1 {new}") for old, new in layers],
    ]


# Sizes and types of acestep.cpp that are constants: file -> patterns and replacements. Each pattern must occur.
CONSTANTS = {
    "src/qwen3-enc.h": transformer(TEXT_WIDTH, [(28, 2)]),
    "src/cond-enc.h": [
        *transformer(WIDTH, [(8, LYRIC_LAYERS), (4, TIMBRE_LAYERS)]),
        (r"(int +H += )2048", rf"\g<1>{WIDTH}"),
        (r"\b1024( \*|, S_)", rf"{TEXT_WIDTH}\1"),
        (r"(int +W += )128", rf"\g<1>{WINDOW}"),
    ],
    "src/fsq-detok.h": [*transformer(WIDTH, [(2, 2)]), (r"(int +H += )2048", rf"\g<1>{WIDTH}")],
    "src/bpe.h": [(r"151643", f"{END_OF_TEXT}")],
    "src/prompt.h": [
        (r"151644", f"{IM_START}"), (r"151645", f"{IM_END}"), (r"151667", f"{THINK}"), (r"151668", f"{THINK_END}"),
        (r"151669", f"{FIRST_CODE}"), (r"65535", f"{CODES}"),
    ],
    "src/pipeline-synth-ops.cpp": [(r"(/\*bf16_round=\*/)true", r"\1false")],
    "src/qwen3-lm.h": [(r"GGML_TYPE_F16(, D, S, Nkv|\))", r"GGML_TYPE_F32\1")],
    "src/vae.h": [
        (r"(in_ch\[\] += )\{.*?\}", r"\1{ %s }" % ", ".join(map(str, DECODER_WIDTHS))),
        (r"(out_ch\[\] += )\{.*?\}", r"\1{ %s }" % ", ".join(map(str, DECODER_WIDTHS[1:] + DECODER_WIDTHS[-1:]))),
        (r"7, 64, 2048\)", f"7, {CHANNELS}, {DECODER_WIDTHS[0]})"),
        (r"F32, 2048\)", f"F32, {DECODER_WIDTHS[0]})"),
        (r"(m->s[ab] .*), 128\)", rf"\1, {DECODER_WIDTHS[-1]})"),
        (r"7, 128, 2\)", f"7, {DECODER_WIDTHS[-1]}, 2)"),
        (r"(ggml_new_tensor_.d\(ctx, GGML_TYPE_)F16", r"\1F32"),
        (r"ggml_conv_1d\(ctx, w, x, stride, padding, dilation\)",
         "ggml_mul_mat(ctx, ggml_im2col(ctx, w, x, stride, 0, padding, 0, dilation, 0, false, GGML_TYPE_F32), "
         "ggml_reshape_2d(ctx, w, w->ne[0] * w->ne[1], w->ne[2]))"),
    ],
}

CAPTION = "slow bossa nova"
LYRICS = "[verse]\nRain on the harbour"
FACTS = {"bpm": 84, "duration": 12, "keyscale": "F minor", "timesignature": "4", "vocal_language": "en"}
STEPS, SHIFT, STEP = 8, 3.0, 3  # STEP: index of the step whose velocity is a golden
SEED, DRAWN = 7, 64  # DRAWN: how many numbers of the noise are compared
AUDIO_CODES = [(7919 * index + 5) % 64000 for index in range(FRAMES // 5)]


def compile_copy(peer, place):
    """Compiles acestep.cpp with the constants above. Links ggml of the build in `peer`."""
    for name in ("src", "tools", "vendor"):
        shutil.copytree(peer / name, place / name, ignore=shutil.ignore_patterns("webui", "public"))
    for name, changes in CONSTANTS.items():
        text = (place / name).read_text()
        for pattern, replacement in changes:
            text, count = re.subn(pattern, replacement, text)
            if count == 0:
                raise SystemExit(f"{peer / name} has no '{pattern}': this version of acestep.cpp is not supported")
        (place / name).write_text(text)
    build = peer / "build"
    folders = [place / "src", place, place / "vendor/yyjson", build, peer / "ggml/include", peer]
    options = ["-std=c++17", "-O2", "-w", "-DGGML_MAX_NAME=128", *[f"-I{folder}" for folder in folders]]
    libraries = [build / "libyyjson.a", f"-L{build}", "-lggml", "-lggml-base", "-lggml-cpu", f"-Wl,-rpath,{build}", "-pthread"]
    objects = []
    for source in [*sorted((place / "src").glob("*.cpp")), place / "tools/ace-synth.cpp", place / "tools/ace-lm.cpp"]:
        print(f"compiling {source.name}", file=sys.stderr)
        objects.append(source.with_suffix(".o"))
        subprocess.run(["c++", *options, "-c", source, "-o", objects[-1]], check=True)
    *shared, synth, lm = objects
    for main in (synth, lm):
        subprocess.run(["c++", main, *shared, *libraries, "-o", place / main.stem], check=True)


def random_weights(shapes):
    """Random values for every tensor. Norms, gains and biases vary too."""
    generator = torch.Generator().manual_seed(20260824)
    tensors = {}
    for name, shape in shapes.items():
        noise = torch.randn(tuple(shape), generator=generator)
        if name.endswith(".weight_g"):
            tensors[name] = 0.5 + 0.1 * noise  # larger gains let the VAE amplify rounding
        elif len(shape) == 1 and name.endswith(".weight"):
            tensors[name] = 1 + 0.2 * noise
        elif name.endswith((".bias", ".alpha", ".beta")) or "scale_shift_table" in name:
            tensors[name] = 0.2 * noise
        else:
            tensors[name] = noise / noise[0].numel() ** 0.5
    return tensors


def write_checkpoints(out):
    encoder = layout.qwen3_config(END_OF_TEXT + 1, TEXT_WIDTH, INNER, 2, HEADS, KEY_HEADS, HEAD, "Qwen3Model")
    lm = layout.qwen3_config(FIRST_CODE + CODES, WIDTH, INNER, 3, HEADS, KEY_HEADS, HEAD, "Qwen3ForCausalLM")
    dit = layout.dit_config(WIDTH, INNER, DIT_LAYERS, HEADS, KEY_HEADS, HEAD, TEXT_WIDTH, CHANNELS, LEVELS,
                            (LYRIC_LAYERS, TIMBRE_LAYERS, 2)) | {"sliding_window": WINDOW}
    # Nothing reads the VAE's encoder. Its least width keeps the file small.
    vae = layout.vae_config(DECODER_WIDTHS[-1], CHANNELS) | {"encoder_hidden_size": 1}
    modules = {
        TEXT_ENCODER: (encoder, layout.shapes_of(layout.Qwen3, encoder)),
        LM: (lm, layout.shapes_of(layout.Qwen3, lm)),
        DIT: (dit, {**layout.shapes_of(layout.AceStep, dit), **layout.shapes_of(layout.AudioTokenizer, dit)}),
        VAE: (vae, layout.vae(vae)),
    }
    for name, (config, shapes) in modules.items():
        layout.write_json(out / name, "config.json", config)
        file = "diffusion_pytorch_model" if name == VAE else "model"
        layout.write_safetensors(out / name / f"{file}.safetensors", random_weights(shapes))
    layout.silence_latent(out / DIT / "silence_latent.pt", CHANNELS, FRAMES)


GGUFWriter = gguf.GGUFWriter


class Float32Writer(GGUFWriter):
    def add_tensor(self, name, tensor, raw_shape=None, raw_dtype=None, **options):
        if raw_dtype == gguf.GGMLQuantizationType.BF16:
            tensor, raw_dtype = (tensor.astype(numpy.uint32) << 16).view(numpy.float32), None
        super().add_tensor(name, tensor, raw_shape, raw_dtype, **options)


def byte_texts():
    """The text of every byte in byte-level vocabularies: itself if printable, else a letter beyond the bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def convert(peer, checkpoints, place):
    """Converts with the script of acestep.cpp, which expects a vocabulary, and a silence of the published length."""
    converter = acestep_cpp.load_converter(peer)
    silence = torch.load(checkpoints / DIT / "silence_latent.pt")[0].T
    repeated = numpy.array(silence.repeat(15000 // FRAMES, 1).tolist(), dtype=numpy.float32)
    converter.read_silence_latent = lambda directory: repeated
    models = place / "models"
    models.mkdir()
    for name in (TEXT_ENCODER, LM, DIT, VAE):
        source = place / "checkpoints" / name
        shutil.copytree(checkpoints / name, source)
        # The only merge is of two zero bytes: gguf writes no empty list.
        acestep_cpp.write_vocabulary(source, [*byte_texts(), "<|endoftext|>"], [("\u0100", "\u0100")])
        # acestep.cpp reads the weights of the VAE as bfloat16.
        converter.gguf.GGUFWriter = GGUFWriter if name == VAE else Float32Writer
        converter.convert_model(name, str(source), str(models / f"{name}.gguf"), converter.classify(name))
    return models


def dumped(path):
    """Reads a dump of acestep.cpp: number of dimensions, dimensions, float32 values."""
    data = path.read_bytes()
    (count,) = struct.unpack_from("<i", data)
    shape = struct.unpack_from(f"<{count}i", data, 4)
    return torch.frombuffer(bytearray(data[4 + 4 * count:]), dtype=torch.float32).reshape(shape)


def run(program, models, place, name, request, *options):
    path = place / f"{name}.json"
    path.write_text(json.dumps(request))
    dumps = place / name
    dumps.mkdir()
    command = [place / program, "--models", models, "--request", path, *[option.format(dumps=dumps) for option in options]]
    result = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{program} failed:\n{result.stderr[-4000:]}")
    return dumps


def text_prompt(instruction):
    metas = (f"- bpm: {FACTS['bpm']}\n- timesignature: {FACTS['timesignature']}\n- keyscale: {FACTS['keyscale']}\n"
             f"- duration: {FACTS['duration']} seconds\n")
    return f"# Instruction\n{instruction}\n\n# Caption\n{CAPTION}\n\n# Metas\n{metas}"


def ids_of(text, end):
    return torch.tensor([[*text.encode(), END_OF_TEXT, *end]])


def golden(out, case, module, checkpoint, inputs, outputs, **params):
    def stored(tensor):
        """A copy, in bfloat16 if that is exact."""
        exact = tensor.is_floating_point() and torch.equal(tensor.bfloat16().float(), tensor)
        return (tensor.bfloat16() if exact else tensor).clone(memory_format=torch.contiguous_format)

    tensors = {f"in.{name}": stored(tensor) for name, tensor in inputs.items()}
    tensors |= {f"out.{name}": tensor.contiguous() for name, tensor in outputs.items()}
    save_file(tensors, out / f"{case}.safetensors",
              {"module": module, "checkpoint": checkpoint, "params": json.dumps({"largest_error": LARGEST_ERROR, **params})})


def write_goldens(peer, models, place, out):
    request = {"caption": CAPTION, "lyrics": LYRICS, **FACTS, "seed": SEED, "output_format": "wav32"}
    codes = {"audio_codes": ",".join(map(str, AUDIO_CODES)), "inference_steps": STEPS, "shift": SHIFT}
    song = run("ace-synth", models, place, "song", request | codes, "--dump", "{dumps}")
    short = run("ace-synth", models, place, "short", request | {"duration": 0.16}, "--dump", "{dumps}")
    plan = run("ace-lm", models, place, "plan", request | {"lm_cfg_scale": 1, "lm_seed": 1}, "--no-fsm", "--dump-logits",
               "{dumps}/logits.bin", "--dump-tokens", "{dumps}/tokens.csv")

    def of_song(name):
        return dumped(song / f"{name}.bin")[None]

    # The prompt: text, end of text, newline, end of text. The instruction is that of songs with audio codes.
    text = of_song("text_hidden")
    instruction = re.search(r'DIT_INSTR_COVER\s*=\s*"(.*)"', (peer / "src/task-types.h").read_text())[1]
    ids = ids_of(text_prompt(instruction), [*b"\n", END_OF_TEXT])
    lyric_ids = ids_of(f"# Languages\n{FACTS['vocal_language']}\n\n# Lyric\n{LYRICS}", [END_OF_TEXT])
    lyrics = of_song("lyric_embed")
    if (text.shape[1], lyrics.shape[1]) != (ids.shape[1], lyric_ids.shape[1]):
        raise SystemExit("acestep.cpp has another prompt than this script: update text_prompt")
    golden(out, "text_encoder", "text_encoder", TEXT_ENCODER, {"input_ids": ids}, {"last_hidden_state": text})
    golden(out, "embeddings", "text_encoder", TEXT_ENCODER, {"input_ids": lyric_ids}, {"embeddings": lyrics})

    context = of_song("context")
    noise, hints, conditions = of_song("noise"), of_song("detok_output"), of_song("enc_hidden")
    silence = torch.load(place / "checkpoints" / DIT / "silence_latent.pt").transpose(1, 2)
    encoded = {
        "text_hidden_states": text, "text_attention_mask": torch.ones(text.shape[:2], dtype=torch.long),
        "lyric_hidden_states": lyrics, "lyric_attention_mask": torch.ones(lyrics.shape[:2], dtype=torch.long),
        "timbre_latents": silence[:, :1], "timbre_order": torch.zeros(1, dtype=torch.long),
    }
    golden(out, "condition_encoder", "condition_encoder", DIT, encoded,
           {"encoder_hidden_states": conditions, "encoder_attention_mask": torch.ones(conditions.shape[:2], dtype=torch.long)})
    golden(out, "detokenizer", "detokenizer", DIT, {"codes": torch.tensor([AUDIO_CODES])}, {"hints": hints})
    uniform = 1 - STEP / STEPS
    time = torch.tensor([SHIFT * uniform / (1 + (SHIFT - 1) * uniform)])
    golden(out, "dit", "dit", DIT,
           {"hidden_states": of_song(f"dit_step{STEP - 1}_xt"), "timestep": time, "timestep_r": time,
            "encoder_hidden_states": conditions, "context_latents": context}, {"velocity": of_song(f"dit_step{STEP}_vt")})
    golden(out, "sampler", "sampler", DIT,
           {**encoded, "src_latents": silence[:, :FRAMES], "chunk_masks": torch.ones_like(noise),
            "is_covers": torch.zeros(1, dtype=torch.long), "lm_hints": hints, "noise": noise},
           {"latents": of_song("dit_output")}, shift=SHIFT)
    audio = dumped(short / "vae_audio.bin")[None]
    golden(out, "vae_decode", "vae", VAE, {"latents": dumped(short / "dit_output.bin").T[None]}, {"audio": audio})
    layout.write_json(out.parent / "noise", "philox.json", {"seeds": {SEED: noise.flatten()[:DRAWN].tolist()}})
    tokens = torch.tensor([[int(token) for token in (plan / "tokens.csv").read_text().split(",")]])
    logits = torch.frombuffer(bytearray((plan / "logits.bin").read_bytes()), dtype=torch.float32)
    golden(out, "lm_logits", "lm", LM, {"input_ids": tokens}, {"logits": logits[None, None]}, last_positions=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    peer = acestep_cpp.build_of(options.peer)
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        compile_copy(peer, place)
        shutil.rmtree(options.out, ignore_errors=True)
        (options.out / "goldens").mkdir(parents=True)
        write_checkpoints(options.out / "checkpoints")
        models = convert(peer, options.out / "checkpoints", place)
        write_goldens(peer, models, place, options.out / "goldens")


if __name__ == "__main__":
    main()
