"""The measures, on sounds whose tempo, key, harmony, melody and form are known."""

import tempfile
import unittest
from pathlib import Path

import numpy as np
import soundfile

import genre
import signals

RATE = signals.ANALYSIS_RATE
MAJOR, MINOR = (0, 4, 7), (0, 3, 7)


def noise(seconds, seed=1):
    return 0.2 * np.random.default_rng(seed).standard_normal(round(seconds * RATE)).astype(np.float32)


def struck(times, sound, seconds):
    """`sound` from each of the times on."""
    audio = np.zeros(int(seconds * RATE) + len(sound), dtype=np.float32)
    for time in times:
        first = int(time * RATE)
        audio[first : first + len(sound)] += sound
    return audio[: int(seconds * RATE)]


def click(amplitude=0.5):
    burst = noise(0.03)
    return amplitude * burst * np.exp(-np.arange(len(burst)) / (0.005 * RATE)).astype(np.float32)


def clicks(bpm, seconds=20):
    return struck(np.arange(0, seconds, 60 / bpm), click(), seconds)


def drums(bpm, seconds=20):
    """A kick on the beat, a softer hat on every eighth."""
    time = np.arange(int(0.15 * RATE)) / RATE
    kick = (0.8 * np.sin(2 * np.pi * 55 * time) * np.exp(-time / 0.04)).astype(np.float32)
    hats = struck(np.arange(0, seconds, 30 / bpm), click(0.3), seconds)
    return hats + struck(np.arange(0, seconds, 60 / bpm), kick, seconds)


def chord(semitones, seconds):
    """Semitones above C4, each with four partials."""
    time = np.arange(round(seconds * RATE)) / RATE
    hertz = [signals.librosa.midi_to_hz(60 + semitone) * partial for semitone in semitones for partial in range(1, 5)]
    fall = np.minimum(1, np.minimum(time, time[::-1]) / 0.02)
    partials = [np.sin(2 * np.pi * one * time) / (1 + index % 4) ** 2 for index, one in enumerate(hertz)]
    return (0.1 * fall * sum(partials)).astype(np.float32)


def progression(chords, seconds_each=1, rounds=4):
    played = [chord([root + third for third in triad], seconds_each) for root, triad in chords]
    return np.concatenate(played * rounds)


def cadence(tonic, triad):
    """I, IV, V and I; the dominant of a minor key is a major chord."""
    return progression([(tonic, triad), (tonic + 5, triad), (tonic + 7, MAJOR), (tonic, triad)])


def melody(notes, seed):
    """Four notes a second."""
    pitches = np.random.default_rng(seed).integers(0, 12, notes)
    return np.concatenate([chord([pitch], 0.25) for pitch in pitches])


class Rhythm(unittest.TestCase):
    def test_a_tempo_is_found_in_clicks_and_in_drums_whatever_the_level_of_the_metre(self):
        for bpm in (62, 75, 92, 118, 140, 174):
            for make in (clicks, drums):
                found = signals.tempo(signals.onset_autocorrelation(make(bpm)))
                level = min((0.5, 1, 2), key=lambda level: abs(found / (bpm * level) - 1))
                self.assertAlmostEqual(found / (bpm * level), 1, delta=0.02, msg=f"{make.__name__} at {bpm}: {found}")

    def test_a_beat_peak_separates_repetition_from_scattered_onsets(self):
        def peak(audio):
            return signals.beat_peak(signals.onset_autocorrelation(audio))

        scattered = np.sort(np.random.default_rng(1).uniform(0, 20, 40))
        self.assertGreater(peak(drums(110)), 0.8)
        self.assertLess(peak(struck(scattered, click(), 20)), 0.25)
        self.assertLess(peak(noise(20)), 0.15)


class Harmony(unittest.TestCase):
    def test_a_cadence_has_its_key(self):
        for tonic, name in enumerate(signals.PITCH_CLASSES):
            self.assertEqual(signals.key(cadence(tonic, MAJOR)), f"{name} major")
            self.assertEqual(signals.key(cadence(tonic, MINOR)), f"{name} minor")

    def test_silence_has_no_key(self):
        self.assertIsNone(signals.key(np.zeros(5 * RATE, dtype=np.float32)))

    def test_harmony_changes_where_chords_do_and_more_where_they_share_no_notes(self):
        held = signals.harmonic_change(chord(MAJOR, 16))
        near = signals.harmonic_change(progression([(0, MAJOR), (9, MINOR)], rounds=8))
        far = signals.harmonic_change(progression([(0, MAJOR), (6, MAJOR)], rounds=8))
        slow = signals.harmonic_change(progression([(0, MAJOR), (6, MAJOR)], 4, rounds=2))
        self.assertLess(held, 0.005)
        self.assertLess(signals.harmonic_change(noise(16)), 0.02)
        self.assertGreater(near, 0.05)
        self.assertGreater(far, 1.5 * near)
        self.assertGreater(far, 3 * slow)

    def test_low_flatness_separates_tones_from_noise(self):
        self.assertLess(signals.low_flatness(chord([-24, -17, -12], 8)), 0.02)
        self.assertAlmostEqual(signals.low_flatness(noise(8)), 0.56, delta=0.02)
        both = chord([-24, -17, -12], 8) + 0.1 * noise(8)
        self.assertLess(signals.low_flatness(chord([-24, -17, -12], 8)), signals.low_flatness(both))
        self.assertIsNone(signals.low_flatness(chord([36], 8)))


class Form(unittest.TestCase):
    def test_what_comes_again_is_like_itself(self):
        looped = np.tile(melody(16, seed=1), 6)
        recurring = np.concatenate([melody(16, seed) for seed in (1, 2, 1, 2, 3, 4)])
        wandering = melody(96, seed=1)
        likeness = [signals.recurrence(audio) for audio in (looped, recurring, wandering)]
        self.assertGreater(likeness[0], 0.95)
        self.assertGreater(likeness[0] - likeness[1], 0.2)
        self.assertGreater(likeness[1] - likeness[2], 0.2)
        self.assertLess(signals.recurrence(noise(24)), 0.15)


    def test_a_second_chorus_is_nearer_to_the_first_unless_it_plays_the_verse(self):
        verse, chorus, other = (melody(32, seed) for seed in (1, 2, 3))
        sections = [("Verse", 0, 8), ("Chorus", 8, 16), ("Verse", 16, 24), ("Chorus", 24, 32)]
        returning = np.concatenate([verse, chorus, verse, chorus])
        self.assertTrue(signals.chorus_returns(returning, sections))
        late = np.concatenate([verse, chorus, verse, np.zeros(RATE // 2, dtype=np.float32), chorus])
        self.assertTrue(signals.chorus_returns(late[: len(returning)], sections))
        self.assertFalse(signals.chorus_returns(np.concatenate([verse, chorus, other, verse]), sections))
        self.assertIsNone(signals.chorus_returns(returning, sections[:3]))


class Melodies(unittest.TestCase):
    SCALE = (0, 2, 4, 5, 7, 9, 11, 12)

    def played(self, pitches, under=0.0):
        tune = np.concatenate([chord([pitch], 0.4) for pitch in pitches])
        chords = progression([(-12, MAJOR), (-7, MAJOR), (-5, MAJOR), (-12, MAJOR)], 1.6, 4)
        return tune + under * np.resize(chords, len(tune))

    def test_a_scale_is_a_melody_with_and_without_chords(self):
        scale = [*self.SCALE, *reversed(self.SCALE)] * 3
        self.assertGreater(signals.stepwise_melody(self.played(scale)), 0.75)
        self.assertGreater(signals.stepwise_melody(self.played(scale, 0.3)), 0.6)

    def test_arpeggios_leaps_chords_and_noise_are_none(self):
        arpeggio = [0, 4, 7, 12, 7, 4] * 7
        leaps = [0, 9, 2, 11, 4, 12, 5] * 6
        for audio in (self.played(arpeggio), self.played(leaps), progression([(0, MAJOR), (5, MAJOR)], 4, 2), noise(16)):
            self.assertLess(signals.stepwise_melody(audio), 0.2)

    def test_steps_outside_the_key_do_not_count(self):
        chromatic = [*range(13), *range(11, 0, -1)] * 2
        scale = [*self.SCALE, *reversed(self.SCALE)] * 3
        self.assertLess(signals.stepwise_melody(self.played(chromatic)), 0.8 * signals.stepwise_melody(self.played(scale)))


class Levels(unittest.TestCase):
    def test_loudness_is_that_of_ebu_tech_3341(self):
        """Its first case: a tone of 1 kHz at -23 dB of full scale in both channels has -23 LUFS."""
        tone = 10 ** (-23 / 20) * np.sin(2 * np.pi * 1000 * np.arange(20 * 48000) / 48000)
        with tempfile.TemporaryDirectory() as directory:
            path = str(Path(directory) / "tone.wav")
            soundfile.write(path, np.stack([tone, tone], 1), 48000)
            self.assertAlmostEqual(signals.loudness(path), -23, delta=0.1)

    def test_peak_silence_and_clipping(self):
        audio = np.zeros((48000, 2), dtype=np.float32)
        audio[:24000] = 0.5
        audio[:480, 0] = -1
        levels = signals.levels(audio, 48000)
        self.assertAlmostEqual(levels["peak"], 0, delta=0.01)
        self.assertAlmostEqual(levels["silence"], 0.5, delta=0.01)
        self.assertAlmostEqual(levels["clipped"], 480 / 96000)

    def test_the_level_of_the_end_and_of_the_sides(self):
        audio = np.repeat(noise(4)[:, None], 2, axis=1)
        quiet = audio.copy()
        quiet[-RATE // 4 :] *= 0.1
        self.assertAlmostEqual(signals.levels(audio, RATE)["end"], 0, delta=0.3)
        self.assertAlmostEqual(signals.levels(quiet, RATE)["end"], -19.7, delta=0.3)
        self.assertEqual(signals.levels(audio, RATE)["sides"], -120)
        audio[:, 1] *= 0.5  # a side of a quarter, a middle of three quarters
        self.assertAlmostEqual(signals.levels(audio, RATE)["sides"], -9.54, delta=0.01)

    def test_a_spectrum_of_half_the_amplitude_is_six_decibels_away(self):
        one = noise(3)
        self.assertAlmostEqual(
            signals.log_mel_distance(signals.log_mel(one), signals.log_mel(0.5 * one)), 6.02, delta=0.01
        )


class Genres(unittest.TestCase):
    def setUp(self):
        def windows(make, seeds):
            return [genre.windows(make(seed) + 0.05 * noise(10, seed)) for seed in seeds]

        kinds = {"drums": lambda seed: drums(100 + 3 * seed, 10), "melody": lambda seed: melody(41, seed)[: 10 * RATE]}
        self.new = {name: windows(make, (7, 8)) for name, make in kinds.items()}
        heard = {name: windows(make, range(3)) for name, make in kinds.items()}
        self.classifier = genre.train(sum(heard.values(), []), [name for name in kinds for _ in range(3)])

    def test_recordings_that_were_not_heard_are_told_apart(self):
        for name, recordings in self.new.items():
            self.assertEqual([genre.predict(self.classifier, rows) for rows in recordings], [name, name])

    def test_drums_are_nearer_to_drums_at_another_tempo_than_to_a_melody(self):
        (one, other), (tune, _) = self.new["drums"], self.new["melody"]
        self.assertEqual(genre.distance(self.classifier, one, one), 0)
        self.assertLess(genre.distance(self.classifier, one, other), 0.5 * genre.distance(self.classifier, one, tune))


if __name__ == "__main__":
    unittest.main()
