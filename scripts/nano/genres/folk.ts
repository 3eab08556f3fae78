import type { Genre } from "./genre.js";

export const folk: Genre = {
  name: "folk",
  names: ["folk", "acoustic folk", "folk tune", "country folk", "traditional folk music"],
  moods: ["warm", "earthy", "cheerful", "heartfelt", "rustic"],
  scenes: ["around a campfire", "for a village dance", "for a walk in the hills", "with strummed chords"],
  minorShare: 0.35,
  feel: { swingSteps: 2, swing: 0.03, timingSeconds: 0.009, touch: 7 },
  progressions: {
    major: {
      verse: ["I | IV | I | V", "I | I | V | I", "I | V | vi | IV", "I | bVII | IV | I"],
      chorus: ["IV | I | V | I", "I | IV | V | I"],
      bridge: ["vi | IV | I | V"],
    },
    minor: {
      verse: ["i | bVII | i | bVII", "i | bIII | bVII | i", "i | bVII | bVI | bVII"],
      chorus: ["bIII | bVII | i | i", "i | iv | bVII | i"],
      bridge: ["bVI | bIII | bVII | i"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 3,
      bpm: [80, 144],
      drums: {
        light: [
          { kick: "x.......x.......", tambourine: "....x.......x..." },
          { kick: "x.....x.x.......", tambourine: "....x..x....x..x" },
        ],
        full: [{ kick: "X...x...X...x...", tambourine: "x.x.X.x.x.x.X.x.", conga: "......x.......x." }],
      },
      bass: ["R-------5-------", "R---5---R---5---"],
      comp: ["b---u-u-b---u-u-", "X---x-xx..xxx-x-", "0-2-1-2-0-2-1-2-"],
    },
    {
      metre: "6/8",
      weight: 2,
      bpm: [84, 126],
      drums: {
        light: [
          { kick: "x.....x.....", tambourine: "....x.....x." },
          { kick: "x.....x...x.", tambourine: "..x.x...x.x." },
        ],
        full: [{ kick: "X...o.X...o.", tambourine: "x.x.x.x.x.x." }],
      },
      bass: ["R-----5-----", "R---R-5---5-"],
      comp: ["b---u-b---u-", "x-x-x-x-x-x-", "0-1-2-3-2-1-"],
    },
    {
      metre: "3/4",
      weight: 1.5,
      bpm: [90, 150],
      drums: {
        light: [
          { kick: "x...........", tambourine: "....x...x..." },
          { kick: "x.......x...", tambourine: "....x.....x." },
        ],
        full: [{ kick: "X...........", tambourine: "..x.X.x.X.x." }],
      },
      bass: ["R-------5---", "R-----------"],
      comp: ["b---u---u---", "x---x-x-x-x-", "0-1-2-3-2-1-"],
    },
    {
      metre: "2/4",
      weight: 1.5,
      bpm: [96, 140],
      drums: {
        light: [
          { kick: "x.......", tambourine: "..x...x." },
          { kick: "x...x...", tambourine: "..x..xx." },
        ],
        full: [{ kick: "X...x...", tambourine: "x.X.x.X." }],
      },
      bass: ["R---5---"],
      comp: ["b-u-b-u-", "..x-..x-"],
    },
  ],
  band: {
    drums: ["handPercussion"],
    bass: ["uprightBass"],
    comp: ["steelGuitar", "nylonGuitar"],
    pulse: [],
    pad: ["accordion", "slowStrings"],
    lead: ["violin", "tinWhistle", "accordion", "flute", "steelGuitar"],
  },
  fill: ["tambourine", "conga", "lowConga"],
  presence: { drums: 0.65, pulse: 0, pad: 0.25, lead: 0.9 },
  melody: { density: 1.6, syncopation: 0.15, leap: 3 },
};
