"""The language model: prompt, think block, audio codes, end of turn; only what it writes itself is learnt."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from data import pad_ids
from facts import Facts, FactsHead, as_numbers, facts_error
from transformer import Qwen3

UNCONDITIONAL_SHARE = 0.1  # items with the prompt of guidance's other side
WORDS_SHARE = 0.25         # items that end with the think block: pieces that were never rendered
FACTS_WEIGHT = 0.5
HELD_OUT_ITEMS = 32
NOT_LEARNT = -100


@dataclass
class Sequence:
    ids: list
    prompt: int           # where the model's own writing begins
    codes: int            # and its audio codes
    facts: Facts or None  # of the request, where there is one


class LmStage(Qwen3):
    """From the last token before the codes the piece's facts are read off, so that the codes know tempo and key. The
    audio tokenizer is given."""

    def __init__(self, data, options, tokenizer):
        config = data.config("lm")
        super().__init__(config)
        self.unconditional_prompt, self.batch = data.json("model/training.json")["unconditionalPrompt"], options.batch
        self.first_code, self.end_of_turn = special_tokens(data.json("model/lm/tokenizer.json"))
        self.pieces, self.words, self.genres = data.pieces, data.words(), data.genres
        self.words_head = FactsHead(config["hidden_size"], data.genres)
        shifts = range(tokenizer.tokenizer.frames_per_code)
        self.train_codes = [codes_of(tokenizer, data, piece, shifts) for piece in self.pieces.train]
        self.held_out_codes = [codes_of(tokenizer, data, piece, (0,))[0]
                               for piece in self.pieces.held_out[:HELD_OUT_ITEMS]]

    def sequence(self, piece, request, codes):
        """With a request of `piece`, or without any."""
        prompt, plan = (request.plan_prompt, request.plan) if request else (self.unconditional_prompt, [])
        ids = [*prompt, *plan, *(self.first_code + code for code in codes)]
        if codes:
            ids.append(self.end_of_turn)
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
        wanted = torch.stack([as_numbers(batch[row].facts, self.genres) for row in rows]).to(device)
        planned = (place < ends)[rows].to(device)
        return text, codes, facts_error(self.words_head.read(hidden[rows], planned), wanted)

    def loss(self, draw):
        batch = []
        for item in range(self.batch):
            # The first item always has a prompt and codes, so that a batch has both to learn.
            if item > 0 and draw.random() < WORDS_SHARE:
                piece = draw.choice(self.words.train)
                batch.append(self.sequence(piece, draw.choice(piece.requests), []))
                continue
            is_conditional = item == 0 or draw.random() >= UNCONDITIONAL_SHARE
            index = draw.randrange(len(self.pieces.train))
            piece, codes = self.pieces.train[index], draw.choice(self.train_codes[index])
            batch.append(self.sequence(piece, draw.choice(piece.requests) if is_conditional else None, codes))
        text, codes, facts = self.entropy(batch)
        return text + codes + FACTS_WEIGHT * facts, {"text": text, "codes": codes, "facts": facts}

    def measure(self):
        batch = [self.sequence(piece, piece.requests[0], codes)
                 for piece, codes in zip(self.pieces.held_out, self.held_out_codes)]
        return dict(zip(("text", "codes", "facts"), self.entropy(batch)))


def special_tokens(tokenizer):
    """Ids of audio code 0, after which the others follow, and of the end of a turn."""
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    try:
        return ids["<|audio_code_0|>"], ids["<|im_end|>"]
    except KeyError as error:
        raise ValueError(f"the language model's tokenizer lacks {error}") from error


@torch.no_grad()
def codes_of(tokenizer, data, piece, shifts):
    """The codes of a piece from the first frame on, from the second, ...: so many ways to write the same music, which a
    small data set needs."""
    device = tokenizer.detokenizer.special_tokens.device
    frames, silence = data.latents_of(piece)[None].to(device), data.silence.to(device)
    return [tokenizer.tokenizer(frames[:, shift:], silence)[1][0].tolist() for shift in shifts]
