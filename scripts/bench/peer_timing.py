"""Options and timing of the Python peers: one warm-up, then one repetition per input line, like `carillon-bench`."""

import argparse
import sys
import time

import torch


def arguments(default_size):
    """Command line options. Also sets torch's number of threads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=default_size)
    parser.add_argument("--threads", type=int, default=0, help="0: torch's default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["auto", "float32", "bfloat16"], default="auto")
    parser.add_argument("--rows", type=int, default=1, help="batch size of the language model")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    return options


def dtype_of(options):
    """auto is the engine's choice: bfloat16 on GPUs and on processors with bfloat16 multiplication, else float32."""
    if options.dtype != "auto":
        return getattr(torch, options.dtype)
    has_bfloat16 = options.device != "cpu" or torch.cpu._is_avx512_bf16_supported()
    return torch.bfloat16 if has_bfloat16 else torch.float32


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def serve(repeat):
    repeat()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(f"{repeat():.6f}", flush=True)
