import type { Genre } from "./genre.js";

export const ambient: Genre = {
  name: "ambient",
  names: ["ambient", "calm ambient", "ambient soundscape", "meditative ambient", "new age"],
  moods: ["peaceful", "ethereal", "floating", "calm", "spacious"],
  scenes: ["for meditation", "for deep sleep", "like drifting in space", "with slow evolving pads"],
  minorShare: 0.45,
  feel: { swingSteps: 1, swing: 0, timingSeconds: 0.006, touch: 5 },
  progressions: {
    major: {
      verse: ["Imaj7 | Imaj7 | IVmaj7 | IVmaj7", "Iadd9 | vi7 | IVmaj7 | Vsus4", "Isus2 | I | IVmaj7 | I"],
      chorus: ["Imaj7 | iii7 | IVmaj7 | I", "IVmaj7 | I | vi7 | I"],
      bridge: ["vi7 | IVmaj7 | ii7 | Vsus4"],
    },
    minor: {
      verse: ["i7 | i7 | bVImaj7 | bVImaj7", "iadd9 | bIIImaj7 | bVImaj7 | bVII", "i | iv7 | i | bVII"],
      chorus: ["i7 | bVImaj7 | bIIImaj7 | i7", "bVImaj7 | bVII | i7 | i7"],
      bridge: ["iv7 | bVImaj7 | i7 | i7"],
    },
  },
  styles: [
    {
      metre: "4/4",
      weight: 3,
      bpm: [60, 84],
      bass: ["R---------------", "R-------5-------"],
      comp: ["0-..1-..2-..3-..", "0-1-2-3-2-1-2-1-", "x-------x-------"],
      pulse: ["0...2...1...3...", "0.1.2.3.4.3.2.1."],
    },
    {
      metre: "3/4",
      weight: 1,
      bpm: [60, 84],
      bass: ["R-----------"],
      comp: ["0-..1-..2-..", "0-1-2-3-2-1-"],
      pulse: ["0...2...1...", "0.1.2.3.2.1."],
    },
    {
      metre: "6/8",
      weight: 1,
      bpm: [60, 72],
      bass: ["R-----------"],
      comp: ["0-1-2-3-2-1-"],
      pulse: ["0.1.2.3.2.1."],
    },
  ],
  band: {
    bass: ["deepSynthBass", "cello"],
    comp: ["electricPiano", "harp", "piano", "celesta"],
    pulse: ["celesta", "glassPad", "harp"],
    pad: ["warmPad", "glassPad", "sweepPad", "slowStrings"],
    lead: ["flute", "glassPad", "cello", "vibraphone"],
  },
  fill: ["cabasa"],
  presence: { drums: 0, pulse: 0.5, pad: 1, lead: 0.75 },
  melody: { density: 0.6, syncopation: 0.1, leap: 4 },
};
