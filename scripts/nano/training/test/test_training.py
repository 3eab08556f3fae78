"""Every stage learns, goes on where it was cut, and says what is missing."""
import contextlib
import io
import json
import shutil
import unittest

import torch

import checkpoint
import train
from data import Data, Draw, read_pieces
from discriminator import Discriminator
from dit import AceStep
from facts import Facts, as_numbers, clock, from_numbers, tempo_of
from first_weights import begin_dit, initialise
from latent_space import LatentSpace
from optimizer import TrainState, orthogonalised, read_average
from tiny import DIT, Tiny, hiss, record, tone


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
        for stage, batches in {"tokenizer": 2, "words": 2, "dit": 16, "lm": 2, "decoder": 4}.items():
            module = self.tiny.prepared(stage)
            for step in range(batches):
                module.loss(Draw(1, step))[0].backward()
            left = without_gradient(module)
            if stage == "decoder":  # silent units at the sampling rate, which the engine skips
                self.assertEqual(len(left), 3 * 8)
                left = [name for name in left if not name.startswith("decoder.block.3.res_unit")]
            self.assertEqual(left, [], stage)

    def test_every_stage_learns_a_batch_that_it_sees_again_and_again(self):
        for stage, rate, share in (("decoder", 1e-3, 0.97), ("tokenizer", 3e-3, 0.9), ("words", 1e-2, 0.9),
                                   ("dit", 3e-3, 0.9), ("guidance", 3e-3, 0.9),
                                   ("lm", 1e-2, 0.5)):
            module, losses = self.tiny.prepared(stage), []
            state = TrainState(module)
            for _ in range(20):
                loss = module.loss(Draw(1, 0))[0]
                losses.append(float(loss.detach()))
                loss.backward()
                state.update(rate, 0)
            self.assertLess(losses[-1], share * losses[0], stage)

    def test_a_stage_that_was_cut_goes_on_as_one_that_was_not(self):
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

    def test_hours_are_shared_and_what_a_cut_run_took_counts(self):
        options = train.parse_options(["--pack", "a", "--work", "b", "--stages", "tokenizer,words,lm", "--hours", "3"])
        recipe = {"words": {"hours": 3}, "dit": {"hours": 90}}
        shares = {stage: train.of_stage(options, stage, recipe).minutes for stage in options.stages}
        self.assertEqual(shares, {"tokenizer": 36, "words": 108, "lm": 36})
        self.tiny.train("words", 2)
        path = self.tiny.options("words").state
        state = torch.load(path)
        self.assertGreater(state["minutes"], 0)
        for hours, steps in ((None, 3), (1, 3)):
            torch.save({**state, "minutes": 59}, path)
            own = self.tiny.options("words", 3)
            own.hours, own.minutes = hours, 60
            train.train(self.tiny.data, own, lambda figures: None)
            self.assertEqual(torch.load(path)["step"], steps)
        torch.save({**state, "minutes": 60}, path)
        train.train(self.tiny.data, own, lambda figures: None)
        self.assertEqual(torch.load(path)["step"], 2)

    def test_a_dit_begins_with_the_text_encoder_that_has_read_words(self):
        self.tiny.prepared("dit")
        self.tiny.train("words", 2)
        self.tiny.train("dit", 0)
        begun = read_average(self.tiny.options("dit").state)
        for name, weight in read_average(self.tiny.options("words").state).items():
            self.assertTrue(begun[name].equal(weight), name)

    def export(self):
        for stage in ("decoder", "tokenizer", "dit", "guidance", "lm"):
            self.tiny.train(stage, 1)
        options = self.tiny.options("export")
        checkpoint.export(self.tiny.data, options.work, options.out)
        return options

    def test_training_starts_from_the_checkpoint_that_it_wrote(self):
        options = self.export()
        for stage in ("decoder", "tokenizer", "words", "dit", "lm"):
            begun = checkpoint.start_from(options.out, stage)
            module = self.tiny.prepared(stage)
            left = module.load_state_dict(begun, strict=False)
            self.assertEqual(left.unexpected_keys, [], stage)
            self.assertFalse([name for name in left.missing_keys
                              if not name.startswith(("discriminator", "words_head"))], stage)
        learnt = read_average(self.tiny.options("guidance").state)
        for name, weight in checkpoint.start_from(options.out, "dit").items():
            self.assertTrue(weight.equal(learnt[name].bfloat16()), name)

    def test_what_is_packed_to_go_on_from_a_checkpoint_are_latents_of_its_own_space(self):
        data, out = self.tiny.data, self.export().out
        path = out / "vae/config.json"
        config = json.loads(path.read_text())
        config["oscillators"]["mean"] = [mean + 1 for mean in config["oscillators"]["mean"]]
        path.write_text(json.dumps(config))
        ours = self.tiny.packed(self.tiny.root / "ours.pt", "--from", str(out))
        difference = data.latents_of(data.pieces.train[0]) - ours.latents_of(data.pieces.train[0])
        lows = data.measured["low_deviations"].reciprocal()
        self.assertTrue(torch.allclose(difference[:, :len(lows)], lows.expand(len(difference), -1), 0.02, 0.1))
        self.assertLess(float(difference[:, len(lows):].abs().max()), 0.1)

    def test_weights_that_read_words_do_not_start_where_another_tokenizer_gave_the_ids(self):
        start = self.export().out
        shutil.rmtree(self.tiny.root / "work")
        self.tiny.train("tokenizer", 1)
        for part in ("text_encoder", "lm"):
            (start / part / "tokenizer.json").write_text("{}")
            self.addCleanup((start / part / "tokenizer.json").unlink)
        for stage, part in {"words": "text_encoder", "dit": "text_encoder", "lm": "lm", "decoder": None}.items():
            options = self.tiny.options(stage)
            options.start = start
            if part is None:
                train.make_stage(self.tiny.data, options)
                continue
            with self.assertRaisesRegex(ValueError, f"{part} has another tokenizer"):
                train.make_stage(self.tiny.data, options)

    def test_a_stage_without_those_before_it_says_what_is_missing(self):
        with self.assertRaisesRegex(ValueError, "run stage 'tokenizer' first"):
            self.tiny.train("dit", 1)
        self.tiny.train("tokenizer", 1)
        with self.assertRaisesRegex(ValueError, "run stage 'dit' first"):
            self.tiny.train("guidance", 1)
        with self.assertRaisesRegex(ValueError, "make it with pack.py"):
            Data(self.tiny.root / "nowhere.pt")

    def test_latents_of_a_mix_without_a_track_are_those_of_what_is_left(self):
        data, piece = self.tiny.data, self.tiny.data.pieces.train[0]
        space = LatentSpace(data.config("vae"), data.measured)
        left = data.audio(piece, 0, 96000) - data.audio(piece, 0, 96000, "bass")
        wanted = space(left[None])[0].T
        self.assertTrue(torch.allclose(data.latents_of(piece, "rest without bass"), wanted, 0.02, 0.02))
        self.assertFalse(torch.allclose(data.latents_of(piece), wanted, 0.02, 0.02))


class CommandLine(unittest.TestCase):
    def refusal(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            train.parse_options(["--pack", "a", "--work", "b", *arguments])
        return said.getvalue()

    def test_what_it_does_not_understand_is_named(self):
        self.assertIn("unknown stage 'mastering'", self.refusal("--stages", "mastering"))
        self.assertIn("'many'", self.refusal("--batch", "many"))
        self.assertIn("--epochs", self.refusal("--stages", "lm", "--epochs", "3"))
        self.assertIn("'0' is no number above 0", self.refusal("--stages", "lm", "--minutes", "0"))
        self.assertIn("needs --out", self.refusal())
        self.assertIn("give one of both", self.refusal("--stages", "lm", "--minutes", "1", "--hours", "1"))

    def test_stages_run_in_the_order_of_the_recipe(self):
        options = train.parse_options(["--pack", "a", "--work", "b", "--stages", "lm,decoder"])
        self.assertEqual(options.stages, ["decoder", "lm"])

    def test_a_record_that_cannot_be_read_is_named(self):
        lines = json.dumps({**record(0), "keyScale": "H major"}) + "\n"
        with self.assertRaisesRegex(ValueError, "set, piece0: 'H major' is no key"):
            read_pieces(lines, "set")


class Words(unittest.TestCase):
    def test_facts_are_read_back_from_their_numbers(self):
        genres = ["folk", "jazz", "rock"]
        for bpm in (60, 87, 123, 180):
            facts = from_numbers(as_numbers(Facts.of("jazz", bpm, "Bb minor", "6"), genres), genres)
            self.assertAlmostEqual(facts.bpm / bpm, 1, delta=0.005)
            self.assertEqual((facts.genre, facts.tonic, facts.is_minor, facts.metre), ("jazz", 10, True, "6"))
        for key, metre, fault in (("A dorian", "4", "'A dorian' is no key"), ("A minor", "5", "'5' is no metre")):
            with self.assertRaisesRegex(ValueError, fault):
                Facts.of("jazz", 120, key, metre)
        with self.assertRaisesRegex(ValueError, "'polka' is no genre"):
            as_numbers(Facts.of("polka", 120, "A minor", "2"), genres)

    def test_a_clocks_last_hand_turns_once_in_every_section(self):
        hands = clock(Facts.of("jazz", 100, "A minor", "3"), [(0, 4), (4, 8), (8, 10)], 0, 300)[:, 4:]
        self.assertTrue(torch.allclose(hands[:100], hands[100:200], atol=1e-4))
        self.assertTrue(torch.allclose(hands[200:250, 0], hands[:100, 0].unfold(0, 2, 2).mean(1), atol=0.02))
        turned = torch.complex(*hands[:100].T).log().imag.diff().remainder(2 * torch.pi).sum()
        self.assertAlmostEqual(float(turned), 2 * torch.pi * 0.99, delta=1e-3)
        self.assertFalse(hands[250:].any())

    def test_a_clock_tells_its_tempo_and_its_bars_have_the_metres_beats(self):
        facts = Facts.of("jazz", 100, "A minor", "3")  # 15 frames a beat
        hands = clock(facts, [], 30, 90)
        self.assertAlmostEqual(tempo_of(hands), 100, delta=0.1)

        def differs(frames, hand):
            return float((hands[frames:] - hands[:90 - frames])[:, hand].abs().max())

        self.assertLess(differs(15, 0), 1e-3)
        self.assertLess(differs(45, 2), 1e-3)
        self.assertGreater(differs(15, 2), 1)
        self.assertTrue(torch.allclose(hands[15:], clock(facts, [], 45, 75), atol=1e-5))


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

    def test_a_dit_that_has_learnt_nothing_looks_at_what_comes_before_and_after(self):
        torch.manual_seed(1)
        dit = AceStep(DIT)
        initialise(dit, 1)
        begin_dit(dit.decoder)
        patches, items = 24, 32
        context, conditions = torch.randn(items, 2 * patches, 8), torch.randn(items, 3, 16)
        state, times = torch.randn(items, 2 * patches, 4), torch.full((items,), 0.5)
        with torch.no_grad():
            before = dit.decoder(state, context, times, conditions)
            state[:, patches:patches + 2].normal_()
            change = dit.decoder(state, context, times, conditions) - before
        change = change.square().unflatten(1, (patches, 2)).mean((0, 2, 3))
        at = [float(change[patches // 2 - distance] + change[patches // 2 + distance]) for distance in range(10)]
        self.assertGreater(at[1], 3 * at[4])
        self.assertGreater(at[1], 3 * at[9])

    def test_discriminator_and_decoder_do_not_learn_each_others_part(self):
        discriminator, made = Discriminator(), hiss(1, 5).requires_grad_()
        initialise(discriminator, 1)
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
        initialise(discriminator, 1)
        state, judging = TrainState(discriminator), []
        for step in range(60):
            loss, parts = discriminator(0.1 * torch.randn(1, 2, 9600), tone(220 + 5 * step, 5))
            judging.append(float(parts["judging"].detach()))
            loss.backward()
            state.update(3e-3, 0)
        self.assertLess(sum(judging[-10:]) / 10, 0.2)  # 0.5 where it cannot tell


if __name__ == "__main__":
    unittest.main()
