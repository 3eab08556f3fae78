"""Discriminator: separates spectra of decoded audio from spectra of rendered audio, patch by patch."""
import torch
import torch.nn.functional as F
from torch import nn

from spectra import energies

PASSING_WEIGHT, FEATURES_WEIGHT = 0.8, 4
FLOOR, CENTRE, DEVIATION = 1e-4, -7, 2  # of the logarithm of magnitudes, about
LEAK, KERNEL, INPUTS = 0.1, 5, 3
LAYERS = ((16, (2, 1)), (32, (2, 2)), (48, (2, 2)), (48, (2, 1)), (1, (1, 1)))  # channels; stride over rows and hops
WINDOWS = (2048, 512)


class Discriminator(nn.Module):
    """Losses on values and texture do not make details of a spectrum consistent; a discriminator does. Convolutions over
    log magnitudes of middle and side at two resolutions (after Kumar et al., 2023), trained by least squares (Mao et al.,
    2017). It learns in the decoder's steps and is not exported."""

    def __init__(self):
        super().__init__()
        for window in WINDOWS:
            widths = [INPUTS] + [channels for channels, _ in LAYERS]
            self.add_module(str(window), nn.ModuleList(
                nn.Conv2d(widths[i], channels, KERNEL, stride, KERNEL // 2)
                for i, (channels, stride) in enumerate(LAYERS)))

    def forward(self, made, real):
        """Joint loss of decoder and discriminator for audio [B, 2, samples] each, and its parts: `passing`, the decoder's
        adversarial loss; `features`, the distance of its features from those of `real`; `judging`, the discriminator's own
        squared error, 0.5 at chance. Gradients of the first two do not reach the weights here, and gradients of `judging` do
        not reach `made`."""
        passing = features = judging = 0
        for window in WINDOWS:
            layers, hann = self.get_submodule(str(window)), torch.hann_window(window, device=made.device)
            view = view_of(made, hann)
            of_real = run(layers, view_of(real, hann))
            of_made = run(layers, view, frozen=True)
            of_detached = run(layers, view.detach())
            passing = passing + squared_distance(of_made[-1], 1) / len(WINDOWS)
            features = features + feature_distance(of_made[:-1], of_real[:-1]) / len(WINDOWS)
            own = squared_distance(of_real[-1], 1) + squared_distance(of_detached[-1], 0)
            judging = judging + own / len(WINDOWS)
        total = PASSING_WEIGHT * passing + FEATURES_WEIGHT * features + judging
        return total, {"passing": passing, "features": features, "judging": judging}


def view_of(audio, hann):
    """Log magnitudes of middle and side, of about unit scale, and the height of each bin: [B, 3, bins, hops]."""
    def log_spectrum(waves):
        scaled = energies(waves, len(hann) // 4, hann) * (2 / len(hann)) ** 2
        return ((scaled + FLOOR**2).sqrt().log() - CENTRE) / DEVIATION

    middle, side = (log_spectrum((audio[:, 0] + sign * audio[:, 1]) / 2) for sign in (1, -1))
    height = torch.linspace(-1, 1, middle.shape[1], device=audio.device)[:, None].expand_as(middle)
    return torch.stack([middle, side, height], 1)


def run(layers, x, frozen=False):
    """Outputs of all layers; the last one judges patches: 1 is rendered, 0 is decoded."""
    outputs = []
    for layer in layers:
        weight, bias = (layer.weight.detach(), layer.bias.detach()) if frozen else (layer.weight, layer.bias)
        x = F.conv2d(x, weight, bias, layer.stride, layer.padding)
        if layer is not layers[-1]:
            x = F.leaky_relu(x, LEAK)
        outputs.append(x)
    return outputs


def squared_distance(judgement, target):
    return (judgement.float() - target).square().mean()


def feature_distance(made, real):
    """Mean over the layers, each relative to the size of its features."""
    def relative(a, b):
        return (a.float() - b).abs().mean() / b.abs().mean().clamp_min(FLOOR)

    return sum(relative(a, b.detach().float()) for a, b in zip(made, real)) / len(real)
