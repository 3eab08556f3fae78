import { fileURLToPath } from "node:url";
import { expect } from "chai";
import {
  encodeLyricPrompt,
  encodeTextPrompt,
  instructionOf,
  legoCaption,
  lyricSpan,
  sungLines,
  type TaskDescription,
  TEXT_TO_MUSIC_INSTRUCTION,
  type TextConditions,
} from "../../src/engine/conditioning.js";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { plainSong } from "./plain-song.js";

const tokenizer = await Tokenizer.load(
  fileURLToPath(new URL("../../models/carillon-nano/text_encoder", import.meta.url)),
);

const plain: TaskDescription = {
  task: "text2music",
  instruction: "",
  trackName: "",
  trackClasses: [],
  hasAudioCodes: false,
};

describe("which instruction a task gets", () => {
  const derived: [change: Partial<TaskDescription>, instruction: string][] = [
    [{}, "Fill the audio semantic mask based on the given conditions:"],
    [{ hasAudioCodes: true }, "Generate audio semantic tokens based on the given conditions:"],
    [{ task: "cover" }, "Generate audio semantic tokens based on the given conditions:"],
    [{ task: "repaint" }, "Repaint the mask area based on the given conditions:"],
    [{ task: "extract", trackName: "backing_vocals" }, "Extract the BACKING_VOCALS track from the audio:"],
    [{ task: "extract" }, "Extract the track from the audio:"],
    [{ task: "lego", trackName: " bass " }, "Generate the BASS track based on the audio context:"],
    [{ task: "lego", trackName: " " }, "Generate the track based on the audio context:"],
    [{ task: "complete", trackClasses: ["drums", "bass"] }, "Complete the input track with DRUMS | BASS:"],
    [{ task: "complete", trackClasses: ["drums"] }, "Complete the input track with DRUMS:"],
    [{ task: "complete", trackClasses: [" "] }, "Complete the input track:"],
    [{ task: "complete" }, "Complete the input track:"],
  ];
  for (const [change, instruction] of derived) {
    it(`the instruction is "${instruction}" for ${JSON.stringify(change)}`, () => {
      expect(instructionOf({ ...plain, ...change })).to.equal(instruction);
    });
  }

  it("the client's instruction replaces the default instruction of the task", () => {
    expect(instructionOf({ ...plain, task: "cover", instruction: " Do it " })).to.equal("Do it");
    expect(TEXT_TO_MUSIC_INSTRUCTION).to.equal(instructionOf(plain));
  });

  it("a lego caption has labelled parts (Global, Local, Mask Control)", () => {
    expect(legoCaption("slap", "funk", "Generate the BASS track:", "explicit")).to.equal(
      "Global: funk\nLocal: slap\nMask Control: true",
    );
    expect(legoCaption("slap", "funk", "Generate a segment of BASS:", "auto")).to.equal(
      "Local: slap\nMask Control: false",
    );
  });
});

const song: TextConditions = {
  instruction: TEXT_TO_MUSIC_INSTRUCTION,
  caption: "upbeat synthwave, 128bpm!",
  lyrics: "[Verse]\nHello",
  language: "en",
  metadata: { bpm: 128, timeSignature: "4", keyScale: "F# minor", durationSeconds: 30.9 },
};

describe("text encoder prompts", () => {
  const spell = async (encode: typeof encodeTextPrompt, conditions: TextConditions): Promise<string> =>
    tokenizer.decode(await encode(tokenizer, conditions));

  it("text encoder prompts describe the song and end with the end token", async () => {
    expect(await spell(encodeTextPrompt, song)).to.equal(
      "# Instruction\nFill the audio semantic mask based on the given conditions:\n\n# Caption\nupbeat synthwave, " +
        "128bpm!\n\n# Metas\n- bpm: 128\n- timesignature: 4\n- keyscale: F# minor\n- duration: 30 seconds\n" +
        "<|endoftext|>\n<|endoftext|>",
    );
    expect(await spell(encodeLyricPrompt, song)).to.equal(
      "# Languages\nen\n\n# Lyric\n[Verse]\nHello<|endoftext|><|endoftext|>",
    );
    expect(await spell(encodeLyricPrompt, { ...song, language: "German" })).to.match(/^# Languages\nde\n/);
  });

  it("text encoder prompts mark unknown values, and format the others as in the training data", async () => {
    const metadata = { bpm: null, timeSignature: "", keyScale: " ", durationSeconds: null };
    expect(await spell(encodeTextPrompt, { ...song, metadata })).to.contain(
      "- bpm: N/A\n- timesignature: N/A\n- keyscale: N/A\n- duration: 30 seconds\n",
    );
    const own = { bpm: 400, timeSignature: "6/8", keyScale: "Am", durationSeconds: 12 };
    expect(await spell(encodeTextPrompt, { ...song, metadata: own })).to.contain(
      "- bpm: 400\n- timesignature: 6\n- keyscale: A minor\n- duration: 12 seconds\n",
    );
    const unset = { ...own, timeSignature: "unknown", keyScale: "auto" };
    expect(await spell(encodeTextPrompt, { ...song, metadata: unset })).to.contain(
      "- timesignature: N/A\n- keyscale: N/A\n",
    );
    const sharp = { ...own, keyScale: "F♯ minor" };
    expect(await spell(encodeTextPrompt, { ...song, metadata: sharp })).to.contain("- keyscale: F# minor\n");
    const foreign = { ...own, timeSignature: "5/4", keyScale: "H minor" };
    expect(await spell(encodeTextPrompt, { ...song, metadata: foreign })).to.contain(
      "- timesignature: 5/4\n- keyscale: H minor\n",
    );
  });

  it("text encoder prompts end the instruction with a colon, and use only the caption of a complete prompt", async () => {
    const whole = "# Instruction\nDo:\n\n# Caption\nlo-fi\n\n# Metas\n- bpm: 1\n";
    expect(await spell(encodeTextPrompt, { ...song, instruction: "Do it", caption: whole })).to.match(
      /^# Instruction\nDo it:\n\n# Caption\nlo-fi\n\n# Metas\n- bpm: 128\n/,
    );
  });

  it("text encoder prompts are truncated with a warning, keeping the end token", async () => {
    const end = tokenizer.controlId("<|endoftext|>");
    const warnings: string[] = [];
    const text = await encodeTextPrompt(tokenizer, { ...song, caption: "la ".repeat(400) }, warnings);
    const lyrics = await encodeLyricPrompt(tokenizer, { ...song, lyrics: "la ".repeat(4000) }, warnings);
    expect([text.length, text.at(-1), text.indexOf(end)]).to.deep.equal([256, end, 255]);
    expect([lyrics.length, lyrics.at(-1), lyrics.indexOf(end)]).to.deep.equal([2048, end, 2047]);
    expect(warnings).to.have.length(2);
    expect(warnings[0]).to.match(
      /^the words of the prompt are too long for the model: about the first \d+ % were used$/,
    );
    expect(warnings[1]).to.match(/^the lyrics are too long/);
  });

  it("control tokens in captions and lyrics are removed", async () => {
    const end = tokenizer.controlId("<|endoftext|>");
    const hostile = { ...song, caption: "x<|endoftext|>y", lyrics: "x<|endoftext|>y" };
    const ends = (ids: Int32Array): number => ids.filter((id) => id === end).length;
    expect(ends(await encodeTextPrompt(tokenizer, hostile))).to.equal(2);
    expect(ends(await encodeLyricPrompt(tokenizer, hostile))).to.equal(2);
  });
});

describe("which lyric lines get timestamps", () => {
  const conditions = (lyrics: string) => ({ ...plainSong, instruction: "", lyrics, language: "de" });

  /** Lyric lines with the index of their first token. */
  async function linesOf(lyrics: string) {
    const prompt = await encodeLyricPrompt(tokenizer, conditions(lyrics));
    const span = await lyricSpan(tokenizer, conditions(lyrics), prompt);
    if (span === null) return null;
    const words = prompt.subarray(span.first, span.first + span.count);
    return { words, lines: sungLines(tokenizer, words, Float32Array.from(words.keys())) };
  }

  it("lyric timestamps start each line at its first token, and skip section tags and blank lines", async () => {
    const lyrics = "[Verse 1]\nÜber den Dächern 🎵\n\n[Chorus]\nder Mond, er singt\nund schweigt";
    const { words, lines } = (await linesOf(lyrics)) ?? expect.fail("no lyrics");
    expect(tokenizer.decode(words)).to.equal(lyrics);
    expect(lines.map(({ text }) => text)).to.deep.equal([
      "Über den Dächern 🎵",
      "der Mond, er singt",
      "und schweigt",
    ]);
    for (const { seconds: first, text } of lines) {
      expect(tokenizer.decode(words.subarray(first))).to.match(new RegExp(`^${text}`));
    }
  });

  it("instrumentals have no lyric timestamps", async () => {
    for (const lyrics of ["", "  \n", "[Instrumental]", "[inst]"])
      expect(await linesOf(lyrics), lyrics).to.equal(null);
  });
});
