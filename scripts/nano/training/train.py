"""train.py --data DIR --start CHECKPOINT --work DIR [--stages a,b] [--steps N] [--out DIR]

Trains all weights of the model, stage after stage, from shards that pack.py wrote. A stage without a saved state starts from
the weights of CHECKPOINT; with one it resumes. Figures go to standard output and to WORK/STAGE.log, a JSON object a line.
"""
import argparse
import json
import math
import os
import signal
import sys
import threading
import time
from collections import defaultdict, namedtuple
from pathlib import Path

import torch

import checkpoint
from data import Data, Draw
from decoder_stage import DecoderStage
from dit_stage import DitStage
from lm_stage import LmStage
from optimizer import TrainState, read_average

# A stage is a module with two methods: `loss(draw)` returns the loss of a random batch and the parts of that
# loss, `measure()` returns figures on held-out pieces.
STAGES = {"decoder": DecoderStage, "dit": DitStage, "guidance": DitStage, "lm": LmStage}
Recipe = namedtuple("Recipe", "steps seconds batch crop_seconds learning_rate")
# `seconds` is the time of one step on one Zen 3 core, from which the hours of later stages are estimated. `batch` is a
# number of seconds of audio for the DiT, and a number of items for the other stages.
RECIPES = {
    "decoder": Recipe(6000, 2.2, 3, 1.28, 3e-4),
    "dit": Recipe(40000, 3.0, 200, 0, 1e-3),
    "guidance": Recipe(8000, 4.2, 200, 0, 5e-4),
    "lm": Recipe(6000, 1.5, 12, 0, 8e-4),
}
WARM_UP_STEPS, COOLDOWN_SHARE = 200, 0.3  # at the end of a stage the learning rate falls to 0
PATIENCE = 4            # measurements of the language model without a lower held-out loss before it stops
FREE_MACHINE_LOAD = 1.3  # up to this load average there is a core for a second thread
LOCK_SECONDS = 0.4      # that a stop waits for weights that change


def parse_options(arguments):
    def stages(text):
        for name in text.split(","):
            if name not in (*STAGES, "export"):
                raise argparse.ArgumentTypeError(f"unknown stage '{name}': use {', '.join(STAGES)} or export")
        return [name for name in (*STAGES, "export") if name in text.split(",")]

    parser = argparse.ArgumentParser(prog="train.py", allow_abbrev=False)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="shards of pack.py, and training.json")
    add("--start", type=Path, required=True, help="checkpoint to start from")
    add("--work", type=Path, required=True, help="states of the stages, logs")
    add("--out", type=Path, help="export: the checkpoint folder to write")
    add("--stages", type=stages, default=list(STAGES), help="separated by commas; they run in the order of the recipe")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--threads", type=int, default=1, choices=(1, 2), help="2 for a second one while the machine is otherwise idle")
    add("--steps", type=int, help="steps of every stage, in place of the recipe's")
    add("--planner-config", type=Path, help="config of a language model of another size, which starts from random weights")
    add("--planner-pieces", type=int, help="the language model learns from this many of the pieces; default: all")
    add("--batch-share", type=float, default=1, help="batches of this share of the recipe's")
    add("--average-decay", type=float, default=0.9998, help="of the moving average of the weights")
    add("--save-minutes", type=float, default=3, help="between two saved states")
    add("--log-steps", type=int, default=20)
    add("--measure-steps", type=int, default=500, help="between two measurements on held-out pieces; 0 for none")
    add("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if "export" in options.stages and options.out is None:
        parser.error("the stage export needs --out")
    return options


def of_stage(options, stage):
    """The options of one stage: the command line's, and those of its recipe."""
    recipe = RECIPES[stage]
    own = argparse.Namespace(**vars(options), stage=stage, state=options.work / f"{stage}.pt")
    own.steps, own.batch = options.steps or recipe.steps, max(1, round(options.batch_share * recipe.batch))
    own.crop_seconds, own.learning_rate = recipe.crop_seconds, recipe.learning_rate
    return own


def make_stage(data, options):
    """The stage's module with the weights that it starts with; a saved state replaces them."""
    stage = options.stage
    torch.manual_seed(options.seed)  # initial values of weights that the checkpoint lacks
    module = STAGES[stage](data, options)
    if stage == "lm" and options.planner_config:
        module.draw_weights()
    elif not options.state.exists():
        begun = (read_average(options.work / "dit.pt") if stage == "guidance"
                 else checkpoint.start_from(options.start, stage))
        module.load_state_dict(begun, strict=False)
    return module.to(options.device)


def autocast(options):
    """Activations in bfloat16 if the machine multiplies it; weights, losses and optimisers stay float32."""
    is_cuda = options.device.startswith("cuda")
    has_bfloat16 = is_cuda or torch.cpu._is_avx512_bf16_supported()
    return torch.autocast("cuda" if is_cuda else "cpu", torch.bfloat16, enabled=has_bfloat16)


def learning_rate(options, step):
    left = (options.steps - step) / max(1, COOLDOWN_SHARE * options.steps)
    return options.learning_rate * min(1, (step + 1) / WARM_UP_STEPS, left)


def use_free_cores(most, own_threads):
    """A second thread if nothing else runs; contended threads would wait for each other."""
    others = os.getloadavg()[0] - own_threads
    threads = most if (os.cpu_count() or 1) > 1 and others < FREE_MACHINE_LOAD - 1 else 1
    torch.set_num_threads(threads)
    return threads


class Stop:
    """On SIGTERM saves the stage that trains and ends the process. Its thread does not wait for the running step: weights
    change only under the state's lock."""

    def __init__(self):
        self.running = None  # state and path
        # The signal writes to this pipe immediately. A Python handler would wait for the main thread.
        self.pipe, written = os.pipe()
        os.set_blocking(written, False)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.set_wakeup_fd(written)
        threading.Thread(target=self.wait, daemon=True).start()

    def wait(self):
        os.read(self.pipe, 1)
        state, path = self.running or (None, None)
        if state and state.step > 0 and state.lock.acquire(timeout=LOCK_SECONDS):
            state.save(path)
        os._exit(0)


def train(data, options, report, stop=None):
    """Trains to the last step, or until the stage `has_converged`. Saves now and then, at the end and on `stop`."""
    module = make_stage(data, options)
    state = TrainState(module, torch.bfloat16 if autocast(options)._enabled else torch.float32)
    if options.state.exists():
        state.load(options.state)
    if stop:
        stop.running = state, options.state
    saved = reported = time.monotonic()
    sums, threads, first = defaultdict(float), 1, state.step

    def send(kind, figures):
        report({"stage": options.stage, "kind": kind, "step": state.step, "steps": options.steps,
                **{name: rounded(value) for name, value in sorted(figures.items())}})

    def measure():
        with state.averaged(), autocast(options):
            figures = module.measure()
        state.held_out.append(float(figures["loss"]))
        send("held out", figures)

    while state.step < options.steps and not has_converged(options.stage, state.held_out):
        with autocast(options):
            loss, parts = module.loss(Draw(options.seed, state.step, state.step / options.steps))
        loss.backward()
        norm, is_applied = state.update(learning_rate(options, state.step), options.average_decay)
        for name, value in {"loss": loss, **parts, "gradientNorm": norm, "skipped": not is_applied}.items():
            sums[name] += float(value.detach() if torch.is_tensor(value) else value) / options.log_steps
        if state.step % options.log_steps == 0:
            now = time.monotonic()
            seconds = (now - reported) / min(options.log_steps, state.step - first)
            send("training", {**sums, "secondsPerStep": seconds, "hoursLeft": hours_left(options, state.step, seconds),
                              "memoryMegabytes": peak_megabytes(), "threads": threads})
            reported = now
            sums.clear()
            threads = use_free_cores(options.threads, threads)
        if options.measure_steps > 0 and state.step % options.measure_steps == 0:
            measure()
            reported = time.monotonic()
        if time.monotonic() - saved >= 60 * options.save_minutes:
            state.save(options.state)
            saved = time.monotonic()
    if state.step > first or not options.state.exists():
        state.save(options.state)
        measure()


def rounded(value):
    """None if it is not finite: JSON has no other number for that."""
    return float(f"{float(value):.6g}") if math.isfinite(value) else None


def hours_left(options, step, seconds):
    """To the end of all stages, if steps of later ones take as much longer than their recipe says as those of this one."""
    later = options.stages[options.stages.index(options.stage) + 1:]
    ahead = sum(RECIPES[stage].steps * RECIPES[stage].seconds for stage in later if stage in RECIPES)
    return ((options.steps - step) * seconds + ahead * seconds / RECIPES[options.stage].seconds) / 3600


def peak_megabytes():
    """Memory that counts against the limit; mapped shards do not."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmData"].split()[0]) // 1024


def has_converged(stage, held_out):
    """The language model overfits a small data set: it ends when its held-out loss has stopped falling."""
    return stage == "lm" and len(held_out) > PATIENCE and min(held_out[-PATIENCE:]) >= min(held_out[:-PATIENCE])


def run(options):
    stop = Stop()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    options.work.mkdir(parents=True, exist_ok=True)
    data = Data(options.data, options.start)
    for stage in options.stages:
        if stage == "export":
            checkpoint.export(options.work, options.start, options.out, options.planner_config)
            continue
        with open(options.work / f"{stage}.log", "a") as log:
            def report(figures):
                for file in (sys.stdout, log):
                    print(json.dumps(figures), file=file, flush=True)

            train(data, of_stage(options, stage), report, stop)


if __name__ == "__main__":
    try:
        run(parse_options(sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(f"train.py: {error}")
