import { expect } from "chai";
import { judgeKey, judgeTempo } from "../eval/verdicts.js";

describe("verdicts of carillon-nano's evaluation", () => {
  it("accepts a tempo within 4 % and tells metrical levels apart", () => {
    expect(judgeTempo(100, 103.9)).to.equal("exact");
    expect(judgeTempo(100, 104.1)).to.equal("other");
    expect(judgeTempo(100, 201)).to.equal("metrical");
    expect(judgeTempo(100, 33)).to.equal("metrical");
    expect(judgeTempo(100, 150)).to.equal("metrical");
    expect(judgeTempo(100, 125)).to.equal("other");
  });

  it("compares keys by sound, not by spelling", () => {
    expect(judgeKey("Db major", "C# major")).to.equal("exact");
    expect(judgeKey("G♯ minor", "G# minor")).to.equal("exact");
    expect(judgeKey("C major", "G major")).to.equal("related");
    expect(judgeKey("C major", "A minor")).to.equal("related");
    expect(judgeKey("A minor", "C major")).to.equal("related");
    expect(judgeKey("A minor", "A major")).to.equal("related");
    expect(judgeKey("A minor", "F# major")).to.equal("other");
    expect(judgeKey("A minor", null)).to.equal("other");
    expect(() => judgeKey("H minor", "A minor")).to.throw(RangeError, "H minor");
  });
});
