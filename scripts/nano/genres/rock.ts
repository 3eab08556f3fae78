import type { Genre } from "./genre.js";

export const rock: Genre = {
  name: "rock",
  names: ["rock", "alternative rock", "rock song", "guitar rock", "indie rock"],
  moods: ["powerful", "energetic", "raw", "anthemic", "bold"],
  scenes: ["for the open road", "for a stadium", "with big guitars", "full of attitude"],
  minorShare: 0.45,
  feel: { swingSteps: 2, swing: 0, timingSeconds: 0.006, touch: 6 },
  progressions: {
    major: {
      verse: ["I | V | IV | I", "I | bVII | IV | I", "I | IV | I | V"],
      chorus: ["I | V | vi | IV", "I | IV | V | V", "IV | I | V | I"],
      bridge: ["vi | IV | vi | V"],
    },
    minor: {
      verse: ["i | bVII | bVI | bVII", "i | i | bIII | bVII", "i | iv | i | bVII"],
      chorus: ["i | bVI | bIII | bVII", "i | bIII | iv | bVI", "bVI | bVII | i | i"],
      bridge: ["iv | iv | bVI | V"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 5,
      bpm: [96, 180],
      drums: {
        light: [
          { kick: "X.......x.x.....", snare: "....X.......X...", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X.....x.x.......", snare: "....X.......X...", hat: "X.x.X.x.X.x.X.x." },
        ],
        full: [
          { kick: "X.x.....x.x.....", snare: "....X.......X...", ride: "X.x.X.x.X.x.X.x." },
          { kick: "X..x..x.X..x....", snare: "....X.......X..o", open: "x...x...x...x..." },
        ],
      },
      bass: ["R.R.R.R.R.R.R.R.", "R-R.R.R-R.R.R.A.", "R---R-R-R---R-5-"],
      comp: ["x-x-x-x-x-x-x-x-", "X-----x-..x-x-x-", "X--x--x-X--x--x-"],
      pulse: ["0.1.2.1.0.1.2.1."],
    },
    {
      metre: "6/8",
      weight: 1,
      bpm: [60, 84],
      drums: {
        light: [
          { kick: "X.........x.", snare: "......X.....", hat: "x.x.x.x.x.x." },
          { kick: "X...x.......", snare: "......X.....", hat: "X.x.x.X.x.x." },
        ],
        full: [{ kick: "X...x.....x.", snare: "......X.....", ride: "X.x.x.X.x.x." }],
      },
      bass: ["R---R-R---R-", "R-----5---A-"],
      comp: ["x-x-x-x-x-x-", "X-----X---x-"],
      pulse: ["0.1.2.3.2.1."],
    },
  ],
  band: {
    drums: ["powerKit", "standardKit", "roomKit"],
    bass: ["pickedBass", "fingerBass"],
    comp: ["overdrivenGuitar", "distortedGuitar", "cleanGuitar"],
    pulse: ["cleanGuitar", "piano"],
    pad: ["organ", "strings"],
    lead: ["overdrivenGuitar", "distortedGuitar", "sawLead", "organ"],
  },
  fill: ["snare", "highTom", "midTom", "lowTom"],
  presence: { drums: 1, pulse: 0.3, pad: 0.3, lead: 0.85 },
  melody: { density: 1.3, syncopation: 0.4, leap: 3 },
};
