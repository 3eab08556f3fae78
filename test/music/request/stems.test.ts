import { expect } from "chai";
import { STEMS } from "../../../src/engine/conditioning.js";
import { parametersOf } from "../../../src/music/request/replay.js";
import { parse, parsed, RANDOM_SEED, refusal } from "./request-parsing.js";

const extract = { task_type: "extract", src_audio_path: "/a.mp3" };
const lego = { task_type: "lego", src_audio_path: "/a.mp3" };
const complete = { task_type: "complete", src_audio_path: "/a.mp3" };

describe("parsing of a request with stems", () => {
  it("makes one song for each stem in track_classes, which may be a list or a text", () => {
    for (const track_classes of [
      ["drums", "bass"],
      "drums,bass",
      "drums | bass",
      '["drums","bass"]',
      ["Drum", "BASS", "drums"],
    ]) {
      for (const task of [extract, lego]) {
        const { tracks, seeds, warnings } = parsed({ ...task, track_classes });
        expect({ tracks, warnings }).to.deep.equal({ tracks: [["drums"], ["bass"]], warnings: [] });
        expect(seeds).to.deep.equal([RANDOM_SEED, RANDOM_SEED]);
      }
    }
  });

  it("makes batch_size versions of track_name", () => {
    const request = parsed({ ...extract, track_name: "Backing-Vocals", batch_size: 3 });
    expect(request.tracks).to.deep.equal(Array(3).fill(["backing_vocals"]));
    const both = parsed({ ...extract, track_name: "vocal", track_classes: ["drums", "bass"], batch_size: 1 });
    expect(both.tracks).to.deep.equal([["vocals"]]);
    expect(both.warnings).to.deep.equal(["track_classes was ignored: replaced by track_name"]);
  });

  it("extracts all stems with `all`, with one seed for all or one for each", () => {
    const request = parsed({ ...extract, track_classes: "all", use_random_seed: false, seed: 5 });
    expect(request.tracks).to.deep.equal(STEMS.map((stem) => [stem]));
    expect(parsed({ ...extract, track_name: "All" }).tracks).to.deep.equal(request.tracks);
    expect(request.seeds).to.deep.equal(STEMS.map(() => 5));
    const own = STEMS.map((_, index) => index);
    const other = parse({ ...extract, track_classes: ["all"], use_random_seed: false, seed: own });
    expect(other.songs.map(({ seed }) => seed)).to.deep.equal(own);
    const { warnings, ...settled } = other;
    const again = parse(
      JSON.parse(JSON.stringify(parametersOf({ request: { ...settled, warnings }, state: "succeeded" }))),
    );
    expect(again).to.deep.include(settled);
  });

  it("warns that batch_size is ignored with track_classes", () => {
    const { warnings } = parsed({ ...extract, track_classes: ["drums", "bass", "fx"], batch_size: 4 });
    expect(warnings).to.deep.equal(["batch_size was ignored: track_classes makes one song for each stem"]);
  });

  it("refuses to extract an unknown stem, and lists the known ones", () => {
    for (const stems of [{ track_name: "kazoo" }, { track_classes: ["drums", "kazoo"] }]) {
      expect(refusal({ ...extract, ...stems })).to.equal(
        `stem "kazoo" is unknown to the models: use ${STEMS.join(", ")}, or all`,
      );
    }
    expect(refusal({ ...extract, track_name: "brasss" })).to.include("(did you mean brass?)");
  });

  it("refuses unknown stems for lego and complete", () => {
    const known = `is unknown to the models: use ${STEMS.join(", ")}`;
    expect(refusal({ ...lego, track_name: "custom" })).to.equal(`stem "custom" ${known}`);
    expect(refusal({ ...complete, track_classes: ["Kazoo", "drums"] })).to.equal(`stem "Kazoo" ${known}`);
  });

  it("warns about extract and lego without a stem, unless there is an instruction", () => {
    for (const task of [extract, lego]) {
      expect(parsed(task).warnings.join()).to.match(/^(extract|lego) has no stem: set track_name/);
      expect(
        parsed({ ...task, instruction: "Extract the vocal track from the audio" }).warnings,
      ).to.deep.equal([]);
    }
    expect(parsed(complete).warnings).to.deep.equal([]);
  });
});
