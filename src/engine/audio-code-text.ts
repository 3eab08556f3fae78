/** Text format of audio codes, in vocabularies, requests and results. */

export function audioCodeToken(code: number): string {
  return `<|audio_code_${code}|>`;
}

export function audioCodeText(codes: Iterable<number>): string {
  return Array.from(codes, audioCodeToken).join("");
}
