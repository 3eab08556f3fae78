/** Tests which lines of a song's timed lyrics are shown as sung. */
import { expect } from "chai";
import type { Song } from "../../../src/web/studio/api.js";
import { areSungTogether, lineAt, lyricLines } from "../../../src/web/studio/timed-lyrics.js";

function sungAt(lrc: string, shown: number): string[] {
  const lines = lyricLines({ lrc } as Song);
  const current = lineAt(lines, shown);
  return lines.filter((_, index) => areSungTogether(lines, index, current)).map(({ text }) => text);
}

describe("timed lyrics", () => {
  const lrc = "[00:02.00]one\n[00:02.00]uno\n[00:04.08]two\n[01:05.50]three";

  it("before the first line, no line is sung", () => expect(sungAt(lrc, 1.8)).to.deep.equal([]));
  it("lines that begin together are sung together", () => {
    expect(sungAt(lrc, 2)).to.deep.equal(["one", "uno"]);
    expect(sungAt(lrc, 3.9)).to.deep.equal(["one", "uno"]);
  });
  it("a line is sung from the step in which it begins to the next line", () => {
    expect(sungAt(lrc, 4)).to.deep.equal(["two"]);
    expect(sungAt(lrc, 65.4)).to.deep.equal(["two"]);
    expect(sungAt(lrc, 65.5)).to.deep.equal(["three"]);
  });
});
