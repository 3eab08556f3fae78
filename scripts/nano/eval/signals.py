"""What can be said of one recording: tempo, key, harmony, repetition, loudness, its log-mel spectrum."""

import re
import subprocess

import librosa
import numpy as np
import scipy.signal
import scipy.spatial
import soundfile

ANALYSIS_RATE = 22050
HOP = 256
# Frames a second, nearly.
FRAME_RATE = round(ANALYSIS_RATE / HOP)
COMB_BPM = (45, 220)
COMB_TEETH = 8
PITCH_CLASSES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")

# Key profiles of Faraldo et al. (2016), major and minor, tonic first: made for audio of many styles.
MAJOR = (0.1652, 0.0475, 0.0829, 0.0669, 0.0999, 0.0927, 0.0529, 0.1316, 0.0522, 0.0744, 0.0694, 0.0643)
MINOR = (0.1724, 0.0534, 0.0761, 0.1004, 0.0562, 0.0853, 0.0498, 0.1345, 0.0746, 0.0500, 0.0919, 0.0555)


def load(path):
    """Samples by channels at the file's own rate, and mono at the rate of the analysis."""
    audio, rate = soundfile.read(path, always_2d=True, dtype="float32")
    mono = librosa.resample(audio.mean(axis=1), orig_sr=rate, target_sr=ANALYSIS_RATE)
    return audio, rate, mono


def onset_autocorrelation(mono):
    """Of the onset strength without its slow changes, 1 at lag 0; lags are frames of HOP samples."""
    onsets = librosa.onset.onset_strength(y=mono, sr=ANALYSIS_RATE, hop_length=HOP)
    around = np.ones(FRAME_RATE) / FRAME_RATE
    onsets = onsets - np.convolve(onsets, around, mode="same")
    correlation = scipy.signal.correlate(onsets, onsets, method="fft")[len(onsets) - 1 :]
    # Long lags have fewer frames in common.
    unbiased = correlation / np.arange(len(onsets), 0, -1)
    return unbiased / max(unbiased[0], 1e-12)


def tempo(correlation):
    """Beats a minute: the comb whose teeth stand highest in the autocorrelation of onsets.

    The gaps between teeth are not counted against it: between beats that eighths divide they are as high.
    """
    lags = np.arange(len(correlation))
    teeth = np.arange(1, COMB_TEETH + 1)

    def height(bpm):
        at = teeth * 60 * ANALYSIS_RATE / HOP / bpm
        return np.interp(at[at < 0.8 * len(correlation)], lags, correlation).mean()

    return float(max(np.geomspace(*COMB_BPM, 400), key=height))


def beat_peak(correlation):
    """The highest autocorrelation of onsets at lags of a quarter of a second to two: 1 for what repeats exactly."""
    return float(correlation[FRAME_RATE // 4 : 2 * FRAME_RATE].max())


def harmonic_change(mono):
    """Cosine distance of the pitch classes of one second to those of the next, below 2 kHz."""
    chroma = librosa.feature.chroma_cqt(y=mono, sr=ANALYSIS_RATE, hop_length=HOP, n_octaves=5)
    seconds = in_windows(chroma, FRAME_RATE)
    return float(np.mean([scipy.spatial.distance.cosine(one, next_) for one, next_ in zip(seconds, seconds[1:])]))


def low_flatness(mono):
    """Geometric over arithmetic mean of power from 60 to 440 Hz, frame by frame: 0.56 for noise, near 0 for tones."""
    power = np.abs(librosa.stft(mono, n_fft=8192, hop_length=2048)) ** 2 + 1e-10
    hertz = librosa.fft_frequencies(sr=ANALYSIS_RATE, n_fft=8192)
    band = power[(hertz >= 60) & (hertz <= 440)]
    band = band[:, band.mean(axis=0) > 1e-6]
    return float((np.exp(np.log(band).mean(axis=0)) / band.mean(axis=0)).mean()) if band.size else None


def recurrence(mono):
    """How like itself it is at its best lag from two seconds to half its length: correlation of half seconds."""
    mfcc = librosa.feature.mfcc(y=mono, sr=ANALYSIS_RATE, hop_length=HOP, n_mfcc=13)[1:]
    chroma = librosa.feature.chroma_cqt(y=mono, sr=ANALYSIS_RATE, hop_length=HOP)
    rows = in_windows(np.vstack([standardised(mfcc), standardised(chroma)]), FRAME_RATE // 2)
    rows = standardised(rows.T).T
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    likeness = rows @ rows.T
    return float(max(np.diagonal(likeness, lag).mean() for lag in range(4, max(5, len(rows) // 2))))


def in_windows(rows, frames):
    """Means over windows: windows by features."""
    count = rows.shape[1] // frames
    return rows[:, : count * frames].reshape(len(rows), count, frames).mean(axis=2).T


def standardised(rows):
    return (rows - rows.mean(axis=1, keepdims=True)) / np.maximum(rows.std(axis=1, keepdims=True), 1e-9)


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
