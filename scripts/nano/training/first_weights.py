"""The values that weights begin with: random ones by name and shape, and those of a decoder and of a DiT."""
import math
import zlib

import torch

from lapped_transform import lapped_matrix, middle_and_side
from latent_space import Parts
from oobleck import widths

TOKEN, RESIDUAL, QUIET = 0.02, 0.3, 0.1  # deviations: absolute, and as shares of what keeps a layer's scale

UNUSED = 0.02         # the decoder's share of what its transform does not use
SNAKE_GAIN = 0.05     # close to a straight line
MIDDLE_SHARE = 0.875  # of the decoder's channels; the rest are of the side

GATE = 0.3                        # of the DiT's layers
ATTENTION_SHIFT, ATTENTION_GATE, MLP_GATE = 0, 2, 5  # rows of a layer's scale_shift_table
FREQUENCIES = 6                   # the fastest, which tell neighbours apart
CONSTANT, CONTENT, SHARPNESS = 5, 0.3, 2


def deviation(name, shape):
    tokens = ("scale_shift_table", "special_token", "null_condition", "proj_out.1.")
    if any(part in name for part in tokens):
        return TOKEN
    if "conv_t1" in name:  # an output sample is the sum over the inputs of two taps
        return 1 / math.sqrt(2 * shape[0])
    by_inputs = 1 / math.sqrt(math.prod(shape[1:]))
    if "time_proj." in name:
        return TOKEN * by_inputs
    if name == "decoder.conv2.weight":  # the waveform: silence is nearer to music than noise
        return QUIET * by_inputs
    # Only a lookup table is called so without being a projection: a vocabulary is longer than wide.
    if name.endswith("embed_tokens.weight") and shape[0] > 2 * shape[1]:
        return TOKEN
    is_residual = any(part in name for part in ("o_proj", "down_proj", "res_unit")) and not name.endswith("conv1.weight")
    return RESIDUAL * by_inputs if is_residual else by_inputs


@torch.no_grad()
def initialise(module, seed):
    """A weight's name and the seed decide its values, whatever else the module holds."""
    for name, weight in module.named_parameters():
        if name.endswith((".bias", ".alpha", ".beta")):
            weight.zero_()
        elif "norm" in name and weight.dim() == 1:
            weight.fill_(1)
        else:
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) ^ seed)
            weight.copy_(torch.randn(weight.shape, generator=generator) * deviation(name, weight.shape))


@torch.no_grad()
def begin_decoder(decoder, config):
    """Makes the transposed convolutions the inverse of a lapped transform of middle and side, so that channels are bands from
    the first step; the residual units learn what sounds in them. Those at the sampling rate, which cost most, are given
    zeros: they are skipped and never learn. So are the columns of the clock."""
    def set_convolution(layer, weight):
        """What the transform leaves at zero gets small random values, so that training can use it."""
        scale = UNUSED / math.sqrt(weight[0].numel())
        layer.weight.copy_(weight + scale * layer.weight.cpu() / layer.weight.cpu().std())

    ratios, channels = config["downsampling_ratios"], widths(config["decoder_channels"], config)
    # After every stage, how many of the lowest bands of middle and of side fit into the channels.
    bands = [(1, 1)]
    for ratio, width in zip(ratios, channels[1:]):
        middle = int(MIDDLE_SHARE * width)
        bands.append(tuple(min(ratio * before, room) for before, room in zip(bands[-1], (middle, width - middle))))

    parts = Parts.of(config["decoder_input_channels"])
    decoder.conv1.weight[:, parts.beat_slice] = 0
    for level, block in zip(reversed(range(len(ratios))), decoder.block):
        (middle, side), (middles, sides) = bands[level], bands[level + 1]
        weight = torch.zeros(channels[level + 1], channels[level], 2 * ratios[level])
        weight[:middles, :middle] = lapped_matrix(middle, range(middles), ratios[level])
        weight[middles:middles + sides, middle:middle + side] = lapped_matrix(side, range(sides), ratios[level])
        set_convolution(block.conv_t1, weight)
        for unit in (block.res_unit1, block.res_unit2, block.res_unit3):
            unit.conv2.weight.mul_(UNUSED if level > 0 else 0)
        block.snake1.beta.fill_(-math.log(SNAKE_GAIN))
    decoder.snake1.beta.fill_(-math.log(SNAKE_GAIN))
    set_convolution(decoder.conv2, middle_and_side(channels[0]).transpose(0, 1))


@torch.no_grad()
def begin_dit(dit):
    """Lets heads of layers with a window look at the patch before or after, one or two away: every query and key gets
    a constant, turned by that distance, in the last channel. What sounds goes on from there."""
    config, distance = dit.config, 1
    angles = config["rope_theta"] ** (-2 * torch.arange(config["head_dim"] // 2) / config["head_dim"])

    def add_constant(weight, turned):
        for head in range(len(weight) // config["head_dim"]):
            rows = weight[head * config["head_dim"]:(head + 1) * config["head_dim"], -1]
            angle = (turned if head % 2 else -turned) * angles[:FREQUENCIES]
            rows[:len(angle)] += angle.cos().to(rows)
            rows[len(angles):len(angles) + len(angle)] += angle.sin().to(rows)

    for layer, kind in zip(dit.layers, config["layer_types"]):
        layer.scale_shift_table[:, [ATTENTION_GATE, MLP_GATE]] += GATE
        if kind != "sliding_attention":
            continue
        layer.scale_shift_table[0, ATTENTION_SHIFT, -1] += CONSTANT
        attention = layer.self_attn
        for projection, turned in ((attention.q_proj, distance), (attention.k_proj, 0)):
            projection.weight.mul_(CONTENT)
            add_constant(projection.weight, turned)
        for norm in (attention.q_norm, attention.k_norm):
            norm.weight.fill_(SHARPNESS)
        distance = distance % 2 + 1  # 1, 2, 1, ...
