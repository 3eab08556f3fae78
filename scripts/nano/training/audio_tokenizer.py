"""Audio tokenizer and detokenizer: latents to codes of 200 ms, and codes to approximate latents (hints). They are not
trained, so that the codes of packed pieces stay of use."""
import torch
from torch import nn

from transformer import Encoder


class Quantizer(nn.Module):
    """Finite scalar quantisation (Mentzer et al., 2023): every dimension is rounded to one of its levels."""

    def __init__(self, config):
        super().__init__()
        levels = config["fsq_input_levels"]
        self.project_in = nn.Linear(config["fsq_dim"], len(levels))
        self.project_out = nn.Linear(len(levels), config["fsq_dim"])
        self.register_buffer("top", torch.tensor(levels) - 1, persistent=False)
        self.register_buffer("basis", torch.tensor([1, *levels[:-1]]).cumprod(0), persistent=False)

    def forward(self, x):
        """-> quantized values [B, N, fsq_dim], and their codes."""
        soft = 1 + 1 / self.top
        bounded = (soft * (self.project_in(x) / soft).tanh()).clamp(-1, 1)
        level = (self.top * (bounded + 1) / 2 + 0.5).floor()
        return self.project_out(2 * level / self.top - 1), (level.long() * self.basis).sum(-1)


class Tokenizer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.frames_per_code = config["pool_window_size"]
        self.audio_acoustic_proj = nn.Linear(config["audio_acoustic_hidden_dim"], width)
        self.attention_pooler = Encoder(config, config["num_attention_pooler_hidden_layers"], width)
        self.attention_pooler.special_token = nn.Parameter(torch.zeros(1, 1, width))
        self.quantizer = Quantizer(config)

    def forward(self, latents, silence):
        """Latents [B, T, C], filled up to whole codes by silence [frames, C] -> as the quantizer."""
        batch, missing, pooler = len(latents), -latents.shape[1] % self.frames_per_code, self.attention_pooler
        filled = torch.cat([latents, silence[:missing].expand(batch, -1, -1)], 1)
        with torch.autocast(latents.device.type, enabled=False):  # codes jump where values are rounded
            x = pooler.embed_tokens(self.audio_acoustic_proj(filled)).reshape(-1, self.frames_per_code, pooler.norm.weight.shape[0])
            x = torch.cat([pooler.special_token.expand(len(x), 1, -1), x], 1)
            return self.quantizer(pooler.run(x, first_only=True)[:, 0].unflatten(0, (batch, -1)))


class Detokenizer(Encoder):
    def __init__(self, config):
        super().__init__(config, config["num_attention_pooler_hidden_layers"], config["fsq_dim"])
        width = config["hidden_size"]
        self.special_tokens = nn.Parameter(torch.zeros(1, config["pool_window_size"], width))
        self.proj_out = nn.Linear(width, config["audio_acoustic_hidden_dim"])

    def forward(self, quantized):
        """[B, N, fsq_dim] -> hints [B, N frames_per_code, C]."""
        groups = self.embed_tokens(quantized).flatten(0, 1)[:, None] + self.special_tokens
        return self.proj_out(self.run(groups)).unflatten(0, (len(quantized), -1)).flatten(1, 2)


class AudioTokenizer(nn.Module):
    """Both halves, as they stand in the DiT's checkpoint."""

    def __init__(self, config):
        super().__init__()
        self.tokenizer, self.detokenizer = Tokenizer(config), Detokenizer(config)

    @torch.no_grad()
    def hints(self, latents, silence):
        return self.detokenizer(self.tokenizer(latents, silence)[0])

    @torch.no_grad()
    def codes(self, latents, silence):
        """Latents [T, C] -> code sequences [frames_per_code, N] of int16, one for each offset of the first frame."""
        shifted = (latents[None, shift:] for shift in range(self.tokenizer.frames_per_code))
        return torch.cat([self.tokenizer(cut, silence)[1] for cut in shifted]).short()
