/** The fields of a think block and what each may hold (reference/lm.md 4.1). */

/** An absent field is not written. */
export interface ThinkFields {
  bpm?: number | undefined;
  caption?: string | undefined;
  /** Seconds. */
  duration?: number | undefined;
  /** For example "F# minor". */
  keyscale?: string | undefined;
  /** One of `languages`. */
  language?: string | undefined;
  /** One of `timeSignatures`. */
  timesignature?: string | undefined;
}

export const bpmRange = { min: 30, max: 300 } as const;
export const durationSecondsRange = { min: 10, max: 600 } as const;

/** Beats of 2/4, 3/4, 4/4 and 6/8. */
export const timeSignatures = ["2", "3", "4", "6"] as const;

export const keyNotes = ["A", "B", "C", "D", "E", "F", "G"] as const;
export const keyAccidentals = ["#", "b", "♯", "♭"] as const;
export const keyModes = ["major", "minor"] as const;

export const unknownLanguage = "unknown";
export const languages: readonly string[] = [
  ..."ar az bg bn ca cs da de el en es fa fi fr he hi hr ht hu id is it ja ko la lt ms ne nl no".split(" "),
  ..."pa pl pt ro ru sa sk sr sv sw ta te th tl tr uk ur vi yue zh".split(" "),
  unknownLanguage,
];
