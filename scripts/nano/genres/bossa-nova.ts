import type { Genre } from "./genre.js";

export const bossaNova: Genre = {
  name: "bossa nova",
  names: ["bossa nova", "slow bossa nova", "Brazilian jazz", "latin lounge", "samba"],
  moods: ["breezy", "romantic", "sunny", "relaxed", "charming"],
  scenes: ["for a beach cafe", "for a summer evening", "with a gentle latin groove", "by the sea"],
  minorShare: 0.45,
  feel: { swingSteps: 2, swing: 0, timingSeconds: 0.008, touch: 6 },
  progressions: {
    major: {
      verse: [
        "Imaj7 | Imaj7 | II7 | II7 | ii7 | V7 | Imaj7 | Imaj7",
        "Imaj7 | vi7 | ii7 | V7",
        "Imaj9 | ii7 | iii7 | ii7 V7",
      ],
      chorus: ["ii7 | V7 | Imaj7 | IVmaj7", "IVmaj7 | iv7 | iii7 | ii7 V7"],
      bridge: ["vi7 | II7 | ii7 | V7"],
    },
    minor: {
      verse: ["i7 | i7 | iiø7 | V7", "i7 | iv7 | V7 | i7"],
      chorus: ["iv7 | bVII7 | bIIImaj7 | bVImaj7", "iv7 | i7 | iiø7 V7 | i7"],
      bridge: ["bVImaj7 | bIIImaj7 | iiø7 | V7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 3,
      bpm: [108, 148],
      drums: {
        light: [
          { rim: "x.....x.....x...", hat: "X.x.X.x.X.x.X.x." },
          { rim: "x..x..x...x..x..", shaker: "XoooXoooXoooXooo" },
        ],
        full: [{ kick: "X.....x.X.....x.", rim: "x.....x.....x...", hat: "X.x.X.x.X.x.X.x." }],
      },
      bass: ["R-----5-5-----R-", "R-----5-R-----5-"],
      comp: ["b-x-..x-b...x-..", "x---..x-..x-....", "..x-..x-x---..x-"],
    },
    {
      metre: "2/4",
      weight: 2,
      bpm: [72, 108],
      drums: {
        light: [
          { shaker: "XoooXooo", rim: "x..x..x." },
          { shaker: "XoooXooo", rim: "..x.x..x" },
        ],
        full: [{ kick: "X..xX..x", shaker: "XoooXooo", rim: "x..x..x.", lowConga: "....X..." }],
      },
      bass: ["R--55--R", "R--5R--5"],
      comp: ["b.xx.x.x", "x..x.xx."],
    },
  ],
  band: {
    drums: ["brushKit", "jazzKit", "handPercussion"],
    bass: ["uprightBass", "fingerBass"],
    comp: ["nylonGuitar"],
    pad: ["slowStrings"],
    lead: ["flute", "tenorSaxophone", "vibraphone", "piano", "altoSaxophone"],
  },
  fill: ["rim", "conga", "lowConga"],
  presence: { drums: 1, pulse: 0, pad: 0.25, lead: 0.9 },
  melody: { density: 1.1, syncopation: 0.7, leap: 3 },
};
