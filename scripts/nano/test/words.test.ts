import { expect } from "chai";
import { canonicalKeyScale, canonicalTimeSignature } from "../../../src/engine/metadata.js";
import { compose } from "../compose/compose.js";
import { genres } from "../genres/index.js";
import { describePiece } from "../words/description.js";

const pieces = Array.from({ length: 240 }, (_, seed) => compose(seed));
const captions = pieces.flatMap((piece) =>
  describePiece(piece, 6).map(({ caption }) => ({ piece, caption })),
);

describe("captions and lyrics of carillon-nano's pieces", () => {
  it("captions contain no gaps and no doubled words", () => {
    for (const { caption } of captions) {
      expect(caption).to.match(/^[A-Za-z0-9][A-Za-z0-9 ,.'/#&-]+$/);
      expect(caption).to.not.match(/undefined|null|NaN| {2}|,,| ,|\.\./);
      expect(caption).to.not.match(/\b(track|piece|music|groove) \1\b/);
    }
  });

  it("rarely repeats a mood or tempo word in a caption", () => {
    const adjectives = new Set(
      genres.flatMap(({ moods }) => moods).concat("slow", "fast", "steady", "moderate", "brisk", "lively"),
    );
    const doubled = captions.filter(({ caption }) => {
      const words = (caption.toLowerCase().match(/[a-z-]+/g) ?? []).filter((word) => adjectives.has(word));
      return new Set(words).size < words.length;
    });
    // Some instruments have only one name. The name may repeat a mood: "bright piano" in a bright piece.
    expect(doubled.length).to.be.below(0.01 * captions.length);
  });

  it('chooses "a" or "an" by the sound of the next word', () => {
    const articles = captions.flatMap(({ caption }) => caption.match(/\ban? [a-z0-9]+/gi) ?? []);
    expect(articles).to.include("An 80s");
    const wrong = articles.filter((words) => /^a ((?!eu)[aeiou]|8)|^an (eu|[^aeiou8])/i.test(words));
    expect(wrong).to.deep.equal([]);
  });

  it("states the tempo in about half of the captions, and mentions missing drums in some", () => {
    const stated = captions.filter(({ piece, caption }) => new RegExp(`\\b${piece.bpm}`).test(caption));
    expect(stated.length / captions.length).to.be.within(0.35, 0.65);
    const hasDrums = (piece: (typeof pieces)[number]): boolean =>
      piece.parts.some(({ role }) => role === "drums");
    const without = captions.filter(({ caption }) => /no drums/i.test(caption));
    expect(without.length).to.be.above(20);
    expect(without.filter(({ piece }) => hasDrums(piece))).to.deep.equal([]);
  });

  it("writes metadata in the format of the engine's prompts", () => {
    for (const piece of pieces) {
      const { metadata } = describePiece(piece, 1)[0] ?? expect.fail();
      expect(canonicalKeyScale(metadata.keyScale)).to.equal(metadata.keyScale);
      expect(canonicalTimeSignature(metadata.timeSignature)).to.equal(metadata.timeSignature);
      expect(metadata.durationSeconds).to.equal(piece.durationSeconds);
    }
  });

  it("writes lyrics that list the sections in order or mark the piece as instrumental", () => {
    const lyrics = pieces.map((piece) => ({ piece, lyrics: describePiece(piece, 1)[0]?.lyrics ?? "" }));
    const tagged = lyrics.filter((entry) => entry.lyrics !== "[Instrumental]");
    expect(tagged.length).to.be.within(1, lyrics.length - 1);
    for (const entry of tagged) {
      expect(entry.lyrics.split(/\n+/)).to.deep.equal(entry.piece.sections.map(({ name }) => `[${name}]`));
    }
  });
});
