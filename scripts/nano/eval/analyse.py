"""Measures recordings: a manifest in, measurements out, both JSON.

    analyse.py MANIFEST OUT CACHE

The manifest: {"training": [{"path", "genre"}], "recordings": [{"name", "path"}],
               "songs": [{"name", "path", "sections": [[name, start, end]]}],
               "siblings": [{"name", "one", "other"}], "reconstructions": [{"name", "one", "other"}]}
Out: {"recordings": {name: {seconds, tempo, key, genre, ...}}, "songs": {name: whether the second chorus returns, or null},
      "siblings": {name: distance of features}, "reconstructions": {name: log-mel distance in dB}}
Measurements of the same bytes by the same code are kept in CACHE, a directory.
"""

import hashlib
import json
import sys
from pathlib import Path

import joblib

import genre
import measured

PROCESSES = 2


def main(manifest_path, out_path, cache_path):
    manifest = json.loads(Path(manifest_path).read_text(encoding="utf-8"))
    memory = joblib.Memory(cache_path, verbose=0)
    measured.compile_once()
    training, recordings = manifest["training"], manifest["recordings"]
    siblings, reconstructions, songs = manifest["siblings"], manifest["reconstructions"], manifest["songs"]
    windows = run("genre windows", memory, measured.windows, [[entry["path"]] for entry in training + recordings])
    levels = run("recordings", memory, measured.measure, [[entry["path"]] for entry in recordings])
    ends = run("seeds", memory, measured.windows, [[pair[end]] for pair in siblings for end in ("one", "other")])
    returns = run("songs", memory, measured.chorus_returns, [[song["path"]] for song in songs],
                  [song["sections"] for song in songs])
    distances = run("distances", memory, measured.distance, [[pair["one"], pair["other"]] for pair in reconstructions])

    classifier = genre.train(windows[: len(training)], [entry["genre"] for entry in training])
    genres = [genre.predict(classifier, rows) for rows in windows[len(training) :]]
    report = {
        "recordings": {
            entry["name"]: {**level, "genre": name} for entry, level, name in zip(recordings, levels, genres)
        },
        "songs": {song["name"]: value for song, value in zip(songs, returns)},
        "siblings": {
            pair["name"]: genre.distance(classifier, one, other)
            for pair, one, other in zip(siblings, ends[::2], ends[1::2])
        },
        "reconstructions": {pair["name"]: value for pair, value in zip(reconstructions, distances)},
    }
    Path(out_path).write_text(json.dumps(report, indent=1), encoding="utf-8")


def run(what, memory, function, path_lists, arguments=None):
    """`function` of every list of paths and its argument, by several processes, each result kept."""
    print(f"{what}: {len(path_lists)}", file=sys.stderr)
    kept = memory.cache(function, ignore=["paths"])
    code = measured.code_version()
    return joblib.Parallel(n_jobs=PROCESSES)(
        joblib.delayed(kept)([digest(path) for path in paths], code, paths, *own)
        for paths, own in zip(path_lists, [[argument] for argument in arguments] if arguments else [[]] * len(path_lists))
    )


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
