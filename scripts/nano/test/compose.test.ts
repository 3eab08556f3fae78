import { expect } from "chai";
import fc from "fast-check";
import { compose } from "../compose/compose.js";
import { chordSpansOf } from "../compose/harmony.js";
import {
  metres,
  type Note,
  type Piece,
  type Role,
  type SectionName,
  secondsPerStep,
} from "../compose/piece.js";
import { chordOf, keyOf, scales } from "../compose/theory.js";
import { parseGenre, parseMetreStyle } from "../genres/genre.js";
import { genres } from "../genres/index.js";

const anySeed = fc.integer({ min: 0, max: 1_000_000 });
const pieces = Array.from({ length: 120 }, (_, seed) => compose(seed));

describe("composition of carillon-nano's training pieces", () => {
  it("a piece lasts whole seconds and has sections without gaps, then a final chord unless it fades out", () => {
    fc.assert(
      fc.property(anySeed, (seed) => {
        const piece = compose(seed);
        expect(piece.durationSeconds).to.satisfy(Number.isInteger).and.to.be.within(10, 60);
        const tailSeconds = piece.durationSeconds - piece.bars * barSeconds(piece);
        const rounding = 1e-9;
        const least = { ring: 2.5, slow: 2.5 + 0.35 * barSeconds(piece), fade: -barSeconds(piece) }[
          piece.ending
        ];
        expect(tailSeconds).to.be.within(least - rounding, least + barSeconds(piece) + rounding);
        const starts = piece.sections.map(({ firstBar }) => firstBar);
        const ends = piece.sections.map(({ firstBar, bars }) => firstBar + bars);
        expect(starts).to.deep.equal([0, ...ends.slice(0, -1)]);
        expect(ends.at(-1)).to.equal(piece.bars);
      }),
      { numRuns: 200 },
    );
  });

  it("all notes lie within the piece and are playable on their instruments", () => {
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

  it("melodies stay in their key, except over borrowed chords", () => {
    const shares = pieces.flatMap(melodyShareInScale);
    expect(Math.min(...shares)).to.be.at.least(0.6);
    expect(meanOf(shares)).to.be.above(0.93);
  });

  it("the second chorus repeats the melody of the first", () => {
    let songs = 0;
    for (const piece of pieces) {
      const [first, second] = piece.sections.filter(({ name }) => name === "Chorus");
      if (first === undefined || second === undefined) continue;
      songs++;
      const bars = Math.min(first.bars, second.bars) - 1; // the last bar may lead to a different section
      const [one, other] = [
        leadPitches(piece, first.firstBar, bars),
        leadPitches(piece, second.firstBar, bars),
      ];
      // Swing and timing can move the last note over the bar line.
      const count = Math.min(one.length, other.length);
      expect(Math.abs(one.length - other.length)).to.be.at.most(1);
      expect(other.slice(0, count)).to.deep.equal(one.slice(0, count));
    }
    expect(songs).to.be.above(20);
  });

  it("melodies have more steps than leaps", () => {
    const intervals = pieces.flatMap((piece) => {
      const pitches = leadPitches(piece, 0, piece.bars);
      return pitches.slice(1).map((pitch, index) => Math.abs(pitch - (pitches[index] as number)));
    });
    const steps = intervals.filter((semitones) => semitones <= 2);
    expect(steps.length / intervals.length).to.be.above(0.65);
  });

  it("choruses have more energy than verses in every genre", () => {
    for (const genre of genres) {
      const ratios = piecesOf(genre.name).flatMap((piece) => {
        const [verse, chorus] = [energyOf(piece, "Verse"), energyOf(piece, "Chorus")];
        return verse === 0 || chorus === 0 ? [] : chorus / verse;
      });
      expect(meanOf(ratios), genre.name).to.be.above(1.15);
    }
  });

  it("almost every section ends with a drum fill", () => {
    const ends = pieces.flatMap((piece) =>
      piece.sections.slice(0, -1).flatMap((section) => {
        const { firstBar, bars } = section;
        const [first, last] = [firstBar, firstBar + bars - 1].map((bar) => drumsOf(piece, bar));
        return bars < 2 || first === "" ? [] : first !== last;
      }),
    );
    expect(ends.length).to.be.above(100);
    expect(ends.filter(Boolean).length / ends.length).to.be.above(0.95);
  });

  it("pieces end on a sustained tonic chord, mostly after a cadence, unless they fade out", () => {
    let cadences = 0;
    const ended = pieces.filter(({ ending }) => ending !== "fade");
    expect(ended.length).to.be.within(60, 100);
    for (const piece of ended) {
      const { barSteps } = metres[piece.metre];
      const tonic = chordOf(piece.key.mode === "major" ? "I" : "i", piece.key).pitchClasses;
      const release = (piece.durationSeconds - 0.6) / secondsPerStep(piece);
      const pitched = piece.parts.filter(({ instrument }) => !instrument.isDrumKit);
      const finals = pitched.flatMap(({ notes }) =>
        notes.filter(({ start, length }) => start + length > release - 0.01),
      );
      expect(finals.length, `seed ${piece.seed}`).to.be.at.least(4);
      expect(finals.filter(({ pitch }) => !tonic.includes(pitch % 12))).to.deep.equal([]);
      const bass = piece.parts.find(({ role }) => role === "bass")?.notes ?? [];
      const before = bass.filter(({ start }) => start < piece.bars * barSteps - 0.5).at(-1);
      if (before !== undefined && before.pitch % 12 !== piece.key.tonic) cadences++;
    }
    expect(cadences / ended.length).to.be.above(0.6);
  });

  it("the pieces cover every genre, key and metre, and tempos from 60 to 180", () => {
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

describe("chords and styles of carillon-nano's training pieces", () => {
  it("chord numerals are relative to the major scale on the tonic", () => {
    const aMinor = keyOf(9, "minor");
    expect(chordOf("V7", aMinor).pitchClasses).to.deep.equal([4, 8, 11, 2]);
    expect(chordOf("bVImaj7", aMinor).pitchClasses).to.deep.equal([5, 9, 0, 4]);
    // The raised seventh replaces the notes next to it in the scale, because they would clash with it.
    expect(chordOf("V7", aMinor).scale).to.deep.equal([0, 2, 4, 5, 8, 11]);
    expect(() => chordOf("H", aMinor)).to.throw(RangeError);
  });

  it("every chord of every genre can be parsed", () => {
    for (const progression of genres.flatMap(({ progressions }) => Object.values(progressions).flat())) {
      const bars = progression.split("|").length;
      const spans = chordSpansOf(progression, keyOf(0, "minor"), { firstBar: 0, bars }, 16);
      expect(spans.at(-1)?.end).to.equal(16 * bars);
    }
  });

  it("a genre with a pattern of the wrong length, an unknown drum or an unknown instrument is rejected", () => {
    const waltz = "3/4, weight 1, 90-100 bpm\n";
    expect(() => parseMetreStyle(`${waltz}bass R---5---`)).to.throw(
      RangeError,
      "has 8 steps, but a bar of 3/4 has 12",
    );
    expect(() => parseMetreStyle(`${waltz}full gong x...........`)).to.throw(RangeError, "gong is no drum");
    expect(() => parseGenre("drums 1, kazoo")).to.throw(RangeError, "kazoo is no instrument");
  });
});

function barSeconds(piece: Piece): number {
  return metres[piece.metre].barSteps * secondsPerStep(piece);
}

/** Ten pieces of a genre. */
function piecesOf(name: string): Piece[] {
  const first = genres.findIndex((genre) => genre.name === name);
  return Array.from({ length: 10 }, (_, round) => compose(first + round * genres.length));
}

function notesOf({ parts, metre }: Piece, firstBar: number, bars: number, role?: Role): Note[] {
  const { barSteps } = metres[metre];
  // Swing and timing can move a note slightly ahead of its bar line, so the range starts and ends half a step
  // early.
  const [start, end] = [firstBar * barSteps - 0.5, (firstBar + bars) * barSteps - 0.5];
  return parts
    .filter((part) => role === undefined || part.role === role)
    .flatMap(({ notes }) => notes.filter((note) => note.start >= start && note.start < end));
}

/** Energy of all sections with this name: the sum of squared velocities, divided by the number of bars. */
function energyOf(piece: Piece, wanted: SectionName): number {
  const named = piece.sections.filter(({ name }) => name === wanted);
  const notes = named.flatMap(({ firstBar, bars }) => notesOf(piece, firstBar, bars));
  const energy = notes.reduce((sum, { velocity }) => sum + velocity ** 2, 0);
  return (
    energy /
    Math.max(
      1,
      named.reduce((sum, { bars }) => sum + bars, 0),
    )
  );
}

/** Onset and pitch of each drum note in a bar, without crash cymbals. */
function drumsOf(piece: Piece, bar: number): string {
  const start = bar * metres[piece.metre].barSteps;
  return notesOf(piece, bar, 1, "drums")
    .filter(({ pitch }) => pitch !== 49)
    .map((note) => `${Math.round(note.start - start)}:${note.pitch}`)
    .sort()
    .join(" ");
}

function meanOf(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function leadPitches(piece: Piece, firstBar: number, bars: number): number[] {
  return notesOf(piece, firstBar, bars, "lead").map(({ pitch }) => pitch);
}

/**
 * Returns a list with one number, the share of melody notes in the key's scale. The list is empty for a piece
 * without a melody.
 */
function melodyShareInScale(piece: Piece): number[] {
  const { key, bars } = piece;
  const pitches = leadPitches(piece, 0, bars + 1);
  const inScale = pitches.filter((pitch) => scales[key.mode].includes((pitch - key.tonic + 120) % 12));
  return pitches.length === 0 ? [] : [inScale.length / pitches.length];
}
