"""Lapped cosine transforms (Princen and Bradley, 1986) as weights of strided convolutions of kernel 2 s."""
import math

import torch


def transform_row(stride, band):
    """cos(pi / s (n + 1/2 + s/2) (band + 1/2)) under a sine window, for n in 0 .. 2 s - 1."""
    time = torch.arange(2 * stride, dtype=torch.double) + 0.5
    window = torch.sin(math.pi * time / (2 * stride))
    return math.sqrt(2 / stride) * window * torch.cos(math.pi / stride * (time + stride / 2) * (band + 0.5))


def lapped_matrix(before, bands, stride):
    """What a stage of `stride` bins, of every one of `before` bands, computes of the numbers `bands`, counted from 0 Hz:
    [bands, before, 2 stride]. Bins of an odd band come in reverse order."""
    matrix = torch.zeros(len(bands), before, 2 * stride)
    for row, band in enumerate(bands):
        parent, place = divmod(band, stride)
        if parent < before:
            matrix[row, parent] = transform_row(stride, stride - 1 - place if parent % 2 else place).float()
    return matrix


def middle_and_side(channels):
    """A convolution of kernel 7 from left and right to middle and side, its first channels: [channels, 2, 7]."""
    weight = torch.zeros(channels, 2, 7)
    weight[0, :, 3] = math.sqrt(0.5)
    weight[1, :, 3] = torch.tensor([math.sqrt(0.5), -math.sqrt(0.5)])
    return weight
