"""Decoding with diffusers' Oobleck autoencoder at the published size with random weights."""

import peer_timing
import torch
from diffusers import AutoencoderOobleck

options = peer_timing.arguments(128)
model = AutoencoderOobleck(
    encoder_hidden_size=128,
    downsampling_ratios=[2, 4, 4, 6, 10],
    channel_multiples=[1, 2, 4, 8, 16],
    decoder_channels=128,
    decoder_input_channels=64,
    audio_channels=2,
    sampling_rate=48000,
)
dtype = peer_timing.dtype_of(options)
model = model.to(options.device, dtype).eval()
latents = torch.randn(1, 64, options.size, device=options.device, dtype=dtype)


@torch.inference_mode()
def decode():
    model.decode(latents).sample.float().cpu()


peer_timing.serve(lambda: peer_timing.seconds_of(decode))
