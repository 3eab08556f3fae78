/** Loud guitars: metal and punk. */
import type { Genre } from "./genre.js";

export const metal: Genre = {
  name: "metal",
  names: ["metal", "heavy metal", "thrash metal", "doom metal", "metal song"],
  moods: ["aggressive", "crushing", "furious", "menacing", "epic"],
  scenes: ["with palm-muted riffs", "for a battle", "with double bass drums", "for the heaviest stage"],
  minorShare: 0.95,
  feel: { swingSteps: 2, swing: 0, timingSeconds: 0.003, touch: 4 },
  progressions: {
    major: { verse: ["I | I | bVII | I"], chorus: ["I | IV | bVII | I"], bridge: ["IV | IV | bVII | bVII"] },
    minor: {
      verse: ["i | i | bVI | bVII", "i | i | i | bVI", "i | bIII | iv | i"],
      chorus: ["i | bVI | bIII | bVII", "bVI | bVII | i | i", "i | bVII | bVI | V"],
      bridge: ["iv | iv | bVI | bVI", "i | i | i | i"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 5,
      bpm: [104, 178],
      drums: {
        light: [
          { kick: "X...x...X...x...", snare: "....X.......X...", hat: "X.x.X.x.X.x.X.x." },
          { kick: "X.......X.......", snare: "........X.......", open: "x...x...x...x..." },
        ],
        full: [
          { kick: "XxXxXxXxXxXxXxXx", snare: "....X.......X...", ride: "X...X...X...X..." },
          { kick: "X.X.X.X.X.X.X.X.", snare: "..X...X...X...X.", open: "X...X...X...X..." },
          { kick: "XxxXxxXxXxxXxxXx", snare: "........X.......", crash: "X.......X......." },
          { kick: "X..XX..XX..XX..X", snare: "....X.......X...", open: "x.x.x.x.x.x.x.x." },
        ],
      },
      bass: ["RRRRRRRRRRRRRRRR", "R.RRR.RRR.RRR.RR", "R-RRR-RRR-RRA-5-"],
      comp: ["xxXxxxXxxxXxxxXx", "X-xxX-xxX-xxX-x-", "X-------X---X---", "xxxXxxxXxxxXxxxX"],
      pulse: ["0120120120120120", "0.1.2.3.2.1.2.3."],
    },
    {
      metre: "6/8",
      weight: 1,
      bpm: [64, 110],
      drums: {
        light: [{ kick: "X.....x.....", snare: "......X.....", hat: "X.x.x.X.x.x." }],
        full: [{ kick: "XxxxxxXxxxxx", snare: "......X.....", crash: "X..........." }],
      },
      bass: ["R.R.R.R.R.R.", "RRRRRRRRRRRR"],
      comp: ["x.x.x.X.x.x.", "X-----X-----"],
      pulse: ["0.1.2.3.2.1."],
    },
  ],
  band: {
    drums: ["powerKit"],
    bass: ["pickedBass", "fingerBass"],
    comp: ["distortedGuitar", "overdrivenGuitar"],
    pulse: ["distortedGuitar", "cleanGuitar"],
    pad: ["strings", "organ"],
    lead: ["distortedGuitar", "overdrivenGuitar"],
  },
  fill: ["snare", "highTom", "midTom", "lowTom"],
  presence: { drums: 1, pulse: 0.4, pad: 0.2, lead: 0.8 },
  melody: { density: 1.6, syncopation: 0.3, leap: 4 },
};

export const punk: Genre = {
  name: "punk",
  names: ["punk", "punk rock", "pop punk", "hardcore punk", "garage punk song"],
  moods: ["raw", "rebellious", "fast and loud", "cheeky", "furious"],
  scenes: ["for a sweaty basement", "with three chords", "for skateboarding", "for jumping around"],
  minorShare: 0.25,
  feel: { swingSteps: 2, swing: 0, timingSeconds: 0.009, touch: 8 },
  progressions: {
    major: {
      verse: ["I | I | IV | V", "I | V | vi | IV", "I | IV | I | V"],
      chorus: ["I | V | vi | IV", "IV | V | I | I", "I | IV | V | IV"],
      bridge: ["vi | vi | V | V"],
    },
    minor: {
      verse: ["i | bVI | bVII | i", "i | bIII | bVII | iv"],
      chorus: ["bVI | bVII | i | i", "i | bVI | bIII | bVII"],
      bridge: ["iv | iv | V | V"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [150, 180],
      drums: {
        light: [
          { kick: "X...X...X...X...", snare: "....X.......X...", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X.....x.X.....x.", lowTom: "x.x.x.x.x.x.x.x." },
        ],
        full: [
          { kick: "X..xX..xX..xX..x", snare: "..X...X...X...X.", open: "x...x...x...x..." },
          { kick: "X.....X.X.X.....", snare: "....X.......X...", open: "X.x.X.x.X.x.X.x." },
          { kick: "X...X...X...X...", snare: "..X...X...X...X.", ride: "X...X...X...X..." },
        ],
      },
      bass: ["R.R.R.R.R.R.R.R.", "R.R.R.R.R.R.A.A."],
      comp: ["x.x.x.x.x.x.x.x.", "X-x-x-x-X-x-x-x-", "X-------x-x-x-x-"],
      pulse: ["0.2.1.2.0.2.1.2."],
    },
  ],
  band: {
    drums: ["powerKit", "roomKit"],
    bass: ["pickedBass"],
    comp: ["distortedGuitar", "overdrivenGuitar"],
    pulse: ["overdrivenGuitar"],
    pad: ["organ"],
    lead: ["overdrivenGuitar", "distortedGuitar"],
  },
  fill: ["snare", "snare", "highTom", "lowTom"],
  presence: { drums: 1, pulse: 0.25, pad: 0.1, lead: 0.75 },
  melody: { density: 1.2, syncopation: 0.3, leap: 2 },
};
