"""DiT, condition encoder and text encoder: flow matching of every task type at turbo timesteps, a share of the items without
conditions."""
import torch
from torch import nn

from checkpoint import audio_tokenizer_of
from data import Draw
from dit import AceStep, shifted, turbo_schedule
from facts import FactsHead, facts_error
from latent_space import Parts
from task_batch import TaskBatches
from transformer import Qwen3

UNCONDITIONAL_SHARE = 0.1
TURBO_SHARE = 0.1  # of a run
WORDS_WEIGHT = 0.5
WORDS_REQUESTS = 48  # of a step, from which the text encoder learns facts: a batch of songs has too few words
BEATS_WEIGHT = 4  # of the clock's errors: its channels are few, and all others follow them
# Trains with guided targets, so that turbo models run without guidance. The target of a velocity v is noise -
# data + share * (v - v_unconditional). Its fixed point is the velocity of classifier-free guidance at scale 1
# / (1 - share) (Tang et al., 2025, Diffusion models without classifier-free guidance). Guidance of the timbre
# channels makes beats clearer; guidance of lows and pitches makes harmony static (README.md). Tasks on single
# tracks take a larger share, because only the track's name distinguishes their conditions.
GUIDED_SHARES = Parts(lows=0.3, beats=0.45, timbre=0.7, pitches=0.45)
GUIDED_TRACK_SHARE = 0.7
HELD_OUT_ITEMS = 16


class DitStage(AceStep):
    def __init__(self, data, options):
        config, text_config = data.config(), data.config("text_encoder")
        super().__init__(config)
        self.is_guided, self.batch = options.stage == "guidance", options.batch
        self.parts, self.silence = Parts.of(config["audio_acoustic_hidden_dim"]), data.silence
        self.text_encoder = Qwen3(text_config)
        self.words_head = FactsHead(text_config["hidden_size"], data.genres)
        # In a list, so that its weights are not this module's.
        self.given = [audio_tokenizer_of(data.start).to(options.device)]
        self.train_batches = TaskBatches(config, data, data.train)
        self.held_out_batches = TaskBatches(config, data, data.held_out)

    @property
    def device(self):
        return self.null_condition_emb.device

    def prepare(self, batch, unconditional):
        """Inputs of a sampler step besides the state."""
        text, text_mask, lyrics, lyric_mask, timbre = (
            tensor.to(self.device)
            for tensor in (batch.text, batch.text_mask, batch.lyrics, batch.lyric_mask, batch.timbre))
        words = self.text_encoder(text)
        states, mask = self.encoder(words, text_mask, self.text_encoder.embed_tokens(lyrics), lyric_mask, timbre)
        states = torch.where(unconditional.to(self.device)[:, None, None], self.null_condition_emb.to(states), states)
        context = torch.cat([self.source_of(batch), batch.mask.to(self.device)], 2)
        return context, states, mask

    def words_error(self, batches, draw):
        """How badly the facts of random pieces are read from their requests."""
        text, mask, facts = (tensor.to(self.device) for tensor in batches.requests(WORDS_REQUESTS, draw))
        return facts_error(self.words_head.read(self.text_encoder(text), mask), facts)

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
        context, states, mask = prepared
        return self.decoder(state, context, times, states, mask).float()

    @torch.no_grad()
    def guidance(self, prepared, velocity, state, times, shares):
        """Term that guidance adds to the target (noise - data)."""
        nothing = self.null_condition_emb.expand(len(state), 1, -1)
        without = self.decoder(state, prepared[0], times, nothing).float()
        return shares[:, None] * (velocity - without)

    def guided_shares(self, is_track_task):
        """Of every item and channel, [B, C]."""
        shares = torch.tensor(GUIDED_SHARES).repeat_interleave(torch.tensor(self.parts))
        return torch.where(is_track_task[:, None], GUIDED_TRACK_SHARE, shares)

    def loss(self, draw):
        batch = self.train_batches.draw(self.batch, draw)
        count = len(batch.items)
        times = torch.tensor([flow_time(draw) for _ in range(count)]).to(self.device)
        unconditional = torch.tensor([draw.random() < UNCONDITIONAL_SHARE for _ in range(count)])
        data, noise = batch.target.to(self.device), draw.normal(batch.target.shape).to(self.device)
        prepared = self.prepare(batch, unconditional)
        state = noised(data, noise, times)
        velocity = self.velocity(prepared, state, times)
        target = noise - data
        if self.is_guided:
            shares = self.guided_shares(batch.is_track_task) * ~unconditional[:, None]
            target = target + self.guidance(prepared, velocity, state, times, shares.to(self.device))
        error = mean_over_time((velocity - target).square(), batch.counted).mean(0)
        words = self.words_error(self.train_batches, draw)
        beats = error[self.parts.beat_slice]
        weighted = error.sum() + (BEATS_WEIGHT - 1) * beats.sum()
        flow = weighted / (len(error) + (BEATS_WEIGHT - 1) * len(beats))
        return flow + WORDS_WEIGHT * words, {**self.by_part(error), "words": words}

    def by_part(self, error):
        """Mean errors of every part of the channels, of errors [..., C]."""
        parts = zip(Parts._fields, self.parts.slices)
        return {name: error[..., channels].mean() for name, channels in parts if channels.stop > channels.start}

    def measure(self):
        """Text2music of held-out pieces. loss, and by part of the channels: means over all turbo times; lossAt100 ..: at each
        time in percent; otherWordsAt100: with another piece's words; words: error of the facts."""
        batch = self.held_out_batches.spread(HELD_OUT_ITEMS)
        noise = Draw(0, 0).normal(batch.target.shape).to(self.device)
        conditional = torch.zeros(len(noise), dtype=torch.bool)
        prepared, schedule = self.prepare(batch, conditional), turbo_schedule()
        errors = [self.velocity_error(prepared, batch, time, noise) for time in schedule]
        figures = {f"lossAt{round(100 * time)}": error.mean() for time, error in zip(schedule, errors)}
        mean = torch.stack(errors).mean(0)
        figures.update(self.by_part(mean), loss=mean.mean())
        batch.text, batch.text_mask = batch.text.roll(1, 0), batch.text_mask.roll(1, 0)
        error = self.velocity_error(self.prepare(batch, conditional), batch, 1.0, noise)
        words = self.words_error(self.held_out_batches, Draw(0, 0))
        return {**figures, "otherWordsAt100": error.mean(), "words": words}

    def velocity_error(self, prepared, batch, time, noise):
        """Mean square per item and channel, [B, C]."""
        data, times = batch.target.to(self.device), torch.full((len(noise),), time, device=self.device)
        found = self.velocity(prepared, noised(data, noise, times), times)
        return mean_over_time((found - (noise - data)).square(), batch.counted)


def flow_time(draw):
    """Any time, distributed like the turbo schedule; at the end of a run, a time of that schedule."""
    return draw.choice(turbo_schedule()) if draw.progress > 1 - TURBO_SHARE else shifted(1 - draw.random())


def noised(data, noise, times):
    times = times[:, None, None]
    return times * noise + (1 - times) * data


def mean_over_time(values, counted):
    """Mean over unpadded frames, [B, C], of values [B, T, C]."""
    counted = counted.to(values.device)
    return (values * counted).sum(1) / counted.sum((1, 2))[:, None]
