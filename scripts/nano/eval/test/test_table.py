"""Verdicts and cells of the table."""

import unittest

from table import evaluation_table, is_key, is_tempo

ASKED = [
    {"bpm": 100, "keyScale": "C major", "genre": "jazz"},
    {"bpm": 140, "keyScale": "A minor", "genre": "rock"},
    {"bpm": None, "keyScale": None, "genre": None},
]
SONG = {"seconds": 20, "tempo": 100, "beatPeak": 0.5, "key": "C major", "harmonicChange": 0.05, "lowFlatness": 0.1,
        "recurrence": 0.2, "melody": 0.3, "genre": "jazz", "loudness": -18, "end": -25, "sides": -10, "silence": 0, "clipped": 0}


def cells(*songs, compute_seconds=()):
    """Cells of the only column, by the titles of their rows."""
    column = {"title": "model", "asked": ASKED, "measurements": [{**SONG, **own} for own in songs],
              "computeSeconds": compute_seconds, "returns": [True, True, False, True], "seedDistances": [],
              "reconstructionDistances": [4, 6]}
    rows = [row.strip("| ").split(" | ") for row in evaluation_table([column]).split("\n")[2:]]
    chances = [value for title, value in rows if title.startswith("—")]
    return dict(rows), chances


class Table(unittest.TestCase):
    def test_songs_that_do_as_asked_stand_beside_those_that_do_as_another_prompt_asked(self):
        found, chances = cells({}, {"genre": "rock"}, {"tempo": 70})
        self.assertEqual(found["tempo within 4 %, octaves allowed"], "50 %")
        self.assertEqual(found["key exact"], "50 %")
        self.assertEqual(found["genre recognised"], "100 %")
        self.assertEqual(chances, ["50 %", "50 %", "0 %"])
        self.assertEqual(found["second chorus nearer to the first than to the verse"], "75 %")
        self.assertEqual(found["frames with a stepwise melody in the key"], "30 %")

    def test_cells_are_means_and_the_median_time_of_half_a_minute(self):
        found, _ = cells({"lowFlatness": None}, {"lowFlatness": 0.3, "beatPeak": 0.7, "seconds": 60}, compute_seconds=(4, 20))
        self.assertEqual(found["flatness from 60 to 440 Hz"], "0.300")
        self.assertEqual(found["beat-spectrum peak"], "0.60")
        self.assertEqual(found["distance of VAE reconstruction"], "5.0 dB")
        self.assertEqual(found["time for 30 s of music (median)"], "10.0 s")

    def test_songs_that_end_are_wide_and_equally_loud_are_counted(self):
        found, _ = cells({}, {"loudness": -19, "end": -3, "sides": -20})
        for title in ("loudness within 2 LU of -16", "last quarter of a second at least 20 dB below the song",
                      "sides at most 14 dB below the middle"):
            self.assertEqual(found[title], "50 %")

    def test_a_column_without_songs_is_empty(self):
        self.assertEqual(cells()[0]["key exact"], "-")
        self.assertEqual(cells()[0]["loudness"], "-")

    def test_a_tempo_may_be_off_by_4_percent_and_counted_at_half_or_twice(self):
        self.assertTrue(all(is_tempo(100, measured) for measured in (100, 103.9, 96.1, 201, 50)))
        self.assertFalse(any(is_tempo(100, measured) for measured in (104.1, 150, 33, 125)))

    def test_keys_are_compared_by_sound(self):
        self.assertTrue(is_key("Db major", "C# major"))
        self.assertFalse(is_key("C major", "A minor"))
        self.assertFalse(is_key("A minor", None))


if __name__ == "__main__":
    unittest.main()
