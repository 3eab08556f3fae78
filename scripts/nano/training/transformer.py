"""Layers that all transformers of the model share, with the names that their weights have in a checkpoint."""
import torch
import torch.nn.functional as F
from torch import nn


def rotary(length, head_dim, theta, device):
    """Cosines and sines [length, head_dim / 2] of every position's rotations."""
    frequencies = theta ** -(torch.arange(0, head_dim, 2, device=device).float() / head_dim)
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    return angles.cos(), angles.sin()


def rotate(x, table):
    """x [B, heads, L, head_dim], its halves turned against each other."""
    cos, sin = (part.to(x.dtype) for part in table)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def visible_keys(mask=None, length=None, window=0, dtype=torch.float32, device=None):
    """What is added to the scores: nothing where a key [B, L] counts and is at most `window` away, else the lowest."""
    visible = None
    if window and window < length - 1:
        place = torch.arange(length, device=device)
        visible = ((place[None] - place[:, None]).abs() <= window)[None, None]
    if mask is not None and not mask.all():
        keys = mask[:, None, None, :]
        visible = keys if visible is None else visible & keys
    if visible is None:
        return None
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(
        ~visible, torch.finfo(dtype).min)


class Attention(nn.Module):
    """Grouped-query attention with normalised queries and keys, over x itself or over `context`."""

    def __init__(self, config):
        super().__init__()
        width, self.head_dim = config["hidden_size"], config["head_dim"]
        heads, pairs = config["num_attention_heads"], config["num_key_value_heads"]
        self.is_grouped = heads != pairs
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, pairs * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, pairs * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        self.q_norm = nn.RMSNorm(self.head_dim, config["rms_norm_eps"])
        self.k_norm = nn.RMSNorm(self.head_dim, config["rms_norm_eps"])

    def forward(self, x, table=None, mask=None, context=None, causal=False):
        def heads(rows):
            return rows.unflatten(-1, (-1, self.head_dim))

        source = x if context is None else context
        q, k = self.q_norm(heads(self.q_proj(x))), self.k_norm(heads(self.k_proj(source)))
        q, k, v = (part.transpose(1, 2) for part in (q, k, heads(self.v_proj(source))))
        if table is not None:
            q, k = rotate(q, table), rotate(k, table)
        q, k = q.to(v.dtype), k.to(v.dtype)
        mask = mask if mask is None else mask.to(v.dtype)
        if q.is_cuda and self.is_grouped:  # its kernels that take masks know no groups
            k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], 1) for part in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1])
        return self.o_proj(y.transpose(1, 2).flatten(2))


class SwiGlu(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self.self_attn = Attention(config)
        self.post_attention_layernorm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])
        self.mlp = SwiGlu(config)

    def forward(self, x, table, mask=None, causal=False):
        x = x + self.self_attn(self.input_layernorm(x), table, mask, causal=causal)
        return x + self.mlp(self.post_attention_layernorm(x))


class Encoder(nn.Module):
    """Layers over continuous inputs, every second with a window; `embed_tokens` brings them to the width."""

    def __init__(self, config, layers, inputs):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Linear(inputs, config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(layers))
        self.norm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])

    def run(self, x, mask=None):
        """x [B, L, width], embedded before; `mask` [B, L] is True where a position counts."""
        length, config = x.shape[1], self.config
        table = rotary(length, config["head_dim"], config["rope_theta"], x.device)
        for index, layer in enumerate(self.layers):
            window = config["sliding_window"] if config["layer_types"][index] == "sliding_attention" else 0
            x = layer(x, table, visible_keys(mask, length, window, x.dtype, x.device))
        return self.norm(x)

    def forward(self, x, mask=None):
        return self.run(self.embed_tokens(x), mask)


class Qwen3(nn.Module):
    """Causal layers over tokens: the text encoder, and with tied embeddings the language model."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = nn.RMSNorm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, ids):
        """ids [B, L] -> hidden states [B, L, width]."""
        x = self.embed_tokens(ids)
        table = rotary(ids.shape[1], self.config["head_dim"], self.config["rope_theta"], ids.device)
        for layer in self.layers:
            x = layer(x, table, causal=True)
        return self.norm(x)
