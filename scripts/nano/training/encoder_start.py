"""First weights of an encoder: they say what the latent space says as well as it can be said without learning by
gradients. Audio goes through a cascade of lapped transforms, an exact one. The units of the last two blocks square the sine
of every band at three frequencies 12 dB apart: where one no longer grows with the level, the next still does, and their sum
is about a logarithm. From such sums the last convolutions tell the latents, with the weights of least squares."""
import math

import torch
import torch.nn.functional as F

from lapped_transform import lapped_filters, lapped_matrix, lapped_transform, middle_and_side
from latent_space import EXACT_BLOCKS, exact_bands, exact_strides
from oobleck import widths

FREQUENCIES = (0.15, 0.6, 2.4)  # of a band of deviation 1
LINEAR = 0.1                    # share of the band itself, beside the sine's square
PITCH_FREQUENCY = 1.2
STRAIGHT_GAIN, NO_GAIN = 0.01, 1e-9  # of a snake that is nearly straight, or straight
SMALLEST_DEVIATION, RIDGE = 1e-4, 1e-4
SPREAD = -3         # of the posterior: softplus of it is 0.05
LOWEST_PITCH = 40   # Hz
EDGE_FRAMES = 3     # windows of the space reach beyond the crop there


def deviations(signal):
    return signal.transpose(0, 1).flatten(1).std(1) + SMALLEST_DEVIATION


def loudness(bands):
    """What three units add up of bands of deviation 1."""
    return sum(LINEAR * bands + (frequency * bands).sin().square() for frequency in FREQUENCIES)


def least_squares(inputs, kernel, stride, padding, targets):
    """Ridge regression of targets [B, outputs, T] on all that a convolution reads for them, without the edges: its
    weight [outputs, channels, kernel] and bias."""
    def inner(rows):
        return rows[:, EDGE_FRAMES:-EDGE_FRAMES].flatten(0, 1).double()

    taps = F.pad(inputs, (padding, padding)).unfold(2, kernel, stride).transpose(1, 2).flatten(2)
    x, y = inner(taps), inner(targets.transpose(1, 2))
    centred = x - x.mean(0)
    covariance = centred.T @ centred
    ridge = RIDGE * covariance.diagonal().mean() * torch.eye(len(covariance), dtype=torch.double)
    weight = torch.linalg.solve(covariance + ridge, centred.T @ (y - y.mean(0))).T
    bias = y.mean(0) - weight @ x.mean(0)
    return weight.float().view(len(weight), -1, kernel), bias.float()


def set_snake(snake, frequency, gain):
    snake.alpha.fill_(math.log(frequency))
    snake.beta.fill_(-math.log(gain))


def set_convolution(layer, weight, bias=None):
    layer.weight.copy_(weight)
    layer.bias.copy_(torch.zeros(len(layer.bias)) if bias is None else bias)


@torch.no_grad()
def begin_encoder(encoder, config, space, audio):
    """Writes the blocks one after another, and follows what the audio [B, 2, samples] becomes in them."""
    strides, channels = config["downsampling_ratios"], widths(config["encoder_hidden_size"], config)
    if len(strides) != EXACT_BLOCKS + 2:
        raise ValueError(f"an encoder begins with four blocks, not {len(strides)}")
    write_exact_blocks(encoder, config, space)
    wanted, latents = space(audio)[:, space.parts.heard], len(space.parts.heard)
    heard = exact_bands(config)
    bands = lapped_transform(audio, lapped_filters(exact_strides(config), heard), exact_strides(config))
    bands = bands / space.measured["bands"][:, None]

    # The block before the last: narrower bands, and the loudness of those that it got, of two neighbours each.
    block, stride = encoder.block[EXACT_BLOCKS], strides[EXACT_BLOCKS]
    before, after = channels[EXACT_BLOCKS:EXACT_BLOCKS + 2]
    write_units(block, heard)
    pairs = heard // 2
    narrower = min((after - pairs) // 2, heard * stride)
    size = {"stride": stride, "padding": (stride + 1) // 2}
    weight = torch.zeros(after, before, 2 * stride)
    weight[:narrower, :heard] = lapped_matrix(heard, range(narrower), stride) * space.measured["bands"][:, None]
    for pair in range(pairs):
        weight[2 * narrower + pair, heard + 2 * pair:heard + 2 * pair + 2] = 1 / (4 * stride)
    signal = F.pad(torch.cat([bands, loudness(bands)], 1), (0, 0, 0, before - 2 * heard))
    levels = deviations(F.conv1d(signal, weight[:narrower], **size))
    weight[:narrower] /= levels[:, None, None]
    set_convolution(block.conv1, weight)
    signal = F.conv1d(signal, weight, **size)

    # The last block: a first guess of the latents from all loudnesses, and still narrower bands for pitches.
    block, stride, out = encoder.block[-1], strides[-1], channels[-1]
    write_units(block, narrower)
    signal[:, narrower:2 * narrower] += loudness(signal[:, :narrower])
    size = {"stride": stride, "padding": (stride + 1) // 2}
    weight, bias = torch.zeros(out, signal.shape[1], 2 * stride), torch.zeros(out)
    fit, fit_bias = least_squares(signal[:, narrower:], 2 * stride, **size, targets=wanted)
    weight[:latents, narrower:], bias[:latents] = fit, fit_bias
    available = narrower * stride
    lowest = min(round(LOWEST_PITCH * 2 * space.hop / config["sampling_rate"]), available - 1)
    pitches = lapped_matrix(narrower, range(lowest, min(available, lowest + out - latents)), stride) * levels[:, None]
    scale = deviations(F.conv1d(signal[:, :narrower], pitches, **size))
    weight[latents:latents + len(pitches), :narrower] = LINEAR * pitches / scale[:, None, None]
    set_convolution(block.conv1, weight, bias)
    signal = F.conv1d(signal, weight, bias, **size)

    # The last snake and convolution: the latents from their guess and the narrowest bands.
    set_snake(encoder.snake1, 1, STRAIGHT_GAIN)
    encoder.snake1.alpha[:, latents:] = math.log(PITCH_FREQUENCY / LINEAR)
    encoder.snake1.beta[:, latents:] = 0
    fit, fit_bias = least_squares(encoder.snake1.cpu()(signal), 3, 1, 1, wanted)
    weight, bias = torch.zeros(config["encoder_hidden_size"], out, 3), torch.zeros(config["encoder_hidden_size"])
    weight[space.parts.heard], bias[space.parts.heard] = fit, fit_bias
    bias[config["decoder_input_channels"]:] = SPREAD
    set_convolution(encoder.conv2, weight, bias)


def write_exact_blocks(encoder, config, space):
    channels = widths(config["encoder_hidden_size"], config)
    set_convolution(encoder.conv1, middle_and_side(channels[0]))
    before = 1
    for index, stride in enumerate(exact_strides(config)):
        block, is_last = encoder.block[index], index + 1 == EXACT_BLOCKS
        bands = min(exact_bands(config) if is_last else channels[index + 1], before * stride)
        weight = torch.zeros(channels[index + 1], channels[index], 2 * stride)
        weight[:bands, :before] = lapped_matrix(before, range(bands), stride)
        if is_last:
            weight[:bands] /= space.measured["bands"][:, None, None]
        for unit in (block.res_unit1, block.res_unit2, block.res_unit3):
            set_convolution(unit.conv2, torch.zeros(channels[index], channels[index], 1))
        set_snake(block.snake1, 1, NO_GAIN)
        set_convolution(block.conv1, weight)
        before = bands


def write_units(block, bands):
    """Units that add the loudness of the first `bands` channels to as many after them."""
    channels = block.snake1.alpha.shape[1]
    for unit, frequency in zip((block.res_unit1, block.res_unit2, block.res_unit3), FREQUENCIES):
        listen, add = torch.zeros(channels, channels, 7), torch.zeros(channels, channels, 1)
        listen[range(bands), range(bands), 3] = LINEAR
        add[range(bands, 2 * bands), range(bands), 0] = 1
        set_snake(unit.snake1, 1, STRAIGHT_GAIN)
        set_snake(unit.snake2, frequency / LINEAR, 1)
        set_convolution(unit.conv1, listen)
        set_convolution(unit.conv2, add)
    set_snake(block.snake1, 1, STRAIGHT_GAIN)
