"""The latents of known sounds, and the oscillators that play them."""
import math
import unittest
from pathlib import Path

import torch

from checkpoint import latent_space_of
from semitones import Semitones, play
from tiny import HOP, tone

SHIPPED = Path(__file__).parents[4] / "models/carillon-nano/vae"


class LatentSpaces(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)

    def test_latents_of_the_shipped_space_stay_the_same(self):
        """If they change on purpose, set a new data version in dataset/data-set.ts."""
        time = torch.arange(12 * HOP, dtype=torch.double) / 48000
        left = sum(0.1 * (2 * math.pi * hertz * time).sin() for hertz in (55, 110, 277.2, 440, 1000, 6000))
        left[4 * HOP + 1200] += 0.5  # a click in the third quarter of a frame
        latents = latent_space_of(SHIPPED)(torch.stack([left, left * (1 - time)])[None].float())[0]
        found = latents[[0, 12, 24, 30, 48, 49, 55, 60, 88, 92, 99], 4]
        wanted = [-0.7519, -0.8362, -0.7972, -0.9424, -2.4494, 4.1711, -3.4523, 1.3774, 5.9348, 5.398, 4.0736]
        self.assertTrue(torch.allclose(found, torch.tensor(wanted), atol=5e-3), found)

    def test_semitones_are_separated_and_played_back(self):
        semitones = Semitones(42, HOP, 48000, 3e-4)
        for index in (0, 15, 33):  # E1, G2, C#4
            hertz = 440 * 2 ** ((index - 41) / 12)
            heard = semitones(tone(hertz, 50).mean(1))
            self.assertAlmostEqual(float(heard[0, index, 25]), math.log(0.2), delta=0.1)
            others = heard[0, [other for other in range(42) if abs(other - index) > 1], 25]
            self.assertLess(float(others.max()), math.log(0.02))
            made = play(heard, HOP, 48000)[0, 24000:72000]
            spectrum = torch.fft.rfft(made).abs() / 24000  # a bin a hertz
            self.assertAlmostEqual(int(spectrum.argmax()), hertz, delta=1)
            self.assertAlmostEqual(float(made.square().mean()), 0.02, delta=0.004)

    def test_a_floor_silences_what_is_below_it_and_keeps_what_is_above(self):
        floor, quiet, loud = 2e-3, 5e-4, 0.2
        semitones = Semitones(42, HOP, 48000, floor)
        levels = [float(semitones(tone(220, 50, amplitude).mean(1))[0, 29, 25]) for amplitude in (quiet, loud)]
        self.assertAlmostEqual(levels[0], math.log(floor), delta=0.1)
        self.assertAlmostEqual(levels[1], math.log(loud), delta=0.1)
        made = play(semitones(torch.zeros(1, 20 * HOP)), HOP, 48000, floor)
        self.assertLess(float(made.abs().max()), 1e-4)
        made = play(semitones(tone(220, 50, loud).mean(1)), HOP, 48000, floor)[0, 24000:72000]
        self.assertAlmostEqual(float(made.square().mean()), loud**2 / 2, delta=0.004)

    def test_oscillators_reach_the_level_of_a_frame_in_its_middle(self):
        levels = torch.tensor([0.1, 0.1, 0.4, 0.1])
        made = play(levels.log()[None, None], HOP, 48000)[0]
        self.assertEqual(made.shape, (4 * HOP,))
        near = [float(made[frame * HOP + 300:frame * HOP + 1620].abs().max()) for frame in range(4)]
        self.assertLess(near[0], 0.101)  # a period of E1 is 1165 samples
        self.assertGreater(near[2], 0.2)


if __name__ == "__main__":
    unittest.main()
