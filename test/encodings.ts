/** A text in the encodings of Windows editors, each with a byte order mark. */
export function encoded(text: string) {
  return {
    utf8: Buffer.from(`\uFEFF${text}`),
    utf16le: Buffer.from(`\uFEFF${text}`, "utf16le"),
    utf16be: Buffer.from(`\uFEFF${text}`, "utf16le").swap16(),
  };
}
