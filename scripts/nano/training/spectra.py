"""Spectra of waves, and perceptual distances between recordings."""
import math

import torch
import torch.nn.functional as F

FLOOR = 1e-5         # -100 dB
LINEAR_FLOOR = 1e-4  # gradients of inaudible bins would be steep
POOLED = 4           # hops whose level is compared
PATCH, PATCH_HOP = 8, 4  # rows and hops whose texture is compared
TEXTURE_WEIGHT = 12


def mel_filters(sample_rate, window, bands, lowest=0.0, highest=None):
    """Triangles with corners evenly spaced in mel, each of weight 1: [bands, window / 2 + 1]. A band narrower than a bin
    takes the nearest one."""
    def to_mel(hertz):
        return 2595 * math.log10(1 + hertz / 700)

    corners = torch.linspace(to_mel(lowest), to_mel(highest or sample_rate / 2), bands + 2, dtype=torch.double)
    corners = 700 * (10 ** (corners / 2595) - 1)
    low, centre, high = (corners[i:bands + i, None] for i in range(3))
    bin_hertz = sample_rate / window
    hertz = torch.arange(window // 2 + 1) * bin_hertz
    filters = torch.minimum((hertz - low) / (centre - low), (high - hertz) / (high - centre)).clamp_min(0)
    for band in (filters.sum(1) == 0).nonzero().flatten().tolist():
        filters[band, round(float(centre[band]) / bin_hertz)] = 1
    return (filters / filters.sum(1, keepdim=True)).float()


def energies(waves, hop, hann):
    """Squared magnitudes of the short-time Fourier transform, without padding: [N, samples] -> [N, bins, hops]."""
    bins = torch.stft(waves, len(hann), hop, window=hann, center=False, return_complex=True)
    return torch.view_as_real(bins).square().sum(-1)


def energies_around(waves, hop, hann):
    """Energies of windows around the middles of all stretches of `hop` samples, of a sine about its amplitude's
    square: waves [B, n hop] -> [B, bins, n]."""
    window = len(hann)
    before = (window - hop) // 2
    padded = F.pad(waves, (before, window - hop - before))
    return energies(padded, hop, hann)[..., :waves.shape[1] // hop] * (4 / window) ** 2


class MelSpectrum:
    """Linear and mel magnitudes of one window length, hops a quarter of it."""

    def __init__(self, sample_rate, window, bands, device):
        self.window, self.hann = window, torch.hann_window(window, device=device)
        self.filters = mel_filters(sample_rate, window, bands).to(device)

    def __call__(self, waves):
        # The square root has no finite gradient at 0.
        linear = (energies(waves, self.window // 4, self.hann) + 1e-12).sqrt() * (2 / self.window)
        return linear, self.filters @ linear


def log_distance(a, b):
    return ((a + FLOOR).log() - (b + FLOOR).log()).abs().mean()


def texture_distance(a, b, floor):
    """Difference in roughness from bin to bin and from hop to hop, patch by patch, independent of the position of peaks.
    Squared: roughness is uncertain and skewed, and its median would be too smooth."""
    def roughness(log, axis):
        return F.avg_pool2d(log.diff(dim=axis).abs(), PATCH, PATCH_HOP)

    a, b = (a + floor).log(), (b + floor).log()
    return sum((roughness(a, axis) - roughness(b, axis)).square().mean() for axis in (1, 2))


class ReconstructionError:
    """The distance of two recordings at several resolutions: log-mel levels and spectral convergence (Yamamoto et al.,
    2020; Kumar et al., 2023), and texture. Latents do not determine hiss, beating strings and high overtones; the best
    estimate value by value is smooth, and the texture loss asks for their roughness."""

    def __init__(self, sample_rate, device):
        sizes = ((2048, 160), (1024, 100), (512, 64), (256, 32))
        self.resolutions = [MelSpectrum(sample_rate, *size, device) for size in sizes]
        self.judge = MelSpectrum(sample_rate, 2048, 80, device)

    def distance(self, spectrum, made, real):
        (linear_a, mel_a), (linear_b, mel_b) = spectrum(made), spectrum(real)
        convergence = (linear_b - linear_a).norm() / (linear_b.norm() + FLOOR)
        texture = texture_distance(mel_a, mel_b, FLOOR) + texture_distance(linear_a, linear_b, LINEAR_FLOOR)
        # Also compares the mel levels of the two sounds, averaged over a few hops.
        level_a, level_b = (F.avg_pool1d(mel, POOLED, POOLED // 2) for mel in (mel_a, mel_b))
        return log_distance(level_a, level_b) + convergence + TEXTURE_WEIGHT * texture

    def __call__(self, made, real):
        """Audio [B, 2, samples] each -> the loss and its parts."""
        def side(audio):
            return (audio[:, 0] - audio[:, 1]) / 2

        # The side channel is compared at one resolution only, because latents hold nothing about it.
        distances = [self.distance(self.resolutions[1], side(made), side(real))]
        distances += [self.distance(spectrum, made.mean(1), real.mean(1)) for spectrum in self.resolutions]
        spectral = sum(distances) / len(distances)
        return spectral, {"spectral": spectral}

    def log_mel(self, made, real):
        """Mean distance of natural-log mel spectra, 80 bands."""
        return log_distance(self.judge(made.flatten(0, 1))[1], self.judge(real.flatten(0, 1))[1])
