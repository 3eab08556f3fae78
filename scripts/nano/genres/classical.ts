import type { Genre } from "./genre.js";

export const classical: Genre = {
  name: "classical",
  names: ["classical", "romantic classical", "classical chamber music", "salon music", "classical music"],
  moods: ["elegant", "graceful", "tender", "refined", "wistful"],
  scenes: ["for a ballroom", "for a quiet salon", "in a concert hall", "with delicate phrasing"],
  minorShare: 0.45,
  feel: { swingSteps: 2, swing: 0, timingSeconds: 0.01, touch: 8 },
  progressions: {
    major: {
      verse: ["I | V7 | I | V7", "I | IV | V7 | I", "I | vi | ii | V7 | I | IV | V7 | I"],
      chorus: ["IV | I | V7 | I", "I | V7 | vi | IV | I | ii | V7 | I"],
      bridge: ["vi | II7 | V | V7", "iii | vi | ii | V7"],
    },
    minor: {
      verse: ["i | V7 | i | V7", "i | iv | V7 | i", "i | bVI | iv | V7"],
      chorus: ["bIII | bVII | i | V7", "iv | i | V7 | i"],
      bridge: ["bVI | bIII | iv | V7"],
    },
  },
  styles: [
    {
      metre: "3/4",
      weight: 4,
      bpm: [84, 176],
      bass: ["R-----------", "R---5---5---"],
      comp: ["b---u---u---", "b---u-..u-..", "0-1-2-3-2-1-"],
      pulse: ["0-1-2-3-2-1-"],
    },
    {
      metre: "4/4",
      weight: 3,
      bpm: [66, 132],
      bass: ["R-------5-------", "R---------------"],
      comp: ["0-2-1-2-0-2-1-2-", "b---u---b---u---", "0123012301230123"],
      pulse: ["0-1-2-3-2-1-2-1-"],
    },
    {
      metre: "6/8",
      weight: 2,
      bpm: [60, 90],
      bass: ["R-----5-----", "R-----------"],
      comp: ["0-1-2-0-1-2-", "b-u-u-b-u-u-"],
      pulse: ["0-1-2-3-2-1-"],
    },
    {
      metre: "2/4",
      weight: 1.5,
      bpm: [90, 140],
      bass: ["R---5---", "R---R---"],
      comp: ["b-u-b-u-", "b---u---", "0-2-1-2-"],
    },
  ],
  band: {
    bass: ["cello"],
    comp: ["piano", "harp", "pizzicato"],
    pulse: ["harp", "pizzicato"],
    pad: ["slowStrings", "strings"],
    lead: ["piano", "violin", "flute", "clarinet", "oboe"],
  },
  fill: ["snare"],
  presence: { drums: 0, pulse: 0.2, pad: 0.3, lead: 1 },
  melody: { density: 1.4, syncopation: 0.1, leap: 4 },
};
