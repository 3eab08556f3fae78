"""A genre classifier: logistic regression on the statistics of timbre and rhythm, five seconds at a time."""

import librosa
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from signals import ANALYSIS_RATE, HOP

WINDOW_SECONDS = 5


def windows(mono):
    """Feature vectors of the recording's windows; a recording shorter than one window is one."""
    size = WINDOW_SECONDS * ANALYSIS_RATE
    count = max(1, len(mono) // size)
    return np.stack([features(mono[index * size : (index + 1) * size]) for index in range(count)])


def features(mono):
    magnitudes = np.abs(librosa.stft(mono, n_fft=1024, hop_length=HOP))
    mel = librosa.power_to_db(librosa.feature.melspectrogram(S=magnitudes**2, sr=ANALYSIS_RATE), top_db=80)
    mfcc = librosa.feature.mfcc(S=mel, n_mfcc=20)
    contrast = librosa.feature.spectral_contrast(S=magnitudes, sr=ANALYSIS_RATE)
    onsets = librosa.onset.onset_strength(S=mel, sr=ANALYSIS_RATE, hop_length=HOP)
    rows = np.vstack(
        [
            # Omits the first coefficient, which measures loudness.
            mfcc[1:],
            contrast,
            librosa.feature.spectral_centroid(S=magnitudes, sr=ANALYSIS_RATE),
            librosa.feature.spectral_rolloff(S=magnitudes, sr=ANALYSIS_RATE),
            librosa.feature.spectral_flatness(S=magnitudes),
            onsets[None, :],
        ]
    )
    change = np.abs(np.diff(rows, axis=1)).mean(axis=1)
    return np.concatenate([rows.mean(axis=1), rows.std(axis=1), change])


def train(recordings, labels):
    """@param recordings a list of `windows`"""
    samples = np.concatenate(recordings)
    targets = np.concatenate([[label] * len(rows) for rows, label in zip(recordings, labels)])
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=2000)).fit(samples, targets)


def predict(model, rows):
    return str(model.classes_[model.predict_log_proba(rows).mean(axis=0).argmax()])


def distance(model, one, other):
    """Root mean square over features of the difference of two recordings' means, in standard deviations of training."""
    means = model[0].transform(np.stack([one.mean(axis=0), other.mean(axis=0)]))
    return float(np.sqrt(((means[0] - means[1]) ** 2).mean()))
