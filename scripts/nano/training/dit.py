"""The diffusion transformer with its condition encoder: the model that `model.safetensors` holds."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from transformer import Attention, Encoder, RmsNorm, SwiGlu, rotary

TIME_FREQUENCIES = 256  # of every published model; its config does not say
TURBO_STEPS, TURBO_SHIFT = 8, 3.0


def turbo_schedule():
    """The flow times that turbo models run, from 1 down; after the last comes 0."""
    return [shifted(1 - step / TURBO_STEPS) for step in range(TURBO_STEPS)]


def shifted(time):
    return TURBO_SHIFT * time / (1 + (TURBO_SHIFT - 1) * time)


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear_1 = nn.Linear(TIME_FREQUENCIES, width)
        self.linear_2 = nn.Linear(width, width)
        self.time_proj = nn.Linear(width, 6 * width)

    def forward(self, times):
        """times [N] -> embedding [N, width], and shift, scale and gate twice over [N, 6, width]."""
        half = TIME_FREQUENCIES // 2
        frequencies = torch.exp(torch.arange(half, device=times.device) * (-math.log(10000.0) / half))
        angles = 1000 * times[:, None] * frequencies
        embedding = self.linear_2(F.silu(self.linear_1(torch.cat([angles.cos(), angles.sin()], 1))))
        return embedding, self.time_proj(F.silu(embedding)).unflatten(1, (6, -1))


class DitLayer(nn.Module):
    """Modulated self-attention, cross-attention to the conditions, modulated MLP."""

    def __init__(self, config):
        super().__init__()
        width, eps = config["hidden_size"], config["rms_norm_eps"]
        self.self_attn_norm = RmsNorm(width, eps)
        self.self_attn = Attention(config)
        self.cross_attn_norm = RmsNorm(width, eps)
        self.cross_attn = Attention(config)
        self.mlp_norm = RmsNorm(width, eps)
        self.mlp = SwiGlu(config)
        self.scale_shift_table = nn.Parameter(torch.zeros(1, 6, width))

    def forward(self, x, modulation, table, window, conditions, condition_mask):
        rows = (self.scale_shift_table + modulation).to(x.dtype).chunk(6, 1)
        shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = rows
        y = torch.addcmul(shift, self.self_attn_norm(x), 1 + scale)
        x = torch.addcmul(x, self.self_attn(y, table, window=window), gate)
        x = x + self.cross_attn(self.cross_attn_norm(x), keys=condition_mask, context=conditions)
        y = torch.addcmul(mlp_shift, self.mlp_norm(x), 1 + mlp_scale)
        return torch.addcmul(x, self.mlp(y), mlp_gate)


class Dit(nn.Module):
    """The velocity (noise - data) of a latent state under conditions."""

    def __init__(self, config):
        super().__init__()
        width, latents, patch = config["hidden_size"], config["audio_acoustic_hidden_dim"], config["patch_size"]
        self.config, self.patch = config, patch
        self.proj_in = nn.ModuleDict({"1": nn.Conv1d(config["in_channels"], width, patch, stride=patch)})
        self.time_embed, self.time_embed_r = TimeEmbedding(width), TimeEmbedding(width)
        self.condition_embedder = nn.Linear(width, width)
        self.layers = nn.ModuleList(DitLayer(config) for _ in range(config["num_hidden_layers"]))
        self.scale_shift_table = nn.Parameter(torch.zeros(1, 2, width))
        self.norm_out = RmsNorm(width, config["rms_norm_eps"])
        self.proj_out = nn.ModuleDict({"1": nn.ConvTranspose1d(width, latents, patch, stride=patch)})

    def forward(self, state, context, times, conditions, condition_mask=None):
        """state [B, T, C], context [B, T, 2 C] (source, chunk mask), times [B], conditions [B, L, width]."""
        frames, config = state.shape[1], self.config
        padded = F.pad(torch.cat([context, state], 2), (0, 0, 0, -frames % self.patch))
        # Both convolutions equal linear layers over the frames of a patch, and linear layers run faster.
        first, last = self.proj_in["1"], self.proj_out["1"]
        x = F.linear(padded.unflatten(1, (-1, self.patch)).flatten(2), first.weight.mT.flatten(1), first.bias)
        table = rotary(x.shape[1], config["head_dim"], config["rope_theta"], x.device)
        embedding, modulation = self.time_embed(times)
        # The second embedding gets t - r. The difference is 0, because inference always has r = t.
        embedding_r, modulation_r = self.time_embed_r(times[:1] * 0)
        modulation = modulation + modulation_r
        conditions = self.condition_embedder(conditions)
        # Drops a mask that hides nothing, because attention is faster without one.
        keys = None if condition_mask is None or condition_mask.all() else condition_mask
        for layer, kind in zip(self.layers, config["layer_types"]):
            window = config["sliding_window"] if kind == "sliding_attention" else 0
            x = layer(x, modulation, table, window, conditions, keys)
        shift, scale = (self.scale_shift_table + (embedding + embedding_r)[:, None]).to(x.dtype).chunk(2, 1)
        y = torch.addcmul(shift, self.norm_out(x), 1 + scale)
        y = F.linear(y, last.weight.permute(2, 1, 0).flatten(0, 1), last.bias.repeat(self.patch))
        return y.unflatten(2, (self.patch, -1)).flatten(1, 2)[:, :frames]


class TimbreEncoder(Encoder):
    """State of a clip's first frame. Only that frame is computed in the last layer. The token is unused here; other families
    read it."""

    def __init__(self, config):
        super().__init__(config, config["num_timbre_encoder_hidden_layers"], config["timbre_hidden_dim"])
        self.special_token = nn.Parameter(torch.zeros(1, 1, config["hidden_size"]), requires_grad=False)

    def forward(self, latents):
        return self.run(self.embed_tokens(latents), first_only=True)


class ConditionEncoder(nn.Module):
    """Lyrics, a reference's timbre and the text, one after another."""

    def __init__(self, config):
        super().__init__()
        text = config["text_hidden_dim"]
        self.text_projector = nn.Linear(text, config["hidden_size"], bias=False)
        self.lyric_encoder = Encoder(config, config["num_lyric_encoder_hidden_layers"], text)
        self.timbre_encoder = TimbreEncoder(config)

    def forward(self, text, text_mask, lyrics, lyric_mask, timbre):
        """Hidden states of the text, embeddings of the lyrics, latents [B, T, C] -> states [B, L, width], mask [B, L]."""
        states = [self.lyric_encoder(lyrics, lyric_mask), self.timbre_encoder(timbre), self.text_projector(text)]
        return torch.cat(states, 1), torch.cat([lyric_mask, torch.ones_like(text_mask[:, :1]), text_mask], 1)


class AceStep(nn.Module):
    """DiT and condition encoder, without the audio tokenizer."""

    def __init__(self, config):
        super().__init__()
        self.decoder = Dit(config)
        self.encoder = ConditionEncoder(config)
        self.null_condition_emb = nn.Parameter(torch.zeros(1, 1, config["hidden_size"]))
