import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import { measureLoudness } from "../../../src/music/audio/loudness.js";
import { shippedModel } from "../dataset/data-set.js";
import type { PieceRecord } from "../dataset/record.js";
import { sideLevel } from "../render/master.js";
import { peakOf, planarOf, type Stereo, sampleRate, toDecibels } from "../render/stereo.js";
import { decodeWav, encodeWav } from "../render/wav.js";

const program = fileURLToPath(new URL("../make-data.ts", import.meta.url));
const seconds = 10;

describe("making of carillon-nano's training data", () => {
  let directory: string;
  let records: PieceRecord[];

  before(function () {
    this.timeout(600_000);
    directory = mkdtempSync(join(tmpdir(), "carillon-nano-"));
    // Seed 5 makes a training piece, seed 6 a held-out piece.
    const options = "--pieces 2 --seed-start 5 --processes 2 --out"
      .split(" ")
      .concat(directory, "--duration", String(seconds));
    execFileSync(process.execPath, ["--import", "tsx", program, ...options]);
    records = readFileSync(join(directory, "pieces.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as PieceRecord);
  });

  after(() => rmSync(directory, { recursive: true }));

  it("the data set has one record per piece, and each record names the split of its piece", () => {
    expect(records.map(({ id, split }) => [id, split])).to.deep.equal([
      ["piece-000005", "train"],
      ["piece-000006", "heldout"],
    ]);
  });

  it("writes WAV files of the exact duration", () => {
    for (const record of records) {
      const files = [record.mix, ...Object.values(record.stems)];
      expect(files.length).to.be.above(2);
      for (const file of files) {
        const bytes = readFileSync(join(directory, file));
        expect(bytes.length).to.equal(44 + seconds * sampleRate * 4);
        expect(decodeWav(bytes).left).to.have.length(seconds * sampleRate);
      }
    }
  });

  it("mixes are equally loud, wide, below -1 dB, and end in silence", async () => {
    for (const record of records) {
      const mix = decodeWav(readFileSync(join(directory, record.mix)));
      expect(await measureLoudness(planarOf(mix)), "LUFS").to.be.within(-17, -15);
      expect(toDecibels(peakOf(mix))).to.be.within(-12, -1);
      expect(sideLevel(mix), "sides").to.be.within(-14, -4);
      expect(levelOfEnd(mix), "end").to.be.below(-20);
    }
  });

  it("writes stems that add up to the mix", () => {
    for (const { mix, stems } of records) {
      const read = (file: string) => decodeWav(readFileSync(join(directory, file)));
      const whole = read(mix).left;
      const parts = Object.values(stems).map((file) => read(file).left);
      for (let i = 0; i < whole.length; i += 997) {
        const sum = parts.reduce((total, samples) => total + (samples[i] ?? 0), 0);
        expect(Math.abs(sum - (whole[i] ?? 0))).to.be.below(1e-3);
      }
    }
  });

  it("writes token ids that decode to the engine's prompts", async () => {
    const tokenizer = await Tokenizer.load(join(shippedModel, "text_encoder"));
    for (const record of records) {
      const text = tokenizer.decode(record.textTokenIds);
      expect(text).to.contain(`# Caption\n${record.caption}\n`).and.to.contain(`- bpm: ${record.bpm}\n`);
      expect(tokenizer.decode(record.bareTextTokenIds)).to.contain("- bpm: N/A\n");
      expect(tokenizer.decode(record.lyricTokenIds)).to.contain(`# Lyric\n${record.lyrics}`);
      expect(tokenizer.decode(record.lmThinkTokenIds)).to.match(/^<think>\nbpm: \d+\ncaption: /);
      const [stem = ""] = Object.keys(record.stems);
      const extract = record.tasks.extract[stem as keyof PieceRecord["stems"]] ?? [];
      expect(tokenizer.decode(extract)).to.contain(`Extract the ${stem.toUpperCase()} track from the audio:`);
      expect(record.variants).to.have.length(11);
    }
  });
});

/** Peak of the last quarter of a second below the peak of all, in decibels. */
function levelOfEnd({ left, right }: Stereo): number {
  const end = { left: left.subarray(-sampleRate / 4), right: right.subarray(-sampleRate / 4) };
  return toDecibels(peakOf(end) / peakOf({ left, right }));
}

describe("WAV encoding and decoding", () => {
  it("decodes WAV files to the encoded samples, clipped at full scale", () => {
    const audio = { left: Float32Array.of(0, 0.5, -1), right: Float32Array.of(1, -0.25, 2) };
    const read = decodeWav(encodeWav(audio));
    expect(read.left[1]).to.be.closeTo(0.5, 1e-4);
    expect(read.right[2], "beyond full scale").to.equal(1);
  });
});
