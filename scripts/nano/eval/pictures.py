"""Pictures of recordings: waveform over a spectrogram with 24 bands per octave.

    pictures.py MANIFEST

The manifest: [{"path", "picture", "title"}]
"""

import json
import sys
import textwrap
from pathlib import Path

import librosa
import matplotlib
import numpy as np
import soundfile
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen before)

RATE = 22050
HOP = 512
LOWEST = "A1"
OCTAVES = 7.4
BANDS_PER_OCTAVE = 24
TITLE_WIDTH = 110
# A few flat colours keep a picture at about 100 kB.
COLORS = 24


def draw(recording):
    audio, rate = soundfile.read(recording["path"], always_2d=True, dtype="float32")
    mono = librosa.resample(audio.mean(axis=1), orig_sr=rate, target_sr=RATE)
    seconds = len(mono) / RATE
    figure, (wave, spectrum) = plt.subplots(
        2, 1, figsize=(11, 5), sharex=True, height_ratios=(1, 4), layout="constrained"
    )
    draw_wave(wave, mono, seconds)
    draw_spectrum(spectrum, mono, seconds)
    figure.suptitle("\n".join(textwrap.wrap(recording["title"], TITLE_WIDTH)), fontsize=10)
    figure.savefig(recording["picture"], dpi=80)
    plt.close(figure)
    Image.open(recording["picture"]).convert("RGB").quantize(COLORS).save(recording["picture"], optimize=True)


def draw_wave(axis, mono, seconds):
    """Highest and lowest sample of every hop."""
    frames = mono[: len(mono) // HOP * HOP].reshape(-1, HOP)
    axis.fill_between(np.arange(len(frames)) * HOP / RATE, frames.min(axis=1), frames.max(axis=1), linewidth=0)
    axis.set(xlim=(0, seconds), ylim=(-1, 1), ylabel="amplitude")


def draw_spectrum(axis, mono, seconds):
    """Spectrogram with quarter-tone bands: a note is a line, its partials are the lines above it."""
    bands = int(OCTAVES * BANDS_PER_OCTAVE)
    lowest = librosa.note_to_hz(LOWEST)
    magnitudes = np.abs(
        librosa.cqt(mono, sr=RATE, hop_length=HOP, fmin=lowest, n_bins=bands, bins_per_octave=BANDS_PER_OCTAVE)
    )
    axis.imshow(
        librosa.amplitude_to_db(magnitudes, ref=np.max),
        origin="lower",
        aspect="auto",
        vmin=-60,
        vmax=0,
        cmap="magma",
        extent=(0, seconds, 0, OCTAVES),
    )
    octaves = np.arange(int(OCTAVES) + 1)
    axis.set_yticks(octaves, [f"{lowest * 2**octave:.0f}" for octave in octaves])
    axis.set(xlabel="seconds", ylabel="hertz")


def main(manifest_path):
    for recording in json.loads(Path(manifest_path).read_text(encoding="utf-8")):
        draw(recording)


if __name__ == "__main__":
    main(*sys.argv[1:])
