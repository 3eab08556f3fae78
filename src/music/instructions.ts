/** Instructions that the weights were trained on, word for word (reference/music-http.md 2.10). */
const FILL_MASK = "Fill the audio semantic mask based on the given conditions:";
const FROM_CODES = "Generate audio semantic tokens based on the given conditions:";

/** What the renderer is told to do; a client's own words win unless they are the default. */
export function instructionFor(given: string | null, hasAudioCodes: boolean): string {
  if (given !== null && given !== FILL_MASK) return given;
  return hasAudioCodes ? FROM_CODES : FILL_MASK;
}
