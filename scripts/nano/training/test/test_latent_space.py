"""What latents say of audio, and what a decoder reads of them before it has learnt."""
import math
import unittest

import torch

from first_weights import begin_decoder, initialise
from latent_space import MEL_BANDS, LogMel, Parts, PitchClasses, timbre_components
from oobleck import Decoder
from semitones import Semitones, play
from tiny import HOP, hiss, tone, vae_config


def begun(config):
    module = torch.nn.Module()
    module.part = Decoder(config)
    initialise(module, 1)
    return module.part


class LatentSpaces(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, True)

    def test_spectra_of_timbre_say_which_band_sounds_and_in_which_quarter_of_a_frame(self):
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

    def test_timbre_is_what_spectra_vary_in_most_and_all_of_useful_size(self):
        shapes = torch.linalg.qr(torch.randn(4 * MEL_BANDS, 3))[0]
        amounts = torch.randn(4000, 3) * torch.tensor([90.0, 40, 10])
        spectra = amounts @ shapes.T + torch.randn(4 * MEL_BANDS) - 4
        mean, components = timbre_components(spectra, 3)
        timbre = components @ (spectra - mean).T
        self.assertTrue(torch.allclose(timbre.std(1), torch.tensor([3.0, 2, 1]), 0.05))
        correlation = torch.corrcoef(torch.cat([timbre, amounts.T]))[:3, 3:].abs()
        self.assertTrue(torch.allclose(correlation, torch.eye(3), 0, 0.05))

    def test_pitch_classes_name_what_sounds_and_hardly_change_where_everything_gets_louder(self):
        pitch_classes = PitchClasses(vae_config(80, 8))

        def classes(audio):
            return pitch_classes(audio.mean(1))[0][:, 25]

        self.assertEqual(int(classes(tone(220, 50)).argmax()), 0)   # A
        self.assertEqual(int(classes(tone(392, 50)).argmax()), 10)  # G
        self.assertLess(float((classes(2 * hiss(1, 50)) - classes(0.2 * hiss(1, 50))).max()), 2)

    def test_nothing_in_the_decoder_reads_the_clock(self):
        config, parts = vae_config(100, 8), Parts.of(100)
        self.assertEqual(parts, (42, 6, 40, 12))
        decoder = begun(config)
        begin_decoder(decoder, config)
        lows, beats, timbre, pitches = (decoder.conv1.weight[:, channels] for channels in parts.slices)
        self.assertFalse(beats.any())
        self.assertTrue(lows.any() and timbre.any() and pitches.any())

    def test_semitones_are_told_apart_and_played_as_they_were(self):
        semitones = Semitones(42, HOP, 48000)
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

    def test_oscillators_have_a_frames_level_in_its_middle(self):
        levels = torch.tensor([0.1, 0.1, 0.4, 0.1])
        made = play(levels.log()[None, None], HOP, 48000)[0]
        self.assertEqual(made.shape, (4 * HOP,))
        near = [float(made[frame * HOP + 300:frame * HOP + 1620].abs().max()) for frame in range(4)]
        self.assertLess(near[0], 0.101)  # a period of E1 is 1165 samples
        self.assertGreater(near[2], 0.2)


if __name__ == "__main__":
    unittest.main()
