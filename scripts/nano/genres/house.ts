import type { Genre } from "./genre.js";

export const house: Genre = {
  name: "house",
  names: ["house", "deep house", "electronic dance music", "club house", "house groove"],
  moods: ["energetic", "hypnotic", "uplifting", "euphoric", "driving"],
  scenes: ["for the dance floor", "for a night drive", "with a four-on-the-floor beat", "for a workout"],
  minorShare: 0.65,
  feel: { swingSteps: 1, swing: 0.05, timingSeconds: 0, touch: 3 },
  progressions: {
    major: {
      verse: ["I | V | vi | IV", "I | I | IV | IV", "Imaj7 | iii7 | vi7 | V"],
      chorus: ["I | IV | vi | V", "vi | IV | I | V"],
      bridge: ["IV | IV | V | V"],
    },
    minor: {
      verse: ["i7 | i7 | bVII | bVII", "i | bVI | bIII | bVII", "i7 | iv7 | i7 | v7"],
      chorus: ["i | bVII | bVI | bVII", "i | bIII | bVII | bVI", "i | bVI | iv | V"],
      bridge: ["bVI | bVII | i | i"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [116, 132],
      drums: {
        light: [
          { kick: "X...X...X...X...", open: "..x...x...x...x." },
          { kick: "X...X...X...X...", hat: "..x...x...x...xx", rim: "...x..x....x...." },
        ],
        full: [
          {
            kick: "X...X...X...X...",
            clap: "....X.......X...",
            open: "..x...x...x...x.",
            hat: "x.oox.oox.oox.oo",
          },
          {
            kick: "X...X...X...X..o",
            clap: "....X.......X.o.",
            open: "..X...X...X...X.",
            shaker: "xoxoxoxoxoxoxoxo",
          },
        ],
      },
      bass: ["..R...R...R...R.", "R..R..O...R..R..", "..RR..RO..RR..O.", "R-.R-.R-R-.R-.O."],
      comp: ["x--x----x--x----", "..x...x...x...x.", "x...x..x..x.x...", "..X-..x-...x..x."],
      pulse: ["0123012301230123", "0.2.1.3.0.2.1.3.", "0213021302130213"],
    },
  ],
  band: {
    drums: ["analogKit", "electronicKit"],
    bass: ["synthBass", "deepSynthBass"],
    comp: ["brightPiano", "organ", "polySynth", "electricPiano"],
    pulse: ["sawLead", "squareLead", "polySynth"],
    pad: ["warmPad", "sweepPad", "strings"],
    lead: ["sawLead", "squareLead", "brightPiano"],
  },
  fill: ["snare", "snare", "clap", "snare"],
  presence: { drums: 1, pulse: 0.6, pad: 0.6, lead: 0.75 },
  melody: { density: 1.3, syncopation: 0.7, leap: 3 },
};
