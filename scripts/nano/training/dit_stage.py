"""DiT, condition encoder and text encoder: flow matching of every task type at the times that turbo models run, some
items without conditions. The audio tokenizer is given and stays as it is. Before them the text encoder alone."""
import torch
from torch import nn

from data import Draw, pad_ids
from dit import AceStep, shifted, turbo_schedule
from facts import FactsHead, as_numbers, facts_error, from_numbers, tempo_of
from first_weights import begin_dit
from latent_space import Parts
from optimizer import read_average
from task_batch import TaskBatches
from transformer import Qwen3

UNCONDITIONAL_SHARE = 0.1
TURBO_SHARE = 0.1  # of a run
WORDS_WEIGHT = 0.5
BEATS_WEIGHT = 4  # of an error of the clock beside one of other channels: few, and all follows them
# With guidance the objective of a velocity v is noise - data + share (v - v without conditions). Where that is reached,
# v is what classifier-free guidance of scale 1 / (1 - share) gives (Tang et al., 2025, Diffusion models without
# classifier-free guidance): turbo models run without guidance. Tasks on tracks take a larger share than others: a name
# is all that tells one track from the rest, and music that follows its words too closely stands still.
GUIDED_SHARE, GUIDED_TRACK_SHARE = 0.45, 0.7
HELD_OUT_ITEMS, HELD_OUT_WORDS = 24, 256
TEMPO_TOLERANCE, WORDS_TEMPO_TOLERANCE = 0.04, 0.02
TASK_TEXT_SHARE = 0.2  # of the texts that the text encoder reads alone


class WordsStage(nn.Module):
    """The text encoder alone, before there is any sound: it reads the facts of pieces that were composed and described
    but never rendered, of which there can be many times more than of those with audio."""

    def __init__(self, data, options):
        super().__init__()
        self.pieces, self.genres, self.batch = data.words(), data.genres, options.batch
        config = data.config("text_encoder")
        self.text_encoder = Qwen3(config)
        self.words_head = FactsHead(config["hidden_size"], data.genres)

    def read(self, texts, pieces):
        device = self.words_head.weight.device
        ids, mask = (tensor.to(device) for tensor in pad_ids(texts))
        wanted = torch.stack([as_numbers(piece.facts, self.genres) for piece in pieces]).to(device)
        logits = self.words_head.read(self.text_encoder(ids), mask)
        return logits, facts_error(logits, wanted)

    def loss(self, draw):
        def any_text(piece):
            if draw.random() < TASK_TEXT_SHARE:
                return draw.choice(list(piece.task_texts.values()))
            return draw.choice(piece.requests).text

        pieces = [draw.choice(self.pieces.train) for _ in range(self.batch)]
        return self.read([any_text(piece) for piece in pieces], pieces)[1], {}

    def measure(self):
        """Shares of held-out pieces whose fact was read; the tempo within 2 %."""
        pieces = self.pieces.held_out[:HELD_OUT_WORDS]
        logits, error = self.read([piece.requests[-1].text for piece in pieces], pieces)
        pairs = [(from_numbers(numbers, self.genres), piece.facts)
                 for numbers, piece in zip(logits.float().sigmoid().cpu(), pieces)]

        def share(is_met):
            return sum(is_met(found, wanted) for found, wanted in pairs) / len(pairs)

        return {"loss": error,
                "key": share(lambda a, b: (a.tonic, a.is_minor) == (b.tonic, b.is_minor)),
                "tempo": share(lambda a, b: abs(a.bpm / b.bpm - 1) < WORDS_TEMPO_TOLERANCE),
                "metre": share(lambda a, b: a.metre == b.metre),
                "genre": share(lambda a, b: a.genre == b.genre)}


class DitStage(AceStep):
    def __init__(self, data, options, tokenizer):
        config, text_config = data.config(), data.config("text_encoder")
        super().__init__(config)
        self.is_guided, self.batch = options.stage == "guidance", options.batch
        self.parts, self.silence = Parts.of(config["audio_acoustic_hidden_dim"]), data.silence
        self.text_encoder = Qwen3(text_config)
        self.words_head = FactsHead(text_config["hidden_size"], data.genres)
        self.given = [tokenizer]  # in a list, so that its weights are not this module's
        self.words_state = options.work / "words.pt"
        self.train_batches, self.held_out_batches = (
            TaskBatches(config, data, split, options.crop_seconds) for split in (data.pieces.train, data.pieces.held_out))

    def begin(self):
        begin_dit(self.decoder)
        if self.words_state.exists():
            self.load_state_dict(read_average(self.words_state), strict=False)

    @property
    def device(self):
        return self.null_condition_emb.device

    def prepare(self, batch, unconditional):
        """All that a step of the sampler needs beside the state, and what the text says of the facts."""
        text, text_mask, lyrics, lyric_mask, timbre = (
            tensor.to(self.device)
            for tensor in (batch.text, batch.text_mask, batch.lyrics, batch.lyric_mask, batch.timbre))
        words = self.text_encoder(text)
        states, mask = self.encoder(words, text_mask, self.text_encoder.embed_tokens(lyrics), lyric_mask, timbre)
        states = torch.where(unconditional.to(self.device)[:, None, None], self.null_condition_emb.to(states), states)
        context = torch.cat([self.source_of(batch), batch.mask.to(self.device)], 2)
        return context, states, mask, self.words_head.read(words, text_mask)

    @torch.no_grad()
    def source_of(self, batch):
        """Source latents, those of covers read through their codes."""
        source = batch.source.to(self.device)
        if batch.is_cover.any():
            covers = source[batch.is_cover.to(self.device)]
            hints = self.given[0].hints(covers, self.silence.to(self.device))
            source[batch.is_cover.to(self.device)] = hints[:, :source.shape[1]].to(source)
        return source

    def velocity(self, prepared, state, times):
        context, states, mask, _ = prepared
        return self.decoder(state, context, times, states, mask).float()

    @torch.no_grad()
    def guidance(self, prepared, velocity, state, times, shares):
        """What the objective adds to noise - data."""
        nothing = self.null_condition_emb.expand(len(state), 1, -1)
        without = self.decoder(state, prepared[0], times, nothing).float()
        return shares[:, None, None] * (velocity - without)

    def loss(self, draw):
        batch = self.train_batches.draw(self.batch, draw)
        times = torch.tensor([flow_time(draw) for _ in range(self.batch)]).to(self.device)
        unconditional = torch.tensor([draw.random() < UNCONDITIONAL_SHARE for _ in range(self.batch)])
        data, noise = batch.target.to(self.device), draw.normal(batch.target.shape).to(self.device)
        prepared = self.prepare(batch, unconditional)
        state = noised(data, noise, times)
        velocity = self.velocity(prepared, state, times)
        target = noise - data
        if self.is_guided:
            shares = torch.where(batch.is_track_task, GUIDED_TRACK_SHARE, GUIDED_SHARE) * ~unconditional
            target = target + self.guidance(prepared, velocity, state, times, shares.to(self.device))
        error = mean_over_time((velocity - target).square(), batch.counted).mean(0)
        words = facts_error(prepared[3], batch.facts.to(self.device))
        beats = error[self.parts.beat_slice]
        weighted = error.sum() + (BEATS_WEIGHT - 1) * beats.sum()
        flow = weighted / (len(error) + (BEATS_WEIGHT - 1) * len(beats))
        return flow + WORDS_WEIGHT * words, {**self.by_part(error), "words": words}

    def by_part(self, error):
        """Means of errors [..., C] over the channels of every part that there are."""
        parts = zip(Parts._fields, self.parts.slices)
        return {name: error[..., channels].mean() for name, channels in parts if channels.stop > channels.start}

    def measure(self):
        """Text2music of held-out pieces. loss, and of every part of the channels: mean over all turbo times; lossAt100 ..: at
        each time in percent; otherWordsAt100: with another piece's words."""
        batch = self.held_out_batches.spread(HELD_OUT_ITEMS)
        noise = Draw(0, 0).normal(batch.target.shape).to(self.device)
        conditional = torch.zeros(len(noise), dtype=torch.bool)
        prepared, schedule = self.prepare(batch, conditional), turbo_schedule()
        errors = [self.velocity_error(prepared, batch, time, noise) for time in schedule]
        figures = {f"lossAt{round(100 * time)}": error.mean() for time, error in zip(schedule, errors)}
        mean = torch.stack(errors).mean(0)
        figures.update(self.by_part(mean), loss=mean.mean(), **self.measure_samples(prepared, batch, noise))
        batch.text, batch.text_mask = batch.text.roll(1, 0), batch.text_mask.roll(1, 0)
        error = self.velocity_error(self.prepare(batch, conditional), batch, 1.0, noise)
        return {**figures, "otherWordsAt100": error.mean()}

    def velocity_error(self, prepared, batch, time, noise):
        """Mean square per item and channel, [B, C]."""
        data, times = batch.target.to(self.device), torch.full((len(noise),), time, device=self.device)
        found = self.velocity(prepared, noised(data, noise, times), times)
        return mean_over_time((found - (noise - data)).square(), batch.counted)

    def measure_samples(self, prepared, batch, state):
        """What the sampler makes. sampledTempo: share of clocks within 4 % of the tempo asked for; sampledKey: correlation
        of mean pitch classes with those of the pieces; sampledDeviation: of what is heard, to theirs."""
        schedule = turbo_schedule()
        for time, following in zip(schedule, schedule[1:] + [0.0]):
            times = torch.full((len(state),), time, device=self.device)
            state = state + (following - time) * self.velocity(prepared, state, times)
        counted, data, figures = batch.counted.to(self.device), batch.target.to(self.device), {}
        if self.parts.beats > 1:
            hands = (state * counted)[..., self.parts.beat_slice].cpu()
            tempos = [tempo_of(own) / item.piece.facts.bpm for own, item in zip(hands, batch.items)]
            figures["sampledTempo"] = sum(abs(tempo - 1) < TEMPO_TOLERANCE for tempo in tempos) / len(tempos)
        if self.parts.pitches > 0:
            made, wanted = (self.harmony(latents, counted) for latents in (state, data))
            figures["sampledKey"] = (made * wanted).sum() / (made.norm() * wanted.norm())
        made, wanted = ((latents * counted)[..., self.parts.heard].std() for latents in (state, data))
        return {**figures, "sampledDeviation": made / wanted}

    def harmony(self, latents, counted):
        """Mean pitch classes [B, 12] against one another, without what all the items share."""
        pitches = mean_over_time(latents, counted)[:, self.parts.slices[3]]
        relative = pitches - pitches.mean(1, keepdim=True)
        return relative - relative.mean(0)


def flow_time(draw):
    """Any time, spread as the turbo schedule is; at the end of a run, of those that turbo models are run at."""
    return draw.choice(turbo_schedule()) if draw.progress > 1 - TURBO_SHARE else shifted(1 - draw.random())


def noised(data, noise, times):
    times = times[:, None, None]
    return times * noise + (1 - times) * data


def mean_over_time(values, counted):
    """Mean over the frames that count, [B, C], of values [B, T, C]."""
    counted = counted.to(values.device)
    return (values * counted).sum(1) / counted.sum((1, 2))[:, None]
