"""Makes the golden tensors of carillon-nano: outputs of its modules by public implementations, in float32 on a CPU.

    python3 -m venv /tmp/goldens && /tmp/goldens/bin/pip install torch transformers 'diffusers>=0.40' safetensors
    /tmp/goldens/bin/python test/goldens/make_goldens.py && npx biome check --write test/goldens

| module                                                          | implementation                                |
| --------------------------------------------------------------- | --------------------------------------------- |
| text encoder, language model, tokenizers                        | transformers                                  |
| DiT, condition encoder, audio tokenizer, detokenizer, scheduler | diffusers                                     |
| network of the VAE's decoder                                    | diffusers                                     |
| oscillators of the VAE's decoder                                | a sum of cosines in float64, below            |
| spectral encoder                                                | scripts/nano/training/latent_space.py         |

Run it after a change of the weights in models/carillon-nano. Inputs are drawn from fixed seeds and rounded to bfloat16, in which
they are stored without loss."""
import json
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from diffusers import AceStepTransformer1DModel, FlowMatchEulerDiscreteScheduler
from diffusers.models.autoencoders.autoencoder_oobleck import OobleckDecoder
from diffusers.pipelines.ace_step import (AceStepAudioTokenDetokenizer, AceStepAudioTokenizer, AceStepConditionEncoder)
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM, Qwen3Model

GOLDENS = Path(__file__).resolve().parent
PROJECT = GOLDENS.parent.parent
MODEL = PROJECT / "models/carillon-nano"
sys.path.insert(0, str(PROJECT / "scripts/nano/training"))

from latent_space import LatentSpace  # noqa: E402
from semitones import GOLDEN, hertz_of  # noqa: E402

LEAST_MARGIN = 1e-3  # between the two best options of a decision, so that rounding cannot flip it
ATTENTION_NAMES = {"q_proj": "to_q", "k_proj": "to_k", "v_proj": "to_v", "o_proj": "to_out.0", "q_norm": "norm_q",
                   "k_norm": "norm_k", "proj_in.1": "proj_in_conv", "proj_out.1": "proj_out_conv"}
CAPTION = "A calm bossa nova with nylon guitar, in F minor at 84 bpm"
LYRICS = "[verse]\nRain on the harbour, lights on the hill\n[chorus]\n"
TEXTS = [CAPTION, LYRICS, "# Metas\n- bpm: 120\n- timesignature: 3/4\n", "don't  stop\t\tnow...   \n\n\n  end", "1234567890 12.5%",
         "Déjà vu, naïve façade", "e\u0301 combines", "雨の港、灯りの丘", "Дождь над гаванью", "🎹🎶 \U0001F469\u200D\U0001F3A4", ""]


def config(folder="."):
    return json.loads((MODEL / folder / "config.json").read_text())


def weights(file, prefix=""):
    """float32 weights below `prefix`, with diffusers' names."""
    out = {}
    for name, tensor in load_file(MODEL / f"{file}.safetensors").items():
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            for original, renamed in ATTENTION_NAMES.items():
                name = name.replace(original + ".", renamed + ".") if prefix else name
            out[name] = tensor.float()
    return out


def draw(seed, *shape, scale=1.0):
    return (scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))).bfloat16().float()


def save(case, module, checkpoint, inputs, outputs, params=None):
    """Stores inputs in bfloat16 if that is exact, otherwise in float32."""
    def stored(tensor):
        return tensor.bfloat16() if tensor.is_floating_point() and torch.equal(tensor.bfloat16().float(), tensor) else tensor

    tensors = {f"in.{name}": stored(tensor).contiguous() for name, tensor in inputs.items()}
    tensors |= {f"out.{name}": tensor.contiguous() for name, tensor in outputs.items()}
    save_file(tensors, GOLDENS / f"{case}.safetensors",
              {"module": module, "checkpoint": checkpoint, "params": json.dumps(params or {})})


def require_margin(what, margins):
    if float(margins.min()) < LEAST_MARGIN:
        raise SystemExit(f"{what}: the margin {float(margins.min()):.1e} is so small that rounding could flip a decision; use another seed")


def qwen3(folder, kind):
    own = Qwen3Config(**config(folder))
    assert own.rope_parameters["rope_theta"] == config(folder)["rope_theta"]
    model = kind(own).eval()
    getattr(model, "model", model).load_state_dict(weights(f"{folder}/model"))
    return model


def ids_of(folder, text):
    return torch.tensor([AutoTokenizer.from_pretrained(MODEL / folder).encode(text, add_special_tokens=False)])


def tokenizers():
    cases = {}
    for folder in ("text_encoder", "lm"):
        cases[folder] = [{"text": text, "ids": ids_of(folder, text)[0].long().tolist()} for text in TEXTS]
    (GOLDENS / "tokenizers.json").write_text(json.dumps(cases) + "\n")


def text_encoder():
    model, ids = qwen3("text_encoder", Qwen3Model), ids_of("text_encoder", CAPTION)
    save("text_encoder", "text_encoder", "carillon-nano/text_encoder", {"input_ids": ids},
         {"embeddings": model.embed_tokens(ids), "last_hidden_state": model(ids).last_hidden_state})


def language_model():
    model, ids = qwen3("lm", Qwen3ForCausalLM), ids_of("lm", "# Caption\njazz")
    checkpoint, sequence, new_tokens = "carillon-nano/lm", ids, 24
    save("lm_logits", "lm", checkpoint, {"input_ids": ids}, {"logits": model(ids).logits})
    for _ in range(new_tokens):
        best = model(sequence).logits[:, -1].topk(2)
        require_margin("greedy decoding", best.values[:, 0] - best.values[:, 1])
        sequence = torch.cat([sequence, best.indices[:, :1]], 1)
    save("lm_greedy", "lm", checkpoint, {"input_ids": ids}, {"sequence": sequence}, {"new_tokens": new_tokens})


class Dit:
    """The modules of the DiT's checkpoint."""

    def __init__(self):
        own = config()
        shared = {name: own[name] for name in (
            "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "rope_theta",
            "attention_bias", "rms_norm_eps", "sliding_window")}
        self.channels, self.width = own["audio_acoustic_hidden_dim"], own["hidden_size"]
        acoustic = {"audio_acoustic_hidden_dim": self.channels}
        layers = own["num_attention_pooler_hidden_layers"]
        pooled = {**shared, **acoustic, "pool_window_size": own["pool_window_size"],
                  "num_attention_pooler_hidden_layers": layers, "layer_types": own["layer_types"][:layers]}

        def load(kind, prefix, options):
            model = kind(**options).eval()
            missing, unknown = model.load_state_dict(weights("model", prefix), strict=False)
            assert not unknown and set(missing) <= {"null_condition_emb", "silence_latent"}, (missing, unknown)
            return model

        self.transformer = load(AceStepTransformer1DModel, "decoder.", {
            **shared, **acoustic, "num_hidden_layers": own["num_hidden_layers"], "in_channels": own["in_channels"],
            "patch_size": own["patch_size"], "layer_types": own["layer_types"]})
        self.encoder = load(AceStepConditionEncoder, "encoder.", {**shared, **{name: own[name] for name in (
            "text_hidden_dim", "timbre_hidden_dim", "num_lyric_encoder_hidden_layers",
            "num_timbre_encoder_hidden_layers")}})
        self.tokenizer = load(AceStepAudioTokenizer, "tokenizer.", {**pooled, **{name: own[name] for name in (
            "fsq_dim", "fsq_input_levels", "fsq_input_num_quantizers")}})
        self.detokenizer = load(AceStepAudioTokenDetokenizer, "detokenizer.", pooled)
        self.silence = torch.load(MODEL / "silence_latent.pt").float().transpose(1, 2)

    def velocity(self, latents, times, earlier, states, context):
        return self.transformer(hidden_states=latents, timestep=times, timestep_r=earlier, encoder_hidden_states=states,
                                context_latents=context).sample

    def conditions(self, inputs):
        return self.encoder(inputs["text_hidden_states"], inputs["text_attention_mask"], inputs["lyric_hidden_states"],
                            inputs["lyric_attention_mask"], inputs["timbre_latents"], inputs["timbre_order"])


def condition_inputs(items):
    """Text encoder outputs and a timbre of 12 frames. The second item is padded."""
    model = qwen3("text_encoder", Qwen3Model)

    def masked(states):
        mask = torch.ones(items, states.shape[1], dtype=torch.long)
        mask[1:, -3:] = 0
        return states.bfloat16().float().expand(items, -1, -1), mask

    text, text_mask = masked(model(ids_of("text_encoder", CAPTION)).last_hidden_state)
    lyric, lyric_mask = masked(model.embed_tokens(ids_of("text_encoder", LYRICS)))
    return {"text_hidden_states": text, "text_attention_mask": text_mask, "lyric_hidden_states": lyric,
            "lyric_attention_mask": lyric_mask, "timbre_latents": draw(1, items, 12, 100),
            "timbre_order": torch.arange(items)}


def condition_encoder(dit):
    inputs = condition_inputs(items=2)
    states, mask = dit.conditions(inputs)
    save("condition_encoder", "condition_encoder", "carillon-nano", inputs,
         {"encoder_hidden_states": states, "encoder_attention_mask": mask.long()})


def velocities(dit):
    """One song longer than the attention window, and a batch of two songs of odd length with two timesteps each."""
    for case, (items, frames, times, earlier) in {"dit_long": (1, 290, [0.6], [0.6]),
                                                  "dit_odd": (2, 23, [0.9, 0.3], [0.5, 0.1])}.items():
        inputs = {"hidden_states": draw(2, items, frames, dit.channels), "timestep": torch.tensor(times),
                  "timestep_r": torch.tensor(earlier), "encoder_hidden_states": draw(3, items, 13, dit.width),
                  "context_latents": draw(4, items, frames, 2 * dit.channels)}
        save(case, "dit", "carillon-nano", inputs, {"velocity": dit.velocity(*inputs.values())})


def training_loss(dit):
    inputs = {"target_latents": draw(5, 2, 24, dit.channels), "noise": draw(6, 2, 24, dit.channels),
              "timestep": torch.tensor([0.8, 0.4]), "encoder_hidden_states": draw(7, 2, 13, dit.width),
              "context_latents": draw(8, 2, 24, 2 * dit.channels)}
    data, noise, times, states, context = inputs.values()
    at_times = times[:, None, None]
    velocity = dit.velocity(at_times * noise + (1 - at_times) * data, times, times, states, context)
    save("training_loss", "training_loss", "carillon-nano", inputs,
         {"loss": F.mse_loss(velocity, noise - data).reshape(1)})


def codes(dit):
    latents = draw(9, 1, 23, dit.channels)  # not a multiple of five: padded with silence
    levels = []
    dit.tokenizer.quantizer.register_forward_pre_hook(lambda module, inputs: levels.append(module.project_in(inputs[0])))
    quantized, indices = dit.tokenizer.tokenize(latents, dit.silence)
    top = torch.tensor(config()["fsq_input_levels"]) - 1
    soft = 1 + 1 / top
    place = top * ((soft * (levels[0] / soft).tanh()).clamp(-1, 1) + 1) / 2 + 0.5
    require_margin("audio codes", torch.minimum(place.frac(), 1 - place.frac()))
    save("audio_tokenizer", "audio_tokenizer", "carillon-nano", {"latents": latents},
         {"quantized": quantized, "indices": indices})
    drawn = torch.randint(math.prod(config()["fsq_input_levels"]), (1, 4), generator=torch.Generator().manual_seed(10))
    quantized = dit.tokenizer.quantizer.get_output_from_indices(drawn[..., None])
    save("detokenizer", "detokenizer", "carillon-nano", {"codes": drawn},
         {"quantized": quantized, "hints": dit.detokenizer(quantized)})


def sampler(dit):
    """All eight steps of a one-second song."""
    frames, seed, steps, shift = 25, 11, 8, 3.0
    source = dit.silence[:, :frames].bfloat16().float()
    noise = torch.randn(source.shape, generator=torch.Generator().manual_seed(seed))
    chunk_masks = torch.ones_like(source)
    conditions = condition_inputs(items=1)
    states, _ = dit.conditions(conditions)
    times = torch.linspace(1, 0, steps + 1)[:-1]
    scheduler = FlowMatchEulerDiscreteScheduler(num_train_timesteps=1, shift=1.0)
    scheduler.set_timesteps(sigmas=(shift * times / (1 + (shift - 1) * times)).tolist())
    latents, context = noise, torch.cat([source, chunk_masks], 2)
    for time in scheduler.timesteps:
        velocity = dit.velocity(latents, time[None], time[None], states, context)
        latents = scheduler.step(velocity, time, latents, return_dict=False)[0]
    save("sampler", "sampler", "carillon-nano",
         {**conditions, "src_latents": source, "chunk_masks": chunk_masks, "is_covers": torch.zeros(1, dtype=torch.long),
          "noise": noise}, {"latents": latents}, {"shift": shift, "seeds": [seed]})


def oscillators(latents, own):
    """[1, C, frames] -> [1, 1, samples]: amplitudes change linearly from the middle of a frame to the middle of the next."""
    lowband, hop, rate = own["oscillators"], math.prod(own["downsampling_ratios"]), own["sampling_rate"]
    mean, deviation = (torch.tensor(lowband[name]).double()[:, None] for name in ("mean", "deviation"))
    amplitudes = (mean + deviation * latents[0, :len(mean)].double().clamp_max(lowband["loudest"])).exp()
    amplitudes = (amplitudes.square() - lowband.get("subtracted", 0.0) ** 2).clamp_min(0).sqrt()
    frames = amplitudes.shape[1]
    sample = torch.arange(frames * hop, dtype=torch.double)
    place = (sample / hop - 0.5).clamp(0, frames - 1)
    before = place.floor().long().clamp_max(frames - 2)
    share = place - before
    envelope = amplitudes[:, before] * (1 - share) + amplitudes[:, before + 1] * share
    turns = hertz_of(len(mean))[:, None] * sample / rate + GOLDEN * torch.arange(len(mean))[:, None]
    return (envelope * (2 * math.pi * turns).cos()).sum(0)[None, None].float()


def decoder():
    own = config("vae")
    network = OobleckDecoder(own["decoder_channels"], own["decoder_input_channels"], own["audio_channels"],
                             own["downsampling_ratios"][::-1], own["channel_multiples"]).eval()
    for module in network.modules():
        if hasattr(module, "weight_g"):  # the checkpoint holds products of direction and length
            torch.nn.utils.remove_weight_norm(module)
    network.load_state_dict(weights("vae/diffusion_pytorch_model", "decoder."))
    latents = draw(12, 1, own["decoder_input_channels"], 8)
    save("vae_decode", "vae", "carillon-nano/vae", {"latents": latents},
         {"audio": network(latents) + oscillators(latents, own)})


def spectral_encoder():
    own = config("vae")
    tensors = weights("vae/diffusion_pytorch_model", "encoder.")
    space = LatentSpace(own, tensors)
    samples = 8 * space.hop
    time = torch.arange(samples) / own["sampling_rate"]
    chord = sum(torch.sin(2 * math.pi * hertz * time) for hertz in (110.0, 138.6, 164.8, 880.0)) * 0.1
    audio = (chord + draw(13, 1, 2, samples, scale=0.02)).bfloat16().float()
    mean = space(audio)
    save("vae_encode", "vae", "carillon-nano/vae", {"audio": audio}, {"mean": mean, "std": torch.full_like(mean, 1e-4)})


@torch.inference_mode()
def main():
    for stale in GOLDENS.glob("*.safetensors"):
        stale.unlink()
    tokenizers()
    text_encoder()
    language_model()
    dit = Dit()
    condition_encoder(dit)
    velocities(dit)
    training_loss(dit)
    codes(dit)
    sampler(dit)
    decoder()
    spectral_encoder()


if __name__ == "__main__":
    main()
