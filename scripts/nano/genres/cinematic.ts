import type { Genre } from "./genre.js";

export const cinematic: Genre = {
  name: "cinematic",
  names: ["cinematic", "epic film score", "orchestral cinematic", "dramatic soundtrack", "trailer music"],
  moods: ["epic", "dramatic", "heroic", "dark", "majestic"],
  scenes: ["for a film trailer", "for a battle scene", "with a full orchestra", "for a vast landscape"],
  minorShare: 0.7,
  feel: { swingSteps: 2, swing: 0, timingSeconds: 0.007, touch: 6 },
  progressions: {
    major: {
      verse: ["I | V | vi | IV", "I | bVII | IV | I", "I | iii | IV | V"],
      chorus: ["I | bVI | bVII | I", "IV | V | I | I"],
      bridge: ["vi | iii | IV | V"],
    },
    minor: {
      verse: ["i | bVI | bIII | bVII", "i | i | bVI | V", "i | bVII | bVI | bVII"],
      chorus: ["i | bVI | iv | V", "bVI | bVII | i | i", "i | bIII | bVI | bVII"],
      bridge: ["iv | i | bVI | V"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 3,
      bpm: [76, 140],
      drums: {
        light: [{ kick: "X...x...x...x..." }, { kick: "X.....x...x.....", lowTom: "............x.x." }],
        full: [{ kick: "X..x..x.X..x..x.", lowTom: "x...x...x...x...", snare: "..o...o.X.o...oo" }],
      },
      bass: ["R---------------", "R.R.R.R.R.R.R.R."],
      comp: ["x-x-x-x-x-x-x-x-", "x--x--x-x--x--x-", "x-------x-------"],
      pulse: ["0.1.2.1.0.1.2.1.", "0010020100100201"],
    },
    {
      metre: "6/8",
      weight: 2,
      bpm: [60, 92],
      drums: {
        light: [{ kick: "X.....x....." }, { kick: "X...........", lowTom: "......x...xx" }],
        full: [{ kick: "X.....X...x.", lowTom: "x.x.x.x.x.x." }],
      },
      bass: ["R-----------", "R-----R---R-"],
      comp: ["x-x-x-x-x-x-", "x-----x-----"],
      pulse: ["0.1.2.1.2.1.", "0.1.2.3.2.1."],
    },
    {
      metre: "3/4",
      weight: 1,
      bpm: [84, 150],
      drums: {
        light: [{ kick: "X..........." }, { kick: "X.......x...", lowTom: "..........xx" }],
        full: [{ kick: "X...x...x...", lowTom: "....x...x.xx" }],
      },
      bass: ["R-----------", "R---R---R---"],
      comp: ["x---x---x---", "x-x-x-x-x-x-"],
      pulse: ["0.1.2.1.2.1."],
    },
  ],
  band: {
    drums: ["orchestralDrums"],
    bass: ["cello", "deepSynthBass"],
    comp: ["strings", "pizzicato", "piano"],
    pulse: ["pizzicato", "piano", "harp"],
    pad: ["slowStrings", "warmPad"],
    lead: ["frenchHorn", "violin", "trumpet", "brassSection", "oboe"],
  },
  fill: ["snare", "lowTom", "midTom", "lowTom"],
  presence: { drums: 0.85, pulse: 0.7, pad: 0.6, lead: 0.9 },
  melody: { density: 0.8, syncopation: 0.1, leap: 4 },
};
