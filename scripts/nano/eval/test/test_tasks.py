"""Measures of tasks on sounds whose answer is known."""

import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
import tasks  # noqa: E402
from tasks import Recording, added_energy, harmony_correlation, separate  # noqa: E402

RATE, SECONDS = 48000, 4
C, F, G, F_SHARP = (60, 64, 67), (65, 69, 72), (67, 71, 74), (66, 70, 73)


def chords(*progression):
    """A chord a second, of MIDI notes."""
    time = np.arange(RATE) / RATE
    seconds = [sum(0.1 * np.sin(2 * np.pi * 440 * 2 ** ((pitch - 69) / 12) * time) for pitch in progression[second % len(progression)])
               for second in range(SECONDS)]
    return np.concatenate(seconds).astype(np.float32)


def noise(seed):
    return np.random.default_rng(seed).uniform(-0.2, 0.2, SECONDS * RATE).astype(np.float32)


MELODY, DRUMS, BASS = chords(C, F, G, C), noise(1), chords((36,), (41,), (43,), (36,))


class Tasks(unittest.TestCase):
    def test_the_same_chords_in_another_octave_have_the_same_harmony(self):
        def correlation(other):
            return harmony_correlation(Recording(MELODY), Recording(other))

        self.assertAlmostEqual(correlation(MELODY), 1, delta=1e-6)
        self.assertGreater(correlation(chords(*([pitch + 12 for pitch in chord] for chord in (C, F, G, C)))), 0.9)
        self.assertLess(correlation(chords(F_SHARP)), 0)
        self.assertLess(correlation(chords(G, C, C, F)), 0.6)
        self.assertLess(abs(correlation(noise(2))), 0.3)

    def test_a_raised_stem_is_found_and_noise_is_none_of_them(self):
        stems = [Recording(MELODY), Recording(DRUMS)]
        before, explained = separate(Recording(MELODY + DRUMS), stems, 0)
        raised, _ = separate(Recording(MELODY + 0.25 * DRUMS), stems, 0)
        self.assertAlmostEqual(raised - before, 12, delta=1.5)
        self.assertEqual([separate(stem, stems, 0)[0] for stem in stems], [40, -40])
        self.assertGreater(explained, 0.9)
        self.assertLess(separate(Recording(noise(3)), [stems[0], Recording(BASS)], 0)[1], 0.2)

    def test_energy_that_is_not_the_source_counts_as_added(self):
        source = Recording(MELODY)
        self.assertAlmostEqual(added_energy(Recording(0.5 * MELODY), source), 0, delta=1e-5)
        self.assertTrue(0.2 < added_energy(Recording(MELODY + BASS), source) < 0.5)
        self.assertGreater(added_energy(Recording(BASS), source), 0.9)

    def test_a_changed_passage_is_separated_from_an_untouched_one(self):
        melody, quiet = Recording(MELODY), Recording(0.5 * MELODY)
        self.assertEqual(tasks.spectral_distance(melody, melody), 0)
        self.assertAlmostEqual(tasks.spectral_distance(Recording(DRUMS), Recording(0.5 * DRUMS)), 6, delta=0.1)
        self.assertEqual(tasks.unchanged_share(melody, melody), 1)
        self.assertLess(tasks.unchanged_share(melody, quiet), 0.1)
        outside, inside = melody.cut(1, 2)
        self.assertEqual((len(outside.samples), len(inside.samples)), (3 * RATE, RATE))

    def test_the_table_takes_the_mean_of_the_trials_that_a_row_is_of(self):
        model = [{"extract raise": 9, "extract raised": True}, {"extract raise": 2, "extract raised": False}, {"cover harmony": 0.756}]
        rows = tasks.table({name: model if name == "model" else [] for name in tasks.CANDIDATES}).split("\n")
        cells = {row.split(" | ")[0].strip("| "): row.split(" | ")[1] for row in rows}
        self.assertEqual(cells[tasks.ROWS["extract raise"][0]], "5.5 dB")
        self.assertEqual(cells[tasks.ROWS["extract raised"][0]], "50 %")
        self.assertEqual(cells[tasks.ROWS["cover harmony"][0]], "0.76")
        self.assertEqual(cells[tasks.ROWS["lego added"][0]], "-")


if __name__ == "__main__":
    unittest.main()
