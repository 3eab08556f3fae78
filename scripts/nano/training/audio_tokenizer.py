"""Audio tokenizer and detokenizer: latents to codes of 200 ms, and codes to approximate latents (hints)."""
import torch
import torch.nn.functional as F
from torch import nn

from facts import FRAMES_PER_SECOND
from transformer import Encoder

DEVIATION, SPREAD_WEIGHT = 0.7, 0.1
HELD_OUT_PIECES = 64


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
        """-> quantized values [B, N, fsq_dim], their codes, and the values before rounding."""
        z = self.project_in(x)
        soft = 1 + 1 / self.top
        bounded = (soft * (z / soft).tanh()).clamp(-1, 1)
        level = (self.top * (bounded + 1) / 2 + 0.5).floor()
        values = bounded + (2 * level / self.top - 1 - bounded).detach()  # gradients pass straight through
        return self.project_out(values), (level.long() * self.basis).sum(-1), z


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

    def hints(self, latents, silence):
        return self.detokenizer(self.tokenizer(latents, silence)[0])


class TokenizerStage(AudioTokenizer):
    def __init__(self, data, options):
        config = data.config()
        super().__init__(config)
        self.data, self.batch = data, options.batch
        window = config["pool_window_size"]
        self.crop = max(1, round(options.crop_seconds * FRAMES_PER_SECOND / window)) * window

    @property
    def silence(self):
        return self.data.silence.to(self.detokenizer.special_tokens.device)

    def loss(self, draw):
        def crop(piece):
            latents = self.data.latents_of(piece)
            first = draw.randrange(max(0, len(latents) - self.crop) + 1)
            cut = latents[first:first + self.crop]
            return torch.cat([cut, self.data.silence[:self.crop - len(cut)]])

        silence = self.silence
        latents = torch.stack([crop(draw.choice(self.data.train)) for _ in range(self.batch)]).to(silence)
        quantized, _, before_rounding = self.tokenizer(latents, silence)
        error = F.mse_loss(self.detokenizer(quantized).float(), latents)
        spread = spread_error(before_rounding)
        return error + SPREAD_WEIGHT * spread, {"error": error, "spread": spread}

    def measure(self):
        """loss: mean squared error of held-out hints; variance: of the latents; codes: distinct ones."""
        silence, codes, errors, values = self.silence, [], [], []
        for piece in self.data.held_out[:HELD_OUT_PIECES]:
            latents = self.data.latents_of(piece)[None].to(silence)
            quantized, indices, _ = self.tokenizer(latents, silence)
            errors.append((self.detokenizer(quantized)[:, :latents.shape[1]] - latents).flatten())
            values.append(latents.flatten())
            codes.append(indices.flatten())
        return {"loss": torch.cat(errors).square().mean(), "variance": torch.cat(values).var(),
                "codes": len(torch.cat(codes).unique())}


def spread_error(before_rounding):
    """Distance of the quantizer's dimensions from mean 0 and deviation 0.7. Values beyond the range of the levels get no
    gradient, and their codes are lost."""
    by_dimension = before_rounding.flatten(0, -2)
    return by_dimension.mean(0).square().mean() + (by_dimension.std(0) - DEVIATION).square().mean()
