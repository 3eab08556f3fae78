/** Values of the parameter `audio_format`. GET /v1/audio converts songs to the same formats. */
export const FORMATS = ["mp3", "flac", "wav", "wav24", "wav32", "opus", "aac", "ogg"];

/** File extension for a format. */
export function extensionOf(format: string): string {
  return format.replace(/^wav\d+$/, "wav");
}
