"""Training state of a stage: weights, their moving average, optimisers and held-out losses."""
import contextlib
import math
import threading

import torch

from data import save

BETAS, WEIGHT_DECAY, LARGEST_NORM = (0.9, 0.99), 0.01, 1.0
MOMENTUM, ITERATIONS, COEFFICIENTS = 0.95, 3, (3.4445, -4.7750, 2.0315)
ROOT_MEAN_SQUARE = 0.2  # of a step, as AdamW's steps have it (Liu et al., 2025), so that both share a learning rate


class Muon(torch.optim.Optimizer):
    """Muon (Jordan et al., 2024): steps are the momentum with all singular values near 1, by Newton-Schulz iterations.
    torch.optim.Muon takes them a matrix at a time and in bfloat16 even where the machine has none, ten times as slowly
    on an AVX2 CPU; here matrices of one shape go together, in `dtype`."""

    def __init__(self, weights, dtype):
        super().__init__(weights, {"lr": 0.0})
        self.dtype = dtype

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            shapes = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
                    momentum.lerp_(weight.grad, 1 - MOMENTUM)
                    ahead = weight.grad.lerp(momentum, MOMENTUM)  # as Nesterov looks ahead
                    shapes.setdefault(weight.shape, []).append((weight, ahead))
            for pairs in shapes.values():
                weights, momenta = zip(*pairs)
                torch._foreach_mul_(weights, 1 - group["lr"] * WEIGHT_DECAY)
                torch._foreach_add_(weights, orthogonalised(torch.stack(momenta), self.dtype).unbind(),
                                    alpha=-group["lr"])


def orthogonalised(matrices, dtype):
    """Matrices [N, rows, columns] with their singular vectors and singular values near 1, at the steps' size."""
    is_tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if is_tall else matrices
    x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).to(dtype)
    first, third, fifth = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=third, alpha=fifth), x, beta=first)
    x = x.mT if is_tall else x
    return x.float() * (ROOT_MEAN_SQUARE * max(matrices.shape[1:]) ** 0.5)


def learns_by_muon(name, weight):
    """Matrices of attention and feed-forward layers; everything else learns by AdamW."""
    return weight.dim() == 2 and ("attn." in name or "mlp." in name)


class TrainState:
    """Saved in one file, so that a resumed run continues bit for bit. Another thread may save it: what is saved changes only
    under the lock."""

    def __init__(self, module, dtype=torch.float32):
        self.module, self.step, self.held_out, self.lock = module, 0, [], threading.RLock()
        self.average = {name: weight.detach().clone() for name, weight in module.named_parameters()}
        learning = [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]
        by_muon = [weight for name, weight in learning if learns_by_muon(name, weight)]
        by_adam = [weight for name, weight in learning if not learns_by_muon(name, weight)]
        self.optimizers = [torch.optim.AdamW(by_adam, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True)]
        if by_muon:
            self.optimizers.append(Muon(by_muon, dtype))

    def update(self, learning_rate, average_decay):
        """Clips gradients to norm 1, steps the weights and their average, clears gradients -> the norm, and whether it was
        finite; otherwise only the step counts. The average's decay grows from 0 to `average_decay`."""
        weights = list(self.module.parameters())
        norm = float(torch.nn.utils.clip_grad_norm_(weights, LARGEST_NORM))
        is_finite = math.isfinite(norm)
        with self.lock:
            self.step += 1
            if is_finite:
                self.step_weights(weights, learning_rate, average_decay)
        for weight in weights:
            weight.grad = None
        return norm, is_finite

    def step_weights(self, weights, learning_rate, average_decay):
        for optimizer in self.optimizers:
            optimizer.param_groups[0]["lr"] = learning_rate
            optimizer.step()
        decay = min(average_decay, self.step / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.values()), weights, 1 - decay)

    @contextlib.contextmanager
    def averaged(self):
        """Uses the averaged weights, without gradients."""
        with self.lock, torch.no_grad():
            trained = {name: weight.clone() for name, weight in self.module.named_parameters()}
            self.module.load_state_dict(self.average)
            yield
            self.module.load_state_dict(trained)

    def save(self, path):
        with self.lock:
            save({"step": self.step, "heldOut": self.held_out, "weights": self.module.state_dict(),
                  "average": self.average, "optimizers": [optimizer.state_dict() for optimizer in self.optimizers]}, path)

    def load(self, path):
        state = torch.load(path, map_location=next(self.module.parameters()).device)
        self.step, self.held_out, self.average = state["step"], state["heldOut"], state["average"]
        self.module.load_state_dict(state["weights"])
        for optimizer, own in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(own)


def read_average(path):
    """The averaged weights of a saved state, by name."""
    if not path.exists():
        raise ValueError(f"{path} is missing: run stage '{path.stem}' first")
    return torch.load(path, mmap=True, map_location="cpu")["average"]
