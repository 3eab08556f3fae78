/** Blues and what grew from it: country and soul. */
import type { Genre } from "./genre.js";

export const blues: Genre = {
  name: "blues",
  names: ["blues", "slow blues", "twelve-bar blues", "electric blues", "blues shuffle"],
  moods: ["gritty", "lonesome", "smoky", "weary", "soulful"],
  scenes: ["for a bar after midnight", "about hard luck", "for a back porch", "with bent notes"],
  minorShare: 0.3,
  feel: { swingSteps: 2, swing: 0.33, timingSeconds: 0.012, touch: 9 },
  progressions: {
    major: {
      verse: ["I7 | I7 | I7 | I7 | IV7 | IV7 | I7 | I7 | V7 | IV7 | I7 | V7", "I7 | IV7 | I7 | V7"],
      chorus: ["I7 | IV7 | I7 | I7 | IV7 | IV7 | I7 | I7 | V7 | IV7 | I7 | I7"],
      bridge: ["IV7 | IV7 | I7 | V7"],
    },
    minor: {
      verse: ["i7 | iv7 | i7 | i7 | iv7 | iv7 | i7 | i7 | bVI | V7 | i7 | V7", "i7 | iv7 | i7 | V7"],
      chorus: ["iv7 | iv7 | i7 | i7 | bVI | V7 | i7 | i7"],
      bridge: ["iv7 | iv7 | bVI | V7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 4,
      bpm: [66, 132],
      drums: {
        light: [
          { kick: "X.......x.......", rim: "....X.......X...", ride: "x.x.x.x.x.x.x.x." },
          { kick: "X.......x.x.....", snare: "....x.......x...", hat: "x.x.x.x.x.x.x.x." },
        ],
        full: [
          { kick: "X.......X.x.....", snare: "....X.......X...", ride: "X.x.X.x.X.x.X.x." },
          { kick: "X...x...X...x...", snare: "....X.....o.X...", hat: "X.x.X.x.X.x.X.x." },
        ],
      },
      bass: ["R---R---5---A---", "R.R.5.5.A.A.5.5.", "R---3---5---A---"],
      comp: ["x.x.x.x.x.x.x.x.", "..x---..x---....", "X-----x-..x-....", "....x-......x---"],
      pulse: ["0.1.2.1.0.1.2.1."],
    },
    {
      metre: "6/8",
      weight: 2,
      bpm: [60, 76],
      drums: {
        light: [{ kick: "X.........x.", rim: "......X.....", ride: "x.x.x.x.x.x." }],
        full: [{ kick: "X.....x...x.", snare: "......X.....", hat: "X.x.x.X.x.x." }],
      },
      bass: ["R---R-5---A-", "R-----5---R-"],
      comp: ["x.x.x.x.x.x.", "X-----x-----"],
      pulse: ["0.1.2.3.2.1."],
    },
  ],
  band: {
    drums: ["standardKit", "roomKit", "brushKit"],
    bass: ["fingerBass", "uprightBass"],
    comp: ["cleanGuitar", "piano", "organ", "overdrivenGuitar"],
    pulse: ["piano", "steelGuitar"],
    pad: ["organ"],
    lead: ["overdrivenGuitar", "jazzGuitar", "tenorSaxophone", "steelGuitar", "piano"],
  },
  fill: ["snare", "highTom", "midTom", "snare"],
  presence: { drums: 0.85, pulse: 0.3, pad: 0.4, lead: 0.9 },
  melody: { density: 1, syncopation: 0.5, leap: 3 },
};

export const country: Genre = {
  name: "country",
  names: ["country", "country music", "honky-tonk", "country ballad", "bluegrass-tinged country"],
  moods: ["easygoing", "heartfelt", "twangy", "homesick", "cheerful"],
  scenes: ["for a pickup truck", "for a barn dance", "about a small town", "for wide open plains"],
  minorShare: 0.15,
  feel: { swingSteps: 2, swing: 0.08, timingSeconds: 0.008, touch: 6 },
  progressions: {
    major: {
      verse: ["I | I | IV | I", "I | IV | I | V", "I | I | V | V"],
      chorus: ["IV | I | V | I", "I | IV | V | I", "I | V | IV | I"],
      bridge: ["vi | IV | V | V", "IV | I | ii | V"],
    },
    minor: {
      verse: ["i | i | bVII | i", "i | iv | i | V"],
      chorus: ["bIII | bVII | i | i", "iv | i | V | i"],
      bridge: ["bVI | bVII | i | V"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 4,
      bpm: [78, 150],
      drums: {
        light: [
          { kick: "X.......X.......", rim: "....X.......X...", hat: "x.x.x.x.x.x.x.x." },
          { brush: "x.x.X.x.x.x.X.x.", kick: "X.......X......." },
        ],
        full: [
          { kick: "X.......X.......", snare: "x.x.X.x.x.x.X.x.", hat: "x...x...x...x..." },
          {
            kick: "X.....x.X.......",
            snare: "....X.......X...",
            hat: "x.x.x.x.x.x.x.x.",
            tambourine: "....x.......x...",
          },
        ],
      },
      bass: ["R-------5-------", "R---....5---....", "R---5---R---A---"],
      comp: ["....x-......x-..", "x-..x-x-x-..x-x-", "x---x-x-x---x-x-"],
      pulse: ["0.2.1.2.0.2.1.2.", "0213021302130213"],
    },
    {
      metre: "3/4",
      weight: 2,
      bpm: [84, 138],
      drums: {
        light: [{ kick: "X...........", rim: "....x...x...", hat: "x.x.x.x.x.x." }],
        full: [{ kick: "X...........", snare: "....X...X...", hat: "x...x...x..." }],
      },
      bass: ["R-----------", "R-------A---"],
      comp: ["....x---x---", "X---x---x---"],
      pulse: ["0.1.2.1.2.1."],
    },
    {
      metre: "2/4",
      weight: 1,
      bpm: [96, 144],
      drums: {
        light: [{ brush: "x.x.X.x.", kick: "X......." }],
        full: [{ kick: "X...x...", snare: "..X...X." }],
      },
      bass: ["R---5---"],
      comp: ["..x-..x-"],
      pulse: ["0.2.1.2."],
    },
  ],
  band: {
    drums: ["standardKit", "brushKit"],
    bass: ["uprightBass", "fingerBass"],
    comp: ["steelGuitar", "cleanGuitar", "piano"],
    pulse: ["steelGuitar", "nylonGuitar"],
    pad: ["slowStrings", "organ"],
    lead: ["violin", "steelGuitar", "cleanGuitar", "piano"],
  },
  fill: ["snare", "snare", "midTom", "lowTom"],
  presence: { drums: 0.85, pulse: 0.6, pad: 0.25, lead: 0.85 },
  melody: { density: 1, syncopation: 0.25, leap: 3 },
};

export const soul: Genre = {
  name: "soul",
  names: ["soul", "soul music", "rhythm and blues", "classic soul", "neo soul groove"],
  moods: ["warm", "heartfelt", "smooth", "tender", "joyful"],
  scenes: ["for a slow dance", "for a Sunday morning", "with sweet horns", "about love"],
  minorShare: 0.35,
  feel: { swingSteps: 1, swing: 0.12, timingSeconds: 0.012, touch: 7 },
  progressions: {
    major: {
      verse: ["Imaj7 | vi7 | ii7 | V7", "I | iii7 | IV | V", "Imaj7 | Imaj7 | IVmaj7 | IVmaj7"],
      chorus: ["I | vi7 | IV | V7", "IVmaj7 | iii7 | ii7 | Imaj7"],
      bridge: ["IVmaj7 | iv7 | Imaj7 | V7"],
    },
    minor: {
      verse: ["i7 | iv7 | i7 | v7", "i7 | bVII | bVI | V7"],
      chorus: ["iv7 | bVII | bIII | bVI", "i7 | iv7 | bVI | V7"],
      bridge: ["bVI | bVII | i7 | V7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 4,
      bpm: [68, 118],
      drums: {
        light: [
          { kick: "X.....x.X.......", rim: "....X.......X...", hat: "x.x.x.x.x.x.x.x." },
          { kick: "X..x......x.....", snare: "....x.......x...", hat: "x.x.x.x.x.x.x.x." },
        ],
        full: [
          {
            kick: "X.....x.X..x....",
            snare: "....X.......X..o",
            hat: "x.x.x.x.x.x.x.x.",
            tambourine: "....x.......x...",
          },
          { kick: "X..x..x...x..x..", snare: "....X..o.o..X...", hat: "xox.xox.xox.xox." },
        ],
      },
      bass: ["R--R..R.5..O..A.", "R-----R-5---A---", "R..R..5...O.5.A."],
      comp: ["....x-......x-..", "x---..x---..x---", "..x...x.....x.x."],
      pulse: ["0.1.2.3.2.1.2.3."],
    },
    {
      metre: "6/8",
      weight: 1,
      bpm: [60, 74],
      drums: {
        light: [
          { kick: "X.........x.", rim: "......X.....", hat: "x.x.x.x.x.x." },
          { kick: "X...x.....x.", rim: "......X.....", ride: "x.x.x.x.x.x." },
        ],
        full: [{ kick: "X...x.....x.", snare: "......X.....", hat: "X.x.x.X.x.x." }],
      },
      bass: ["R-----R-5-A-"],
      comp: ["x.x.x.x.x.x.", "X-----x-----"],
      pulse: ["0.1.2.3.2.1."],
    },
  ],
  band: {
    drums: ["standardKit", "roomKit"],
    bass: ["fingerBass"],
    comp: ["electricPiano", "organ", "cleanGuitar", "piano"],
    pulse: ["mutedGuitar", "vibraphone"],
    pad: ["strings", "slowStrings", "organ"],
    lead: ["altoSaxophone", "tenorSaxophone", "electricPiano", "trumpet", "cleanGuitar"],
  },
  fill: ["snare", "highTom", "midTom", "snare"],
  presence: { drums: 0.95, pulse: 0.35, pad: 0.6, lead: 0.85 },
  melody: { density: 1, syncopation: 0.6, leap: 3 },
};
