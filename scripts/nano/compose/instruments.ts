/** The instruments of the pieces, with their General MIDI programs, stems, names in captions, and ranges. */

type PitchedStem = "bass" | "guitar" | "keyboard" | "strings" | "synth" | "woodwinds" | "brass";
/**
 * Stems of the pieces. They are a subset of the track names that ACE-Step 1.5 uses in prompts for extract,
 * lego and complete.
 */
export type StemName = "drums" | "percussion" | PitchedStem;

export interface Instrument {
  stem: StemName;
  /** General MIDI program, counted from 0; for a drum kit, the number of the kit. */
  program: number;
  isDrumKit: boolean;
  /** Names of the instrument in captions. */
  words: readonly string[];
  /** Range of MIDI notes in which the instrument sounds well. */
  lowest: number;
  highest: number;
  /** Reverb send, 0 .. 127. */
  reverb: number;
}

const instrument = (
  stem: StemName,
  program: number,
  lowest: number,
  highest: number,
  reverb: number,
  words: string,
): Instrument => ({ stem, program, isDrumKit: false, words: words.split(", "), lowest, highest, reverb });

const drumKit = (stem: StemName, program: number, words: string): Instrument => ({
  ...instrument(stem, program, 27, 87, 0, words),
  isDrumKit: true,
});

export const instruments = {
  standardKit: drumKit("drums", 0, "drums, acoustic drums, a live drum kit"),
  roomKit: drumKit("drums", 8, "drums, roomy drums, a live drum kit"),
  powerKit: drumKit("drums", 16, "drums, powerful drums, hard-hitting drums"),
  electronicKit: drumKit("drums", 24, "electronic drums, a drum machine, punchy drums"),
  analogKit: drumKit("drums", 25, "an 808 drum machine, electronic drums, a drum machine"),
  jazzKit: drumKit("drums", 32, "jazz drums, a swinging drum kit, drums"),
  brushKit: drumKit("drums", 40, "brushed drums, soft brushes, brush drums"),
  orchestralDrums: drumKit(
    "percussion",
    48,
    "orchestral percussion, cinematic drums, timpani and percussion",
  ),
  handPercussion: drumKit("percussion", 0, "hand percussion, percussion, congas and shaker"),

  piano: instrument("keyboard", 0, 48, 88, 45, "piano, grand piano, acoustic piano"),
  brightPiano: instrument("keyboard", 1, 50, 90, 35, "piano, bright piano"),
  electricPiano: instrument("keyboard", 4, 48, 84, 40, "electric piano, Rhodes, warm electric piano"),
  organ: instrument("keyboard", 16, 48, 84, 30, "organ, Hammond organ"),
  accordion: instrument("keyboard", 21, 53, 84, 35, "accordion"),
  celesta: instrument("keyboard", 8, 60, 96, 60, "celesta, delicate bells"),
  vibraphone: instrument("keyboard", 11, 53, 89, 50, "vibraphone, mellow vibes"),

  nylonGuitar: instrument("guitar", 24, 45, 79, 40, "nylon guitar, classical guitar, soft nylon guitar"),
  steelGuitar: instrument("guitar", 25, 45, 81, 35, "acoustic guitar, steel-string guitar, strummed guitar"),
  jazzGuitar: instrument("guitar", 26, 45, 79, 35, "jazz guitar, mellow guitar"),
  cleanGuitar: instrument("guitar", 27, 45, 81, 35, "clean electric guitar, electric guitar"),
  mutedGuitar: instrument("guitar", 28, 45, 79, 20, "muted guitar, scratchy rhythm guitar"),
  overdrivenGuitar: instrument(
    "guitar",
    29,
    40,
    76,
    25,
    "overdriven guitar, electric guitar, crunchy guitar",
  ),
  distortedGuitar: instrument("guitar", 30, 40, 76, 20, "distorted guitar, heavy guitar"),

  uprightBass: instrument("bass", 32, 28, 52, 0, "upright bass, double bass"),
  fingerBass: instrument("bass", 33, 28, 52, 0, "electric bass, bass guitar, warm bass"),
  pickedBass: instrument("bass", 34, 28, 52, 0, "picked bass, bass guitar, driving bass"),
  slapBass: instrument("bass", 36, 28, 55, 0, "slap bass, funky bass"),
  synthBass: instrument("bass", 38, 28, 52, 0, "synth bass, analog bass"),
  deepSynthBass: instrument("bass", 39, 28, 50, 0, "deep synth bass, sub bass, synth bass"),

  violin: instrument("strings", 40, 58, 91, 60, "violin, fiddle"),
  cello: instrument("strings", 42, 40, 72, 60, "cello, solo cello"),
  pizzicato: instrument("strings", 45, 48, 84, 50, "pizzicato strings, plucked strings"),
  harp: instrument("strings", 46, 45, 88, 60, "harp"),
  strings: instrument("strings", 48, 45, 86, 65, "strings, a string section, lush strings"),
  slowStrings: instrument("strings", 49, 43, 84, 70, "slow strings, soft strings, warm strings"),

  trumpet: instrument("brass", 56, 55, 84, 45, "trumpet"),
  mutedTrumpet: instrument("brass", 59, 55, 82, 45, "muted trumpet"),
  frenchHorn: instrument("brass", 60, 45, 74, 65, "French horn, noble horns"),
  brassSection: instrument("brass", 61, 48, 80, 35, "brass section, punchy horns, brass"),

  altoSaxophone: instrument("woodwinds", 65, 52, 82, 45, "saxophone, alto sax"),
  tenorSaxophone: instrument("woodwinds", 66, 46, 77, 45, "tenor saxophone, smoky saxophone"),
  oboe: instrument("woodwinds", 68, 58, 87, 60, "oboe"),
  clarinet: instrument("woodwinds", 71, 50, 86, 50, "clarinet"),
  flute: instrument("woodwinds", 73, 60, 93, 55, "flute, airy flute"),
  tinWhistle: instrument("woodwinds", 78, 67, 95, 50, "tin whistle, whistle"),

  squareLead: instrument("synth", 80, 52, 91, 40, "square-wave synth, retro synth lead, synth lead"),
  sawLead: instrument("synth", 81, 52, 91, 40, "saw synth lead, synth lead, bright synth"),
  warmPad: instrument("synth", 89, 45, 84, 60, "warm synth pad, synth pad, warm pads"),
  polySynth: instrument("synth", 90, 48, 86, 45, "analog polysynth, synthesizer, vintage synth"),
  glassPad: instrument("synth", 92, 48, 88, 70, "glassy pad, shimmering pad"),
  sweepPad: instrument("synth", 95, 45, 84, 65, "evolving pad, sweeping pad, synth pad"),
} as const satisfies Record<string, Instrument>;

export type InstrumentName = keyof typeof instruments;

export function parseInstrumentName(name: string): InstrumentName {
  if (!(name in instruments)) throw new RangeError(`${name} is no instrument`);
  return name as InstrumentName;
}
