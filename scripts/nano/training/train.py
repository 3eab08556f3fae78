"""train.py --pack FILE --work DIR [--out DIR] [--stages a,b] [--minutes M | --hours H] [--steps N] [--device cpu|cuda]

Trains the model's own weights, stage after stage, from the one file that pack.py writes: it needs torch and nothing else.
README.md says what the stages are. Figures go to the standard output and to <work>/<stage>.log, a JSON object a line. A
stage that is run again goes on from its saved state.
"""
import argparse
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch

import checkpoint
from audio_tokenizer import AudioTokenizer, TokenizerStage
from data import Data, Draw
from decoder_stage import DecoderStage
from dit_stage import DitStage, WordsStage
from first_weights import initialise
from lm_stage import LmStage
from optimizer import TrainState, read_average

# A stage is a module with `loss(draw)`, the loss of a batch and its parts, `measure()`, figures on held-out pieces, and
# where other than random weights are a better start, `begin()`.
STAGES = {"decoder": DecoderStage, "tokenizer": TokenizerStage, "words": WordsStage,
          "dit": DitStage, "guidance": DitStage, "lm": LmStage, "export": None}
DEFAULTS = {"hours": 1, "batch": 8, "cropSeconds": 1, "learningRate": 3e-4, "warmupSteps": 200}  # of a recipe
WITH_TOKENIZER = ("dit", "guidance", "lm")
COOLDOWN_SHARE = 0.3  # of a stage's minutes: at their end the learning rate falls to 0, and held-out losses with it


def parse_options(arguments):
    def stages(text):
        for name in text.split(","):
            if name not in STAGES:
                raise argparse.ArgumentTypeError(f"unknown stage '{name}': use {', '.join(STAGES)}")
        return [name for name in STAGES if name in text.split(",")]

    def positive(text):
        if not float(text) > 0:
            raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
        return float(text)

    parser = argparse.ArgumentParser(prog="train.py", allow_abbrev=False)
    add = parser.add_argument
    add("--pack", type=Path, required=True, help="what pack.py wrote")
    add("--work", type=Path, required=True, help="states of the stages, logs")
    add("--out", type=Path, help="export: the checkpoint folder to write")
    add("--stages", type=stages, default=list(STAGES), help="between commas; they run in the order of the recipe")
    add("--from", dest="start", type=Path, help="a checkpoint that stages without a state start from")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--minutes", type=positive, help="of every stage in this run")
    add("--hours", type=positive, help="of all of them, resumed ones included, shared as the recipe says")
    add("--steps", type=int, help="of every stage in all, resumed ones included")
    add("--compile", action="store_true", help="torch.compile the networks: slow to begin, worth it on a GPU")
    add("--batch", type=int, help="items of a step, in place of the recipe's")
    add("--average-decay", type=float, default=0.9998, help="of the moving average of the weights")
    add("--save-minutes", type=positive, default=3, help="between two saved states")
    add("--log-steps", type=int, default=20)
    add("--measure-steps", type=int, default=500, help="between two measurements on held-out pieces")
    add("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.minutes and options.hours:
        parser.error("--minutes are of every stage in this run, --hours of all that there are: give one of both")
    if options.minutes is None and options.hours is None and options.steps is None:
        options.minutes = 30.0
    if "export" in options.stages and options.out is None:
        parser.error("the stage export needs --out")
    return options


def of_stage(options, stage, recipe):
    """The options of one stage: those of the command line, and of the recipe (training.json) what they leave open."""
    defaults = {**DEFAULTS, **recipe.get(stage, {})}
    own = argparse.Namespace(**vars(options), stage=stage, state=options.work / f"{stage}.pt")
    own.batch, own.crop_seconds = options.batch or defaults["batch"], defaults["cropSeconds"]
    own.learning_rate, own.warmup_steps = defaults["learningRate"], defaults["warmupSteps"]
    if options.hours:
        every = [{**DEFAULTS, **recipe.get(name, {})}["hours"] for name in options.stages if STAGES[name]]
        own.minutes = 60 * options.hours * defaults["hours"] / sum(every)
    return own


def make_stage(data, options):
    """The stage's module with the weights that it begins with, where no state of it is saved."""
    stage, given = options.stage, []
    if stage in WITH_TOKENIZER:  # which later stages use and do not change
        tokenizer = AudioTokenizer(data.config())
        tokenizer.load_state_dict(read_average(options.work / "tokenizer.pt"))
        given = [tokenizer.to(options.device).requires_grad_(False)]
    if stage == "guidance" and not options.state.exists():
        begun = read_average(options.work / "dit.pt")
    elif options.start and not options.state.exists():
        checkpoint.check_tokenizer(data, options.start, stage)
        begun = checkpoint.start_from(options.start, stage)
    else:
        begun = None
    module = STAGES[stage](data, options, *given)
    initialise(module, options.seed)
    if begun is not None:
        module.load_state_dict(begun, strict=False)
    elif hasattr(module, "begin") and not options.state.exists():
        module.begin()
    if options.compile:
        for network in module.children():
            network.compile()
    return module.to(options.device)


def autocast(options):
    """Activations in bfloat16 where the machine multiplies it; weights, losses and optimisers stay float32."""
    is_cuda = options.device.startswith("cuda")
    has_bfloat16 = is_cuda or torch.cpu._is_avx512_bf16_supported()
    return torch.autocast("cuda" if is_cuda else "cpu", torch.bfloat16, enabled=has_bfloat16)


def learning_rate(options, step, minutes):
    warmup = (step + 1) / max(1, options.warmup_steps)
    left = (options.minutes - minutes) / (COOLDOWN_SHARE * options.minutes) if options.minutes else 1
    return options.learning_rate * min(1, warmup, max(0, left))


def train(data, options, report):
    """Trains until steps or minutes are used up, saving now and then and at the end."""
    module = make_stage(data, options)
    state = TrainState(module, torch.bfloat16 if autocast(options)._enabled else torch.float32)
    if options.state.exists():
        state.load(options.state)
    start = saved = reported = time.monotonic()
    earlier = state.minutes
    sums = defaultdict(float)

    def tell(kind, figures):
        report({"stage": options.stage, "kind": kind, "step": state.step,
                **{name: float(f"{float(value):.6g}") for name, value in sorted(figures.items())}})

    def measure():
        with state.averaged(), autocast(options):
            tell("held out", module.measure())

    while options.steps is None or state.step < options.steps:
        state.minutes = earlier + (time.monotonic() - start) / 60
        minutes = state.minutes if options.hours else state.minutes - earlier
        if options.minutes and minutes >= options.minutes:
            break
        progress = minutes / options.minutes if options.minutes else state.step / options.steps
        with autocast(options):
            loss, parts = module.loss(Draw(options.seed, state.step, progress))
        loss.backward()
        norm, is_applied = state.update(learning_rate(options, state.step, minutes), options.average_decay)
        for name, value in {"loss": loss, **parts, "gradientNorm": norm, "skipped": not is_applied}.items():
            sums[name] += float(value.detach() if torch.is_tensor(value) else value) / options.log_steps
        if state.step % options.log_steps == 0:
            now = time.monotonic()
            tell("training", {**sums, "minutes": (now - reported) / 60})
            reported = now
            sums.clear()
        if options.measure_steps > 0 and state.step % options.measure_steps == 0:
            measure()
        if time.monotonic() - saved >= 60 * options.save_minutes:
            state.save(options.state)
            saved = time.monotonic()
    state.save(options.state)
    measure()


def run(options):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True  # training does not notice
    options.work.mkdir(parents=True, exist_ok=True)
    data = Data(options.pack)
    recipe = data.json("model/training.json")["stages"]
    for stage in options.stages:
        if stage == "export":
            checkpoint.export(data, options.work, options.out)
            continue
        with open(options.work / f"{stage}.log", "a") as log:
            def report(figures):
                for file in (sys.stdout, log):
                    print(json.dumps(figures), file=file, flush=True)

            train(data, of_stage(options, stage, recipe), report)


if __name__ == "__main__":
    try:
        run(parse_options(sys.argv[1:]))
    except (ValueError, OSError) as error:
        sys.exit(f"train.py: {error}")
