import type { Genre } from "./genre.js";

export const synthwave: Genre = {
  name: "synthwave",
  names: ["synthwave", "retrowave", "80s synthwave", "eighties synth pop", "synth pop"],
  moods: ["nostalgic", "neon-lit", "cool", "dreamy", "driving"],
  scenes: ["for a drive at night", "for a neon city", "like an eighties film", "with arpeggiated synths"],
  minorShare: 0.7,
  feel: { swingSteps: 1, swing: 0, timingSeconds: 0, touch: 3 },
  progressions: {
    major: {
      verse: ["I | V | vi | IV", "I | iii | IV | V"],
      chorus: ["I | IV | vi | V", "IV | V | I | vi"],
      bridge: ["ii | IV | V | V"],
    },
    minor: {
      verse: ["i | i | bVI | bVII", "i | bVII | bVI | bVI", "i | bIII | bVII | iv"],
      chorus: ["i | bVI | bIII | bVII", "bVI | bVII | i | i"],
      bridge: ["iv | bVI | bVII | V"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [84, 118],
      drums: {
        light: [
          { kick: "X.......X.......", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X...X...X...X...", rim: "....x.......x...", hat: "..x...x...x...x." },
        ],
        full: [
          { kick: "X...X...X...X...", snare: "....X.......X...", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X.....x.X.......", snare: "....X.......X...", hat: "xxxxxxxxxxxxxxxx" },
        ],
      },
      bass: ["RRORRRORRRORRROR", "R.R.R.R.R.R.R.R.", "R.OOR.OOR.OOR.OO"],
      comp: ["x---------------", "x-------x-------", "x-----x-----x---"],
      pulse: ["0123210301232103", "0.1.2.3.0.1.2.3.", "0213021302130213"],
    },
  ],
  band: {
    drums: ["electronicKit", "analogKit"],
    bass: ["synthBass", "deepSynthBass"],
    comp: ["polySynth", "brightPiano"],
    pulse: ["squareLead", "sawLead", "polySynth"],
    pad: ["warmPad", "sweepPad"],
    lead: ["sawLead", "squareLead"],
  },
  fill: ["snare", "highTom", "midTom", "lowTom"],
  presence: { drums: 1, pulse: 0.8, pad: 0.8, lead: 0.8 },
  melody: { density: 1.1, syncopation: 0.35, leap: 4 },
};
