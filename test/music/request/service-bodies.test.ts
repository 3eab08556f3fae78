import { expect } from "chai";
import { RequestError } from "../../../src/music/errors.js";
import {
  parseFormatInput,
  parseModelSwitch,
  parseRandomSample,
  parseTaskIds,
} from "../../../src/music/request/service-bodies.js";
import { parseSampleChange } from "../../../src/music/request/training-bodies.js";
import type { Fields } from "../../../src/parameters.js";
import { thrownBy } from "../../failures.js";

const refusal = (parse: () => unknown): string => {
  const error = thrownBy(parse);
  expect(error).to.be.instanceOf(RequestError);
  return (error as RequestError).detail;
};

describe("parsing of task_id_list", () => {
  const accepted: [string, unknown, string[]][] = [
    ["an array, keeping order and repetitions", ["b", "a", "b"], ["b", "a", "b"]],
    ["JSON text of an array", '["a","b"]', ["a", "b"]],
    ["an empty array", [], []],
    ["JSON text of an empty array", " [] ", []],
    ["one id as text", "3f0c1b1e-6a57", ["3f0c1b1e-6a57"]],
    ["comma-separated ids", "a, b,,c", ["a", "b", "c"]],
    ["numbers among the ids", [1, "a"], ["1", "a"]],
    ["null", null, []],
    ["a number", 7, []],
    ["blank text", "", []],
  ];
  for (const [name, value, ids] of accepted) {
    it(`task_id_list may be ${name}`, () => {
      expect(parseTaskIds({ task_id_list: value })).to.deep.equal(ids);
    });
  }

  it("task_id_list may be named taskIdList", () => {
    expect(parseTaskIds({ taskIdList: ["a"] })).to.deep.equal(["a"]);
  });

  it("task_id_list is required", () => {
    expect(refusal(() => parseTaskIds({}))).to.equal("task_id_list is missing; the body holds no keys");
  });

  for (const value of [[{}], [null], [["a"]], {}, true, '{"a":1}', "5", "null", "[null]", '[{"id":1}]']) {
    it(`task_id_list may not be ${JSON.stringify(value)}`, () => {
      expect(refusal(() => parseTaskIds({ task_id_list: value }))).to.match(/^task_id_list must be an array/);
    });
  }

  it("task_id_list may hold at most 1000 ids", () => {
    const ids = Array.from({ length: 1001 }, (_, i) => `id${i}`);
    expect(parseTaskIds({ task_id_list: ids.slice(1) })).to.have.length(1000);
    expect(refusal(() => parseTaskIds({ task_id_list: ids }))).to.include("at most 1000 ids, got 1001");
  });
});

describe("parsing of /format_input bodies", () => {
  const parse = (fields: Fields) => parseFormatInput(fields, "refuse");

  it("/format_input has a default for every field", () => {
    expect(parse({})).to.deep.equal({
      prompt: "",
      lyrics: "",
      temperature: 0.85,
      bpm: null,
      durationSeconds: null,
      keyScale: "",
      timeSignature: "",
      language: null,
      warnings: [],
    });
  });

  it("/format_input reads param_obj as an object and as JSON text", () => {
    const metadata = { duration: 120, bpm: "92", key: "D Major", time_signature: "4/4", language: "de" };
    const expected = {
      durationSeconds: 120,
      bpm: 92,
      keyScale: "D Major",
      timeSignature: "4",
      language: "de",
    };
    for (const param_obj of [metadata, JSON.stringify(metadata)]) {
      expect(parse({ prompt: "folk", lyrics: "la", temperature: "0.5", param_obj })).to.deep.equal({
        prompt: "folk",
        lyrics: "la",
        temperature: 0.5,
        ...expected,
        warnings: [],
      });
    }
  });

  it("/format_input also reads metadata from the top level", () => {
    const metadata = { key_scale: "B♭ major", time_signature: "3", duration: "N/A", language: "German" };
    expect(parse({ ...metadata, param_obj: { bpm: 90 } })).to.include({
      keyScale: "Bb major",
      timeSignature: "3",
      bpm: 90,
      durationSeconds: null,
      language: "de",
    });
  });

  it("/format_input treats an empty, absent or unparsable param_obj as empty", () => {
    for (const param_obj of ["", "{}", "oops", undefined, null])
      expect(parse({ param_obj }).bpm).to.equal(null);
  });

  it("/format_input refuses a param_obj that is not an object, and values out of range", () => {
    for (const param_obj of ["[1]", "5", [1], 5, true]) {
      expect(refusal(() => parse({ param_obj }))).to.match(/^param_obj must be an object/);
    }
    expect(refusal(() => parse({ param_obj: { bpm: 9999 } }))).to.equal(
      "bpm must be from 30 to 300, got 9999",
    );
    expect(parseFormatInput({ param_obj: { bpm: 9999 } }, "clamp").bpm).to.equal(300);
  });
});

describe("parsing of changes of a data set sample", () => {
  it("reads key, language, tempo and lyrics as other programs write them", () => {
    const change = { keyscale: "B♭ major", language: "English", bpm: "N/A", lyrics: "[00:01.00]la" };
    expect(parseSampleChange(change)).to.include({
      keyscale: "Bb major",
      language: "en",
      bpm: null,
      lyrics: "la",
    });
  });
});

describe("parsing of random sample requests", () => {
  it("sample_type is simple_mode by default; any other value means custom_mode", () => {
    expect(parseRandomSample({}).sampleType).to.equal("simple_mode");
    expect(parseRandomSample({ sample_type: "" }).sampleType).to.equal("simple_mode");
    expect(parseRandomSample({ sample_type: "custom_mode" }).sampleType).to.equal("custom_mode");
    expect(parseRandomSample({ sample_type: "x" }).sampleType).to.equal("custom_mode");
    expect(refusal(() => parseRandomSample({ sample_type: {} }))).to.include("sample_type");
  });
});

describe("parsing of model switches", () => {
  it("a model switch has a default for every field", () => {
    expect(parseModelSwitch({})).to.deep.equal({
      model: null,
      slot: 1,
      initLanguageModel: false,
      languageModel: null,
    });
  });

  it("a model switch reads every field", () => {
    const fields = { model: "a", slot: "3", init_llm: "true", lm_model_path: "b" };
    expect(parseModelSwitch(fields)).to.deep.equal({
      model: "a",
      slot: 3,
      initLanguageModel: true,
      languageModel: "b",
    });
  });

  it("a model switch refuses slots other than 1 to 3, and wrong types", () => {
    for (const slot of [0, 4, -1]) {
      expect(refusal(() => parseModelSwitch({ slot }))).to.equal(`slot must be from 1 to 3, got ${slot}`);
    }
    expect(refusal(() => parseModelSwitch({ slot: "first" }))).to.include("slot must be a number");
    expect(refusal(() => parseModelSwitch({ model: ["a"] }))).to.include("model must be text");
    expect(refusal(() => parseModelSwitch({ init_llm: {} }))).to.include("init_llm must be true or false");
  });
});
