#!/usr/bin/env python3
"""The first hour with a GPU, on a bare machine: Python 3.10 with torch, cmake and a C++20 compiler; no Node.

    first_hour.py --out DIR [--device cuda] [--only STEP ...]

Builds the native programs against this interpreter's torch, runs the goldens in both types, times every benchmark in
turns with its peer where that can be imported, and profiles a song with Nsight Systems where that is installed. A step
that fails is told and the next begins. DIR/STEP.txt is what a step wrote, DIR/summary.json how each went; the build and
the checkpoints lie apart (--work), for they are large.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

PROJECT = pathlib.Path(__file__).resolve().parent.parent
# Benchmarks of carillon-bench, and the peer that does the same work with the module that it needs.
BENCHMARKS = {
    "dit-step": (["peer_dit_step.py"], "diffusers"),
    "vae-decode": (["peer_vae_decode.py"], "diffusers"),
    "lm-decode": (["peer_lm_decode.py"], "transformers"),
    "lm-decode-cfg": (["peer_lm_decode.py", "--rows", "2"], "transformers"),
    "train-step": (None, None),
    "song": (None, None),
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the results")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/carillon"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parity", type=pathlib.Path, default=PROJECT.parent / "shared/parity")
    parser.add_argument("--checkpoints", type=pathlib.Path, help="of published size; made where there are none")
    parser.add_argument("--preload", help="library to load into every native program")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--step-seconds", type=int, default=900)
    parser.add_argument("--only", nargs="+", help="steps, by the beginnings of their names")
    options = parser.parse_args()
    options.checkpoints = options.checkpoints or options.work / "checkpoints"
    return options


class Contestant:
    """A program that warms up, prints `ready`, then the seconds of one repetition for every line it is sent."""

    def __init__(self, command, log, env):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=env)
        self.until("ready")

    def until(self, word=None):
        for line in self.process.stdout:
            if word is None or line.strip() == word:
                return line
        raise RuntimeError(f"ended with {self.process.wait()} before its time")

    def seconds(self):
        print(file=self.process.stdin, flush=True)
        return float(self.until())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Hour:
    def __init__(self, options):
        self.options = options
        self.build = options.work / "build"
        self.bench = self.build / "native/bench/carillon-bench"
        self.env = dict(os.environ, **({"LD_PRELOAD": options.preload} if options.preload else {}))
        self.steps = {}

    def step(self, name, work):
        """Runs work(log); what it returns stands in the summary."""
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

    def run(self, command, log, env=None):
        """Raises where the command fails. Returns the last line that it wrote."""
        command = [str(word) for word in command]
        print("$", " ".join(command), file=log, flush=True)
        limit = self.options.step_seconds
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, env=env, cwd=PROJECT, timeout=limit, check=True)
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
        return lambda log: self.run([program, "--root", self.options.parity, *place], log, self.env)

    def make_checkpoints(self, log):
        if not (self.options.checkpoints / "vae").exists():
            self.run([sys.executable, "scripts/bench/make_checkpoints.py", "--out", self.options.checkpoints], log)

    def benchmark(self, name, dtype):
        peer, module = BENCHMARKS[name]

        def work(log):
            place = ["--device", self.options.device]
            own = [self.bench, name, "--checkpoints", self.options.checkpoints, "--on-demand", "--dtype", dtype]
            sides = {"native": Contestant([*map(str, own), *place], log, self.env)}
            can_import = peer and subprocess.run([sys.executable, "-c", f"import {module}"], stderr=log).returncode == 0
            if can_import:
                script = str(PROJECT / "scripts/bench" / peer[0])
                sides["peer"] = Contestant([sys.executable, script, *peer[1:], *place], log, None)
            seconds = {side: [] for side in sides}
            for _ in range(self.options.repetitions):
                for side, contestant in sides.items():
                    seconds[side].append(contestant.seconds())
            for contestant in sides.values():
                contestant.end()
            medians = {side: statistics.median(values) for side, values in seconds.items()}
            print(json.dumps(seconds), file=log)
            if can_import:
                medians["ratio"] = round(medians["native"] / medians["peer"], 3)
            return medians

        return work

    def profile(self, log):
        if not shutil.which("nsys"):
            return "there is no nsys"
        report = self.options.work / "song"
        own = [self.bench, "song", "--checkpoints", self.options.checkpoints, "--repetitions", 1]
        place = ["--device", self.options.device, "--dtype", "bfloat16"]
        self.run(["nsys", "profile", "--force-overwrite=true", "-o", report, *own, *place], log, self.env)
        return self.run(["nsys", "stats", "--report", "cuda_gpu_kern_sum,cuda_api_sum", f"{report}.nsys-rep"], log)

    def all(self):
        self.options.out.mkdir(parents=True, exist_ok=True)
        self.step("facts", self.facts)
        self.step("build", self.compile)
        for dtype in ("float32", "bfloat16"):
            self.step(f"parity-{dtype}", self.parity(dtype))
        self.step("checkpoints", self.make_checkpoints)
        for name in BENCHMARKS:
            self.step(f"bench-{name}", self.benchmark(name, "bfloat16"))
        self.step("profile", self.profile)
        return all(step["ok"] for step in self.steps.values())


if __name__ == "__main__":
    sys.exit(0 if Hour(arguments()).all() else 1)
