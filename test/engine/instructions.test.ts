import { expect } from "chai";
import {
  instructionOf,
  legoCaption,
  type TaskDescription,
  textToMusicInstruction,
} from "../../src/engine/conditioning.js";

const plain: TaskDescription = {
  task: "text2music",
  instruction: "",
  trackName: "",
  trackClasses: [],
  hasAudioCodes: false,
};

describe("task instructions", () => {
  const derived: [change: Partial<TaskDescription>, instruction: string][] = [
    [{}, "Fill the audio semantic mask based on the given conditions:"],
    [{ hasAudioCodes: true }, "Generate audio semantic tokens based on the given conditions:"],
    [{ task: "cover" }, "Generate audio semantic tokens based on the given conditions:"],
    [{ task: "repaint" }, "Repaint the mask area based on the given conditions:"],
    [{ task: "extract", trackName: "backing_vocals" }, "Extract the BACKING_VOCALS track from the audio:"],
    [{ task: "extract" }, "Extract the track from the audio:"],
    [{ task: "lego", trackName: " bass " }, "Generate the BASS track based on the audio context:"],
    [{ task: "lego", trackName: " " }, "Generate the track based on the audio context:"],
    [{ task: "complete", trackClasses: ["drums", "bass"] }, "Complete the input track with DRUMS | BASS:"],
    [{ task: "complete", trackClasses: ["drums"] }, "Complete the input track with DRUMS:"],
    [{ task: "complete", trackClasses: [" "] }, "Complete the input track:"],
    [{ task: "complete" }, "Complete the input track:"],
  ];
  for (const [change, instruction] of derived) {
    it(`tell ${JSON.stringify(change)}: ${instruction}`, () => {
      expect(instructionOf({ ...plain, ...change })).to.equal(instruction);
    });
  }

  it("are the client's where it wrote some", () => {
    expect(instructionOf({ ...plain, task: "cover", instruction: " Do it " })).to.equal("Do it");
    expect(textToMusicInstruction).to.equal(instructionOf(plain));
  });

  it("come with captions in parts for checkpoints trained on stems", () => {
    expect(legoCaption("slap", "funk", "Generate the BASS track:", "explicit")).to.equal(
      "Global: funk\nLocal: slap\nMask Control: true",
    );
    expect(legoCaption("slap", "funk", "Generate a segment of BASS:", "auto")).to.equal(
      "Local: slap\nMask Control: false",
    );
  });
});
