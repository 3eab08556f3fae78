"""Stages learn, resume, and report missing inputs."""
import contextlib
import io
import json
import shutil
import signal
import subprocess
import sys
import unittest

import torch

import checkpoint
import train
from attention import attend
from data import Data, Draw, read_pieces
from discriminator import Discriminator
from facts import TEMPOS, Facts, as_numbers, clock
from optimizer import TrainState, orthogonalised, read_average
from task_batch import TaskBatches
from tiny import DIT, QWEN3, Tiny, hiss, record, tone


def without_gradient(module):
    return [name for name, weight in module.named_parameters()
            if weight.requires_grad and (weight.grad is None or not weight.grad.any())]


class Stages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tiny = Tiny()
        cls.addClassCleanup(cls.tiny.folder.cleanup)

    def setUp(self):
        shutil.rmtree(self.tiny.root / "work", ignore_errors=True)

    def test_gradients_reach_every_weight(self):
        for stage, batches in {"dit": 24, "lm": 2, "decoder": 4}.items():
            module = self.tiny.prepared(stage)
            for step in range(batches):
                module.loss(Draw(1, step))[0].backward()
            self.assertEqual(without_gradient(module), [], stage)

    def test_every_stage_learns_a_batch_that_it_sees_again_and_again(self):
        for stage, rate, share in (("decoder", 1e-3, 0.97), ("dit", 3e-3, 0.9), ("guidance", 3e-3, 0.9),
                                   ("lm", 1e-2, 0.5)):
            module, losses = self.tiny.prepared(stage), []
            state = TrainState(module)
            for _ in range(20):
                loss = module.loss(Draw(1, 0))[0]
                losses.append(float(loss.detach()))
                loss.backward()
                state.update(rate, 0)
            self.assertLess(losses[-1], share * losses[0], stage)

    def test_a_resumed_stage_ends_with_the_same_weights(self):
        self.tiny.prepared("dit")
        states = []
        for runs in ((4,), (1, 3, 4)):
            for steps in runs:
                self.tiny.train("dit", steps)
            path = self.tiny.options("dit").state
            states.append(torch.load(path))
            path.unlink()
        whole, cut = states
        self.assertEqual((whole["step"], cut["step"]), (4, 4))
        for part in ("weights", "average"):
            for name, weight in whole[part].items():
                self.assertTrue(weight.equal(cut[part][name]), name)

    def test_a_stopped_run_keeps_the_steps_that_it_has_done(self):
        root, work = self.tiny.root, self.tiny.root / "work"
        places = {"--data": root / "data", "--start": self.tiny.start, "--work": work}
        command = [sys.executable, train.__file__, *(str(word) for place in places.items() for word in place),
                   "--stages", "lm", "--log-steps", "1", "--save-minutes", "99"]
        kept = 0
        for _ in range(2):
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
                done = next(step for line in running.stdout if (step := json.loads(line)["step"]) >= kept + 2)
                running.send_signal(signal.SIGTERM)
                running.stdout.read()
            self.assertEqual(running.returncode, 0)
            kept = torch.load(work / "lm.pt")["step"]
            self.assertGreaterEqual(kept, done)

    def test_the_language_model_stops_when_its_held_out_loss_stops_falling(self):
        falling, still = [5.0, 4, 3, 2, 1.5, 1.4], [5.0, 4, 3, 3.1, 3.2, 3.1, 3.3]
        self.assertFalse(train.has_converged("lm", falling))
        self.assertTrue(train.has_converged("lm", still))
        self.assertFalse(train.has_converged("dit", still))

    def export(self, *stages):
        for stage in stages:
            self.tiny.train(stage, 1)
        options = self.tiny.options("export")
        (options.out / "vae").mkdir(parents=True, exist_ok=True)
        checkpoint.export(options.work, options.start, options.out)
        return options

    def test_training_starts_from_the_checkpoint_that_it_wrote(self):
        options = self.export("decoder", "dit", "guidance", "lm")
        for stage in ("decoder", "dit", "lm"):
            begun = checkpoint.start_from(options.out, stage)
            module = self.tiny.prepared(stage)
            left = module.load_state_dict(begun, strict=False)
            self.assertEqual(left.unexpected_keys, [], stage)
            self.assertFalse([name for name in left.missing_keys
                              if not name.startswith(("discriminator", "words_head"))], stage)
        learnt = read_average(self.tiny.options("guidance").state)
        for name, weight in checkpoint.start_from(options.out, "dit").items():
            self.assertTrue(weight.equal(learnt[name].bfloat16()), name)

    def test_an_export_keeps_the_first_weights_of_stages_that_have_not_run(self):
        out, start = self.export("dit").out, self.tiny.start
        for name in (checkpoint.VAE, checkpoint.DIT):
            ours, first = checkpoint.read_safetensors(out / name), checkpoint.read_safetensors(start / name)
            self.assertEqual(ours.keys(), first.keys())
            is_same = all(ours[weight].equal(first[weight]) for weight in first)
            self.assertEqual(is_same, name == checkpoint.VAE)

    def test_a_stage_reports_a_missing_earlier_stage(self):
        with self.assertRaisesRegex(ValueError, "run stage 'dit' first"):
            self.tiny.train("guidance", 1)
        with self.assertRaisesRegex(ValueError, "make them with pack.py"):
            Data(self.tiny.root / "nowhere", self.tiny.start)

    def test_items_of_a_batch_are_whole_pieces_of_one_length(self):
        batches = TaskBatches(DIT, self.tiny.data, self.tiny.data.train)
        for step in range(20):
            batch = batches.draw(10, Draw(1, step))
            self.assertEqual(len({len(item.target) for item in batch.items}), 1)
            for item in batch.items:
                self.assertEqual(len(item.target), self.tiny.data.frames(item.piece))
            self.assertGreater(len(batch.items), 1)

    def test_a_language_model_of_another_size_starts_from_random_weights(self):
        path = self.tiny.root / "planner.json"
        path.write_text(json.dumps({**QWEN3, "num_hidden_layers": 3}))
        options = self.tiny.options("lm", 1)
        options.planner_config = path
        train.train(self.tiny.data, options, lambda figures: None)
        checkpoint.export(options.work, options.start, options.out, path)
        self.assertIn("layers.2.mlp.up_proj.weight", checkpoint.read_safetensors(options.out / checkpoint.LM))
        self.assertEqual(json.loads((options.out / "lm/config.json").read_text())["num_hidden_layers"], 3)

    def test_the_language_model_also_learns_from_pieces_of_which_only_codes_are_kept(self):
        once = self.tiny.packed(self.tiny.root / "codes")
        twice = self.tiny.packed(self.tiny.root / "codes", "--codes-only", "--shard", "1")
        self.assertEqual((len(once.composed), len(twice.composed)), (2, 4))
        for data in (once, twice):
            self.assertEqual((len(data.train), len(data.held_out)), (2, 2))
        codes = twice.codes[twice.composed[3].id]
        self.assertEqual((tuple(codes.shape), codes.dtype), ((5, 11), torch.int16))
        self.assertTrue(codes.equal(once.codes[once.composed[1].id]))

    def test_latents_of_a_mix_without_a_track_are_those_of_the_remaining_audio(self):
        data, piece = self.tiny.data, self.tiny.data.train[0]
        space = checkpoint.latent_space_of(self.tiny.start / "vae")
        left = data.audio(piece, 0, 96000) - data.audio(piece, 0, 96000, "bass")
        wanted = space(left[None])[0].T
        self.assertTrue(torch.allclose(data.latents_of(piece, "rest without bass"), wanted, 0.02, 0.02))
        self.assertFalse(torch.allclose(data.latents_of(piece), wanted, 0.02, 0.02))


class CommandLine(unittest.TestCase):
    PLACES = ["--data", "a", "--start", "b", "--work", "c"]

    def refusal(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            train.parse_options([*self.PLACES, *arguments])
        return said.getvalue()

    def test_rejects_unknown_stages_and_options(self):
        self.assertIn("unknown stage 'mastering'", self.refusal("--stages", "mastering"))
        self.assertIn("--epochs", self.refusal("--stages", "lm", "--epochs", "3"))
        self.assertIn("needs --out", self.refusal("--stages", "export"))

    def test_stages_run_in_the_order_of_the_recipe(self):
        options = train.parse_options([*self.PLACES, "--stages", "lm,decoder"])
        self.assertEqual(options.stages, ["decoder", "lm"])

    def test_a_record_that_cannot_be_read_is_named(self):
        lines = json.dumps({**record(0), "keyScale": "H major"}) + "\n"
        with self.assertRaisesRegex(ValueError, "set, piece0: 'H major' is no key"):
            read_pieces(lines, "set")


class Words(unittest.TestCase):
    def test_facts_become_numbers_and_unknown_ones_are_rejected(self):
        genres = ["folk", "jazz", "rock"]
        numbers = as_numbers(Facts.of("jazz", 60, "Bb minor", "6"), genres)
        self.assertEqual(int(numbers[:TEMPOS].argmax()), 0)
        self.assertEqual(numbers[TEMPOS:].nonzero().flatten().tolist(), [10, 12, 12 + 4, 12 + 5 + 1])
        for key, metre, fault in (("A dorian", "4", "'A dorian' is no key"), ("A minor", "5", "'5' is no metre")):
            with self.assertRaisesRegex(ValueError, fault):
                Facts.of("jazz", 120, key, metre)
        with self.assertRaisesRegex(ValueError, "'polka' is not a genre"):
            as_numbers(Facts.of("polka", 120, "A minor", "2"), genres)

    def test_a_clocks_last_hand_turns_once_in_every_section(self):
        hands = clock(Facts.of("jazz", 100, "A minor", "3"), [(0, 4), (4, 8), (8, 10)], 300)[:, 4:]
        self.assertTrue(torch.allclose(hands[:100], hands[100:200], atol=1e-4))
        self.assertTrue(torch.allclose(hands[200:250, 0], hands[:100, 0].unfold(0, 2, 2).mean(1), atol=0.02))
        turned = torch.complex(*hands[:100].T).log().imag.diff().remainder(2 * torch.pi).sum()
        self.assertAlmostEqual(float(turned), 2 * torch.pi * 0.99, delta=1e-3)
        self.assertFalse(hands[250:].any())

    def test_a_clock_has_its_tempo_and_bars_of_the_metre(self):
        facts = Facts.of("jazz", 100, "A minor", "3")  # 15 frames a beat
        hands = clock(facts, [], 90)

        def differs(frames, hand):
            return float((hands[frames:] - hands[:90 - frames])[:, hand].abs().max())

        self.assertLess(differs(15, 0), 1e-3)
        self.assertLess(differs(45, 2), 1e-3)
        self.assertGreater(differs(15, 2), 1)


class Attention(unittest.TestCase):
    def test_products_in_bfloat16_agree_with_torchs_kernel_in_float32(self):
        torch.manual_seed(1)
        keys = torch.arange(300) < torch.tensor([[300], [170]])
        for given in ({}, {"window": 40}, {"keys": keys}, {"keys": keys, "window": 140}, {"causal": True}):
            inputs = [torch.randn(2, heads, 300, 32).bfloat16().requires_grad_() for heads in (4, 2, 2)]
            precise = [part.detach().float().requires_grad_() for part in inputs]
            upstream = torch.randn(2, 4, 300, 32)
            upstream[1, :, 170:] = 0  # rows of padding are not read
            y, wanted = attend(*inputs, **given), attend(*precise, **given)
            y.backward(upstream.bfloat16())
            wanted.backward(upstream)
            counts = upstream != 0
            pairs = [(y * counts, wanted * counts), *((a.grad, b.grad) for a, b in zip(inputs, precise))]
            for found, right in pairs:
                self.assertLess(float((found.float() - right).norm() / right.norm()), 0.02, given)


class Learning(unittest.TestCase):
    def test_muon_steps_have_singular_values_that_are_nearly_alike(self):
        torch.manual_seed(1)
        momentum = torch.logspace(-1, 1, 12)[:, None] * torch.randn(12, 40)
        for matrix in (momentum, momentum.T):
            values = torch.linalg.svdvals(orthogonalised(matrix[None], torch.float32)[0] / (0.2 * 40**0.5))
            self.assertGreater(float(values.min()), 0.1)
            self.assertLess(float(values.max()), 1.3)

    def test_a_gradient_that_is_not_finite_changes_no_weight(self):
        module = torch.nn.Linear(2, 2)
        before, state = module.weight.detach().clone(), TrainState(module)
        (module.weight.sum() * float("inf")).backward()
        self.assertFalse(state.update(0.1, 0)[1])
        self.assertTrue(module.weight.equal(before))
        self.assertEqual(state.step, 1)

    def test_discriminator_and_decoder_do_not_learn_each_others_part(self):
        discriminator, made = Discriminator(), hiss(1, 5).requires_grad_()
        for names, learns in ((("passing", "features"), (True, False)), (("judging",), (False, True))):
            made.grad = None
            discriminator.zero_grad()
            parts = discriminator(made, tone(220, 5))[1]
            sum(parts[name] for name in names).backward()
            own = any(weight.grad is not None and weight.grad.any() for weight in discriminator.parameters())
            self.assertEqual((made.grad is not None and bool(made.grad.any()), own), learns)

    def test_a_discriminator_learns_to_tell_hiss_from_a_tone(self):
        torch.manual_seed(1)
        discriminator = Discriminator()
        state, judging = TrainState(discriminator), []
        for step in range(60):
            loss, parts = discriminator(0.1 * torch.randn(1, 2, 9600), tone(220 + 5 * step, 5))
            judging.append(float(parts["judging"].detach()))
            loss.backward()
            state.update(3e-3, 0)
        self.assertLess(sum(judging[-10:]) / 10, 0.2)  # 0.5 at chance


if __name__ == "__main__":
    unittest.main()
