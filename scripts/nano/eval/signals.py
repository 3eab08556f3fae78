"""What can be said of one recording: tempo, key, loudness, silence, clipping, its log-mel spectrum."""

import re
import subprocess

import librosa
import numpy as np
import soundfile

ANALYSIS_RATE = 22050
HOP = 256
PITCH_CLASSES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")

# Key profiles of Faraldo et al. (2016), major and minor, tonic first: made for audio of many styles.
MAJOR = (0.1652, 0.0475, 0.0829, 0.0669, 0.0999, 0.0927, 0.0529, 0.1316, 0.0522, 0.0744, 0.0694, 0.0643)
MINOR = (0.1724, 0.0534, 0.0761, 0.1004, 0.0562, 0.0853, 0.0498, 0.1345, 0.0746, 0.0500, 0.0919, 0.0555)


def load(path):
    """Samples by channels at the file's own rate, and mono at the rate of the analysis."""
    audio, rate = soundfile.read(path, always_2d=True, dtype="float32")
    mono = librosa.resample(audio.mean(axis=1), orig_sr=rate, target_sr=ANALYSIS_RATE)
    return audio, rate, mono


def tempo(mono):
    """Beats a minute: the slope of a line through the tracked beats, finer than the tracker's own lags."""
    onsets = librosa.onset.onset_strength(y=mono, sr=ANALYSIS_RATE, hop_length=HOP)
    estimate, beats = librosa.beat.beat_track(onset_envelope=onsets, sr=ANALYSIS_RATE, hop_length=HOP, units="time")
    if len(beats) < 4:
        return float(np.atleast_1d(estimate)[0])
    return float(60 / np.polyfit(np.arange(len(beats)), beats, 1)[0])


def key(mono):
    """The key whose profile correlates best with the mean chroma (Krumhansl and Schmuckler's method)."""
    chroma = librosa.feature.chroma_cens(y=mono, sr=ANALYSIS_RATE).mean(axis=1)
    if not np.any(chroma > 0) or np.ptp(chroma) == 0:
        return None
    scores = {
        f"{PITCH_CLASSES[tonic]} {mode}": np.corrcoef(np.roll(profile, tonic), chroma)[0, 1]
        for tonic in range(12)
        for mode, profile in (("major", MAJOR), ("minor", MINOR))
    }
    return max(scores, key=scores.get)


def loudness(path):
    """Integrated loudness in LUFS (EBU R 128), by ffmpeg."""
    command = ["ffmpeg", "-nostats", "-i", path, "-af", "ebur128=framelog=verbose", "-f", "null", "-"]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return float(re.findall(r"I:\s+(-?[\d.]+) LUFS", report)[-1])


def levels(audio, rate):
    """Peak (dB), shares of silent 50 ms frames and of clipped samples."""
    frame = rate // 20
    frames = audio[: len(audio) // frame * frame].reshape(-1, frame * audio.shape[1])
    power = np.sqrt((frames.astype(np.float64) ** 2).mean(axis=1))
    peak = float(np.abs(audio).max())
    return {
        "peak": float(20 * np.log10(max(peak, 1e-6))),
        "silence": float((power < 1e-3).mean()),
        "clipped": float((np.abs(audio) >= 0.999).mean()),
    }


def log_mel(mono):
    """Decibels of 80 bands, not below -60."""
    power = librosa.feature.melspectrogram(y=mono, sr=ANALYSIS_RATE, n_fft=1024, hop_length=HOP, n_mels=80)
    return np.maximum(10 * np.log10(np.maximum(power, 1e-12)), -60)


def log_mel_distance(one, other):
    """Mean absolute difference in decibels, over the frames that both have."""
    frames = min(one.shape[1], other.shape[1])
    return float(np.abs(one[:, :frames] - other[:, :frames]).mean())
