"""Definition of the latents. Nothing here is learnt: the engine computes the same (native/core/vae/spectral_encoder.cpp), the
decoder learns to play latents, and all other models learn from them.

Channels, in this order: lows, log amplitudes of the semitones of the low band, which oscillators play (semitones.py); the
clock of beat, bar and section (facts.py); timbre, principal components of log-mel spectra; and log amplitudes of the twelve
pitch classes relative to their mean."""
import math
from collections import namedtuple

import torch
import torch.nn.functional as F

from semitones import MOST, Semitones
from spectra import energies_around, mel_filters

MEL_BANDS, MELS_PER_FRAME, MEL_WINDOW, MEL_RANGE = 80, 4, 2048, (250, 16000)
MEL_ROWS = MEL_BANDS * MELS_PER_FRAME
QUIETEST_MEL = 1e-8  # energy

PITCH_CLASSES = 12
PITCH_WINDOW, PITCH_RANGE, TUNING = 8192, (100, 2000), 440  # 171 ms: semitones from 100 Hz on
QUIETEST_PITCH, PITCH_CENTRE = 1e-7, -4.2      # energy; mean over 1400 s of the data set
# These factors give the scaled channels standard deviations of about 2. A sampler of eight steps settles
# channels with large deviations first.
PITCH_SCALE, LOUDNESS_KEPT = 2.2, 0.2


class Parts(namedtuple("Parts", "lows beats timbre pitches")):
    """Numbers of channels: of 100, 42, 6, 40 and 12; of fewer, in such proportions, and pitch classes last."""

    @staticmethod
    def of(channels):
        lows, beats = min(MOST, round(channels * 3 / 7)), min(6, channels // 16)
        timbre = min(40, channels - lows - beats)
        return Parts(lows, beats, timbre, min(PITCH_CLASSES, channels - lows - beats - timbre))

    @property
    def slices(self):
        """Channel ranges of lows, beats, timbre and pitches."""
        ends = torch.tensor(self).cumsum(0).tolist()
        return [slice(end - count, end) for end, count in zip(ends, self)]

    @property
    def beat_slice(self):
        return self.slices[1]


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


class PitchClasses:
    """Log amplitudes of the twelve pitch classes from A on per latent frame: middle [B, frames hop] -> [B, 12, frames].
    Their mean, which is loudness, is mostly subtracted."""

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
    """The space of an autoencoder: its config has mean, deviation and floor of the semitones' log amplitudes, its encoder's
    weights are mean and principal components of timbre, [MEL_ROWS] and [timbre, MEL_ROWS]."""

    def __init__(self, config, encoder):
        own, self.encoder, self.hop = config["oscillators"], encoder, hop_of(config)
        self.parts = Parts.of(config["decoder_input_channels"])
        self.mean, self.deviation = (torch.tensor(own[name])[:, None] for name in ("mean", "deviation"))
        self.semitones = Semitones(self.parts.lows, self.hop, config["sampling_rate"], own["floor"])
        self.log_mel, self.pitch_classes = LogMel(config), PitchClasses(config)

    def __call__(self, audio):
        """Audio [B, 2, frames hop] -> [B, C, frames] on the CPU; the clock's channels are 0."""
        middle = audio.mean(1)
        lows = (self.semitones(middle) - self.mean) / self.deviation
        beats = torch.zeros(len(audio), self.parts.beats, lows.shape[2])
        timbre = self.encoder["timbre_components"] @ (self.log_mel(middle) - self.encoder["timbre_mean"][:, None])
        return torch.cat([lows, beats, timbre, self.pitch_classes(middle)[:, :self.parts.pitches]], 1)
