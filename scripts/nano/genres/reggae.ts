import type { Genre } from "./genre.js";

export const reggae: Genre = {
  name: "reggae",
  names: ["reggae", "reggae groove", "roots reggae", "dub reggae", "reggae tune"],
  moods: ["sunny", "easygoing", "laid-back", "warm", "positive"],
  scenes: ["for the beach", "for a slow afternoon", "with an offbeat skank", "under palm trees"],
  minorShare: 0.45,
  feel: { swingSteps: 1, swing: 0.12, timingSeconds: 0.007, touch: 6 },
  progressions: {
    major: {
      verse: ["I | IV | I | V", "I | V | vi | IV", "I | ii | I | ii"],
      chorus: ["I | vi | IV | V", "IV | V | I | I"],
      bridge: ["vi | iii | IV | V"],
    },
    minor: {
      verse: ["i | bVII | i | bVII", "i | iv | i | iv", "i | bVI | bVII | i"],
      chorus: ["bVI | bVII | i | i", "i | iv | v | i"],
      bridge: ["iv | bVII | bIII | V"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [66, 92],
      drums: {
        light: [
          { kick: "........X.......", rim: "........x.......", hat: "x.x.x.x.x.x.x.x." },
          { kick: "........X.......", rim: "......x.x......x", hat: "..x...x...x...x." },
        ],
        full: [
          { kick: "........X.......", rim: "........X.....o.", hat: "x.xox.xox.xox.xo" },
          { kick: "X.......X.......", rim: "....x...X...x...", hat: "x.xox.xox.xox.xo" },
        ],
      },
      bass: ["R-..R-5-..R-..5-", "..R-R-..5-..R-A-", "R---..R-5-..A---"],
      comp: ["....x.......x...", "....xx......xx..", "..x...x...x...x."],
      pulse: ["..0...0...0...0.", "0.1...0.2...1..."],
    },
  ],
  band: {
    drums: ["roomKit", "standardKit"],
    bass: ["fingerBass", "deepSynthBass"],
    comp: ["cleanGuitar", "organ", "piano"],
    pulse: ["organ", "mutedGuitar"],
    pad: ["organ"],
    lead: ["trumpet", "tenorSaxophone", "organ", "cleanGuitar", "flute"],
  },
  fill: ["snare", "highTom", "midTom", "lowTom"],
  presence: { drums: 1, pulse: 0.4, pad: 0.15, lead: 0.8 },
  melody: { density: 1.1, syncopation: 0.5, leap: 3 },
};
