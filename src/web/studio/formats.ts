/** Formats of `audio_format`, and of conversions by GET /v1/audio. */
export const FORMATS = ["mp3", "flac", "wav", "wav24", "wav32", "opus", "aac", "ogg"];

/** The extension of a file of this format. */
export function extensionOf(format: string): string {
  return format.replace(/^wav\d+$/, "wav");
}
