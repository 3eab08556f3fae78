"""Language model: prompt, think block, audio codes, end of turn. Loss on its own output only."""
import json
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from data import pad_ids
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
    """A linear layer reads the piece's facts from the last token before the codes, so that codes know tempo and key."""

    def __init__(self, data, options):
        config = json.loads(options.planner_config.read_text()) if options.planner_config else data.config("lm")
        super().__init__(config)
        self.data, self.batch = data, options.batch
        self.first_code, self.end_of_turn = special_tokens(data.json("lm/tokenizer.json"))
        self.words_head = FactsHead(config["hidden_size"], data.genres)
        self.pieces, self.held_out = data.composed[:options.planner_pieces], data.held_out[:HELD_OUT_ITEMS]

    def draw_weights(self):
        """Random weights. With torch's, logits of tied embeddings would start far from equal."""
        torch.nn.init.normal_(self.embed_tokens.weight, std=self.embed_tokens.embedding_dim ** -0.5)

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
            piece = draw.choice(self.pieces)
            codes = draw.choice(self.data.codes[piece.id]).tolist()  # of any offset, as augmentation
            batch.append(self.sequence(piece, draw.choice(piece.requests) if is_conditional else None, codes))
        text, codes, facts = self.entropy(batch)
        return text + codes + FACTS_WEIGHT * facts, {"text": text, "codes": codes, "facts": facts}

    def measure(self):
        batch = [self.sequence(piece, piece.requests[0], self.data.codes[piece.id][0].tolist()) for piece in self.held_out]
        text, codes, facts = self.entropy(batch)
        return {"loss": text + codes, "text": text, "codes": codes, "facts": facts}


def special_tokens(tokenizer):
    """Ids of the first audio code, which the others follow, and of the end of a turn."""
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    try:
        return ids["<|audio_code_0|>"], ids["<|im_end|>"]
    except KeyError as error:
        raise ValueError(f"the language model's tokenizer has no token {error}") from error
