"""Language model: prompt, think block, audio codes, end of turn. Loss on its own output only."""
import zlib
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from data import pad_ids, save
from facts import Facts, FactsHead, as_numbers, facts_error
from transformer import Qwen3

UNCONDITIONAL_SHARE = 0.1  # items with the unconditional prompt of guidance
FACTS_WEIGHT = 0.5
HELD_OUT_ITEMS = 32
NOT_LEARNT = -100


@dataclass
class Sequence:
    ids: list
    prompt: int           # length of the prompt
    codes: int            # position of the first audio code
    facts: Facts or None  # of the request, if there is one


class LmStage(Qwen3):
    """A linear layer reads the piece's facts from the last token before the codes, so that codes know tempo and key. The
    audio tokenizer is fixed."""

    def __init__(self, data, options, tokenizer):
        config = data.config("lm")
        super().__init__(config)
        self.data, self.batch = data, options.batch
        self.first_code, self.end_of_turn = special_tokens(data.json("lm/tokenizer.json"))
        self.words_head = FactsHead(config["hidden_size"], data.genres)
        codes = kept_codes(tokenizer, data, options.work / "codes.pt")
        self.train_codes = [codes[piece.id] for piece in data.train]
        self.held_out_codes = [codes[piece.id][0].tolist() for piece in data.held_out[:HELD_OUT_ITEMS]]

    def sequence(self, piece, request, codes):
        """Token sequence of a piece: prompt, plan and codes. Without a request it has the unconditional prompt."""
        prompt, plan = (request.plan_prompt, request.plan) if request else (self.data.unconditional_prompt, [])
        ids = [*prompt, *plan, *(self.first_code + code for code in codes), self.end_of_turn]
        return Sequence(ids, len(prompt), len(prompt) + len(plan), piece.facts if request else None)

    def entropy(self, batch):
        """Cross-entropy in nats per token of think blocks and of audio codes, and the error of the facts."""
        device = self.norm.weight.device
        ids, _ = pad_ids([sequence.ids for sequence in batch])
        place = torch.arange(ids.shape[1])
        starts, ends, lengths = (torch.tensor(values)[:, None] for values in zip(
            *((sequence.prompt, sequence.codes, len(sequence.ids)) for sequence in batch)))

        def targets(first, last):
            return ids.where((place >= first) & (place < last), NOT_LEARNT)[:, 1:].flatten().to(device)

        hidden = self(ids.to(device))
        logits = F.linear(hidden[:, :-1], self.embed_tokens.weight).flatten(0, 1).float()
        text, codes = (F.cross_entropy(logits, wanted, ignore_index=NOT_LEARNT)
                       for wanted in (targets(starts, ends), targets(ends, lengths)))
        rows = [row for row, sequence in enumerate(batch) if sequence.facts]
        wanted = torch.stack([as_numbers(batch[row].facts, self.data.genres) for row in rows]).to(device)
        planned = (place < ends)[rows].to(device)
        return text, codes, facts_error(self.words_head.read(hidden[rows], planned), wanted)

    def loss(self, draw):
        batch = []
        for item in range(self.batch):
            # The first item always has a prompt, so that every batch has think blocks to learn.
            is_conditional = item == 0 or draw.random() >= UNCONDITIONAL_SHARE
            index = draw.randrange(len(self.data.train))
            piece, codes = self.data.train[index], draw.choice(self.train_codes[index]).tolist()
            batch.append(self.sequence(piece, draw.choice(piece.requests) if is_conditional else None, codes))
        text, codes, facts = self.entropy(batch)
        return text + codes + FACTS_WEIGHT * facts, {"text": text, "codes": codes, "facts": facts}

    def measure(self):
        batch = [self.sequence(piece, piece.requests[0], codes)
                 for piece, codes in zip(self.data.held_out, self.held_out_codes)]
        text, codes, facts = self.entropy(batch)
        return {"loss": text + codes, "text": text, "codes": codes, "facts": facts}


def special_tokens(tokenizer):
    """Ids of the first audio code, which the others follow, and of the end of a turn."""
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    try:
        return ids["<|audio_code_0|>"], ids["<|im_end|>"]
    except KeyError as error:
        raise ValueError(f"the language model's tokenizer has no token {error}") from error


def kept_codes(tokenizer, data, path):
    """Code sequences per piece, one for each offset of the first frame within a code, as augmentation. Cached in a file for
    the tokenizer's weights."""
    weights = torch.cat([weight.flatten() for weight in tokenizer.state_dict().values()])
    key = zlib.crc32(bytes(weights.cpu().untyped_storage()))
    kept = torch.load(path) if path.exists() else {"key": None}
    if kept["key"] != key or len(kept["codes"]) != len(data.latents):
        pieces = [*data.train, *data.held_out]
        kept = {"key": key, "codes": {piece.id: codes_of(tokenizer, data, piece) for piece in pieces}}
        save(kept, path)
    return kept["codes"]


@torch.no_grad()
def codes_of(tokenizer, data, piece):
    """Code sequences of a piece, one for each offset."""
    device = tokenizer.detokenizer.special_tokens.device
    frames, silence = data.latents_of(piece)[None].to(device), data.silence.to(device)
    return [tokenizer.tokenizer(frames[:, shift:], silence)[1][0].short()
            for shift in range(tokenizer.tokenizer.frames_per_code)]
