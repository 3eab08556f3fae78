import { expect } from "chai";
import fc from "fast-check";
import { compose } from "../compose/compose.js";
import { movement, spansOf, voicing } from "../compose/harmony.js";
import { metres, type Piece, secondsPerStep } from "../compose/piece.js";
import { chordOf, keyOf, scales } from "../compose/theory.js";
import { genres } from "../genres/index.js";

const anySeed = fc.integer({ min: 0, max: 1_000_000 });

describe("composer of carillon-nano's pieces", () => {
  it("composes the same piece from the same seed, another from another", () => {
    expect(compose(1234)).to.deep.equal(compose(1234));
    expect(compose(1234).parts).to.not.deep.equal(compose(1234 + genres.length).parts);
  });

  it("fills whole seconds with bars and one last chord", () => {
    fc.assert(
      fc.property(anySeed, (seed) => {
        const piece = compose(seed);
        expect(piece.durationSeconds).to.satisfy(Number.isInteger).and.to.be.within(10, 60);
        const tailSeconds = piece.durationSeconds - piece.bars * barSeconds(piece);
        const rounding = 1e-9;
        expect(tailSeconds).to.be.within(0.8 - rounding, 0.8 + barSeconds(piece) + rounding);
        const starts = piece.sections.map(({ firstBar }) => firstBar);
        const ends = piece.sections.map(({ firstBar, bars }) => firstBar + bars);
        expect(starts).to.deep.equal([0, ...ends.slice(0, -1)]);
        expect(ends.at(-1)).to.equal(piece.bars);
      }),
      { numRuns: 200 },
    );
  });

  it("writes notes that their instruments can play, within the piece", () => {
    fc.assert(
      fc.property(anySeed, (seed) => {
        const piece = compose(seed);
        expect(piece.parts.length).to.be.at.least(2);
        const steps = piece.durationSeconds / secondsPerStep(piece);
        const misplaced = piece.parts.flatMap(({ instrument: { lowest, highest }, notes }) =>
          notes.filter(
            ({ pitch, velocity, start, length }) =>
              !(pitch >= lowest && pitch <= highest && velocity >= 1 && velocity <= 127) ||
              !(start >= 0 && start <= steps && length > 0),
          ),
        );
        expect(misplaced).to.deep.equal([]);
      }),
      { numRuns: 100 },
    );
  });

  it("keeps melodies in their key, but for the notes of borrowed chords", () => {
    const pieces = Array.from({ length: 120 }, (_, seed) => compose(seed));
    const shares = pieces.flatMap(melodyShareInScale);
    expect(Math.min(...shares)).to.be.above(0.6);
    expect(shares.reduce((sum, share) => sum + share, 0) / shares.length).to.be.above(0.93);
  });

  it("repeats its motifs: bars of a melody share rhythms", () => {
    const lead = compose(4).parts.find(({ role }) => role === "lead");
    const piece = compose(4);
    const { barSteps } = metres[piece.metre];
    const rhythms = new Map<number, string>();
    for (const { start } of lead?.notes ?? []) {
      const bar = Math.floor((start + 0.5) / barSteps);
      rhythms.set(bar, `${rhythms.get(bar) ?? ""} ${Math.round(start - bar * barSteps)}`);
    }
    expect(rhythms.size).to.be.above(4);
    expect(new Set(rhythms.values()).size).to.be.below(rhythms.size);
  });

  it("reaches every genre, key and metre, and tempos from 60 to 180", () => {
    const pieces = Array.from({ length: 720 }, (_, seed) => compose(seed));
    expect(new Set(pieces.map(({ genre }) => genre)).size)
      .to.equal(genres.length)
      .and.to.be.at.least(8);
    expect(new Set(pieces.map(({ key }) => `${key.tonic} ${key.mode}`)).size).to.equal(24);
    expect([...new Set(pieces.map(({ metre }) => metre))].sort()).to.deep.equal(Object.keys(metres).sort());
    const tempos = pieces.map(({ bpm }) => bpm);
    expect(Math.min(...tempos)).to.be.within(60, 64);
    expect(Math.max(...tempos)).to.be.within(172, 180);
  });
});

describe("harmony of carillon-nano's pieces", () => {
  it("spells chords over the major scale of their key", () => {
    const aMinor = keyOf(9, "minor");
    expect(chordOf("V7", aMinor).pitchClasses).to.deep.equal([4, 8, 11, 2]);
    expect(chordOf("bVImaj7", aMinor).pitchClasses).to.deep.equal([5, 9, 0, 4]);
    // The raised seventh takes the place of its neighbours, which would clash with it.
    expect(chordOf("V7", aMinor).scale).to.deep.equal([0, 2, 4, 5, 8, 11]);
    expect(() => chordOf("H", aMinor)).to.throw(RangeError);
  });

  it("knows every chord of every genre", () => {
    for (const { progressions } of genres) {
      for (const mode of ["major", "minor"] as const) {
        for (const progression of Object.values(progressions[mode]).flat()) {
          const bars = progression.split("|").length;
          expect(spansOf(progression, keyOf(0, mode), { firstBar: 0, bars }, 16).at(-1)?.end).to.equal(
            16 * bars,
          );
        }
      }
    }
  });

  it("moves voices little from chord to chord", () => {
    const key = keyOf(0, "major");
    const tonic = voicing(chordOf("I", key), [], 60);
    const next = voicing(chordOf("IV", key), tonic, 60);
    expect(movement(tonic, next)).to.be.at.most(3);
  });
});

function barSeconds(piece: Piece): number {
  return metres[piece.metre].barSteps * secondsPerStep(piece);
}

/** None where the piece has no melody. */
function melodyShareInScale({ parts, key }: Piece): number[] {
  const lead = parts.find(({ role }) => role === "lead");
  if (lead === undefined || lead.notes.length === 0) return [];
  const inScale = lead.notes.filter(({ pitch }) => scales[key.mode].includes((pitch - key.tonic + 120) % 12));
  return [inScale.length / lead.notes.length];
}
