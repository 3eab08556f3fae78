"""What the peers share: one warm-up, then a repetition for every line read, as `carillon-bench --on-demand` does."""

import argparse
import sys
import time


def arguments(default_size):
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=default_size)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch takes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=1, help="of a language model's batch")
    return parser.parse_args()


def seconds_of(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def serve(repeat):
    repeat()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(f"{repeat():.6f}", flush=True)
