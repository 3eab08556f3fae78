import { expect } from "chai";
import { noteOf, say } from "../src/notes.js";

describe("notes of the service", () => {
  it("gives a sentence its code and values", () => {
    const stated = say("fact_stated", { name: "bpm", value: 75, words: "75 bpm, slow" });
    const ambiguous = say("fact_ambiguous", { name: "tempo", words: "75", others: "90 bpm" });
    expect(noteOf(stated)).to.deep.include({
      code: "fact_stated",
      values: { name: "bpm", value: "75", words: "75 bpm, slow" },
    });
    expect(noteOf(ambiguous).values).to.deep.equal({ name: "tempo", words: "75", others: "90 bpm" });
    const absent = say("recording_absent", { name: "src_audio_path", advice: ": upload it as src_audio" });
    expect(noteOf(absent).values).to.deep.equal({
      name: "src_audio_path",
      advice: ": upload it as src_audio",
    });
    expect(noteOf(say("queue_full", {}))).to.deep.include({ code: "queue_full", values: {} });
  });

  it("keeps a client's words whole, whatever they contain", () => {
    const corrected = {
      reason: 'infer_method must be ode or sde, not "ode; sde; x was used"',
      value: '"ode"',
    };
    expect(noteOf(say("value_corrected", corrected))).to.deep.include({
      code: "value_corrected",
      values: corrected,
    });
  });

  it("leaves other sentences without a code, however long a client made them", () => {
    for (const text of ["", "out of memory", "src_audio", " is empty", `x${" of ".repeat(20_000)}`])
      expect(noteOf(text)).to.deep.equal({ code: "other", values: {}, text });
  });
});
