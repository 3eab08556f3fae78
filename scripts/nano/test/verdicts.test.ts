import { expect } from "chai";
import { isKey, isTempo } from "../eval/verdicts.js";

describe("verdicts of carillon-nano's evaluation", () => {
  it("accept a tempo within 4 %, also counted at half or twice", () => {
    for (const measured of [100, 103.9, 96.1, 201, 50])
      expect(isTempo(100, measured), `${measured}`).to.equal(true);
    for (const measured of [104.1, 150, 33, 125])
      expect(isTempo(100, measured), `${measured}`).to.equal(false);
  });

  it("compare keys by sound, not by spelling", () => {
    expect(isKey("Db major", "C# major")).to.equal(true);
    expect(isKey("G♯ minor", "G# minor")).to.equal(true);
    expect(isKey("C major", "A minor")).to.equal(false);
    expect(isKey("A minor", null)).to.equal(false);
    expect(() => isKey("H minor", "A minor")).to.throw(RangeError, "H minor");
  });
});
