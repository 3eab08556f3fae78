import { expect } from "chai";
import { writtenLanguage } from "../../src/engine/written-language.js";

describe("the language of words", () => {
  it("is told of each text, whoever asks at a time, and of none where there is nothing to go by", async () => {
    const told = await Promise.all(
      [
        "[verse] I walk along the river tonight and think of you",
        "[strophe] ich gehe heute Nacht am Fluss entlang und denke an dich",
        "[Instrumental]",
        "je marche le long de la rivière ce soir et je pense à toi",
        "zzqx 1234",
      ].map(writtenLanguage),
    );
    expect(told).to.deep.equal(["en", "de", null, "fr", null]);
  });
});
