"""Measures the tasks that work on a source, and prints a table: the model beside the ground truth, the unchanged source and
noise.

    tasks.py TRIALS

The trials: [{"task", "model", "truth", "source", "noise", "others", "stems", "wanted", "window"}]. All but task, wanted and window
(seconds) are paths or lists of paths. A repaint has no truth; it takes the window of the first other piece.
"""

import functools
import json
import sys
from pathlib import Path

import librosa
import numpy as np
import scipy.optimize
import soundfile

from signals import ANALYSIS_RATE
from table import cell, markdown

WINDOW, QUIETEST_DB = 4096, 80
MOST_DB = 40
RAISED_DB = 6  # the engine's own requirement
ROUNDING = 2 / 32768  # of samples of 16 bits
CANDIDATES = {"model": "model", "truth": "ground truth", "source": "source unchanged", "noise": "white noise"}
ROWS = {
    "cover harmony": ("cover: chroma correlation with its source", "{:.2f}"),
    "cover other harmony": ("cover: the same with the other sources", "{:.2f}"),
    "cover nearest": ("cover: nearer to its source than to any other", "{:.0%}"),
    "repaint unchanged": ("repaint: samples unchanged outside the window", "{:.0%}"),
    "repaint outside": ("repaint: spectral distance outside the window", "{:.1f} dB"),
    "repaint inside": ("repaint: spectral distance inside the window", "{:.1f} dB"),
    "extract raise": ("extract: wanted stem over the others, against the mix", "{:.1f} dB"),
    "extract raised": ("extract: raised by 6 dB or more", "{:.0%}"),
    "extract explained": ("extract: energy that is any of the stems", "{:.0%}"),
    "lego harmony": ("lego: chroma correlation with its context", "{:.2f}"),
    "lego added": ("lego: energy beyond its context", "{:.0%}"),
    "complete harmony": ("complete: chroma correlation with the given stem", "{:.2f}"),
    "complete added": ("complete: energy beyond the given stem", "{:.0%}"),
}


class Recording:
    """Mono samples. Spectra are computed once."""

    def __init__(self, samples, rate=48000):
        self.samples, self.rate = samples, rate

    @functools.cached_property
    def spectrum(self):
        return np.abs(librosa.stft(self.samples, n_fft=WINDOW, hop_length=WINDOW // 2, center=False))

    @functools.cached_property
    def harmony(self):
        """Pitch classes, smoothed over a second: notes pass, chords stay."""
        mono = librosa.resample(self.samples, orig_sr=self.rate, target_sr=ANALYSIS_RATE)
        return librosa.feature.chroma_cens(y=mono, sr=ANALYSIS_RATE)

    def cut(self, first, last):
        """Without, and only, the seconds from `first` to `last`."""
        places = [round(seconds * self.rate) for seconds in (first, last)]
        before, inside, after = np.split(self.samples, places)
        return Recording(np.concatenate([before, after]), self.rate), Recording(inside, self.rate)


@functools.cache
def load(path):
    audio, rate = soundfile.read(path, always_2d=True, dtype="float32")
    return Recording(audio.mean(axis=1), rate)


def harmony_correlation(one, other):
    """Pearson correlation of pitch classes, frame by frame: 1 for the same chords at the same times."""
    frames = min(one.harmony.shape[1], other.harmony.shape[1])
    rows = [recording.harmony[:, :frames].ravel() for recording in (one, other)]
    return 0.0 if min(np.ptp(row) for row in rows) == 0 else float(np.corrcoef(*rows)[0, 1])


def separate(recording, stems, wanted):
    """Fits the magnitude spectrogram by a sum of the stems' spectrograms with gains of 0 or more, by least squares. Phases are
    ignored, because those of a generated stem differ from the recorded ones.

    @return energy of the wanted stem over that of all others, dB within 40, and the share of energy that is any of the stems
    """
    frames = min(part.spectrum.shape[1] for part in (recording, *stems))
    target = recording.spectrum[:, :frames].ravel()
    parts = np.stack([stem.spectrum[:, :frames].ravel() for stem in stems], axis=1)
    rotation, triangle = np.linalg.qr(parts)  # an equivalent problem with as many rows as stems
    gains, _ = scipy.optimize.nnls(triangle, rotation.T @ target)
    energies = gains**2 * (parts**2).sum(axis=0)
    others = energies.sum() - energies[wanted]
    ratio = 10 * np.log10(max(energies[wanted], 1e-12) / max(others, 1e-12))
    rest = ((target - parts @ gains) ** 2).sum() / max((target**2).sum(), 1e-12)
    return float(np.clip(ratio, -MOST_DB, MOST_DB)), float(1 - rest)


def added_energy(recording, source):
    """Share of the energy that no gain of the source explains."""
    return 1 - separate(recording, [source], 0)[1]


def spectral_distance(one, other):
    """Mean difference in dB. Values 80 dB below the loudest of both count as silence."""
    frames = min(one.spectrum.shape[1], other.spectrum.shape[1])
    spectra = [recording.spectrum[:, :frames] for recording in (one, other)]
    floor = max(max(spectrum.max() for spectrum in spectra) * 10 ** (-QUIETEST_DB / 20), 1e-12)
    first, second = (20 * np.log10(np.maximum(spectrum, floor)) for spectrum in spectra)
    return float(np.abs(first - second).mean())


def unchanged_share(one, other):
    count = min(len(one.samples), len(other.samples))
    return float((np.abs(one.samples[:count] - other.samples[:count]) <= ROUNDING).mean())


def measure(trial, candidate):
    """Values of a recording as the answer to a trial, by the names of rows."""
    task, source, others = trial["task"], load(trial["source"]), [load(path) for path in trial["others"]]
    if task == "cover":
        own = harmony_correlation(candidate, source)
        rest = [harmony_correlation(candidate, other) for other in others]
        return {"cover harmony": own, "cover other harmony": np.mean(rest), "cover nearest": own > max(rest)}
    if task == "repaint":
        (outside, inside), (was_outside, was_inside) = (each.cut(*trial["window"]) for each in (candidate, source))
        return {
            "repaint unchanged": unchanged_share(outside, was_outside),
            "repaint outside": spectral_distance(outside, was_outside),
            "repaint inside": spectral_distance(inside, was_inside),
        }
    if task == "extract":
        stems = [load(path) for path in trial["stems"]]
        ratio, explained = separate(candidate, stems, trial["wanted"])
        raised = ratio - separate(source, stems, trial["wanted"])[0]
        return {"extract raise": raised, "extract raised": raised >= RAISED_DB, "extract explained": explained}
    return {f"{task} harmony": harmony_correlation(candidate, source), f"{task} added": added_energy(candidate, source)}


def candidate_of(trial, name):
    if trial["task"] != "repaint" or name != "truth":
        return load(trial[name])
    source, other = load(trial["source"]), load(trial["others"][0])
    first, last = (round(seconds * source.rate) for seconds in trial["window"])
    truth = source.samples.copy()
    truth[first:last] = other.samples[first:last]
    return Recording(truth, source.rate)


def table(values):
    """Means over the trials that have a value for a row. @param values by candidate, a dictionary a trial"""
    return markdown(CANDIDATES.values(), [
        [title, *(cell(form, [trial.get(row) for trial in values[name]]).replace("%", " %") for name in CANDIDATES)]
        for row, (title, form) in ROWS.items()
    ])


def main(path):
    trials = json.loads(Path(path).read_text(encoding="utf-8"))
    print(table({name: [measure(trial, candidate_of(trial, name)) for trial in trials] for name in CANDIDATES}))


if __name__ == "__main__":
    main(*sys.argv[1:])
