"""The decoder learns to play latents. There is no encoder to train: latents are defined (latent_space.py)."""
import torch
from torch import nn

from data import MIX, Draw
from discriminator import Discriminator
from latent_space import Parts, hop_of
from oobleck import Decoder
from spectra import ReconstructionError

HELD_OUT_CROPS = 24
MOST_BLUR = 0.3    # deviation of the noise on latents, up to the size of a DiT's errors
STEM_SHARE = 0.35  # of crops of pieces that have stems


class DecoderStage(nn.Module):
    """Learns to play exact latents with noise of the size of a DiT's errors, together with a discriminator."""

    def __init__(self, data, options):
        super().__init__()
        self.config, self.batch, self.data = data.config("vae"), options.batch, data
        self.hop, self.pieces = hop_of(self.config), data.heard(data.train)
        self.frames = max(2, round(options.crop_seconds * self.config["sampling_rate"] / self.hop))
        self.parts = Parts.of(self.config["decoder_input_channels"])
        self.error = ReconstructionError(self.config["sampling_rate"], options.device)
        self.decoder, self.discriminator = Decoder(self.config), Discriminator()

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
        blurred[:, self.parts.beat_slice] = 0  # the decoder does not read the clock channels
        made, real = self.decoder(blurred.to(device)), real.to(device)
        error, parts = self.error(made, real)
        judged, judgements = self.discriminator(made, real)
        return error + judged, {**parts, **judgements}

    def measure(self):
        """logMel: mean distance of held-out reconstructions; whiteNoise: of equally loud noise; ratio: their quotient."""
        pieces = self.data.heard(self.data.held_out)[:HELD_OUT_CROPS]
        device, draw = self.decoder.conv1.weight.device, Draw(0, 0)
        distance = floor = 0.0
        for piece in pieces:
            latents, audio = self.crop(piece, MIX, (self.data.frames(piece) - self.frames) // 2)
            made, audio = self.decoder(latents[None].to(device)), audio[None].to(device)
            noise = draw.normal(audio.shape).to(device) * audio.square().mean().sqrt()
            distance += float(self.error.log_mel(made, audio)) / len(pieces)
            floor += float(self.error.log_mel(noise, audio)) / len(pieces)
        return {"loss": distance, "logMel": distance, "whiteNoise": floor, "ratio": distance / floor}
