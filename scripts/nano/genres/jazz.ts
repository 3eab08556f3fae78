import type { Genre } from "./genre.js";

export const jazz: Genre = {
  name: "jazz",
  names: ["jazz", "swing jazz", "jazz tune", "bebop-flavoured jazz", "small-combo jazz"],
  moods: ["smoky", "playful", "sophisticated", "swinging", "smooth"],
  scenes: ["in a late-night club", "for a candlelit bar", "with a walking bass", "for a lazy Sunday"],
  minorShare: 0.4,
  feel: { swingSteps: 2, swing: 0.3, timingSeconds: 0.01, touch: 8 },
  progressions: {
    major: {
      verse: [
        "Imaj7 | vi7 | ii7 | V7",
        "Imaj7 | VI7 | ii7 V7 | Imaj7",
        "I7 | IV7 | I7 | I7 | IV7 | IV7 | I7 | V7",
      ],
      chorus: ["ii7 | V7 | Imaj7 | Imaj7", "iii7 VI7 | ii7 V7 | Imaj7 | Imaj7"],
      bridge: ["IVmaj7 | iv7 | iii7 VI7 | ii7 V7"],
    },
    minor: {
      verse: ["i7 | iv7 | iiø7 V7 | i7", "i7 | bVImaj7 | iiø7 | V7"],
      chorus: ["iv7 | bVII7 | bIIImaj7 | iiø7 V7", "iiø7 | V7 | i7 | i7"],
      bridge: ["bIIImaj7 | bVImaj7 | iiø7 | V7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 4,
      bpm: [104, 176],
      drums: {
        light: [
          { ride: "x...x.x.x...x.x.", pedal: "....x.......x..." },
          { ride: "x...x...x.x.x...", pedal: "....x.......x...", snare: "......o......o.." },
        ],
        full: [
          {
            ride: "X...x.x.X...x.x.",
            pedal: "....x.......x...",
            snare: "......o.......o.",
            kick: "o.......o.......",
          },
          {
            ride: "X...x.x.X...x.x.",
            pedal: "....x.......x...",
            snare: "..o.......o...o.",
            kick: "x.........o.....",
          },
        ],
      },
      bass: ["R---3---5---A---", "R---5---7---A---", "R---7---5---A---"],
      comp: ["x-....x-........", "..x-......x-....", "x-....x-..x---..", "......x-....x-.."],
    },
    {
      metre: "3/4",
      weight: 1,
      bpm: [100, 160],
      drums: {
        light: [
          { ride: "x...x.x.x...", pedal: "....x......." },
          { ride: "x...x...x.x.", pedal: "....x...x..." },
        ],
        full: [{ ride: "X...x.x.x.x.", pedal: "....x...x...", kick: "x..........." }],
      },
      bass: ["R---5---A---", "R---3---5---", "R-------A---"],
      comp: ["x-....x-....", "..x-....x-..", "....x-..x-.."],
    },
  ],
  band: {
    drums: ["jazzKit", "brushKit"],
    bass: ["uprightBass"],
    comp: ["piano", "jazzGuitar", "electricPiano"],
    pad: [],
    lead: ["tenorSaxophone", "altoSaxophone", "trumpet", "mutedTrumpet", "vibraphone", "clarinet", "piano"],
  },
  fill: ["snare", "highTom", "snare", "lowTom"],
  presence: { drums: 0.9, pulse: 0, pad: 0, lead: 0.95 },
  melody: { density: 1.7, syncopation: 0.6, leap: 4 },
};
