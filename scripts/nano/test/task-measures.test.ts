import { expect } from "chai";
import { Random } from "../compose/random.js";
import {
  addedEnergy,
  harmonyCorrelation,
  logSpectralDistance,
  separate,
  unchangedShare,
} from "../eval/task-measures.js";

const rate = 48_000;
const seconds = 4;

/** Sounds of the pitches (MIDI note numbers), a chord a second. */
function chords(...progression: number[][]): Float32Array {
  return Float32Array.from({ length: seconds * rate }, (_, i) => {
    const chord = progression[Math.floor(i / rate) % progression.length] as number[];
    const wave = (pitch: number): number =>
      Math.sin((2 * Math.PI * 440 * 2 ** ((pitch - 69) / 12) * i) / rate);
    return chord.reduce((sum, pitch) => sum + 0.1 * wave(pitch), 0);
  });
}

function noise(seed: number): Float32Array {
  const random = new Random(seed);
  return Float32Array.from({ length: seconds * rate }, () => random.between(-0.2, 0.2));
}

function mix(...parts: [gain: number, audio: Float32Array][]): Float32Array {
  return Float32Array.from({ length: seconds * rate }, (_, i) =>
    parts.reduce((sum, [gain, audio]) => sum + gain * (audio[i] as number), 0),
  );
}

const [C, F, G, Fsharp] = [
  [60, 64, 67],
  [65, 69, 72],
  [67, 71, 74],
  [66, 70, 73],
];
const melody = chords(C, F, G, C);
const drums = noise(1);
const bass = chords([36], [41], [43], [36]);

describe("measures of carillon-nano's tasks", () => {
  it("hears the same chords in another octave, at their times only", () => {
    const octaveUp = chords(...[C, F, G, C].map((chord) => chord.map((pitch) => pitch + 12)));
    expect(harmonyCorrelation(melody, melody)).to.be.closeTo(1, 1e-6);
    expect(harmonyCorrelation(melody, octaveUp)).to.be.above(0.9);
    expect(harmonyCorrelation(melody, chords(Fsharp))).to.be.below(0);
    expect(harmonyCorrelation(melody, chords(G, C, C, F))).to.be.below(0.6);
    expect(Math.abs(harmonyCorrelation(melody, noise(2)))).to.be.below(0.2);
  });

  it("finds how far a stem was raised over the others, and that noise is none of them", () => {
    const stems = [melody, drums];
    const before = separate(mix([1, melody], [1, drums]), stems, 0);
    const raised = separate(mix([1, melody], [0.25, drums]), stems, 0);
    expect(raised.wantedDecibels - before.wantedDecibels).to.be.closeTo(12, 1.5);
    expect(separate(melody, stems, 0).wantedDecibels).to.equal(40);
    expect(separate(drums, stems, 0).wantedDecibels).to.equal(-40);
    expect(before.explained).to.be.above(0.9);
    expect(separate(noise(3), [melody, bass], 0).explained).to.be.below(0.2);
  });

  it("counts what is not the source as added", () => {
    expect(addedEnergy(mix([0.5, melody]), melody)).to.be.closeTo(0, 1e-6);
    expect(addedEnergy(mix([1, melody], [1, bass]), melody)).to.be.within(0.2, 0.5);
    expect(addedEnergy(bass, melody)).to.be.above(0.9);
  });

  it("tells a changed passage from an untouched one", () => {
    const quiet = mix([0.5, melody]);
    expect(logSpectralDistance(melody, melody)).to.equal(0);
    expect(logSpectralDistance(drums, mix([0.5, drums]))).to.be.closeTo(6, 0.1);
    expect(unchangedShare(melody, melody)).to.equal(1);
    expect(unchangedShare(melody, quiet)).to.be.below(0.1);
  });
});
