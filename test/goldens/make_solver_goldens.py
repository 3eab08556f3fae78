"""Makes the goldens of solvers, wavelet correction and noise from the published formulas, in float64.

    python3 test/goldens/make_solver_goldens.py        # needs numpy

The solvers integrate dx/dt = tanh(x A) + t b from t = 1 to 0. A golden holds the state at t = 1, A, b, the noise and the solver's end point."""
import json
import struct
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).resolve().parent
TIMES = [1.0, 0.95, 0.87, 0.75, 0.6, 0.42, 0.2]
FRAMES, CHANNELS = 5, 4
WORD = 0xFFFFFFFF


def save(case, module, tensors, params):
    header, data = {"__metadata__": {"module": module, "checkpoint": "carillon-nano", "params": json.dumps(params)}}, b""
    for name, values in tensors.items():
        content = np.ascontiguousarray(values, dtype="<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (GOLDENS / f"{case}.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def drawn(random, *shape):
    """Normal values rounded to float32."""
    return random.standard_normal(shape).astype(np.float32).astype(np.float64)


def euler(x, steps, velocity, _):
    for t, following in steps:
        x = x + (following - t) * velocity(x, t)
    return x


def sde(x, steps, velocity, noise):
    for k, (t, following) in enumerate(steps):
        data = x - t * velocity(x, t)
        x = following * noise[k] + (1 - following) * data
    return x


def heun(x, steps, velocity, _):
    for t, following in steps:
        first = velocity(x, t)
        ahead = x + (following - t) * first
        x = ahead if following == 0 else x + (following - t) * (first + velocity(ahead, following)) / 2
    return x


def dpm3m(x, steps, velocity, _):
    weights = [[1], [3 / 2, -1 / 2], [23 / 12, -16 / 12, 5 / 12]]  # Adams-Bashforth
    past = []
    for t, following in steps:
        past = [velocity(x, t), *past][:3]
        x = x + (following - t) * sum(w * v for w, v in zip(weights[len(past) - 1], past))
    return x


def stork4(x, steps, velocity, _):
    """Fourth-order Runge-Kutta with virtual stages: a polynomial in time extrapolates the velocities of the last steps.
    Uses the classical method in 50 sub-steps and the polynomial in Lagrange form."""
    past = []
    for t, following in steps:
        past = [(t, velocity(x, t)), *past][:3]

        def predicted(at):
            total = 0
            for i, (own, v) in enumerate(past):
                others = [other for j, (other, _) in enumerate(past) if j != i]
                total = total + v * np.prod([(at - other) / (own - other) for other in others])
            return total

        count = 50
        span = (following - t) / count
        for k in range(count):
            start = t + k * span
            x = x + span / 6 * (predicted(start) + 4 * predicted(start + span / 2) + predicted(start + span))
    return x


def solvers():
    random = np.random.default_rng(1)
    state, field = drawn(random, 1, FRAMES, CHANNELS), drawn(random, CHANNELS, CHANNELS)
    slope, noise = drawn(random, CHANNELS), drawn(random, len(TIMES), 1, FRAMES, CHANNELS)
    steps = list(zip(TIMES, [*TIMES[1:], 0.0]))
    for name, solve in {"ode": euler, "sde": sde, "heun": heun, "dpm3m": dpm3m, "stork4": stork4}.items():
        final = solve(state, steps, lambda x, t: np.tanh(x @ field) + t * slope, noise)
        save(f"solver_{name}", "solver", {"in.state": state, "in.field": field, "in.slope": slope, "in.noise": noise,
                                          "out.final": final}, {"infer_method": name, "times": TIMES})


def haar(x):
    even = np.concatenate([x, np.zeros_like(x[:, :x.shape[1] % 2])], 1)
    first, second = even[:, 0::2], even[:, 1::2]
    return (first + second) / np.sqrt(2), (first - second) / np.sqrt(2)


def inverse_haar(low, high, frames):
    out = np.empty((low.shape[0], 2 * low.shape[1], low.shape[2]))
    out[:, 0::2], out[:, 1::2] = (low + high) / np.sqrt(2), (low - high) / np.sqrt(2)
    return out[:, :frames]


def wavelet_correction():
    random = np.random.default_rng(2)
    state, data = drawn(random, 2, FRAMES, CHANNELS), drawn(random, 2, FRAMES, CHANNELS)
    time, low_scale, high_scale = 0.75, 0.25, 0.125
    for mode in ("low", "high", "double", "pix"):
        (low, high), (low_data, high_data) = haar(state), haar(data)
        if mode in ("low", "double"):
            low = low + time * low_scale * (low - low_data)
        if mode in ("high", "double"):
            high = high + (1 - time) * high_scale * (high - high_data)
        corrected = state + time * low_scale * (state - data) if mode == "pix" else inverse_haar(low, high, FRAMES)
        save(f"wavelet_{mode}", "wavelet_correction", {"in.state": state, "in.data": data, "out.corrected": corrected},
             {"time": time, "dcw_mode": mode, "dcw_scaler": low_scale, "dcw_high_scaler": high_scale})


def philox(seed, subsequence):
    key, x = [seed & WORD, seed >> 32], [0, 0, subsequence & WORD, subsequence >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [second >> 32 ^ x[1] ^ key[0], second & WORD, first >> 32 ^ x[3] ^ key[1], first & WORD]
        key = [key[0] + 0x9E3779B9 & WORD, key[1] + 0xBB67AE85 & WORD]
    return x


def normal(seed, k):
    """Box-Muller transform with u and v in float32, as on a GPU, and the rest in float64."""
    x, y, _, _ = philox(seed, k)
    turn = np.float32(2.3283064e-10) * np.float32(6.2831855)
    u = np.float32(x) * np.float32(2.0**-32) + np.float32(2.0**-33)
    v = np.float32(y) * turn + turn / np.float32(2)
    return float(f"{np.sqrt(-2 * np.log(np.float64(u))) * np.sin(np.float64(v)):.7g}")


def noise():
    folder = GOLDENS.parent / "noise"
    folder.mkdir(exist_ok=True)
    seeds = {str(seed): [normal(seed, k) for k in range(32)] for seed in (0, 1234, 2**40 + 7)}
    (folder / "philox.json").write_text(json.dumps({"seeds": seeds}, indent=2) + "\n")


solvers()
wavelet_correction()
noise()
