"""Measurements of files. Results can be kept by the first two arguments: digests of the files and of this code."""

import hashlib
from pathlib import Path

import numpy as np

import genre
import signals


def code_version():
    sources = [Path(module.__file__).read_bytes() for module in (signals, genre)]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()


def compile_once():
    """Compiles numba's functions: processes that compile them at once would leave a corrupt cache."""
    noise = np.random.default_rng(0).standard_normal(5 * signals.ANALYSIS_RATE).astype(np.float32)
    musical(noise)
    genre.windows(noise)


def windows(digests, code, paths):
    return genre.windows(signals.load(paths[0])[2])


def measure(digests, code, paths):
    audio, rate, mono = signals.load(paths[0])
    return {
        "seconds": len(audio) / rate,
        **musical(mono),
        "loudness": signals.loudness(paths[0]),
        **signals.levels(audio, rate),
    }


def musical(mono):
    correlation = signals.onset_autocorrelation(mono)
    return {
        "tempo": signals.tempo(correlation),
        "beatPeak": signals.beat_peak(correlation),
        "key": signals.key(mono),
        "harmonicChange": signals.harmonic_change(mono),
        "lowFlatness": signals.low_flatness(mono),
        "recurrence": signals.recurrence(mono),
        "melody": signals.stepwise_melody(mono),
    }


def chorus_returns(digests, code, paths, sections):
    return signals.chorus_returns(signals.load(paths[0])[2], sections)


def distance(digests, code, paths):
    """Log-mel distance of two recordings, dB."""
    return signals.log_mel_distance(*[signals.log_mel(signals.load(path)[2]) for path in paths])
