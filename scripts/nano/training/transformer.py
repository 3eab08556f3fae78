"""Transformer layers, with the names that their weights have in a checkpoint."""
import torch
import torch.nn.functional as F
from torch import nn

from attention import attend


def rotary(length, head_dim, theta, device):
    """Cosines and sines [length, head_dim / 2] of every position's rotations."""
    frequencies = theta ** -(torch.arange(0, head_dim, 2, device=device).float() / head_dim)
    angles = torch.outer(torch.arange(length, device=device).float(), frequencies)
    return angles.cos(), angles.sin()


def rotated(x, cos, sin):
    """x [B, L, heads, head_dim], its halves turned against each other by angles of cosines and sines [L, 1, head_dim / 2]."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


class RmsNorm(nn.RMSNorm):
    """In the type of x: with weights of another type torch takes several times as long."""

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.eps)


class Attention(nn.Module):
    """Grouped-query attention with normalised queries and keys, over x itself or over `context`."""

    def __init__(self, config):
        super().__init__()
        width, self.head_dim = config["hidden_size"], config["head_dim"]
        heads, pairs = config["num_attention_heads"], config["num_key_value_heads"]
        self.q_proj = nn.Linear(width, heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(width, pairs * self.head_dim, bias=False)
        self.v_proj = nn.Linear(width, pairs * self.head_dim, bias=False)
        self.o_proj = nn.Linear(heads * self.head_dim, width, bias=False)
        self.q_norm = RmsNorm(self.head_dim, config["rms_norm_eps"])
        self.k_norm = RmsNorm(self.head_dim, config["rms_norm_eps"])

    def forward(self, x, table=None, keys=None, context=None, window=0, causal=False):
        def heads(rows):
            return rows.unflatten(-1, (-1, self.head_dim))

        source = x if context is None else context
        q, k = self.q_norm(heads(self.q_proj(x))), self.k_norm(heads(self.k_proj(source)))
        v = heads(self.v_proj(source))
        if table is not None:
            table = [part[:, None].to(v.dtype) for part in table]
            q = rotated(q.to(v.dtype), *(part[:q.shape[1]] for part in table))
            k = rotated(k.to(v.dtype), *table)
        q, k, v = (part.to(v.dtype).transpose(1, 2) for part in (q, k, v))
        y = attend(q, k, v, keys, window, causal)
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
        self.input_layernorm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])
        self.mlp = SwiGlu(config)

    def forward(self, x, table, keys=None, window=0, causal=False, first_only=False):
        y = self.input_layernorm(x)
        if first_only:  # the first position's output
            x, query = x[:, :1], y[:, :1]
            x = x + self.self_attn(query, table, keys, context=y, window=window)
        else:
            x = x + self.self_attn(y, table, keys, window=window, causal=causal)
        return x + self.mlp(self.post_attention_layernorm(x))


class Encoder(nn.Module):
    """Transformer over continuous inputs. Every second layer has windowed attention. `embed_tokens` projects the inputs."""

    def __init__(self, config, layers, inputs):
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Linear(inputs, config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(layers))
        self.norm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])

    def run(self, x, mask=None, first_only=False):
        """x [B, L, width], embedded before; `mask` [B, L] is True for positions that count -> [B, L or 1, width]."""
        length, config = x.shape[1], self.config
        table = rotary(length, config["head_dim"], config["rope_theta"], x.device)
        for index, layer in enumerate(self.layers):
            window = config["sliding_window"] if config["layer_types"][index] == "sliding_attention" else 0
            is_last = index == len(self.layers) - 1
            x = layer(x, table, mask, window, first_only=first_only and is_last)
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
        self.norm = RmsNorm(config["hidden_size"], config["rms_norm_eps"])

    def forward(self, ids):
        """ids [B, L] -> hidden states [B, L, width]."""
        x = self.embed_tokens(ids)
        table = rotary(ids.shape[1], self.config["head_dim"], self.config["rope_theta"], ids.device)
        for layer in self.layers:
            x = layer(x, table, causal=True)
        return self.norm(x)
