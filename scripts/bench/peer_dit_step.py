"""One evaluation of diffusers' ACE-Step transformer at the 2B size with random weights, 400 condition tokens."""

import peer_timing
import torch
from diffusers.models.transformers.ace_step_transformer import AceStepTransformer1DModel

options = peer_timing.arguments(750)
torch.set_default_dtype(peer_timing.dtype_of(options))
with torch.device("meta"):
    model = AceStepTransformer1DModel()
model = model.to_empty(device=options.device).eval()
for tensor in model.state_dict().values():
    tensor.normal_(0, 0.02)


def randn(*shape):
    return torch.randn(*shape, device=options.device)


state, context, conditions = randn(1, options.size, 64), randn(1, options.size, 128), randn(1, 400, 2048)
t = torch.full((1,), 0.5, device=options.device)


@torch.inference_mode()
def step():
    model(state, t, t, conditions, context, return_dict=False)[0].float().sum().item()


peer_timing.serve(lambda: peer_timing.seconds_of(step))
