"""Times carillon-bench in turns with acestep.cpp, on the same random weights of the published sizes.

    acestep_cpp_bench.py --peer DIR --program CARILLON_BENCH --checkpoints DIR [NAME ...] [--repetitions N]

Both run one thread. Other load on the machine lengthens the time of both, but hardly their processor time: compare the latter.
Loading of weights is not counted. GGUF files are made once, in DIR/bench of --peer.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import time

import acestep_cpp
from turns import BenchmarkProcess, positive

LM, DIT = "acestep-5Hz-lm-0.6B", "acestep-v15-turbo"
REQUEST = {
    "caption": "slow bossa nova with nylon guitar and brushes, " * 3, "lyrics": "Rain on the harbour, lights on the hill\n" * 14,
    "bpm": 84, "duration": 30, "keyscale": "F minor", "timesignature": "4", "vocal_language": "en", "seed": 7, "lm_seed": 1,
    "lm_cfg_scale": 1, "shift": 3, "inference_steps": 2, "output_format": "wav16",
}
SONG = [("[Store] Load TextEnc", "[Store] Unload TextEnc"), ("[Store] Load CondEnc", "[Store] Unload CondEnc"),
        ("[Store] Load DiT", "[DiT-Generate] Total"), ("[Store] Load VAE-Dec", "[VAE-Decode Batch0] Decode")]
PREFILL = [("[LM-Phase2] max_tokens", "[LM-Phase2] Prefill")]
CODES = [("[LM-Phase2] Step 50,", "[LM-Phase2] Step 100,")]
STEP = [("[DiT] Step 1/2", "[DiT] Step 2/2")]
VAE = [("[VAE] Decoding", "[VAE] Decoded")]

# Name: our benchmark, its size and quantization; the peer's program, its weights, the spans of its log, repetitions in them.
BENCHMARKS = {
    "code, bfloat16": (("lm-decode", 48, "none"), ("ace-lm", "BF16", CODES, 50)),
    "code, 8 bits": (("lm-decode", 48, "int8"), ("ace-lm", "Q8_0", CODES, 50)),
    "code, 4 bits": (("lm-decode", 48, "int4"), ("ace-lm", "Q4_K_M", CODES, 50)),
    "prompt, bfloat16": (("lm-prefill", 0, "none"), ("ace-lm", "BF16", PREFILL, 1)),
    "step of 30 s, bfloat16": (("dit-step", 750, "none"), ("ace-synth", "BF16", STEP, 1)),
    "step of 30 s, 8 bits": (("dit-step", 750, "int8"), ("ace-synth", "Q8_0", STEP, 1)),
    "64 frames of audio": (("vae-decode", 64, "none"), ("neural-codec", "BF16", VAE, 1)),
    "song of 20 s": (("song", 500, "none"), ("ace-synth", "BF16", SONG, 1)),
}


def make_models(peer, checkpoints, models):
    """Converts and quantizes the checkpoints with the programs of acestep.cpp."""
    converter = acestep_cpp.load_converter(peer)
    models.mkdir(exist_ok=True)
    for name in ("Qwen3-Embedding-0.6B", LM, DIT, "vae"):
        target = models / f"{name}-BF16.gguf"
        if target.exists():
            continue
        source = models / name
        source.mkdir(exist_ok=True)
        for file in (checkpoints / name).iterdir():
            if not (source / file.name).exists():
                (source / file.name).symlink_to(file.resolve())
        if (source / "tokenizer.json").exists():
            model = json.loads((source / "tokenizer.json").read_text())["model"]
            merges = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
            acestep_cpp.write_vocabulary(source, sorted(model["vocab"], key=model["vocab"].get), merges)
        partial = target.with_suffix(".part")
        converter.convert_model(name, str(source), str(partial), converter.classify(name))
        partial.rename(target)
    for name, kind in ((LM, "Q8_0"), (LM, "Q4_K_M"), (DIT, "Q8_0")):
        target = models / f"{name}-{kind}.gguf"
        if not target.exists():
            partial = target.with_suffix(".part")
            subprocess.run([peer / "build/quantize", models / f"{name}-BF16.gguf", partial, kind], check=True, stderr=subprocess.DEVNULL)
            partial.rename(target)


def processor_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def one_thread():
    """acestep.cpp runs half as many threads as it may use processors."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def peer_command(peer, models, program, kind, name):
    if program == "neural-codec":
        latents = models / "latents.vae"
        values = random.Random(1)
        latents.write_bytes(b"".join(struct.pack("<f", values.gauss(0, 1)) for _ in range(64 * 64)))
        return [peer / "build" / program, "--vae", models / "vae-BF16.gguf", "--decode", "-i", latents, "-o", models / "audio.wav"]
    request = {**REQUEST, "lm_model": f"{LM}-{kind}.gguf", "synth_model": f"{DIT}-{kind}.gguf"}
    if name.startswith("song"):
        request |= {"duration": 20, "inference_steps": 8}
    path = models / "request.json"
    path.write_text(json.dumps(request))
    options = ["--no-fsm", "--dump-tokens", models / "tokens.csv"] if program == "ace-lm" else []
    return [peer / "build" / program, "--models", models, "--request", path, *options]


def peer_seconds(command, spans):
    """Runs the peer until the last span ends. Returns the time and processor time that it spent in the spans of its log."""
    starts, ends = zip(*spans)
    total, begun = [0.0, 0.0], None
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True, errors="replace", preexec_fn=one_thread)
    for line in process.stderr:
        if not line.startswith((*starts, *ends)):
            continue
        now = [time.monotonic(), processor_seconds(process)]
        if line.startswith(ends):
            total = [sum_ + at - start for sum_, at, start in zip(total, now, begun)]
            if line.startswith(ends[-1]):
                break
        begun = now
    else:
        raise RuntimeError(f"{command[0]} ended without '{ends[-1]}' in its log")
    process.kill()
    process.wait()
    return total


def measure(name, options, peer, models):
    (benchmark, size, quantization), (program, kind, spans, count) = BENCHMARKS[name]
    command = peer_command(peer, models, program, kind, name)
    if size == 0:  # as many tokens as the peer's prompt has
        peer_seconds(command, spans)
        size = (models / "tokens.csv").read_text().count(",") + 1
    own = [options.program, benchmark, "--checkpoints", options.checkpoints, "--size", size, "--quantization", quantization, "--device", "cpu"]
    process = BenchmarkProcess(own, dict(os.environ, OMP_NUM_THREADS="1"))
    times = [], []
    for _ in range(options.repetitions):
        times[0].append(process.times())
        times[1].append([seconds / count for seconds in peer_seconds(command, spans)])
    process.end()
    wall, processor = ([[run[index] for run in side] for side in times] for index in (0, 1))
    medians = [statistics.median(side) for side in processor]
    cells = [f"{median:.4g} ({min(side):.4g} to {max(side):.4g})" for median, side in zip(medians, processor)]
    walls = [f"{statistics.median(side):.4g}" for side in wall]
    print(f"| {name} | {' | '.join(cells)} | {medians[1] / medians[0]:.1f} | {' | '.join(walls)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="; ".join(BENCHMARKS))
    for name in ("--peer", "--program", "--checkpoints"):
        parser.add_argument(name, type=pathlib.Path, required=True)
    parser.add_argument("--repetitions", type=positive, default=3)
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"unknown benchmark {unknown}: use {'; '.join(BENCHMARKS)}")
    peer = acestep_cpp.build_of(options.peer)
    models = peer / "bench"
    make_models(peer, options.checkpoints, models)
    print("Seconds of one thread: median of processor time (least to most), ratio, medians of time. Compare processor times: "
          "other load lengthens the time.\n")
    print("| benchmark | Carillon | acestep.cpp | ratio | Carillon, time | acestep.cpp, time |\n| --- | --- | --- | --- | --- | --- |")
    for name in options.names or BENCHMARKS:
        measure(name, options, peer, models)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError) as error:
        sys.exit(str(error))
