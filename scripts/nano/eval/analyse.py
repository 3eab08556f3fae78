"""Measures recordings: a manifest in, measurements out, both JSON.

    analyse.py MANIFEST OUT

The manifest: {"training": [{"path", "genre"}], "recordings": [{"name", "path"}],
               "pairs": [{"name", "one", "other"}]}
Out: {"recordings": {name: {seconds, tempo, key, genre, loudness, ...}}, "pairs": {name: log-mel distance in dB}}
"""

import json
import sys

import genre
import signals


def main(manifest_path, out_path):
    with open(manifest_path, encoding="utf-8") as file:
        manifest = json.load(file)
    classifier = train_classifier(manifest["training"])
    measured = {}
    for index, recording in enumerate(manifest["recordings"]):
        measured[recording["name"]] = measure(recording["path"], classifier)
        print(f"\ranalysed {index + 1} of {len(manifest['recordings'])}", end="", file=sys.stderr)
    print(file=sys.stderr)
    pairs = {pair["name"]: distance(pair["one"], pair["other"]) for pair in manifest["pairs"]}
    with open(out_path, "w", encoding="utf-8") as file:
        json.dump({"recordings": measured, "pairs": pairs}, file, indent=1)


def train_classifier(training):
    recordings = [genre.windows(signals.load(entry["path"])[2]) for entry in training]
    return genre.train(recordings, [entry["genre"] for entry in training])


def measure(path, classifier):
    audio, rate, mono = signals.load(path)
    return {
        "seconds": len(audio) / rate,
        "tempo": signals.tempo(mono),
        "key": signals.key(mono),
        "genre": genre.predict(classifier, genre.windows(mono)),
        "loudness": signals.loudness(path),
        **signals.levels(audio, rate),
    }


def distance(one, other):
    spectra = [signals.log_mel(signals.load(path)[2]) for path in (one, other)]
    return signals.log_mel_distance(*spectra)


if __name__ == "__main__":
    main(*sys.argv[1:])
