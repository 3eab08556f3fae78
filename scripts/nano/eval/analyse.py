"""Measures the recordings of columns and prints the table.

    analyse.py DIRECTORY

DIRECTORY/manifest.json: {"training": [{"path", "genre"}], "columns": [{"title", "paths", "asked": [{"bpm", "keyScale", "genre"}],
    "computeSeconds", "forms": [{"path", "sections": [[name, start, end]]}], "siblings": [[path, path]],
    "reconstructions": [[path, path]]}]}. It gets measurements.json, the columns with what was measured, table.md, and `kept`:
measurements of the same bytes by the same code.
"""

import functools
import hashlib
import json
import sys
from pathlib import Path

import joblib

import genre
import measured
import table

PROCESSES = 2


def main(path):
    directory = Path(path)
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    measured.compile_once()
    run = functools.partial(run_kept, joblib.Memory(directory / "kept", verbose=0))
    training = manifest["training"]
    classifier = genre.train(run(measured.windows, [[each["path"]] for each in training]), [each["genre"] for each in training])
    columns = [{**column, **analyse(column, run, classifier)} for column in manifest["columns"]]
    (directory / "measurements.json").write_text(json.dumps(columns, indent=1), encoding="utf-8")
    text = table.evaluation_table(columns)
    (directory / "table.md").write_text(f"{text}\n", encoding="utf-8")
    print(text)


def analyse(column, run, classifier):
    paths = [[path] for path in column["paths"]]
    genres = [genre.predict(classifier, rows) for rows in run(measured.windows, paths)]
    ends = run(measured.windows, [[path] for pair in column["siblings"] for path in pair])
    forms = column["forms"]
    returns = run(measured.chorus_returns, [[form["path"]] for form in forms], [form["sections"] for form in forms])
    return {
        "measurements": [{**level, "genre": name} for level, name in zip(run(measured.measure, paths), genres)],
        "returns": [value for value in returns if value is not None],
        "seedDistances": [genre.distance(classifier, one, other) for one, other in zip(ends[::2], ends[1::2])],
        "reconstructionDistances": run(measured.distance, column["reconstructions"]),
    }


def run_kept(memory, function, path_lists, *arguments):
    """`function` of every list of paths and its arguments, by several processes, each result kept."""
    print(f"{function.__name__}: {len(path_lists)}", file=sys.stderr)
    kept = memory.cache(function, ignore=["paths"])
    code = measured.code_version()
    return joblib.Parallel(n_jobs=PROCESSES)(
        joblib.delayed(kept)([digest(path) for path in paths], code, paths, *own)
        for paths, *own in zip(path_lists, *arguments)
    )


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
