"""Pictures of recordings, to listen by looking: waveform over mel spectrogram, sections marked.

    pictures.py MANIFEST OUT_DIRECTORY

The manifest: [{"name", "path", "title", "sections": [{"name", "startSeconds"}]}]
"""

import json
import sys
from pathlib import Path

import librosa
import matplotlib
import numpy as np
import soundfile

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402 (the backend is chosen before)


def draw(recording, directory):
    audio, rate = soundfile.read(recording["path"], always_2d=True, dtype="float32")
    mono = audio.mean(axis=1)
    power = librosa.feature.melspectrogram(y=mono, sr=rate, n_fft=4096, hop_length=480, n_mels=192, fmax=16000)
    seconds = len(mono) / rate
    figure, (wave, spectrum) = plt.subplots(
        2, 1, figsize=(14, 6), sharex=True, height_ratios=(1, 3), layout="constrained"
    )
    wave.plot(np.arange(0, len(mono), 48) / rate, mono[::48], linewidth=0.3)
    wave.set(ylim=(-1, 1), ylabel="amplitude", title=recording["title"])
    spectrum.imshow(
        librosa.power_to_db(power, ref=np.max),
        origin="lower",
        aspect="auto",
        vmin=-80,
        vmax=0,
        extent=(0, seconds, 0, power.shape[0]),
    )
    spectrum.set(xlabel="seconds", ylabel="mel band", xlim=(0, seconds))
    for section in recording["sections"]:
        for axis in (wave, spectrum):
            axis.axvline(section["startSeconds"], color="tab:red", linewidth=0.8)
        spectrum.text(section["startSeconds"], power.shape[0], f" {section['name']}", color="white", va="top")
    figure.savefig(directory / f"{recording['name']}.png", dpi=80)
    plt.close(figure)


def main(manifest_path, out_directory):
    directory = Path(out_directory)
    directory.mkdir(parents=True, exist_ok=True)
    for recording in json.loads(Path(manifest_path).read_text(encoding="utf-8")):
        draw(recording, directory)


if __name__ == "__main__":
    main(*sys.argv[1:])
