"""What latents are to say of audio, exactly. It is not learnt: the engine computes it as it stands here
(native/core/vae/spectral_encoder.cpp), the decoder learns to play it, and all other models learn from it. Only scales and
the components of timbre are measured of the data set.

The channels are, in this order: lows, how loud every semitone of the low band is, which oscillators play (semitones.py); the
clock of beat, bar and section (facts.py); timbre, principal components of log-mel spectra; and how loud each of the twelve pitch classes is
beside the others."""
import math
from collections import namedtuple

import torch
import torch.nn.functional as F

from semitones import MOST, Semitones
from spectra import energies_around, mel_filters

MEASURED_PIECES, MEASURED_FRAMES = 140, 250
SMALLEST_LOW = 0.05  # deviation

MEL_BANDS, MELS_PER_FRAME, MEL_WINDOW, MEL_RANGE = 80, 4, 2048, (250, 16000)
MEL_ROWS = MEL_BANDS * MELS_PER_FRAME
QUIETEST_MEL = 1e-8                            # energy
LARGEST_DEVIATION, SMALLEST_SHARE = 3, 0.01    # of timbre

PITCH_CLASSES = 12
PITCH_WINDOW, PITCH_RANGE, TUNING = 8192, (100, 2000), 440  # 171 ms: semitones from 100 Hz on
QUIETEST_PITCH, PITCH_CENTRE = 1e-7, -4.2      # energy; mean over 1400 s of the data set
# Deviations of about 2, twice those of the waves: eight steps of a sampler keep what is large, and decide on it first.
PITCH_SCALE, LOUDNESS_KEPT = 2.2, 0.2


class Parts(namedtuple("Parts", "lows beats timbre pitches")):
    """How many channels are what: of 100, 42, 6, 40 and 12; of fewer, in such proportions, and pitch classes last."""

    @staticmethod
    def of(channels):
        lows, beats = min(MOST, round(channels * 3 / 7)), min(6, channels // 16)
        timbre = min(40, channels - lows - beats)
        return Parts(lows, beats, timbre, min(PITCH_CLASSES, channels - lows - beats - timbre))

    @property
    def slices(self):
        """Of lows, beats, timbre, pitches."""
        ends = torch.tensor(self).cumsum(0).tolist()
        return [slice(end - count, end) for end, count in zip(ends, self)]

    @property
    def beat_slice(self):
        return self.slices[1]

    @property
    def heard(self):
        """Channels that audio tells: all but the clock."""
        return [*range(self.lows), *range(self.lows + self.beats, sum(self))]


def hop_of(config):
    return math.prod(config["downsampling_ratios"])


class LogMel:
    """Log-mel amplitudes of middle [B, frames hop], four to a latent frame: [B, MEL_ROWS, frames]."""

    def __init__(self, config):
        self.hop, self.hann = hop_of(config) // MELS_PER_FRAME, torch.hann_window(MEL_WINDOW)
        self.filters = mel_filters(config["sampling_rate"], MEL_WINDOW, MEL_BANDS, *MEL_RANGE)

    def __call__(self, middle):
        log = 0.5 * (self.filters @ energies_around(middle, self.hop, self.hann) + QUIETEST_MEL).log()
        return log.unflatten(2, (-1, MELS_PER_FRAME)).transpose(2, 3).flatten(1, 2)


def timbre_components(spectra, count):
    """Mean and principal components of log amplitudes [samples, MEL_ROWS]. Those that vary most are the largest, but only
    by the root of how much more they vary: the first has deviation 3 and the last about 1."""
    mean = spectra.mean(0)
    variances, directions = torch.linalg.eigh((spectra - mean).T @ (spectra - mean) / len(spectra))  # ascending
    deviations = variances.flip(0)[:count].clamp_min(0).sqrt()
    deviations = deviations.clamp_min(SMALLEST_SHARE * deviations[0])
    scales = LARGEST_DEVIATION / (deviations * deviations[0]).sqrt()
    return mean, directions.flip(1)[:, :count].T * scales[:, None]


class PitchClasses:
    """Log amplitudes of the twelve pitch classes from A on around every latent frame: middle [B, frames hop] ->
    [B, 12, frames]. Loudness, which moves all of them together, is mostly taken out: what is left is harmony."""

    def __init__(self, config):
        self.hop, self.hann = hop_of(config), torch.hann_window(PITCH_WINDOW)
        hertz = torch.arange(PITCH_WINDOW // 2 + 1) * config["sampling_rate"] / PITCH_WINDOW
        heard = (hertz >= PITCH_RANGE[0]) & (hertz < PITCH_RANGE[1])
        semitone = (PITCH_CLASSES * (hertz.clamp_min(1) / TUNING).log2()).round() % PITCH_CLASSES
        self.filters = ((semitone == torch.arange(PITCH_CLASSES)[:, None]) & heard).float()

    def __call__(self, middle):
        pitch = 0.5 * (self.filters @ energies_around(middle, self.hop, self.hann) + QUIETEST_PITCH).log()
        pitch = pitch - PITCH_CENTRE
        return PITCH_SCALE * (pitch - (1 - LOUDNESS_KEPT) * pitch.mean(1, keepdim=True))


class LatentSpace:
    """`measured` are means and deviations of the semitones' log amplitudes, [lows], and mean and principal components of
    timbre, [MEL_ROWS] and [timbre, MEL_ROWS]."""

    def __init__(self, config, measured):
        self.measured, self.hop = measured, hop_of(config)
        self.parts = Parts.of(config["decoder_input_channels"])
        self.semitones = Semitones(self.parts.lows, self.hop, config["sampling_rate"])
        self.log_mel, self.pitch_classes = LogMel(config), PitchClasses(config)

    @staticmethod
    def measure(config, read, pieces):
        """From the middle of pieces of all kinds; `read` gives a piece's samples [samples, 2] of 16 bits."""
        count, parts = min(MEASURED_PIECES, len(pieces)), Parts.of(config["decoder_input_channels"])
        semitones = Semitones(parts.lows, hop_of(config), config["sampling_rate"])
        log_mel, lows, spectra = LogMel(config), [], []
        for index in range(count):
            piece = pieces[index * len(pieces) // count]
            audio, samples = read(piece), MEASURED_FRAMES * hop_of(config)
            first = max(0, (len(audio) - samples) // 2)
            crop = F.pad(audio[first:first + samples].T / 32768, (0, max(0, samples - len(audio))))[None]
            lows.append(semitones(crop.mean(1))[0])
            spectra.append(log_mel(crop.mean(1))[0].T)
        mean, components = timbre_components(torch.cat(spectra), parts.timbre)
        lows = torch.cat(lows, 1)
        return LatentSpace(config, {"low_means": lows.mean(1), "low_deviations": lows.std(1) + SMALLEST_LOW,
                                    "timbre_mean": mean, "timbre_components": components.contiguous()})

    def __call__(self, audio):
        """Audio [B, 2, frames hop] -> [B, C, frames] on the CPU; the clock's channels are 0."""
        middle, measured = audio.mean(1), self.measured
        lows = (self.semitones(middle) - measured["low_means"][:, None]) / measured["low_deviations"][:, None]
        beats = torch.zeros(len(audio), self.parts.beats, lows.shape[2])
        timbre = measured["timbre_components"] @ (self.log_mel(middle) - measured["timbre_mean"][:, None])
        return torch.cat([lows, beats, timbre, self.pitch_classes(middle)[:, :self.parts.pitches]], 1)
