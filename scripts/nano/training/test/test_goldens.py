"""The modules against the reference's outputs: the parity set at $CARILLON_PARITY_ROOT, where there is one."""
import json
import os
import unittest
from pathlib import Path

import torch
import torch.nn.functional as F

import checkpoint
from audio_tokenizer import AudioTokenizer
from dit import AceStep
from oobleck import Decoder
from transformer import Qwen3

ROOT = Path(os.environ.get("CARILLON_PARITY_ROOT", ""))
TURBO, TEXT, LM = "acestep-v15-turbo", "Qwen3-Embedding-0.6B", "acestep-5Hz-lm-0.6B"
CODES = ("tokenizer", "detokenizer")
SINGLE, AUTOENCODER = 1e-5, 1e-3  # largest relative errors; the set's README says why
checkpoint.TYPES.update({"I32": torch.int32, "I64": torch.int64})


def golden(case):
    return checkpoint.read_safetensors(ROOT / f"goldens/{case}.safetensors")


def config(name):
    return json.loads((ROOT / f"checkpoints/{name}/config.json").read_text())


def weights(name, file="model"):
    return checkpoint.read_safetensors(ROOT / f"checkpoints/{name}/{file}.safetensors")


def unnormed(tensors):
    """Weights in place of their directions and lengths."""
    for name in [name for name in tensors if name.endswith(".weight_g")]:
        length, direction = tensors.pop(name), tensors.pop(name[:-1] + "v")
        tensors[name.removesuffix("_g")] = torch._weight_norm(direction, length, 0)
    return tensors


def loaded(module, tensors):
    module.load_state_dict(tensors)  # strict: every weight has its name
    return module


@unittest.skipUnless(os.environ.get("CARILLON_PARITY_ROOT"), "no parity set")
class Goldens(unittest.TestCase):
    def setUp(self):
        grad = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
        self.addCleanup(torch.set_grad_enabled, grad)

    def expect(self, found, wanted, tolerance=SINGLE):
        self.assertEqual(found.shape, wanted.shape)
        self.assertLessEqual(float((found - wanted).norm() / wanted.norm()), tolerance)

    def test_dit(self):
        """Only cases with r = t: the trainer's DiT has no second time, and `dit_forward_two_times` is not its case."""
        dit = loaded(AceStep(config(TURBO)), checkpoint.without(weights(TURBO), *CODES)).decoder
        for case in ("short", "odd", "long"):
            with self.subTest(case):
                own = golden(f"dit_forward_{case}")
                self.assertTrue(torch.equal(own["in.timestep"], own["in.timestep_r"]))
                inputs = ("hidden_states", "context_latents", "timestep", "encoder_hidden_states")
                self.expect(dit(*(own[f"in.{name}"] for name in inputs)), own["out.velocity"])

    def test_condition_encoders(self):
        encoder = loaded(AceStep(config(TURBO)), checkpoint.without(weights(TURBO), *CODES)).encoder
        lyric = golden("lyric_encoder")
        mask = lyric["in.attention_mask"].bool()
        self.expect(encoder.lyric_encoder(lyric["in.inputs_embeds"], mask)[mask], lyric["out.last_hidden_state"][mask])
        timbre = golden("timbre_encoder")
        self.expect(encoder.timbre_encoder(timbre["in.latents"])[:, 0],
                    timbre["out.embeddings"][timbre["out.mask"].bool()])

    def test_audio_tokenizer(self):
        tensors = {name: tensor for name, tensor in weights(TURBO).items() if name.split(".")[0] in CODES}
        both = loaded(AudioTokenizer(config(TURBO)), tensors)
        silence = torch.load(ROOT / f"checkpoints/{TURBO}/silence_latent.pt")[0].T
        own, hints = golden("audio_tokenizer"), golden("codes_to_hints")
        quantized, indices = both.tokenizer(own["in.latents"], silence)
        self.assertTrue((indices == own["out.indices"][..., 0]).all())
        self.expect(quantized, own["out.quantized"])
        self.expect(both.detokenizer(hints["out.quantized"]), hints["out.hints"])

    def test_text_encoder(self):
        own = golden("text_encoder")
        self.expect(loaded(Qwen3(config(TEXT)), weights(TEXT))(own["in.input_ids"]), own["out.last_hidden_state"])

    def test_language_model(self):
        own = golden("lm_logits")
        model = loaded(Qwen3(config(LM)), checkpoint.below(weights(LM), "model"))
        self.expect(F.linear(model(own["in.input_ids"]), model.embed_tokens.weight), own["out.logits"])

    def test_decoder(self):
        tensors, sizes = unnormed(weights("vae", "diffusion_pytorch_model")), config("vae")
        decoder = loaded(Decoder(sizes), checkpoint.below(tensors, "decoder"))
        decoded = golden("vae_decode")
        self.expect(decoder(decoded["in.latents"]), decoded["out.audio"], AUTOENCODER)


if __name__ == "__main__":
    unittest.main()
