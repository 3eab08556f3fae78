import type { Genre } from "./genre.js";

export const lofi: Genre = {
  name: "lofi",
  names: ["lofi hip hop", "lo-fi hip hop", "lofi beat", "chillhop", "lo-fi study beat"],
  moods: ["relaxed", "dreamy", "cozy", "nostalgic", "mellow"],
  scenes: ["for studying", "for a rainy night", "for late evenings", "with a laid-back groove"],
  minorShare: 0.55,
  feel: { swingSteps: 1, swing: 0.22, timingSeconds: 0.008, touch: 6 },
  progressions: {
    major: {
      verse: ["Imaj7 | vi7 | ii7 | V7", "Imaj9 | iii7 | IVmaj7 | V7", "Imaj7 | IVmaj7 | Imaj7 | IVmaj7"],
      chorus: ["ii7 | V7 | Imaj7 | vi7", "IVmaj7 | iii7 | ii7 V7 | Imaj7"],
      bridge: ["vi7 | iii7 | IVmaj7 | V7"],
    },
    minor: {
      verse: ["i7 | iv7 | bVIImaj7 | bIIImaj7", "i9 | bVImaj7 | i9 | v7", "i7 | bVImaj7 | iv7 | V7"],
      chorus: ["iv7 | bVII7 | bIIImaj7 | i7", "i7 | iv7 | bVImaj7 | V7"],
      bridge: ["bVImaj7 | bVII | i7 | i7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [66, 94],
      drums: {
        light: [
          { kick: "x.........x.....", snare: "....x.......x...", hat: "x.x.x.x.x.x.x.x." },
          { kick: "x......xx.......", rim: "....x.......x...", hat: "x.x.x.xxx.x.x.x." },
        ],
        full: [
          { kick: "X......x..x.....", snare: "....X.......X..o", hat: "x.xox.x.x.xox.x." },
          { kick: "X..x......x..x..", snare: "....X..o....X...", hat: "x.x.x.xox.x.x.xo" },
        ],
      },
      bass: ["R------.5--.R---", "R----.R-..R-5---", "R-------..5-A---"],
      comp: ["x-------..x-----", "..x---x---------", "x-----x-----x---", "b-..u---b-..u---"],
      pulse: ["0.1.2.1.3.2.1.2.", "..2...3...1...2."],
    },
  ],
  band: {
    drums: ["roomKit", "electronicKit"],
    bass: ["fingerBass", "uprightBass", "deepSynthBass"],
    comp: ["electricPiano", "piano", "jazzGuitar"],
    pulse: ["nylonGuitar", "celesta", "electricPiano"],
    pad: ["warmPad", "slowStrings"],
    lead: ["vibraphone", "flute", "tenorSaxophone", "jazzGuitar", "mutedTrumpet"],
  },
  fill: ["snare", "snare", "kick", "snare"],
  presence: { drums: 1, pulse: 0.4, pad: 0.4, lead: 0.8 },
  melody: { density: 1, syncopation: 0.6, leap: 3 },
};
