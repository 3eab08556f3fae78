#!/usr/bin/env python3
"""Builds, tests and measures on a GPU machine that has Python 3.10 with torch, cmake and a C++20 compiler, but no Node, which
`npm run parity` and `npm run bench` need.

    first_hour.py --out DIR [--device cuda] [--only STEP ...]

Builds the native programs against this interpreter's torch, compares the goldens in float32 and bfloat16, and times every
benchmark in turns with its peer if that can be imported. If a step fails, the next one runs. DIR/STEP.txt is the output of a step, DIR/summary.json the results. Build and
checkpoints are in --work, because they are large.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

from bench import turns

PROJECT = pathlib.Path(__file__).resolve().parent.parent


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the results")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/carillon"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parity", type=pathlib.Path, default=PROJECT.parent / "shared/parity")
    parser.add_argument("--checkpoints", type=pathlib.Path, help="checkpoints of the published size; created if missing")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--step-seconds", type=int, default=900)
    parser.add_argument("--only", nargs="+", help="run only steps whose names start with one of these")
    options = parser.parse_args()
    options.checkpoints = options.checkpoints or options.work / "checkpoints"
    return options


class FirstHour:
    def __init__(self, options):
        self.options = options
        self.build = options.work / "build"
        self.bench = self.build / "native/bench/carillon-bench"
        self.steps = {}

    def step(self, name, work):
        """Runs work(log) and stores its result in the summary."""
        if self.options.only and not any(name.startswith(wanted) for wanted in self.options.only):
            return
        print(f"{name} ...", flush=True)
        start = time.monotonic()
        with open(self.options.out / f"{name}.txt", "w") as log:
            try:
                result = {"ok": True, "result": work(log)}
            except Exception as error:
                result = {"ok": False, "error": str(error)}
                print(error, file=log)
        self.steps[name] = {**result, "seconds": round(time.monotonic() - start, 1)}
        print(f"{name}: {self.steps[name]}", flush=True)
        (self.options.out / "summary.json").write_text(json.dumps(self.steps, indent=2) + "\n")

    def run(self, command, log):
        """Runs a command and returns its last line of output. Raises if it fails."""
        command = [str(word) for word in command]
        print("$", " ".join(command), file=log, flush=True)
        limit = self.options.step_seconds
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, cwd=PROJECT, timeout=limit, check=True)
        return pathlib.Path(log.name).read_text().strip().splitlines()[-1]

    def facts(self, log):
        for command in (["nvidia-smi"], ["lscpu"], ["nvcc", "--version"], ["cmake", "--version"]):
            if shutil.which(command[0]):
                self.run(command, log)
        import torch

        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
        return {"python": platform.python_version(), "torch": torch.__version__, "gpu": gpu}

    def compile(self, log):
        libtorch = os.environ.get("LIBTORCH")
        if not libtorch:
            import torch

            libtorch = pathlib.Path(torch.__file__).parent
        self.run(["cmake", "-S", PROJECT, "-B", self.build, f"-DLIBTORCH={libtorch}"], log)
        programs = ["--target", "carillon-parity", "carillon-bench"]
        return self.run(["cmake", "--build", self.build, "-j", os.cpu_count(), *programs], log)

    def parity(self, dtype):
        program = self.build / "native/test/carillon-parity"
        place = ["--device", self.options.device, "--dtype", dtype]
        return lambda log: self.run([program, "--root", self.options.parity, *place], log)

    def make_checkpoints(self, log):
        if not (self.options.checkpoints / "vae").exists():
            self.run([sys.executable, "scripts/bench/make_checkpoints.py", "--out", self.options.checkpoints], log)

    def benchmark(self, name):
        command = [sys.executable, "scripts/bench/turns.py", name, "--program", self.bench]
        command += ["--checkpoints", self.options.checkpoints, "--repetitions", self.options.repetitions]
        command += ["--device", self.options.device, "--dtype", "bfloat16"]
        return lambda log: json.loads(self.run(command, log))["results"][0]

    def all(self):
        self.options.out.mkdir(parents=True, exist_ok=True)
        self.step("facts", self.facts)
        self.step("build", self.compile)
        for dtype in ("float32", "bfloat16"):
            self.step(f"parity-{dtype}", self.parity(dtype))
        self.step("checkpoints", self.make_checkpoints)
        for name in turns.BENCHMARKS:
            self.step(f"bench-{name}", self.benchmark(name))
        return all(step["ok"] for step in self.steps.values())


if __name__ == "__main__":
    sys.exit(0 if FirstHour(arguments()).all() else 1)
