import { expect } from "chai";
import fc from "fast-check";
import {
  canonicalKeyScale,
  canonicalLanguage,
  canonicalTimeSignature,
  isComplete,
  mergeMetadata,
  toThinkFields,
} from "../../src/engine/metadata.js";
import type { Metadata } from "../../src/engine/types.js";

const nothing: Metadata = { bpm: null, keyScale: "", timeSignature: "", durationSeconds: null };

describe("parsing and merging of metadata", () => {
  it("converts key scales to their canonical form", () => {
    const forms: [string, string | undefined][] = [
      ["Am", "A minor"],
      ["C", "C major"],
      ["f# min", "F# minor"],
      ["B♭", "Bb major"],
      ["B♭ major", "Bb major"],
      ["F♯ minor", "F# minor"],
      ["F♯m", "F# minor"],
      ["Ｆ＃ ｍｉｎｏｒ", "F# minor"],
      ["E♭\ufe0e-minor", "Eb minor"],
      ["C♮ major", "C major"],
      ["B flat major", "Bb major"],
      ["f-sharp min.", "F# minor"],
      ["B♭♭ major", undefined],
      [" C Major ", "C major"],
      ["GM", "G major"],
      ["Eb Minor", "Eb minor"],
      ["d♯maj", "D# major"],
      ["bb minor", "Bb minor"],
      ["H minor", undefined],
      ["A dorian", undefined],
      ["N/A", undefined],
      ["", undefined],
    ];
    for (const [text, canonical] of forms) expect(canonicalKeyScale(text), text).to.equal(canonical);
  });

  it("converts codes, locales and names of languages to codes", () => {
    const forms: [string, string | undefined][] = [
      ...(
        ["en-US", "en_US.UTF-8", "English", "ENGLISH", "eng", "English (US)", "American English"] as const
      ).map((text): [string, string] => [text, "en"]),
      ...(["zh_CN", "zh-Hant-TW", "cmn", "Chinese (Simplified)", "Mandarin", "中文"] as const).map(
        (text): [string, string] => [text, "zh"],
      ),
      ["zh-yue", "yue"],
      ["deu", "de"],
      ["Deutsch", "de"],
      ["Espanol", "es"],
      ["Brazilian Portuguese", "pt"],
      ["nb-NO", "no"],
      ["jp", "ja"],
      ["日本語", "ja"],
      ["unknown", "unknown"],
      ["Spanish or English", undefined],
      ["klingon", undefined],
      ["", undefined],
    ];
    for (const [text, code] of forms) expect(canonicalLanguage(text), text).to.equal(code);
  });

  it("only four time signatures are valid, written as a fraction or as its numerator", () => {
    const forms: [string, string | undefined][] = [
      ["4/4", "4"],
      ["3", "3"],
      ["6/8", "6"],
      ["2/4", "2"],
      ["5/4", undefined],
      ["4/8", undefined],
      ["N/A", undefined],
    ];
    for (const [text, canonical] of forms) expect(canonicalTimeSignature(text), text).to.equal(canonical);
  });

  it("client values outside the think block's grammar are clamped, normalised or dropped", () => {
    const client = { bpm: 400.5, keyScale: "H minor", timeSignature: "4/4", durationSeconds: 5.5 };
    expect(toThinkFields(client, "EN")).to.deep.equal({
      bpm: 300,
      duration: 10,
      keyscale: undefined,
      timesignature: "4",
      language: "en",
    });
    expect(toThinkFields(nothing, "klingon")).to.deep.equal(toThinkFields(nothing, null));
  });

  it("the client's values take precedence over the model's", () => {
    const model = { bpm: 90, keyscale: "A minor", timesignature: "3", duration: 60 };
    const client = { bpm: 400, keyScale: "H minor", timeSignature: "5/4", durationSeconds: 12.5 };
    expect(mergeMetadata(client, model)).to.deep.equal(client);
    expect(mergeMetadata({ ...nothing, keyScale: "N/A", durationSeconds: -1 }, model)).to.deep.equal({
      bpm: 90,
      keyScale: "A minor",
      timeSignature: "3",
      durationSeconds: 60,
    });
    expect(mergeMetadata(nothing, {})).to.deep.equal(nothing);
    expect(mergeMetadata(nothing, { keyscale: "B♭ major" }).keyScale).to.equal("Bb major");
  });

  it("metadata is complete only if no field is missing", () => {
    const full = { bpm: 90, keyScale: "A minor", timeSignature: "4", durationSeconds: 30 };
    expect(isComplete(full)).to.equal(true);
    fc.assert(
      fc.property(
        fc.constantFrom<keyof Metadata>("bpm", "keyScale", "timeSignature", "durationSeconds"),
        (field) => {
          expect(isComplete({ ...full, [field]: nothing[field] })).to.equal(false);
        },
      ),
    );
  });
});
