import { expect } from "chai";
import { captionRejectionReason, lyricsRejectionReason } from "../../src/engine/answer-check.js";

const own =
  "[Verse]\nI left the key beneath the stone\nwhere the ivy learned to climb\n\n[Chorus]\nLeave a light on";

describe("check of language model output", () => {
  it("the check takes linear time for unclosed brackets", async () => {
    expect(await lyricsRejectionReason(own, "[".repeat(400_000))).to.equal(
      await lyricsRejectionReason(own, ""),
    );
  });

  const goodCaptions: [asked: string, caption: string][] = [
    [
      "heavy metal",
      "An aggressive heavy metal track with distorted guitars, pounding double-kick drums and a screaming male vocal.",
    ],
    [
      "sad song about my dog",
      "A melancholic acoustic ballad with fingerpicked guitar and a tender female voice.",
    ],
    [
      "lofi beats",
      "A mellow lo-fi hip-hop instrumental with dusty drums, vinyl crackle and warm electric piano chords.",
    ],
    ["Bossa Nova", "Slow bossa nova, nylon guitar, brushed drums"],
    ["慢板鋼琴", "A slow, contemplative solo piano piece with soft dynamics and long, ringing chords."],
    ["techno", "deep techno"],
    ["", "Ein ruhiges Klavierstück mit weichen Streichern und einer langsamen, traurigen Melodie."],
  ];
  for (const [asked, caption] of goodCaptions) {
    it(`the check accepts the caption "${caption.slice(0, 30)}..."`, async () => {
      expect(await captionRejectionReason(caption, asked)).to.equal(null);
    });
  }

  const badCaptions: [asked: string, caption: string, fault: RegExp][] = [
    ["heavy metal", "chillhop", /about chillhop instead of metal/],
    ["solo piano", "and cheerful folk jazz,4 carries the bossabpmbpm:  melody is major minor", /metadata/],
    [
      "a song",
      "sof pi no wiht thr drma guitr plukked bas lin swnig uitar mpled ing ofter anosyn",
      /not read like a language/,
    ],
    ["a song", `warm ${"guitar and ".repeat(12)}`, /repeats itself/],
    ["polka", "en en G major major major major driven polka with warm accordion", /repeats itself/],
    ["a song", "language".repeat(9), /runs words together/],
    ["a song", "warm piano \ufffd\u0016 and strings", /control characters/],
  ];
  for (const [asked, caption, fault] of badCaptions) {
    it(`the check rejects a caption: ${fault.source}`, async () => {
      expect(await captionRejectionReason(caption, asked)).to.match(fault);
    });
  }

  const goodLyrics: [what: string, own: string, lyrics: string][] = [
    ["the user's words unchanged", own, own],
    [
      "the user's words under other tags",
      own,
      "[Verse 1 - soft, piano only]\nI left the key beneath the stone,\nWhere the ivy learned to climb\n\n[Pre-Chorus]\n[Chorus: full band]\nLeave a light on!\n[Guitar Solo]\n[Outro]\nLeave a light on",
    ],
    ["words in Japanese", "[Verse]\n夜の街を歩いていく", "[Verse 1]\n夜の街を\n歩いていく"],
    [
      "nonsense that the user wrote",
      "[Hook]\nna na na na hey hey",
      "[Chorus]\nNa na na na, hey hey\nNa na na na, hey hey",
    ],
    ["a tag that the user invented", "[Gregorian]\nkyrie eleison", "[Intro]\n[Gregorian]\nKyrie eleison"],
    [
      "new words if the user wrote none",
      "",
      "[Verse 1]\nThe kettle kept the morning warm\nFor one more borrowed time\n[Chorus]\nLeave a light, leave a light\nOn the sill above the sea",
    ],
  ];
  for (const [what, before, after] of goodLyrics) {
    it(`the check accepts lyrics: ${what}`, async () => {
      expect(await lyricsRejectionReason(after, before)).to.equal(null);
    });
  }

  const badLyrics: [what: string, own: string, lyrics: string, fault: RegExp][] = [
    [
      "other words than the user's",
      own,
      "[Verse]\nThe kettle kept the morning warm\nFor one more borrowed time",
      /keeps only \d+ of 17 words/,
    ],
    ["half of the words", own, "[Verse]\nI left the key beneath the stone", /keeps only 7 of 17 words/],
    ["no words", own, "[Instrumental]", /keeps only 0 of 17/],
    [
      "words under a meaningless tag",
      own,
      own.replace("[Chorus]", "[keyscale organ 4]"),
      /"keyscale organ 4" is not a section tag/,
    ],
    ["metadata among the words", own, `${own}\nkeyscale: D major\ntimesignature: 4`, /metadata/],
    [
      "words of no language",
      "",
      "funkea walk en ollerg vastes Oelegant oonde ageh basedor ynths ndlldow onc istfult rea",
      /language/,
    ],
    ["endless repetition", "", "[Verse]\n".concat("saw wave ".repeat(60)), /repeats itself/],
  ];
  for (const [what, before, after, fault] of badLyrics) {
    it(`the check rejects lyrics: ${what}`, async () => {
      expect(await lyricsRejectionReason(after, before)).to.match(fault);
    });
  }
});
