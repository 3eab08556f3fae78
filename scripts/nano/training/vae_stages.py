"""Encoder and decoder. Each learns from the exact latents, not from the other: they may be trained in any order."""
import torch
import torch.nn.functional as F
from torch import nn

from data import MIX, Draw
from discriminator import Discriminator
from encoder_start import EDGE_FRAMES, begin_encoder
from first_weights import begin_decoder
from lapped_transform import lapped_filters, lapped_transform
from latent_space import EXACT_BLOCKS, LatentSpace, Parts, exact_bands, exact_strides, hop_of
from oobleck import Decoder, Encoder
from spectra import ReconstructionError

HELD_OUT_CROPS = {"encoder": 32, "decoder": 24}
FIRST_CROPS, FEWEST_FRAMES = 400, 8
MOST_BLUR = 0.3    # deviation of the noise on latents, up to what a DiT's errors are
STEM_SHARE = 0.35  # of crops of pieces that have stems


class EncoderStage(nn.Module):
    """Its first blocks are a lapped transform and stay one; a step begins with what they give, computed at once."""

    def __init__(self, data, options):
        super().__init__()
        self.config, self.batch, self.data = data.config("vae"), options.batch, data
        self.space = LatentSpace(self.config, data.measured)
        frames = round(options.crop_seconds * self.config["sampling_rate"] / self.space.hop)
        self.samples = max(FEWEST_FRAMES, frames) * self.space.hop
        self.filters = lapped_filters(exact_strides(self.config), exact_bands(self.config))
        self.train_tracks = [(piece, track) for piece in data.heard(data.pieces.train) for track in (MIX, *piece.stems)]
        self.held_out = torch.stack([data.middle(piece, self.samples) for piece in
                                     data.heard(data.pieces.held_out)[:HELD_OUT_CROPS["encoder"]]])
        self.encoder = Encoder(self.config)
        for exact in (self.encoder.conv1, *self.encoder.block[:EXACT_BLOCKS]):
            exact.requires_grad_(False)

    def begin(self):
        begin_encoder(self.encoder, self.config, self.space, self.crops(FIRST_CROPS, Draw(0, 0)))

    def crops(self, count, draw):
        def crop(piece, track):
            first = draw.randrange(max(1, self.data.samples(piece, track) - self.samples))
            audio = self.data.audio(piece, first, self.samples, track)
            return audio * (0.5 + 0.7 * draw.random())  # loudness varies from piece to piece

        return torch.stack([crop(*draw.choice(self.train_tracks)) for _ in range(count)])

    def compare(self, audio):
        """What the encoder says and what it should, without frames at the edges that hear beyond the crop."""
        weight = self.encoder.conv2.weight
        bands = lapped_transform(audio, self.filters, exact_strides(self.config))
        bands = bands / self.space.measured["bands"][:, None]
        room = self.encoder.block[EXACT_BLOCKS].snake1.alpha.shape[1] - bands.shape[1]
        said = self.encoder.after_blocks(EXACT_BLOCKS, F.pad(bands, (0, 0, 0, room)).to(weight))
        latents, inner = self.config["decoder_input_channels"], slice(EDGE_FRAMES, -EDGE_FRAMES)
        return said[:, :latents, inner].float(), self.space(audio)[..., inner].to(weight)

    def loss(self, draw):
        error = F.mse_loss(*self.compare(self.crops(self.batch, draw)))
        return error, {"error": error}

    def measure(self):
        """On held-out pieces: errors of lows, timbre and pitches as shares of their variance."""
        said, wanted = self.compare(self.held_out)
        error, figures = (said - wanted).square(), {}
        variance = (wanted - wanted.mean((0, 2), keepdim=True)).square()
        for name, channels in zip(Parts._fields, self.space.parts.slices):
            if name != "beats" and channels.stop > channels.start:
                figures[name] = error[:, channels].mean() / variance[:, channels].mean().clamp_min(1e-6)
        return figures


class DecoderStage(nn.Module):
    """Learns to play the exact latents, blurred up to what a DiT makes of them; the discriminator learns beside it."""

    def __init__(self, data, options):
        super().__init__()
        self.config, self.batch, self.data = data.vae_config(), options.batch, data
        self.hop, self.pieces = hop_of(self.config), data.heard(data.pieces.train)
        self.frames = max(2, round(options.crop_seconds * self.config["sampling_rate"] / self.hop))
        self.parts = Parts.of(self.config["decoder_input_channels"])
        self.error = ReconstructionError(self.config["sampling_rate"], options.device)
        self.decoder, self.discriminator = Decoder(self.config), Discriminator()

    def begin(self):
        begin_decoder(self.decoder, self.config)

    def crop(self, piece, track, first):
        """Latents [C, frames] and audio [2, samples]."""
        latents = self.data.latents_of(piece, track)
        first = min(max(0, first), len(latents) - self.frames)
        audio = self.data.audio(piece, first * self.hop, self.frames * self.hop, track)
        return latents[first:first + self.frames].T, audio

    def loss(self, draw):
        def any_crop(piece):
            is_stem = piece.stems and draw.random() < STEM_SHARE
            track = draw.choice(piece.stems) if is_stem else MIX
            return self.crop(piece, track, draw.randrange(self.data.frames(piece)))

        device = self.decoder.conv1.weight.device
        crops = [any_crop(draw.choice(self.pieces)) for _ in range(self.batch)]
        sharp, real = (torch.stack(parts) for parts in zip(*crops))
        blur = torch.tensor([MOST_BLUR * draw.random() for _ in range(self.batch)])[:, None, None]
        blurred = sharp + blur * draw.normal(sharp.shape)
        blurred[:, self.parts.beat_slice] = 0  # so that nothing ever reads the clock
        made, real = self.decoder(blurred.to(device)), real.to(device)
        error, parts = self.error(made, real)
        judged, judgements = self.discriminator(made, real)
        return error + judged, {**parts, **judgements}

    def measure(self):
        """logMel, whiteNoise and ratio of held-out pieces (spectra.py)."""
        middles = [self.crop(piece, MIX, (self.data.frames(piece) - self.frames) // 2)
                   for piece in self.data.heard(self.data.pieces.held_out)[:HELD_OUT_CROPS["decoder"]]]
        device = self.decoder.conv1.weight.device
        return self.error.measure([audio for _, audio in middles],
                                  lambda index: self.decoder(middles[index][0][None].to(device)), Draw(0, 0))
