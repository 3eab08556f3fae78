"""Tempo, key, metre and genre of a piece: as numbers that a linear layer reads, and as a clock that the DiT generates."""
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
        raise ValueError(f"'{facts.genre}' is not a genre of the data set")
    numbers = torch.zeros(number_count(genres))
    place = math.log2(facts.bpm / SLOWEST) / OCTAVES_BETWEEN_TEMPOS
    numbers[:TEMPOS] = torch.exp(-0.5 * (place - torch.arange(TEMPOS)) ** 2)
    numbers[MODE] = float(facts.is_minor)
    for first, index in ((TONIC, facts.tonic), (METRE, METRES.index(facts.metre)), (GENRE, genres.index(facts.genre))):
        numbers[first + index] = 1
    return numbers


class FactsHead(nn.Linear):
    """Reads a piece's facts from the last token, so that text encoder and language model learn to represent them. It is not
    exported."""

    def __init__(self, width, genres):
        super().__init__(width, number_count(genres))

    def read(self, states, mask):
        """Hidden states [B, L, width] with mask [B, L] -> logits [B, numbers]."""
        return self(states[torch.arange(len(states)), mask.sum(1) - 1])


def facts_error(logits, numbers):
    return F.binary_cross_entropy_with_logits(logits.float(), numbers)


def clock(facts, sections, frames):
    """Hands of beat, bar and section as cosine and sine, [frames, 6]. They are not computed from audio and the decoder does not
    read them: they give the DiT a grid for drums and chords. The hand of `sections`, pairs of seconds, turns once in each,
    so that corresponding bars of two sections have the same angle; outside of sections its length is 0."""
    seconds = (torch.arange(frames, dtype=torch.double) + 0.5) / FRAMES_PER_SECOND
    beats = seconds * facts.bpm / 60
    turns = torch.stack([beats, beats / facts.beats_per_bar, torch.zeros_like(beats)], 1)
    lengths = torch.tensor([HAND_LENGTH, HAND_LENGTH, 0]).repeat(frames, 1)
    for start, end in sections:
        within = (seconds >= start) & (seconds < end)
        turns[within, 2] = (seconds[within] - start) / (end - start)
        lengths[within, 2] = HAND_LENGTH
    angles = 2 * math.pi * turns
    return (lengths[..., None] * torch.stack([angles.cos(), angles.sin()], 2)).flatten(1).float()
