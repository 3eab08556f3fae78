"""The autoencoder's decoder, with the names that its weights have in a checkpoint."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from semitones import play

DILATIONS = (1, 3, 9)


class SnakeFunction(torch.autograd.Function):
    """x + sin(frequency x)^2 gain. Only x is kept; the sine is taken again on the way back."""

    @staticmethod
    def forward(context, x, frequency, gain):
        context.save_for_backward(x, frequency, gain)
        wave = (x.float() * frequency).sin_()
        return wave.mul_(wave).mul_(gain).add_(x).to(x.dtype)

    @staticmethod
    def backward(context, upstream):
        x, frequency, gain = context.saved_tensors
        wide, upstream = x.float(), upstream.float()
        # Uses 2 * sin(a) * cos(a) = sin(2 * a) and sin(a)^2 = (1 - cos(2 * a)) / 2, with angle = 2 * a.
        angle = wide * (2 * frequency)
        of_gain = (upstream.sum((0, 2), keepdim=True) - (angle.cos().mul_(upstream)).sum((0, 2), keepdim=True)) / 2
        slope = angle.sin_().mul_(upstream).mul_(gain)
        of_frequency = (slope * wide).sum((0, 2), keepdim=True)
        return slope.mul_(frequency).add_(upstream).to(x.dtype), of_frequency, of_gain


class Snake(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(1, channels, 1))
        self.beta = nn.Parameter(torch.zeros(1, channels, 1))

    def forward(self, x):
        return SnakeFunction.apply(x, self.alpha.exp(), 1 / (self.beta.exp() + 1e-9))


class ResidualUnit(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.snake1, self.snake2 = Snake(channels), Snake(channels)
        self.conv1 = nn.Conv1d(channels, channels, 7, dilation=dilation, padding=3 * dilation)
        self.conv2 = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.conv2(self.snake2(self.conv1(self.snake1(x))))


class Block(nn.Module):
    """Snake and the transposed convolution `conv_t1`, then three residual units."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.snake1 = Snake(before)
        self.conv_t1 = nn.ConvTranspose1d(before, after, 2 * stride, stride, (stride + 1) // 2)
        for index, dilation in enumerate(DILATIONS, 1):
            self.add_module(f"res_unit{index}", ResidualUnit(after, dilation))

    def forward(self, x):
        x = self.conv_t1(self.snake1(x))
        for index in range(1, len(DILATIONS) + 1):
            unit = self.get_submodule(f"res_unit{index}")
            if unit.conv2.weight.any() or unit.conv2.bias.any():  # as in the engine: units of zeros never learn
                x = unit(x)
        return x


class Decoder(nn.Module):
    """Latents [B, C, frames] -> audio [B, 2, samples]: the network's output, plus what the config's `oscillators` play of the
    first channels."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        base, ratios = config["decoder_channels"], config["downsampling_ratios"]
        channels = [base, *(base * multiple for multiple in config["channel_multiples"])]
        self.conv1 = nn.Conv1d(config["decoder_input_channels"], channels[-1], 7, padding=3)
        self.block = nn.ModuleList(
            Block(channels[i + 1], channels[i], ratios[i]) for i in reversed(range(len(ratios))))
        self.snake1 = Snake(base)
        self.conv2 = nn.Conv1d(base, config["audio_channels"], 7, padding=3, bias=False)

    def forward(self, latents):
        x = self.conv1(latents)
        for block in self.block:
            x = block(x)
        with torch.autocast(x.device.type, enabled=False):  # bfloat16 would round small differences of waveforms away
            audio = F.conv1d(self.snake1(x).float(), self.conv2.weight, padding=3)
            return audio if "oscillators" not in self.config else audio + self.oscillators(latents.float())[:, None]

    def oscillators(self, latents):
        own = self.config["oscillators"]
        mean, deviation = (torch.tensor(own[name], device=latents.device)[:, None] for name in ("mean", "deviation"))
        lows = mean + deviation * latents[:, :len(mean)].clamp_max(own["loudest"])
        hop = math.prod(self.config["downsampling_ratios"])
        return play(lows, hop, self.config["sampling_rate"], own["subtracted"])
