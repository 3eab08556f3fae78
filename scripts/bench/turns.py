"""Times carillon-bench in turns with its Python peers (A B A B), so that other load on the machine affects both.

    turns.py --program CARILLON_BENCH --checkpoints DIR [NAME ...] [--size N] [--repetitions N] [--device D] [--dtype T]
             [--peer-dtype T] [--quantization Q]

Prints a table on stderr and JSON on stdout. CARILLON_PEER_PYTHON: the interpreter that has torch, transformers and
diffusers (default: this one; PYTHONPATH is passed on).
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

# Each benchmark has the peer's script, the Python module that the script needs, and one target per dtype. The
# target is our time divided by the peer's time.
BENCHMARKS = {
    "dit-step": (["peer_dit_step.py"], "diffusers", {"bfloat16": 0.75, "float32": 0.85}),
    "vae-decode": (["peer_vae_decode.py"], "diffusers", {"bfloat16": 0.4, "float32": 0.5}),
    "lm-decode": (["peer_lm_decode.py"], "transformers", {"bfloat16": 0.25, "float32": 0.3}),
    "lm-decode-cfg": (["peer_lm_decode.py", "--rows", "2"], "transformers", {"bfloat16": 0.25, "float32": 0.3}),
    "train-step": None,
    "song": None,
}
# Benchmarks that decode 1, 2 or 8 songs at once. The target is the time of a step, divided by the time for one song.
BATCH = {"lm-decode": None, "lm-decode-2": 1.15, "lm-decode-8": 2.2}
COLUMNS = ["seconds", "native median", "native min", "peer median", "peer min", "median ratio", "min ratio", "goal"]


class BenchmarkProcess:
    """A program that warms up, prints `ready`, then the seconds of one repetition for every line it is sent."""

    def __init__(self, command, env):
        self.command = [str(word) for word in command]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True, env=env)
        while self.line() != "ready":
            pass

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.command[0]} exited early with status {self.process.wait()}")
        return line.strip()

    def times(self):
        """Runs once. Returns the numbers that the program prints: its time, and our programs also their processor time."""
        try:
            print(file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # line() raises with the exit status.
        return [float(word) for word in self.line().split()]

    def seconds(self):
        return self.times()[0]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def environment(options):
    return dict(os.environ, OMP_NUM_THREADS=str(options.threads)) if options.threads else dict(os.environ)


def native_command(name, options):
    size = ["--size", str(options.size)] if options.size else []
    program = [options.program, name, "--checkpoints", options.checkpoints, *size]
    return program + ["--device", options.device, "--dtype", options.dtype, "--quantization", options.quantization]


def turns(sides, repetitions):
    """Runs the programs in turns. Returns the seconds of each."""
    seconds = {side: [] for side in sides}
    for _ in range(repetitions):
        for side, process in sides.items():
            seconds[side].append(process.seconds())
    for process in sides.values():
        process.end()
    return seconds


def measure_batch(options):
    """Times decoding steps of several batch sizes in turns, relative to the step of one song."""
    sides = {name: BenchmarkProcess(native_command(name, options), environment(options)) for name in BATCH}
    results = {name: summary(values) for name, values in turns(sides, options.repetitions).items()}
    one = results["lm-decode"]
    for name, goal in BATCH.items():
        own = results[name]
        own["ratioOfMedians"] = own["medianSeconds"] / one["medianSeconds"]
        own["ratioOfMinima"] = own["minSeconds"] / one["minSeconds"]
        cells = [f"{own[key]:.4f}" for key in ("medianSeconds", "minSeconds")] + ["", ""]
        cells += [f"{own[key]:.3f}" for key in ("ratioOfMedians", "ratioOfMinima")] + [f"<= {goal}" if goal else ""]
        print_row([name, *cells])
    return {"name": "batch", "songs": results}


def measure(name, options):
    """Runs one benchmark. `options` are those of `arguments()`."""
    if name == "batch":
        return measure_batch(options)
    env = environment(options)
    peer_dtype = options.peer_dtype or options.dtype
    size = ["--size", str(options.size)] if options.size else []
    sides = {"native": BenchmarkProcess(native_command(name, options), env)}
    script, skipped, goals = peer_of(name)
    if not skipped:
        device = [] if options.device == "auto" else ["--device", options.device]
        threads = ["--threads", str(options.threads)] if options.threads else []
        try:
            sides["peer"] = BenchmarkProcess([*script, *size, *device, "--dtype", peer_dtype, *threads], env)
        except RuntimeError as error:  # our own time is useful without the peer's
            skipped = f"the peer failed: {error}"
    seconds = turns(sides, options.repetitions)
    result = {"name": name, **{side: summary(values) for side, values in seconds.items()}}
    if skipped:
        return {**result, "peerSkipped": skipped}
    native, peer = result["native"], result["peer"]
    return {
        **result,
        "ratioOfMedians": native["medianSeconds"] / peer["medianSeconds"],
        "ratioOfMinima": native["minSeconds"] / peer["minSeconds"],
        "goal": goals["float32" if peer_dtype == "float32" else "bfloat16"],
    }


def peer_of(name):
    """Returns the peer's command, the reason why it cannot run here (or None), and the target ratios."""
    if BENCHMARKS[name] is None:
        return None, "has no peer", None
    (script, *words), module, goals = BENCHMARKS[name]
    python = os.environ.get("CARILLON_PEER_PYTHON", sys.executable)
    probe = subprocess.run([python, "-c", f"import torch, {module}"], stderr=subprocess.DEVNULL)
    skipped = f"{python} cannot import torch and {module}; set CARILLON_PEER_PYTHON" if probe.returncode else None
    return [python, pathlib.Path(__file__).with_name(script), *words], skipped, goals


def summary(values):
    return {"medianSeconds": statistics.median_low(values), "minSeconds": min(values), "seconds": values}


def print_row(cells):
    print("".join(cell.rjust(14) if i else cell.ljust(15) for i, cell in enumerate(cells)), file=sys.stderr)


def print_result(result):
    timed = [result[side] for side in ("native", "peer") if side in result]
    cells = [f"{side[key]:.4f}" for side in timed for key in ("medianSeconds", "minSeconds")]
    if "peer" in result:
        cells += [f"{result[key]:.3f}" for key in ("ratioOfMedians", "ratioOfMinima")] + [f"<= {result['goal']}"]
    print_row([result["name"], *cells])
    if "peerSkipped" in result:
        print(f"  {result['name']}: {result['peerSkipped']}", file=sys.stderr)


def positive(text):
    if not text.isdecimal() or not 0 < int(text) < 1_000_000:
        raise argparse.ArgumentTypeError(f"a positive whole number, not '{text}'")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*BENCHMARKS, "batch"]))
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--checkpoints", type=pathlib.Path, required=True)
    parser.add_argument("--size", type=positive)
    parser.add_argument("--repetitions", type=positive, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--peer-dtype", help="type of the peer, if not --dtype: some CPUs are slow in bfloat16")
    parser.add_argument("--quantization", default="none")
    parser.add_argument("--threads", type=positive, default=os.cpu_count())
    options = parser.parse_args()
    for name in options.names:
        if name not in (*BENCHMARKS, "batch"):
            parser.error(f"unknown benchmark '{name}': use {', '.join([*BENCHMARKS, 'batch'])}")
    return options


def main():
    options = arguments()
    results = []
    print_row(COLUMNS)
    for name in options.names or BENCHMARKS:
        results.append(measure(name, options))
        if name != "batch":
            print_result(results[-1])
    print(json.dumps({"threads": options.threads, "results": results}))


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, OSError) as error:
        sys.exit(str(error))
