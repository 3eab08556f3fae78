"""Low band: log amplitude of 42 semitones per latent frame, and the fixed oscillators that play them. The engine computes
the same (native/core/vae/spectral_encoder.cpp, oscillators.cpp). Waveforms of this band cannot be predicted from words and
notes; amplitudes can."""
import math

import torch
import torch.nn.functional as F

LOWEST_HERTZ, MOST = 440 * 2 ** (-41 / 12), 42  # E1 to A4
CYCLES, LONGEST = 17, 0.25   # window of a semitone: cycles, and maximum seconds
SHARPENINGS = 30
GOLDEN = 0.6180339887498949  # phase between neighbours in turns, so that they never start together


def hertz_of(count):
    return LOWEST_HERTZ * 2 ** (torch.arange(count, dtype=torch.double) / 12)


class Semitones:
    """Log amplitudes of the middle channel [B, frames hop]: [B, count, frames]. `floor` is an amplitude that is added to all.
    Windows also respond to neighbouring semitones; a multiplicative update finds the non-negative amplitudes that explain
    all windows (Lee and Seung, 2001)."""

    def __init__(self, count, hop, rate, floor):
        self.hop, self.floor, hertz = hop, floor, hertz_of(count)
        lengths = [round(min(CYCLES / float(own), LONGEST) * rate) // 2 * 2 + 1 for own in hertz]
        self.reach = max(lengths) // 2
        time = torch.arange(-self.reach, self.reach + 1, dtype=torch.double) / rate
        windows = torch.stack([F.pad(torch.hann_window(own + 2, False, dtype=torch.double)[1:-1],
                                     (self.reach - own // 2,) * 2) for own in lengths])
        waves = torch.exp(2j * math.pi * hertz[:, None] * time)
        self.filters = (2 * windows / windows.sum(1, keepdim=True) * waves).to(torch.cfloat)
        # heard[i, j] is the energy that filter i measures for semitone j at amplitude 1.
        self.heard = (self.filters @ (waves.conj() / 2).T.to(torch.cfloat)).abs().square()

    def __call__(self, middle):
        def heard(item):  # one at a time: overlapping windows hold many times the audio
            inside = F.pad(item, (self.reach - self.hop // 2, self.reach + 1))
            taps = inside.unfold(0, self.filters.shape[1], self.hop)[:len(item) // self.hop]
            return ((taps @ self.filters.real.T).square() + (taps @ self.filters.imag.T).square()).T

        energy = torch.stack([heard(item) for item in middle])
        found, target = energy + self.floor**2, self.heard.T @ energy
        for _ in range(SHARPENINGS):
            found = found * target / (self.heard.T @ (self.heard @ found) + 1e-12)
        return 0.5 * (found + self.floor**2).log()


def play(log_amplitudes, hop, rate, subtracted=0.0):
    """[B, count, frames] -> [B, frames hop]. Amplitudes less `subtracted`, linear from the middle of a frame to the
    middle of the next. As in the engine, a product of two matrices."""
    amplitudes, device = log_amplitudes.exp(), log_amplitudes.device
    if subtracted > 0:
        amplitudes = (amplitudes.square() - subtracted**2).clamp_min(1e-12).sqrt()
    count, frames = amplitudes.shape[1:]
    turns = hertz_of(count)[:, None] / rate  # a sample
    begins = (torch.arange(frames + 1) - 0.5) * hop
    phase = 2 * math.pi * ((turns * begins + GOLDEN * torch.arange(count)[:, None]) % 1)
    within = 2 * math.pi * turns * torch.arange(hop)
    table = torch.cat([within.cos(), within.sin()]).float().to(device)  # [2 count, hop]
    cos, sin = (part.float().to(device) for part in (phase.cos(), phase.sin()))

    def spread(values):
        """[B, count, frames + 1] at the phase of every stretch between frame middles -> [B, frames + 1, hop]."""
        return torch.cat([values * cos, -values * sin], 1).mT @ table

    edges = torch.cat([amplitudes[..., :1], amplitudes, amplitudes[..., -1:]], 2)
    rise = torch.arange(hop, device=device) / hop
    stretches = spread(edges[..., :-1]) + rise * spread(edges.diff(dim=2))
    return stretches.flatten(1)[:, hop // 2:frames * hop + hop // 2]
