"""The latents of known sounds, and the oscillators that play them."""
import math
import unittest
from pathlib import Path

import torch

from checkpoint import latent_space_of
from latent_space import MEL_BANDS, LogMel, PitchClasses
from semitones import Semitones, play
from tiny import HOP, hiss, tone, vae_config

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
        latents = latent_space_of(SHIPPED)(torch.stack([left, left * (1 - time)])[None].float())[0]
        means = latents.mean(1)[[0, 12, 24, 30, 48, 55, 60, 88, 92, 99]]
        wanted = [-0.2655, -0.7428, -0.7605, -0.9424, -6.7368, -4.4288, 1.1674, 6.1682, 5.6394, 4.3652]
        self.assertTrue(torch.allclose(means, torch.tensor(wanted), atol=1e-3), means)

    def test_log_mel_spectra_locate_a_band_and_a_quarter_of_a_frame(self):
        log_mel = LogMel(vae_config(80, 8))

        def spectra(audio):
            return log_mel(audio.mean(1))[0].view(MEL_BANDS, 4, -1)

        def loudest_band(hertz):
            return int(spectra(tone(hertz, 10))[:, 0, 5].argmax())

        self.assertLess(loudest_band(300), loudest_band(330))
        self.assertLess(loudest_band(2000), loudest_band(2200))
        self.assertEqual(loudest_band(40), loudest_band(60))  # both below the first
        loudest = [float(spectra(tone(1000, 10, amplitude)).max()) for amplitude in (0.2, 0.1)]
        self.assertAlmostEqual(loudest[0] - loudest[1], math.log(2), delta=0.01)
        click = torch.zeros(1, 2, 10 * HOP)
        click[..., 4 * HOP + 1200:4 * HOP + 1202] = 0.5  # the middle of the fifth frame's third quarter
        self.assertEqual(int(spectra(click).sum(0)[:, 4].argmax()), 2)

    def test_pitch_classes_name_the_note_and_hardly_depend_on_loudness(self):
        pitch_classes = PitchClasses(vae_config(80, 8))

        def classes(audio):
            return pitch_classes(audio.mean(1))[0][:, 25]

        self.assertEqual(int(classes(tone(220, 50)).argmax()), 0)   # A
        self.assertEqual(int(classes(tone(392, 50)).argmax()), 10)  # G
        self.assertLess(float((classes(2 * hiss(1, 50)) - classes(0.2 * hiss(1, 50))).max()), 2)

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
