"""Measures of one recording: tempo, key, harmony, melody, repetition, form, loudness, log-mel spectrum."""

import re
import subprocess

import librosa
import numpy as np
import scipy.signal
import scipy.spatial
import soundfile

ANALYSIS_RATE = 22050
HOP = 256
# Frames per second, rounded.
FRAME_RATE = round(ANALYSIS_RATE / HOP)
COMB_BPM = (45, 220)
COMB_TEETH = 8
PITCH_CLASSES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")

# Melody analysis uses frames of 93 ms and pitches from C4 to B6. An overtone is its distance above the pitch in
# semitones, and the weight of its power.
MELODY_HOP = 2048
LOWEST_MELODY_HZ, MELODY_PITCHES = 261.63, 36
OVERTONES = ((0, 1), (12, 0.5), (19, 0.33), (24, 0.25))
# Melodies lie above their chords, so amplitudes are raised by 3 dB per octave.
MELODY_TILT = 10 ** (3 / 20)
# A pitch leads if it exceeds two limits: LEADING times the median of all pitches, and AUDIBLE times the maximum of
# the recording.
LEADING, AUDIBLE = 1.5, 0.03
WHOLE_TONE = 2
SCALES = {"major": (0, 2, 4, 5, 7, 9, 11), "minor": (0, 2, 3, 5, 7, 8, 10)}

# Major and minor key profiles for audio of many styles (Faraldo et al., 2016). The tonic is first.
MAJOR = (0.1652, 0.0475, 0.0829, 0.0669, 0.0999, 0.0927, 0.0529, 0.1316, 0.0522, 0.0744, 0.0694, 0.0643)
MINOR = (0.1724, 0.0534, 0.0761, 0.1004, 0.0562, 0.0853, 0.0498, 0.1345, 0.0746, 0.0500, 0.0919, 0.0555)


def load(path):
    """Samples by channels at the file's own rate, and mono at the rate of the analysis."""
    audio, rate = soundfile.read(path, always_2d=True, dtype="float32")
    mono = librosa.resample(audio.mean(axis=1), orig_sr=rate, target_sr=ANALYSIS_RATE)
    return audio, rate, mono


def onset_autocorrelation(mono):
    """Autocorrelation of the onset strength without its slow changes: 1 at lag 0. Lags are frames of HOP samples."""
    onsets = librosa.onset.onset_strength(y=mono, sr=ANALYSIS_RATE, hop_length=HOP)
    around = np.ones(FRAME_RATE) / FRAME_RATE
    onsets = onsets - np.convolve(onsets, around, mode="same")
    correlation = scipy.signal.correlate(onsets, onsets, method="fft")[len(onsets) - 1 :]
    # Divide by the number of overlapping frames, which decreases with the lag.
    unbiased = correlation / np.arange(len(onsets), 0, -1)
    return unbiased / max(unbiased[0], 1e-12)


def tempo(correlation):
    """Beats a minute: the comb filter with the highest response in the autocorrelation of onsets.

    Gaps between the comb's teeth are ignored, because with eighth notes they are as high as the beats.
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
    """Self-similarity at the best lag from two seconds to half the length: correlation of half seconds."""
    rows = half_seconds(mono)
    likeness = rows @ rows.T
    return float(max(np.diagonal(likeness, lag).mean() for lag in range(4, max(5, len(rows) // 2))))


def stepwise_melody(mono):
    """Share of frames with a leading pitch of the key that was reached from the pitch before by one or two semitones."""
    tonic, _, mode = (key(mono) or "").partition(" ")
    if not mode:
        return 0.0
    scale = {(PITCH_CLASSES.index(tonic) + degree) % 12 for degree in SCALES[mode]}
    stepwise, before, current, is_step = 0, None, None, False
    pitches = leading_pitches(mono)
    for pitch in pitches:
        if pitch != current:
            before, current = current if current is not None else before, pitch
            is_step = None not in (before, current) and 0 < abs(current - before) <= WHOLE_TONE
        stepwise += bool(is_step and current % 12 in scale)
    return stepwise / max(1, len(pitches))


def leading_pitches(mono):
    """Semitones above C4 frame by frame, None for frames in which no pitch stands out.

    The path of pitches with the most energy, in which every change costs the same, however far it is.
    """
    highest = max(semitones for semitones, _ in OVERTONES)
    power = np.abs(
        librosa.cqt(mono, sr=ANALYSIS_RATE, hop_length=MELODY_HOP, fmin=LOWEST_MELODY_HZ, n_bins=MELODY_PITCHES + highest)
    )
    salience = sum(weight * power[shift : shift + MELODY_PITCHES] for shift, weight in OVERTONES)
    upper = salience * MELODY_TILT ** (np.arange(MELODY_PITCHES) / 12)[:, None]
    path = steadiest_path(np.log(upper / np.maximum(upper.max(axis=0), 1e-9) + 1e-3))
    strength = salience[path, np.arange(len(path))]
    leads = (strength > LEADING * np.median(salience, axis=0)) & (strength > AUDIBLE * salience.max())
    return [int(pitch) if leading else None for pitch, leading in zip(path, leads)]


def steadiest_path(scores):
    """The row of every column with the highest sum of scores, less 1 for every change of row."""
    total, origins = scores[:, 0], []
    for column in scores.T[1:]:
        best = total.argmax()
        stays = total >= total[best] - 1
        origins.append(np.where(stays, np.arange(len(total)), best))
        total = np.where(stays, total, total[best] - 1) + column
    path = [total.argmax()]
    for origin in reversed(origins):
        path.append(origin[path[-1]])
    return np.array(path[::-1])


def chorus_returns(mono, sections):
    """Whether the second chorus is more like the first than like the verse: None without two choruses and a verse.

    @param sections names, starts and ends in seconds
    """
    rows = half_seconds(mono)

    def part(wanted, number):
        found = [(start, end) for name, start, end in sections if name == wanted]
        return rows[round(2 * found[number][0]) : round(2 * found[number][1])] if len(found) > number else None

    first, second, verse = part("Chorus", 0), part("Chorus", 1), part("Verse", 0)
    if any(each is None or len(each) < 4 for each in (first, second, verse)):
        return None
    return bool(likeness_of(second, first) > likeness_of(second, verse))


def likeness_of(one, other):
    """Mean correlation of half seconds at the best shift of up to a second, the accuracy of section boundaries."""
    best = -1.0
    for shift in range(-2, 3):
        a, b = one[max(0, shift) :], other[max(0, -shift) :]
        count = min(len(a), len(b))
        best = max(best, float((a[:count] * b[:count]).sum(axis=1).mean()))
    return best


def half_seconds(mono):
    """Timbre and pitch classes of half seconds, each row of length 1."""
    mfcc = librosa.feature.mfcc(y=mono, sr=ANALYSIS_RATE, hop_length=HOP, n_mfcc=13)[1:]
    chroma = librosa.feature.chroma_cqt(y=mono, sr=ANALYSIS_RATE, hop_length=HOP)
    rows = in_windows(np.vstack([standardised(mfcc), standardised(chroma)]), FRAME_RATE // 2)
    rows = standardised(rows.T).T
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


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
    """Peak (dB), levels of the last quarter of a second against the whole and of the sides against the middle (dB), shares of
    silent 50 ms frames and of clipped samples."""
    frame = rate // 20
    frames = audio[: len(audio) // frame * frame].reshape(-1, frame * audio.shape[1])
    power = np.sqrt((frames.astype(np.float64) ** 2).mean(axis=1))
    peak = float(np.abs(audio).max())
    return {
        "peak": float(20 * np.log10(max(peak, 1e-6))),
        "end": level_ratio(audio[-rate // 4 :], audio),
        "sides": level_ratio(audio[:, 0] - audio[:, -1], audio[:, 0] + audio[:, -1]),
        "silence": float((power < 1e-3).mean()),
        "clipped": float((np.abs(audio) >= 0.999).mean()),
    }


def level_ratio(one, other):
    """Decibels between the root mean squares, from -120 on."""
    powers = [np.square(part, dtype=np.float64).mean() for part in (one, other)]
    return float(10 * np.log10(max(powers[0] / max(powers[1], 1e-12), 1e-12)))


def log_mel(mono):
    """Decibels of 80 bands, not below -60."""
    power = librosa.feature.melspectrogram(y=mono, sr=ANALYSIS_RATE, n_fft=1024, hop_length=HOP, n_mels=80)
    return np.maximum(10 * np.log10(np.maximum(power, 1e-12)), -60)


def log_mel_distance(one, other):
    """Mean absolute difference in decibels, over the frames that both have."""
    frames = min(one.shape[1], other.shape[1])
    return float(np.abs(one[:, :frames] - other[:, :frames]).mean())
