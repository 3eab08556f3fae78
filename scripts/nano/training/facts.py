"""What a piece is, as its prompt says it: as numbers that a linear layer reads, and as a clock that the DiT draws."""
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

TEMPOS, SLOWEST, FASTEST = 16, 60, 180  # overlapping ranges, bpm
TONICS, METRES = 12, ("2", "3", "4", "6")
TONIC, MODE, METRE = TEMPOS, TEMPOS + TONICS, TEMPOS + TONICS + 1
GENRE = METRE + len(METRES)
NATURALS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
OCTAVES_BETWEEN_TEMPOS = math.log2(FASTEST / SLOWEST) / (TEMPOS - 1)
FRAMES_PER_SECOND = 25
HAND_LENGTH = 2.5  # of the clock: the other channels have deviations of 1 to 2.5


@dataclass(frozen=True)
class Facts:
    genre: str
    bpm: float
    tonic: int  # semitones above C
    is_minor: bool
    metre: str  # "6" is 6/8

    @staticmethod
    def of(genre, bpm, key, metre):
        note, _, mode = key.partition(" ")
        if note[:1] not in NATURALS or note[1:] not in ("", "#", "b") or mode not in ("major", "minor"):
            raise ValueError(f"'{key}' is no key")
        if metre not in METRES:
            raise ValueError(f"'{metre}' is no metre")
        bend = {"": 0, "#": 1, "b": -1}[note[1:]]
        return Facts(genre, bpm, (NATURALS[note[0]] + bend) % TONICS, mode == "minor", metre)

    @property
    def beats_per_bar(self):
        return 2 if self.metre == "6" else int(self.metre)


def number_count(genres):
    return GENRE + len(genres)


def as_numbers(facts, genres):
    """Numbers between 0 and 1: tempo as overlapping ranges, tonic, mode, metre, genre."""
    if facts.genre not in genres:
        raise ValueError(f"'{facts.genre}' is no genre of the data set")
    numbers = torch.zeros(number_count(genres))
    place = math.log2(facts.bpm / SLOWEST) / OCTAVES_BETWEEN_TEMPOS
    numbers[:TEMPOS] = torch.exp(-0.5 * (place - torch.arange(TEMPOS)) ** 2)
    numbers[MODE] = float(facts.is_minor)
    for first, index in ((TONIC, facts.tonic), (METRE, METRES.index(facts.metre)), (GENRE, genres.index(facts.genre))):
        numbers[first + index] = 1
    return numbers


def from_numbers(numbers, genres):
    """The facts that numbers near those of as_numbers say; the tempo lies between the strongest ranges."""
    strongest = int(numbers[:TEMPOS].argmax())
    place = float(strongest)
    if 0 < strongest < TEMPOS - 1:  # the logarithms of a bell curve at three places give its middle
        before, at, after = numbers[strongest - 1:strongest + 2].double().clamp_min(1e-4).log().tolist()
        bend = before - 2 * at + after
        if bend < 0:
            place += min(0.5, max(-0.5, 0.5 * (before - after) / bend))
    return Facts(genres[int(numbers[GENRE:GENRE + len(genres)].argmax())],
                 SLOWEST * 2 ** (place * OCTAVES_BETWEEN_TEMPOS), int(numbers[TONIC:MODE].argmax()),
                 bool(numbers[MODE] > 0.5), METRES[int(numbers[METRE:GENRE].argmax())])


class FactsHead(nn.Linear):
    """Reads a piece's facts off the last token that counts, which knows all words. It teaches a text encoder or a
    language model to keep them where a linear layer finds them; checkpoints go without it."""

    def __init__(self, width, genres):
        super().__init__(width, number_count(genres))

    def read(self, states, mask):
        """Hidden states [B, L, width] with mask [B, L] -> logits [B, numbers]."""
        return self(states[torch.arange(len(states)), mask.sum(1) - 1])


def facts_error(logits, numbers):
    return F.binary_cross_entropy_with_logits(logits.float(), numbers)


def clock(facts, sections, first_frame, frames):
    """The hands of beat, bar and section as cosine and sine, [frames, 6]. No encoder hears them and no decoder reads them:
    the DiT draws them first, as the plainest thing that a tempo means, and drums and chords have a grid to follow. The hand
    of `sections`, pairs of seconds, turns once in each, so that what answers a bar in a section that returns has the bar's
    own angle; between them and behind the last it has no length."""
    seconds = (torch.arange(first_frame, first_frame + frames, dtype=torch.double) + 0.5) / FRAMES_PER_SECOND
    beats = seconds * facts.bpm / 60
    turns = torch.stack([beats, beats / facts.beats_per_bar, torch.zeros_like(beats)], 1)
    lengths = torch.tensor([HAND_LENGTH, HAND_LENGTH, 0]).repeat(frames, 1)
    for start, end in sections:
        within = (seconds >= start) & (seconds < end)
        turns[within, 2] = (seconds[within] - start) / (end - start)
        lengths[within, 2] = HAND_LENGTH
    angles = 2 * math.pi * turns
    return (lengths[..., None] * torch.stack([angles.cos(), angles.sin()], 2)).flatten(1).float()


def tempo_of(hands):
    """Tempo in bpm of a clock [frames, 2 or more]: the mean advance of the hand of the beat."""
    hand = torch.complex(hands[:, 0].double(), hands[:, 1].double())
    return float((hand[1:] * hand[:-1].conj()).sum().angle()) / (2 * math.pi) * FRAMES_PER_SECOND * 60
