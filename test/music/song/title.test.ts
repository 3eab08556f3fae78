/** Titles of songs, and names of their files. */
import { expect } from "chai";
import { songFileName, titleOf } from "../../../src/music/song/title.js";

describe("choice of a song's title", () => {
  const requestOf = (words: { prompt?: string; lyrics?: string }) => ({
    taskType: "cover" as const,
    words: { prompt: "", lyrics: "", ...words },
  });
  const request = requestOf({});
  const cases: [string, Parameters<typeof titleOf>[0], string][] = [
    ["is the user's title", { title: " Evening ", request: requestOf({ prompt: "a waltz" }) }, "Evening"],
    ["is the prompt without a title", { title: "", request: requestOf({ prompt: "a waltz" }) }, "a waltz"],
    ["is the caption without a prompt", { request, result: { prompt: "slow blues" } }, "slow blues"],
    [
      "is the first sung line without a caption",
      { request: requestOf({ lyrics: "[Verse]\n\nby the sea\nla" }) },
      "by the sea",
    ],
    ["is the task type without any text", { request }, "cover"],
    [
      "is a long prompt cut at the end of a word",
      { request: requestOf({ prompt: `${"slow bossa nova, nylon guitar, ".repeat(4)}end` }) },
      "slow bossa nova, nylon guitar, slow bossa nova, nylon",
    ],
  ];
  for (const [what, task, title] of cases) {
    it(what, () => {
      expect(titleOf(task)).to.equal(title);
    });
  }
});

describe("file name for a song's title", () => {
  for (const [title, version, name] of [
    ["Evening", null, "Evening.mp3"],
    ["Evening", "A", "Evening - A.mp3"],
    ["夜の海 🌊", "drums", "夜の海 🌊 - drums.mp3"],
    ['../a\\b:"c"\n\u202e?', null, "a b c.mp3"],
    ["...", null, "song.mp3"],
  ] as const) {
    it(`the file name is ${name}`, () => {
      expect(songFileName(title, version, "mp3")).to.equal(name);
    });
  }

  it("a file name has at most 255 bytes in any script, the limit of file systems", () => {
    expect(Buffer.byteLength(songFileName("🎵".repeat(200), "backing_vocals", "flac"))).to.be.at.most(255);
  });
});
