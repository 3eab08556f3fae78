"""Tables of the evaluation, as Markdown."""

import statistics

NATURALS = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}
TEMPO_TOLERANCE = 0.04


def markdown(titles, rows):
    """@param rows lists of cells, the first of which is the row's title"""
    lines = [["", *titles], ["---", *["---:"] * len(titles)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def cell(form, values):
    """Their mean, without None."""
    known = [value for value in values if value is not None]
    return form.format(statistics.fmean(known)) if known else "-"


def evaluation_table(columns):
    """@param columns of the manifest, with the measurements of analyse.py"""
    rows = [[title, *(cell(form, values(column)) for column in columns)] for title, values, form in ROWS]
    return markdown([column["title"] for column in columns], rows)


def is_tempo(asked, measured):
    """The beat of a song may be counted at half or twice the tempo asked for."""
    return any(abs(measured / (asked * level) - 1) <= TEMPO_TOLERANCE for level in (0.5, 1, 2))


def is_key(asked, measured):
    """By sound, not by spelling. `measured` is None if no key was found."""
    return measured is not None and sound_of(asked) == sound_of(measured)


def sound_of(key):
    note, mode = key.split()
    return (NATURALS[note[0]] + note.count("#") - note.count("b")) % 12, mode


def verdict_rows(title, fact, holds):
    """Share of songs that do as asked, and as other prompts asked: the mean over all others is chance."""

    def verdicts(column, is_own):
        wanted = [prompt[fact] for prompt in column["asked"]]
        return [
            100 * holds(other, measurement)
            for song, measurement in enumerate(column["measurements"])
            for prompt, other in enumerate(wanted)
            if None not in (other, wanted[song]) and (song == prompt) == is_own
        ]

    return [
        (title, lambda column: verdicts(column, True), "{:.0f} %"),
        ("— prompts shuffled (chance)", lambda column: verdicts(column, False), "{:.0f} %"),
    ]


def each(value):
    return lambda column: [value(measurement) for measurement in column["measurements"]]


def time_for_thirty_seconds(column):
    times = [30 * time / song["seconds"] for time, song in zip(column["computeSeconds"], column["measurements"])]
    return [statistics.median_high(times)] if times else []


# Each row of the table has a title, a function that returns the values for a column, and a format for their mean.
ROWS = [
    *verdict_rows("tempo within 4 %, octaves allowed", "bpm", lambda bpm, song: is_tempo(bpm, song["tempo"])),
    *verdict_rows("key exact", "keyScale", lambda key, song: is_key(key, song["key"])),
    *verdict_rows("genre recognised", "genre", lambda genre, song: genre == song["genre"]),
    ("beat-spectrum peak", each(lambda song: song["beatPeak"]), "{:.2f}"),
    ("harmonic change per second", each(lambda song: song["harmonicChange"]), "{:.3f}"),
    ("self-similarity at a lag", each(lambda song: song["recurrence"]), "{:.2f}"),
    (
        "second chorus nearer to the first than to the verse",
        lambda column: [100 * returns for returns in column["returns"]],
        "{:.0f} %",
    ),
    ("frames with a stepwise melody in the key", each(lambda song: 100 * song["melody"]), "{:.0f} %"),
    ("flatness from 60 to 440 Hz", each(lambda song: song["lowFlatness"]), "{:.3f}"),
    ("distance between two seeds", lambda column: column["seedDistances"], "{:.2f}"),
    ("distance of VAE reconstruction", lambda column: column["reconstructionDistances"], "{:.1f} dB"),
    ("loudness", each(lambda song: song["loudness"]), "{:.1f} LUFS"),
    ("loudness within 2 LU of -16", each(lambda song: 100 * (abs(song["loudness"] + 16) <= 2)), "{:.0f} %"),
    ("last quarter of a second at least 20 dB below the song", each(lambda song: 100 * (song["end"] <= -20)), "{:.0f} %"),
    ("sides at most 14 dB below the middle", each(lambda song: 100 * (song["sides"] >= -14)), "{:.0f} %"),
    ("silent frames", each(lambda song: 100 * song["silence"]), "{:.1f} %"),
    ("clips (more than 1 sample in 10 000 at full scale)", each(lambda song: 100 * (song["clipped"] > 1e-4)), "{:.0f} %"),
    ("time for 30 s of music (median)", time_for_thirty_seconds, "{:.1f} s"),
]
