/** Genres led by the beat: hip hop and latin dances. */
import type { Genre } from "./genre.js";

export const hipHop: Genre = {
  name: "hip hop",
  names: ["hip hop", "boom bap", "trap beat", "rap instrumental", "old-school hip hop beat"],
  moods: ["gritty", "confident", "cool", "moody", "heavy"],
  scenes: ["for rapping over", "for a cypher", "for city streets at night", "with heavy 808s"],
  minorShare: 0.8,
  feel: { swingSteps: 1, swing: 0.18, timingSeconds: 0.006, touch: 5 },
  progressions: {
    major: {
      verse: ["Imaj7 | vi7 | Imaj7 | vi7"],
      chorus: ["IVmaj7 | iii7 | vi7 | vi7"],
      bridge: ["ii7 | ii7 | V | V"],
    },
    minor: {
      verse: ["i7 | i7 | bVI | bVI", "i | i | i | V", "i7 | iv7 | i7 | iv7"],
      chorus: ["i | bVI | bVII | i", "i7 | bVI | iv7 | V"],
      bridge: ["iv7 | iv7 | bVI | bVI"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [70, 104],
      drums: {
        light: [
          { kick: "X......x..x.....", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X.........x.....", snare: "....X.......X...", hat: "x.x.x.x.x.x.x.xx" },
        ],
        full: [
          { kick: "X..x...x..x.....", snare: "....X.......X...", hat: "x.x.x.x.x.x.x.x." },
          {
            kick: "X.X.....x.X.....",
            snare: "....X..o....X..o",
            hat: "x.x.x.x.x.x.x.x.",
            open: "......x.........",
          },
          { kick: "X......X..X.....", clap: "........X.......", hat: "xxx.xxxxx.x.xxxx" },
          {
            kick: "X.....x....X....",
            clap: "........X.......",
            hat: "x.xxx.x.xxx.x.xx",
            rim: "...x......x.....",
          },
          { kick: "X.x....x.x......", snare: "....X.......X.x.", hat: "xoxoxoxoxoxoxoxo" },
        ],
      },
      bass: ["R------R--R-----", "R---------R--5--", "R-----R---O-----", "R--R...R--R....."],
      comp: ["X---------------", "x--...x--...x---", "X-------X-------", "..x-....x-......"],
      pulse: ["0...1...2...1...", "0.2.1.2.0.2.1.2."],
    },
  ],
  band: {
    drums: ["analogKit", "electronicKit", "standardKit"],
    bass: ["deepSynthBass", "synthBass", "uprightBass"],
    comp: ["electricPiano", "piano", "strings", "organ"],
    pulse: ["celesta", "pizzicato", "harp"],
    pad: ["warmPad", "slowStrings"],
    lead: ["squareLead", "flute", "mutedTrumpet", "altoSaxophone"],
  },
  fill: ["snare", "snare", "kick", "clap"],
  presence: { drums: 1, pulse: 0.5, pad: 0.4, lead: 0.7 },
  melody: { density: 0.7, syncopation: 0.6, leap: 3 },
};

export const latin: Genre = {
  name: "latin",
  names: ["latin music", "salsa", "cumbia", "cha-cha-cha", "Afro-Cuban dance music"],
  moods: ["fiery", "sunny", "festive", "sensual", "lively"],
  scenes: ["for a street party", "for dancing all night", "with congas and horns", "for a beach bar"],
  minorShare: 0.55,
  feel: { swingSteps: 1, swing: 0, timingSeconds: 0.006, touch: 7 },
  progressions: {
    major: {
      verse: ["I | IV | V7 | I", "I | vi7 | ii7 | V7"],
      chorus: ["I | IV | V7 | IV", "ii7 | V7 | I | I"],
      bridge: ["IV | IV | V7 | V7"],
    },
    minor: {
      verse: ["i | iv | V7 | i", "i | bVII | bVI | V7"],
      chorus: ["i | i | V7 | V7", "iv | i | V7 | i"],
      bridge: ["bVI | bVI | V7 | V7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 1,
      bpm: [84, 124],
      drums: {
        light: [
          { claves: "x..x..x...x.x...", shaker: "x.x.x.x.x.x.x.x." },
          { conga: "..x.....xx..x...", mutedConga: "x.x.x.x.x.x.x.x.", cabasa: "x.xxx.xxx.xxx.xx" },
        ],
        full: [
          {
            kick: "......X.......X.",
            claves: "..x.x...x..x..x.",
            conga: "..x...xx..x...xx",
            cowbell: "x...x...x...x...",
          },
          {
            kick: "...X..X....X..X.",
            rim: "x..x..x...x.x...",
            conga: "......xx......xx",
            cabasa: "x.xxx.xxx.xxx.xx",
          },
          {
            kick: "X...X...X...X...",
            cabasa: "x.xxx.xxx.xxx.xx",
            lowConga: "......x.......x.",
            snare: "............o.x.",
          },
        ],
      },
      bass: ["...5--R-...5--R-", "R-----5---R---5-", "R--5--R-R--5--R-"],
      comp: ["x.xx.xx.x.xx.xx.", "x..x..x.x..x..x.", "..x...x...x...x."],
      pulse: ["0.21.20.1.20.12.", "0.12.01.2.01.20."],
    },
  ],
  band: {
    drums: ["handPercussion", "standardKit"],
    bass: ["uprightBass", "fingerBass"],
    comp: ["piano", "nylonGuitar", "accordion"],
    pulse: ["piano", "nylonGuitar", "vibraphone"],
    pad: ["strings", "brassSection"],
    lead: ["trumpet", "brassSection", "flute", "accordion", "piano"],
  },
  fill: ["conga", "lowConga", "conga", "mutedConga"],
  presence: { drums: 1, pulse: 0.6, pad: 0.25, lead: 0.85 },
  melody: { density: 1.2, syncopation: 0.8, leap: 3 },
};
