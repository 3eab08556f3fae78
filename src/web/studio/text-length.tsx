/** Warns while typing that a text is too long. */

import { t } from "./language.js";

/** Maximum lengths that the service accepts (../../parameters.ts). */
export const MAX_PROMPT_CHARACTERS = 4096;
export const MAX_LYRICS_CHARACTERS = 32_768;
/**
 * Approximate numbers of characters that models read: 256 tokens of prompt and metadata, and 2048 tokens of
 * lyrics.
 */
export const PROMPT_CHARACTERS_READ = 800;
export const LYRICS_CHARACTERS_READ = 6000;

interface TextLengthProps {
  id: string;
  text: string;
  /** Maximum number of characters that the service accepts. */
  max: number;
  /** Approximate number of characters that models read; by default all. */
  used?: number;
}

export function TextLength({ id, text, max, used = max }: TextLengthProps) {
  const { length } = text;
  const words =
    length > max
      ? t("{count} characters too long: {length} of {max}.", { count: length - max, length, max })
      : length > used
        ? t("Long: models read about the first {used} of {length} characters.", { used, length })
        : "";
  return (
    <p id={id} role="status" class={length > max ? "length failed" : "length faint"}>
      {words}
    </p>
  );
}
