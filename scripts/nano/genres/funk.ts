import type { Genre } from "./genre.js";

export const funk: Genre = {
  name: "funk",
  names: ["funk", "funk groove", "funky disco", "soul funk", "funky jam"],
  moods: ["groovy", "playful", "tight", "energetic", "sassy"],
  scenes: ["for a house party", "for roller skating", "with a tight rhythm section", "full of swagger"],
  minorShare: 0.55,
  feel: { swingSteps: 1, swing: 0.1, timingSeconds: 0.005, touch: 7 },
  progressions: {
    major: {
      verse: ["I9 | I9 | IV9 | I9", "I7 | IV7 | I7 | IV7"],
      chorus: ["I7 | vi7 | ii7 | V7", "IV9 | IV9 | I9 | I9"],
      bridge: ["ii7 | V9 | ii7 | V9"],
    },
    minor: {
      verse: ["i7 | i7 | i7 | IV9", "i7 | iv7 | i7 | iv7"],
      chorus: ["i7 | bVII | bVImaj7 | V7", "bVImaj7 | v7 | i7 | i7"],
      bridge: ["iv7 | bVII7 | i7 | i7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [92, 122],
      drums: {
        light: [
          { kick: "X.x.......x.....", snare: "....X..o.o..X...", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X.....x.x.......", snare: "....X..o....X.o.", hat: "xoxxxoxxxoxxxoxx" },
        ],
        full: [
          { kick: "X.x....x..x..x..", snare: "....X..o.o..X..o", hat: "xxxxxxxxxxxxxxxx" },
          {
            kick: "X..x..x...x.....",
            snare: "....X..o....X.o.",
            hat: "x.xxx.xxx.xxx.x.",
            open: "..............x.",
          },
        ],
      },
      bass: ["R..R..O.R.5.7.O.", "R.RO..R...R5.7O.", "R-..R.O...5.R.A."],
      comp: ["..x..x....x..x..", "x..x..x...x..xx.", "..xx..x...xx..x."],
      pulse: ["0.0.1...0.0.2.1."],
    },
  ],
  band: {
    drums: ["standardKit", "powerKit"],
    bass: ["slapBass", "fingerBass"],
    comp: ["mutedGuitar", "cleanGuitar", "electricPiano", "organ"],
    pulse: ["mutedGuitar", "organ"],
    pad: ["strings", "organ"],
    lead: ["brassSection", "altoSaxophone", "trumpet", "squareLead"],
  },
  fill: ["snare", "snare", "highTom", "lowTom"],
  presence: { drums: 1, pulse: 0.4, pad: 0.25, lead: 0.85 },
  melody: { density: 1.6, syncopation: 0.7, leap: 3 },
};
