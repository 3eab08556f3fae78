import { expect } from "chai";
import type { TokenScores } from "../../src/engine/addon.js";
import type { LanguageModel } from "../../src/engine/language-model.js";
import { UNKNOWN_METADATA } from "../../src/engine/metadata.js";
import { scoreSong } from "../../src/engine/song-score.js";
import type { PromptPart } from "../../src/engine/tokenizer.js";

const song = {
  audioCodes: Int32Array.of(1, 2),
  caption: "jazz",
  lyrics: "la la",
  language: "en",
  metadata: { ...UNKNOWN_METADATA, bpm: 120, keyScale: "C major" },
};

const captionOnlySong = {
  ...song,
  lyrics: "[Instrumental]",
  metadata: UNKNOWN_METADATA,
  language: "klingon",
};

const textOf = (parts: PromptPart[]) => parts.map((part) => ("text" in part ? part.text : "")).join("");

/** Fake model: texts have the log probability `likelihood`, and metadata tokens have the rank `rank`. */
function fakeModel(likelihood: (text: string, hasAudio: boolean) => number, rank = 1, writesText = true) {
  const asked: string[] = [];
  const score = async (prompt: PromptPart[], texts: PromptPart[][]): Promise<TokenScores[]> => {
    const hasAudio = prompt.some((part) => "audioCode" in part);
    return texts.map((parts) => {
      const text = textOf(parts);
      asked.push(text);
      return {
        logProbabilities: Float32Array.of(likelihood(text, hasAudio), likelihood(text, hasAudio)),
        ranks: Int32Array.of(rank, 1),
      };
    });
  };
  return { lm: { writesText, score } as unknown as LanguageModel, asked };
}

describe("calculation of song scores", () => {
  it("text scores are 0.5 if the audio does not make the words more likely", async () => {
    const { lm, asked } = fakeModel(() => -3);
    expect(await scoreSong(lm, song, {})).to.deep.equal({
      total: 0.5 * 0.5 + 0.3 * 0.5 + 0.2,
      caption: 0.5,
      lyrics: 0.5,
      metadata: 1,
    });
    expect(asked).to.deep.equal([
      "\nbpm: 120\n\n",
      "\nkeyscale: C major\n\n",
      "\nlanguage: en\n\n",
      "\ncaption: jazz\n\n",
      "\n\n# Lyric\nla la\n",
      "\ncaption: jazz\n\n",
      "\n\n# Lyric\nla la\n",
    ]);
  });

  it("the caption score is above 0.5 if the audio makes the caption's words more likely", async () => {
    const { lm } = fakeModel((text, hasAudio) => (hasAudio && text.includes("jazz") ? -1 : -1.1));
    const scores = await scoreSong(lm, song, {});
    expect(scores?.caption).to.be.closeTo(1 / (1 + Math.exp(-1)), 1e-6);
    expect(scores?.lyrics).to.equal(0.5);
  });

  it("the metadata score is lower if the model ranks other tokens higher", async () => {
    expect((await scoreSong(fakeModel(() => 0, 6).lm, song, {}))?.metadata).to.equal((0.5 + 1) / 2);
    expect((await scoreSong(fakeModel(() => 0, 11).lm, song, {}))?.metadata).to.equal(0.5);
  });

  it("scores are null for parts that the song lacks", async () => {
    expect(await scoreSong(fakeModel(() => -1).lm, captionOnlySong, {})).to.deep.equal({
      total: 0.5,
      caption: 0.5,
      lyrics: null,
      metadata: null,
    });
  });

  it("only metadata gets a score if the model writes no text", async () => {
    const mute = fakeModel(() => -1, 1, false);
    expect(await scoreSong(mute.lm, song, {})).to.deep.equal({
      total: 1,
      caption: null,
      lyrics: null,
      metadata: 1,
    });
    expect(await scoreSong(mute.lm, captionOnlySong, {})).to.equal(null);
  });
});
