import { expect } from "chai";
import { canonicalKeyScale } from "../../../src/engine/metadata.js";
import { naturalPrompts } from "../eval/natural-prompts.js";
import { genres } from "../genres/index.js";
import { testPython } from "../python.js";

describe("evaluation of carillon-nano", () => {
  it("passes the Python tests of scripts/nano/eval", function () {
    this.timeout(1_200_000);
    testPython("eval");
  });

  it("uses natural prompts that are unique and name only known keys and genres", () => {
    const names = [null, ...genres.map(({ name }) => name)];
    for (const { caption, keyScale, genre } of naturalPrompts) {
      if (keyScale !== null) expect(canonicalKeyScale(keyScale), caption).to.equal(keyScale);
      expect(names, caption).to.include(genre);
    }
    expect(new Set(naturalPrompts.map(({ caption }) => caption)).size).to.equal(naturalPrompts.length);
  });
});
