"""Seconds per token of transformers' Qwen3ForCausalLM.generate at the 0.6B size with random weights.

--rows 2 decodes a conditional and an unconditional row in one batch, as guidance does.
"""

import time

import peer_timing
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

options = peer_timing.arguments(48)
config = Qwen3Config(
    vocab_size=217204,
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=8,
    head_dim=128,
    rope_theta=1000000.0,
    tie_word_embeddings=True,
    max_position_embeddings=40960,
    eos_token_id=None,
    pad_token_id=0,
)
torch.set_default_dtype(peer_timing.dtype_of(options))
model = Qwen3ForCausalLM(config).to(options.device).eval()
prompt = torch.randint(0, 151643, (options.rows, 400), device=options.device)


class TokenTimes:
    """Logits processor that only records the time. It is called once per step, however many rows the batch has."""

    def __init__(self):
        self.times = []

    def __call__(self, ids, scores):
        self.times.append(time.perf_counter())
        return scores


@torch.inference_mode()
def seconds_per_token():
    clock = TokenTimes()
    model.generate(
        prompt, max_new_tokens=options.size, do_sample=True, temperature=0.85, top_k=0, logits_processor=[clock]
    )
    return (clock.times[-1] - clock.times[0]) / (len(clock.times) - 1)


peer_timing.serve(seconds_per_token)
